"""Shapley values of trees against their definition, LightGBM and shap."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import podium
from podium.errors import DataError
from podium.explain.interventional import InterventionalShap
from podium.explain.path_dependent import PathDependentShap
from podium.models import Ensemble
from tests.models.test_scoring import SHAPES, random_tree
from tests.references.shapley import interventional_slowly, path_dependent_slowly


def with_counts(tree, random):
    """Return a tree with consistent counts of documents; some leaves have none."""
    n, leaf_count = len(tree.feature), random.integers(0, 9, tree.n_leaves)
    count = np.zeros(n, np.int64)

    def size(child):
        return count[child] if child >= 0 else leaf_count[~child]

    for node in range(n - 1, -1, -1):
        count[node] = size(tree.left[node]) + size(tree.right[node])
        if count[node] == 0:
            child = tree.left[node]
            while child >= 0:
                count[child] += 1
                child = tree.left[child]
            leaf_count[~child] += 1
            count[node] = 1
    return replace(tree, count=count, leaf_count=leaf_count.astype(np.int64))


def random_model(random, n_trees, n_leaves, n_features, shape="any"):
    """Return trees that test the same features repeatedly; the first feature is categorical."""
    pool = random.normal(size=6).astype(np.float32)
    trees = [with_counts(random_tree(random, n_leaves, n_features, shape, (0,), pool), random) for _ in range(n_trees)]
    return Ensemble.of_trees(trees, n_features)


def random_documents(random, n, n_features):
    """Return rows with categories in the first column; a fifth of all values is missing."""
    rows = random.normal(size=(n, n_features)).astype(np.float32)
    rows[:, 0] = random.integers(0, 8, n)
    rows[random.random(rows.shape) < 0.2] = np.nan
    return rows


models = st.tuples(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 12), st.integers(1, 5))


@settings(max_examples=25)
@given(models, st.sampled_from(SHAPES))
def test_path_dependent_values_follow_the_definition(drawn, shape):
    seed, *sizes = drawn
    random = np.random.default_rng(seed)
    model = random_model(random, *sizes, shape)
    rows = random_documents(random, 2, model.n_features)
    shap = PathDependentShap(model.arrays)
    expected = [path_dependent_slowly(model, x) for x in rows]
    np.testing.assert_allclose(shap.values(rows, 1), expected, atol=1e-12)
    np.testing.assert_allclose(shap.base + np.sum(expected, axis=1), model.predict(rows), atol=1e-12)


@settings(max_examples=25)
@given(models, st.sampled_from(SHAPES), st.integers(1, 5))
def test_interventional_values_follow_the_definition(drawn, shape, n_background):
    seed, *sizes = drawn
    random = np.random.default_rng(seed)
    model = random_model(random, *sizes, shape)
    rows, background = random_documents(random, 2, model.n_features), random_documents(random, 5, model.n_features)
    background = background[:n_background]
    shap = InterventionalShap(model.arrays, background)
    expected = [interventional_slowly(model, x, background) for x in rows]
    np.testing.assert_allclose(shap.values(rows, 1), expected, atol=1e-12)
    assert shap.base == pytest.approx(model.predict(background).mean(), abs=1e-12)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 30))
def test_values_add_up_for_any_threads_and_order(seed, n_leaves, n_features):
    random = np.random.default_rng(seed)
    model = random_model(random, 5, n_leaves, n_features)
    rows, background = random_documents(random, 300, n_features), random_documents(random, 30, n_features)
    order, other = random.permutation(300), random.permutation(30)
    for shap, same in (
        (PathDependentShap(model.arrays), PathDependentShap(model.arrays)),
        (InterventionalShap(model.arrays, background), InterventionalShap(model.arrays, background[other])),
    ):
        values = shap.values(rows, 1)
        np.testing.assert_allclose(shap.base + values.sum(axis=1), model.predict(rows), atol=1e-9)
        np.testing.assert_array_equal(same.values(rows[order], 3), values[order])
        assert same.base == shap.base


def test_a_path_of_many_features():
    """More than the 64 bits of a word."""
    random = np.random.default_rng(0)
    tree = with_counts(random_tree(random, 141, 140, "chain"), random)
    tree = replace(tree, feature=random.permutation(140).astype(np.int32), threshold=np.zeros(140, np.float32))
    model = Ensemble.of_trees([tree], 140)
    # Nearly all documents go down the chain, so that the leaves at its end count.
    rows, background = (np.where(random.random((n, 140)) < 0.97, 1, -1).astype(np.float32) for n in (40, 25))
    shap = InterventionalShap(model.arrays, background)
    np.testing.assert_allclose(shap.base + shap.values(rows).sum(axis=1), model.predict(rows), atol=1e-12)
    path_dependent = PathDependentShap(model.arrays)
    sums = path_dependent.base + path_dependent.values(rows).sum(axis=1)
    np.testing.assert_allclose(sums, model.predict(rows), atol=1e-9)
    # The mean over single background documents is the result for the whole background.
    alone = [InterventionalShap(model.arrays, background[[k]]).values(rows) for k in range(len(background))]
    np.testing.assert_allclose(np.mean(alone, axis=0), shap.values(rows), atol=1e-12)


@pytest.fixture(scope="module")
def trained():
    data = podium.artificial(30, features=8)
    return data, podium.LambdaMART(n_trees=15, n_leaves=15).fit(data).model_


@pytest.fixture(scope="module")
def booster(trained, tmp_path_factory):
    lightgbm = pytest.importorskip("lightgbm")
    path = tmp_path_factory.mktemp("lightgbm") / "model.txt"
    trained[1].export(path, "lightgbm")
    return lightgbm.Booster(model_file=str(path))


def test_lightgbm_agrees(trained, booster):
    data, model = trained
    explained = model.explain(data)
    theirs = booster.predict(data.features, pred_contrib=True, num_threads=1)
    np.testing.assert_allclose(explained.values, theirs[:, :-1], atol=1e-9)
    np.testing.assert_allclose(explained.base, theirs[0, -1], atol=1e-9)


def test_shap_agrees(trained, booster):
    shap = pytest.importorskip("shap")
    data, model = trained
    rows, background = data.features[:50], data.features[100:160]
    theirs = shap.TreeExplainer(booster, feature_perturbation="tree_path_dependent").shap_values(rows)
    np.testing.assert_allclose(model.explain(rows).values, theirs, atol=1e-6)
    explainer = shap.TreeExplainer(booster, background.astype(float), feature_perturbation="interventional")
    theirs = explainer.shap_values(rows.astype(float), check_additivity=False)
    np.testing.assert_allclose(model.explain(rows, background).values, theirs, atol=1e-6)


def test_sparse_features(trained):
    data, model = trained
    rows = np.where(data.features > 0, data.features, 0)[:90]
    for background in (None, rows[:20]):
        dense = model.explain(rows, background)
        explained = model.explain(sparse.csr_array(rows), None if background is None else sparse.csr_array(background))
        np.testing.assert_array_equal(explained.values, dense.values)
        assert explained.of_document(3).rows == dense.of_document(3).rows


def test_trees_without_counts_need_a_background(trained):
    data, model = trained
    unknown = replace(model, arrays=model.arrays | {"count": np.zeros_like(model.arrays["count"])})
    with pytest.raises(DataError, match=r"do not store the number of documents .* pass a background"):
        unknown.explain(data)
    explained = unknown.explain(data, data.features[:30])
    assert explained.residual < 1e-9
    with pytest.raises(DataError, match="the background has no documents"):
        unknown.explain(data, data.features[:0])


def test_imported_models(trained, tmp_path):
    data, model = trained
    model.export(tmp_path / "lightgbm.txt", "lightgbm")
    model.export(tmp_path / "model.json", "xgboost")
    same, rounded = podium.import_model(tmp_path / "lightgbm.txt"), podium.import_model(tmp_path / "model.json")
    np.testing.assert_allclose(same.explain(data).values, model.explain(data).values, atol=1e-12)
    with pytest.raises(DataError, match="their format has no counts"):
        rounded.explain(data)
    background = data.features[:40]
    expected = model.explain(data, background).values
    np.testing.assert_allclose(rounded.explain(data.features, background).values, expected, atol=1e-6)
