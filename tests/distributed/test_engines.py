"""Every engine gives the model of local training, to the bit, even if a worker is lost."""

import time
import warnings

import numpy as np
import pytest

import podium
from podium.distributed import fit
from podium.distributed.clusters import CLUSTERS
from podium.errors import DataError, PodiumError, PodiumWarning
from podium.objectives import Debiased, Lambda, Tiers
from tests.distributed.clusters import require_same

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SMALL = {"n_trees": 3, "n_leaves": 6, "categorical": [5], "patience": 1}
TIERS = {"objective": Tiers(Lambda("ndcg"), Lambda("ndcg(labels=clicks)")), "measure": "ndcg(labels=clicks)"}
ESTIMATORS = {
    "LambdaMART": podium.LambdaMART(**SMALL),
    "stops early": podium.LambdaMART(20, n_leaves=6, patience=2, learning_rate=0.5),
    "position bias": podium.LambdaMART(**SMALL, split_fraction=0.4, objective=Debiased(Lambda("ndcg"))),
    "label sources": podium.LambdaMART(**SMALL, **TIERS),
    "Ranker": podium.Ranker(**SMALL, feature_fraction=0.5),
    "MART": podium.MART(**SMALL),
    "McRank": podium.McRank(**SMALL),
    "OrdinalMART": podium.OrdinalMART(**SMALL),
    "RankNetTrees": podium.RankNetTrees(**SMALL),
    "MARTClassifier": podium.MARTClassifier(**SMALL),
}


# What is sent to workers does not depend on the kind of cluster, and Spark takes seconds for a fit.
ALWAYS_ON_SPARK = ("position bias", "OrdinalMART")
PAIRS = [(name, cluster) for name in ESTIMATORS for cluster in ("process", "dask", "ray")]
PAIRS += [
    pytest.param(name, "spark", marks=[pytest.mark.slow, *([] if name in ALWAYS_ON_SPARK else [pytest.mark.thorough])])
    for name in ESTIMATORS
]


@pytest.mark.parametrize(("name", "any_cluster"), PAIRS, indirect=["any_cluster"])
def test_the_model_is_that_of_local_training(name, any_cluster, train, valid):
    """The documents have weights, categories, positions and missing values."""
    if name == "MARTClassifier":
        train, valid = (data.replace(relevance=np.where(data.relevance > 1, 7, 3)) for data in (train, valid))
    estimator, engine = ESTIMATORS[name], any_cluster.engine
    model = fit(estimator, train, valid=valid, engine=engine)
    assert type(model).__name__ == CLUSTERS[engine.cluster].prefix + type(estimator).__name__
    require_same(model, estimator.fit(train, valid=valid))


@pytest.fixture(scope="session")
def frame(train):
    """A frame with a category as text, weights and missing values; rows of a query are not next to each other."""
    columns = {f"f{k}": train.features[:, k] for k in range(5)}
    kinds = np.array(["red", "green", "blue"])[train.features[:, 5].astype(int) % 3]
    weights = {"document_weight": train.document_weights, "query_weight": train.query_weight_of_row}
    columns |= {"kind": kinds, "label": train.relevance, "qid": train.qid, **weights}
    return pd.DataFrame(columns).sample(frac=1.0, random_state=0)


def test_collections(any_cluster, frame):
    estimator = podium.LambdaMART(3, n_leaves=6, categorical=["kind"])
    train, few = (podium.RankingData(part, categorical=["kind"]) for part in (frame, frame[:200]))
    local = podium.LambdaMART(3, n_leaves=6, categorical=["kind"]).fit(train, valid=few)
    data, valid = any_cluster.collect(frame), any_cluster.collect(frame[:200])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the .* are spread over several partitions")  # Dask and Ray move them
        model = fit(estimator, data, valid=valid, engine=any_cluster.engine)
    require_same(model, local)
    assert model.model_.encoding.categories


def test_files(any_cluster, frame, tmp_path):
    """Two files are Parquet, one is CSV."""
    frame = frame.drop(columns="kind").sort_values("qid")
    for k, (_, part) in enumerate(frame.groupby(frame["qid"] % 3)):
        if k < 2:
            part.to_parquet(tmp_path / f"{k}.parquet", index=False)
        else:
            part.to_csv(tmp_path / f"{k}.csv", index=False)
    model = fit(
        podium.LambdaMART(2, n_leaves=6), [tmp_path / "*.parquet", tmp_path / "2.csv"], engine=any_cluster.engine
    )
    require_same(model, podium.LambdaMART(2, n_leaves=6).fit(podium.RankingData(frame)))


def test_training_survives_a_lost_worker(any_cluster, train, valid):
    estimator = podium.OrdinalMART(5, n_leaves=6)

    def lose(round_):
        if round_.iteration == 1:
            any_cluster.lose()

    with pytest.warns(PodiumWarning, match="has left"):
        model = fit(estimator, train, valid=valid, observers=[lose], engine=any_cluster.engine)
    require_same(model, estimator.fit(train, valid=valid))


def test_errors_of_workers_are_raised_at_once(any_cluster, tmp_path):
    started = time.monotonic()
    with pytest.raises(PodiumError, match="cannot be opened"):
        fit(podium.LambdaMART(2), [str(tmp_path / "missing.txt")], engine=any_cluster.engine)
    assert time.monotonic() - started < 10


def test_bad_input_is_refused(any_cluster, train):
    engine = any_cluster.engine
    with pytest.raises(DataError, match=r"documents must be .*, a list of files, or RankingData, not list"):
        fit(podium.LambdaMART(2), [[1.0]], engine=engine)
    with pytest.raises(DataError, match="patience needs validation data"):
        fit(podium.LambdaMART(2, patience=1), train, engine=engine)
    with pytest.raises(DataError, match=r"estimator must be one of LambdaMART, MART, .*, not LinearRanker"):
        fit(podium.LinearRanker(), train, engine=engine)
    with pytest.raises(DataError, match="timeout belongs to the engine: pass it to"):
        fit(podium.LambdaMART(2), train, engine=engine, timeout=5)
