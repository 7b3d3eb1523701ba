"""Estimators train without scikit-learn, and are its own as soon as anybody imports it."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

MODULES = ("sklearn", "scipy.stats", "pandas", "pyarrow", "polars", "narwhals")


def run(code: str) -> None:
    """In a new process: this one has imported scikit-learn."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("modules", [MODULES, (*MODULES, "scipy.linalg")], ids=["compiling or not", "compiled"])
def test_training_imports_neither_scikit_learn_nor_what_it_brings(modules):
    """Numba declares what it can compile, and loads SciPy for it, only where it compiles."""
    run(f"""
        import sys, podium
        from podium.estimators import sklearn_bases
        data = podium.artificial(12, features=4)
        for ranker in (podium.LambdaMART(1, 4), podium.Ranker(1, n_leaves=4, patience=None)):
            ranker.set_params(n_leaves=3).fit(data).predict(data)
            assert ranker.get_params()["n_leaves"] == ranker.get_params(deep=False)["n_leaves"] == 3
            assert not hasattr(ranker, "nothing") and not hasattr(ranker, "nothing_")
            assert list(ranker.get_params()) == sorted(ranker.get_params())
        loaded = [name for name in {modules} if name in sys.modules]
        assert not loaded, loaded
        assert "get_params" in vars(sklearn_bases.BaseEstimator)
    """)


def test_estimators_become_scikit_learn_s_when_it_is_imported():
    run("""
        import copy, pickle, sys, numpy as np, podium
        data = podium.artificial(12, features=4)
        ranker, mart, committee = podium.LambdaMART(1, 4).fit(data), podium.MART(1, 4), podium.Committee()
        assert pickle.loads(pickle.dumps(ranker)).digest() == copy.deepcopy(ranker).digest() == ranker.digest()
        class Own(podium.LambdaMART):
            pass
        assert "sklearn" not in sys.modules
        from sklearn import config_context
        from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
        assert isinstance(ranker, BaseEstimator)  # by the import alone: what comes next would bring it about
        assert is_regressor(mart) and not is_regressor(ranker) and is_classifier(podium.MARTClassifier())
        for estimator in (ranker, mart, committee, Own()):
            assert isinstance(estimator, BaseEstimator) and type(estimator).get_params is BaseEstimator.get_params
            assert repr(clone(estimator)) == BaseEstimator.__repr__(estimator)
        assert isinstance(mart, RegressorMixin)
        assert ranker.__sklearn_tags__().input_tags.allow_nan
        assert not hasattr(ranker, "nothing")
        from sklearn.model_selection import GridSearchCV
        with config_context(enable_metadata_routing=True):
            Own().set_fit_request(qid=False)
            search = GridSearchCV(ranker, {"n_leaves": [2, 3]}, cv=podium.QueryKFold(2))
            search.fit(data.features, data.relevance, groups=data.qid, qid=data.qid)
        assert search.best_params_["n_leaves"] in (2, 3)
        assert 0 < mart.fit(data.features, data.relevance).score(data.features, data.relevance) < 1
        assert pickle.loads(pickle.dumps(ranker)).digest() == ranker.digest()
    """)


USES = (
    "assert repr(mart) == 'MART(n_trees=1)'",
    "assert mart._repr_html_().startswith('<style>')",
    "assert mart.__sklearn_tags__().estimator_type == 'regressor'",
    "assert mart.get_metadata_routing().fit.requests['qid'] is True",
    "podium.LambdaMART(1, submodel=mart).set_params(submodel__n_trees=2); assert mart.n_trees == 2",
    "assert podium.LambdaMART(1, submodel=mart).get_params()['submodel__n_trees'] == 1",
    "assert 0 < mart.fit(X, y).score(X, y) <= 1",
    "import pytest\nwith pytest.raises(ValueError, match='not fitted'): mart.predict(X)",
)


def test_what_only_scikit_learn_has_brings_it():
    run(f"""
        import os, sys, numpy as np, podium
        import joblib, scipy.stats  # which take most of the time
        X = np.arange(40.0).reshape(-1, 1)
        y, mart = X[:, 0], podium.MART(1)
        for use in {USES}:
            if (child := os.fork()) == 0:
                assert "sklearn" not in sys.modules
                exec(use)
                from sklearn.base import BaseEstimator
                assert type(mart).get_params is BaseEstimator.get_params
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, use
    """)
