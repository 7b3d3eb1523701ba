"""Make the files of this folder: a small model of every kind as version 0.1 wrote it, and its scores.

Run it with version 0.1, never with a later one: `PYTHONPATH=<version 0.1>/src python tests/models/version_0_1/make.py`.
`data.npz` has the documents; `scores.npz` has the scores of each model under the name of its file.
`tests/models/test_version_0_1.py` loads each file with the current code and compares.
"""

import json
from pathlib import Path

import numpy as np

import podium
from podium.boosting import Checkpoint
from podium.models import Combined, LinearModel, save
from podium.neural import ListTransformer

FOLDER = Path(__file__).parent
NAMES = ["bm25", "length", "kind", "age", "clicks", "größe"]


def data(named: bool = True) -> podium.RankingData:
    """Documents with missing, infinite and categorical values."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(24 * 12, len(NAMES))).astype(np.float32)
    relevance = np.clip(np.round(features[:, 0] + 0.5 * features[:, 4] + rng.normal(0, 0.5, len(features)) + 1), 0, 4)
    features[:, 2] = rng.integers(0, 9, len(features)) + (relevance > 1)
    features[::7, 1] = np.nan
    features[::31, 3] = np.inf
    features[5::31, 3] = -np.inf
    return podium.RankingData(
        features, relevance, qid=np.repeat(np.arange(24), 12), feature_names=NAMES if named else None
    )


def start(rows: podium.RankingData) -> np.ndarray:
    """A submodel that is code."""
    return np.asarray(rows.features[:, 0], np.float64)


def models(train: podium.RankingData, bare: podium.RankingData) -> dict[str, podium.models.Model]:
    """A model of every kind."""
    trees = {"n_trees": 5, "n_leaves": 6, "min_documents_in_leaf": 5}
    nets = {"epochs": 3, "n_threads": 1}
    mart = podium.LambdaMART(**trees, learning_rate=0.3)
    some = mart.fit(train).model_
    linear = podium.LinearRanker(n_iterations=5).fit(train).model_
    net = podium.LambdaRank(**nets, hidden=[4, 3], activation="relu", inputs="quantile").fit(train).model_
    monotone = podium.LambdaMART(**trees, monotone={"bm25": 1, "age": -1}, categorical=["kind"], max_bins=15)
    watched = podium.LambdaMART(n_trees=12, n_leaves=4, min_documents_in_leaf=5, learning_rate=0.9)
    made = {
        "lambdamart": some,
        "lambdamart_without_names": podium.LambdaMART(**trees).fit(bare).model_,
        "categorical": podium.LambdaMART(**trees, categorical=["kind"]).fit(train).model_,
        "monotone": monotone.fit(train).model_,
        "stopped_early": watched.fit(train.select(np.arange(14)), valid=train.select(np.arange(14, 24))).model_,
        "least_squares_gradient": podium.LambdaMART(**trees, split="least-squares", step="gradient").fit(train).model_,
        "no_trees": some.truncate(0),
        "stumps": podium.LambdaMART(3, min_documents_in_leaf=10_000, document_fraction=0.5).fit(train).model_,
        "mart": podium.MART(**trees).fit(train).model_,
        "mart_classifier": podium.MARTClassifier(**trees)
        .fit(train.features, np.where(train.relevance > 1, "good", "bad"))
        .model_,
        "ranknet_trees": podium.RankNetTrees(**trees).fit(train).model_,
        "mcrank": podium.McRank(**trees).fit(train).model_,
        "mcrank_gain": podium.McRank(**trees, expects="gain").fit(bare).model_,
        "linear": linear,
        "linear_without_names": podium.LinearRanker(n_iterations=5).fit(bare).model_,
        "linear_zero": LinearModel(np.zeros(6), np.zeros(6), 1.5),
        "on_submodel": podium.LambdaMART(**trees, submodel={"bm25": 0.5}).fit(train).model_,
        "combined": podium.combine(some, linear, train).scorer,
        "started": podium.LambdaMART(**trees, submodel=start).fit(train).model_,
        "ranknet": podium.RankNet(**nets).fit(train).model_,
        "lambdarank": net,
        "lambdarank_without_names": podium.LambdaRank(**nets, hidden=[], inputs="log").fit(bare).model_,
        "net_on_lists": podium.LambdaRank(**nets, net=lambda n: ListTransformer(n, 8, depth=2)).fit(train).model_,
        "committee": podium.Committee(members=[("lambda(ndcg)", 2)], n_trees=4, n_threads=1).fit(train).model_,
    }
    inner = Combined((made["mcrank"], made["net_on_lists"]), (0.5, -2.0), {"note": "inner"})
    made["nested"] = Combined((inner, some, made["on_submodel"], net), (1.0, 0.25, 3.0, 1e-3), {"note": "outer"})
    return made


def main() -> None:
    """Write all files."""
    assert podium.__version__ == "0.1.0"
    train, bare = data(), data(named=False)
    np.savez_compressed(FOLDER / "data.npz", features=train.features, relevance=train.relevance, qid=train.qid)
    (FOLDER / "names.json").write_text(json.dumps(NAMES), encoding="utf-8")
    scores = {}
    path = FOLDER / "checkpoint.podium"
    path.unlink(missing_ok=True)
    podium.LambdaMART(4, n_leaves=4).fit(train, checkpoint=Checkpoint(path, every=2))
    everything = models(train, bare) | {"checkpoint": podium.load(path)}
    for name, model in everything.items():
        if name != "checkpoint":
            save(model, FOLDER / f"{name}.podium")
        options = {"start": start(train)} if name == "started" else {}
        rows = bare if model.feature_names is None else train
        scores[name] = model.score_documents(rows, n_threads=1, **options)
    np.savez_compressed(FOLDER / "scores.npz", **scores)


if __name__ == "__main__":
    main()
