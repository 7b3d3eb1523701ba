"""scikit-learn's own checks of estimators, for every public one."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator

import podium

SMALL = {"n_trees": 2, "n_leaves": 3}
NET = {"epochs": 2, "hidden": 2, "n_threads": 1}
LINEAR = {"measure": "ndcg(gain=linear)@10"}  # the checks have large labels
# Every public estimator, with settings that train in no time.
SETTINGS = {
    "MART": {"n_trees": 30, "n_leaves": 7, "learning_rate": 0.3}, "MARTClassifier": SMALL, "McRank": SMALL,
    "OrdinalMART": SMALL, "AdditiveGroves": {"n_groves": 1, "n_trees_in_grove": 2, "alpha": 0.5, "n_threads": 1},
    "LambdaMART": SMALL | LINEAR, "RankNetTrees": SMALL | LINEAR, "Ranker": SMALL | LINEAR | {"patience": None},
    "Committee": SMALL | LINEAR | {"members": [("lambda", 1)], "n_folds": 2},
    "LinearRanker": LINEAR | {"n_iterations": 2}, "PRank": LINEAR | {"epochs": 2},
    "AdaRank": LINEAR | {"n_iterations": 3}, "RankBoost": LINEAR | {"n_trees": 3},
    "RankNet": LINEAR | NET, "LambdaRank": LINEAR | NET, "QueryNormalizer": {},
}  # fmt: skip
# The checks that an estimator may fail, and why.
OF_ALL = {
    "check_dtype_object": "objects that are not numbers are a DataError that names the cell, not a TypeError",
    "check_supervised_y_2d": "a column of labels is taken without a warning",
}
BOOTSTRAP = "bootstrap samples draw documents, regardless of their weight"
FEW_LABELS = "the labels of this check are random numbers, but the model has an output for each label"
OF_LABELS = {
    "check_estimator_sparse_array": FEW_LABELS, "check_estimator_sparse_matrix": FEW_LABELS,
    "check_regressors_no_decision_function": FEW_LABELS, "check_fit2d_1sample": "one document has only one label",
}  # fmt: skip
EXPECTED = {
    "AdditiveGroves": {
        "check_sample_weight_equivalence_on_dense_data": BOOTSTRAP,
        "check_sample_weight_equivalence_on_sparse_data": BOOTSTRAP,
    },
    "MARTClassifier": {
        "check_classifiers_regression_target": "the error counts the classes, and does not say 'continuous'",
        "check_classifiers_one_label_sample_weights": "the error names the classes, not the weights that remove one",
    },
    "Committee": {
        "check_fit2d_1sample": "one document is one query, and a committee needs two",
    },
    "McRank": OF_LABELS, "OrdinalMART": OF_LABELS,
    "QueryNormalizer": {
        "check_methods_subset_invariance": "normalized features depend on the other documents of the query",
    },
}  # fmt: skip


def of_one_query(cls):
    """Return a subclass for which all rows are one query: the checks pass no query ids, and no classes to PRank."""
    n_queries = 2 if cls is podium.Committee else 1  # which is trained on some queries and weighed on others

    def query(X):
        return np.arange(X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))) % n_queries

    methods = {
        "fit": lambda self, X, y=None, **_: cls.fit(self, X, y, qid=query(X)),
        "score": lambda self, X, y=None, **_: cls.score(self, X, y, qid=query(X)),
        "transform": lambda self, X, **_: cls.transform(self, X, qid=query(X)),
        "partial_fit": lambda self, X, y=None, **_: cls.partial_fit(
            self, X, y, classes=None if hasattr(self, "_perceptron") else np.unique(y)
        ),
    }
    name = f"{cls.__name__}OfOneQuery"
    globals()[name] = type(
        name, (cls,), {key: method for key, method in methods.items() if hasattr(cls, key)} | {"__module__": __name__}
    )  # where pickle finds it
    return globals()[name]


def test_no_public_estimator_is_left_out():
    public = {name: getattr(podium.estimators, name) for name in podium.estimators.__all__}
    classes = {name: value for name, value in public.items() if isinstance(value, type)}
    estimators = {name for name, cls in classes.items() if issubclass(cls, BaseEstimator)}
    assert estimators == set(SETTINGS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SETTINGS)
def test_checks_of_scikit_learn(name):
    if "epochs" in SETTINGS[name] and name != "PRank":
        pytest.importorskip("torch")
    cls = getattr(podium.estimators, name)
    model = (of_one_query(cls) if getattr(cls, "_needs_queries", True) else cls)(**SETTINGS[name])
    results = check_estimator(model, expected_failed_checks=OF_ALL | EXPECTED.get(name, {}), on_fail=None)
    failures = [result for result in results if result["status"] == "failed"]
    failed = [(result["check_name"], str(result["exception"])[:150]) for result in failures]
    assert not failed, "\n".join(map(str, failed))
    failing = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert set(EXPECTED.get(name, {})) <= failing, "a check that passes needs no reason"
