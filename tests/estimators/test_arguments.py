"""Arguments of `fit` that have the wrong type."""

import inspect

import pytest

import podium
from podium import DataError, estimators
from podium.boosting import Checkpoint

ESTIMATORS = [
    estimators.LambdaMART, estimators.Ranker, estimators.RankNetTrees, estimators.MART,
    estimators.McRank, estimators.OrdinalMART, estimators.AdditiveGroves, estimators.PRank, estimators.LinearRanker,
    estimators.Committee, estimators.RankNet, estimators.LambdaRank, estimators.AdaRank, estimators.RankBoost,
]  # fmt: skip
WRONG = [
    ("checkpoint", "run.podium", r"checkpoint must be .*Checkpoint\('run.podium'\)"),
    ("checkpoint", 5, "checkpoint must be a podium.boosting.Checkpoint"),
    ("observers", print, r"observers must be a list .* observers=\[…\]"),
    ("observers", None, "observers must be a list"),
    ("observers", ["x"], "observers must be functions .* 'x'"),
    ("bins", 5, "bins must be a podium.boosting.SharedBins"),
    ("bins", {}, "bins must be a podium.boosting.SharedBins"),
    ("valid", 5, "valid takes RankingData"),
    ("valid", {1: podium.artificial(3, features=4)}, "names of validation sets must be strings, but got 1"),
    ("eval_set", "x", "eval_set takes"),
]


@pytest.fixture(scope="module")
def data():
    return podium.artificial(5, features=4)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_an_argument_of_the_wrong_type_is_refused_by_name(estimator, name, value, message, data):
    arguments = inspect.signature(estimator.fit).parameters
    if name not in arguments and "others" not in arguments:
        pytest.skip(f"{estimator.__name__}.fit has no argument {name!r}")
    with pytest.raises(DataError, match=message):
        estimator().fit(data, **{name: value})


def test_a_checkpoint_needs_a_path():
    with pytest.raises(DataError, match="expected a path"):
        Checkpoint(5)


@pytest.mark.parametrize(("name", "value", "message"), [row for row in WRONG if row[0] in ("checkpoint", "observers")])
def test_a_cluster_estimator_refuses_them_before_it_asks_for_a_client(name, value, message, data):
    with pytest.raises(DataError, match=message):
        podium.distributed.DaskLambdaMART().fit(data, **{name: value})
