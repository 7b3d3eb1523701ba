"""SHAP's explainers give the same contributions as `explain`."""

import numpy as np
import pytest

import podium
from podium.errors import DataError
from podium.integrations import shap_trees
from tests.formats.data import CATEGORICAL, QID, X, Y, hard_rows

shap = pytest.importorskip("shap")
SETTINGS = {"n_trees": 6, "n_leaves": 6, "min_documents_in_leaf": 5}


@pytest.fixture(scope="module")
def model():
    return podium.LambdaMART(**SETTINGS).fit(X, Y, qid=QID)


@pytest.mark.parametrize("background", [None, X[:50]], ids=["path-dependent", "interventional"])
def test_tree_explainer(model, background):
    rows = hard_rows(model.model_, infinite=False)[:300]
    kind = "tree_path_dependent" if background is None else "interventional"
    explainer = shap.TreeExplainer(shap_trees(model), background, feature_perturbation=kind)
    ours = model.explain(rows, background)
    theirs = explainer(rows, check_additivity=False)
    assert np.allclose(theirs.values.reshape(ours.values.shape), ours.values, rtol=1e-6, atol=1e-7)
    assert np.allclose(np.ravel(explainer.expected_value), ours.base, rtol=1e-6, atol=1e-7)


def test_combined_models_are_their_trees(model):
    on_top = podium.LambdaMART(submodel=model, **SETTINGS).fit(X, Y, qid=QID)
    values = shap.TreeExplainer(shap_trees(on_top), feature_perturbation="tree_path_dependent").shap_values(X[:50])
    assert np.allclose(np.reshape(values, (50, -1)), on_top.explain(X[:50]).values, rtol=1e-6, atol=1e-6)


def test_explainers_of_functions_take_predict(model):
    background, rows = X[:20], X[100:105]
    explainer = shap.KernelExplainer(model.predict, background)
    values = explainer.shap_values(rows, nsamples=2**7, l1_reg=False, silent=True)  # all sets of 6 features
    assert np.allclose(values, model.explain(rows, background).values, rtol=1e-6, atol=1e-6)


def test_models_that_shap_cannot_represent_are_refused():
    by_sets = podium.LambdaMART(categorical=[CATEGORICAL], **SETTINGS).fit(X, Y, qid=QID)
    with pytest.raises(DataError, match="splits at categories"):
        shap_trees(by_sets)
    with pytest.raises(DataError, match="SHAP holds trees, but LinearModel"):
        shap_trees(podium.models.LinearModel(np.ones(2), np.zeros(2)))
