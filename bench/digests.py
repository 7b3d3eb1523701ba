"""Check whether a change of the code changes a result: compare `python -m bench.digests` before and after it.

The output is a hash of a model of each kind and of other results. The hashes depend on the kind of processor and the
versions of NumPy and torch, so they are compared, never stored. The hash of a model covers the arrays of its file, not
its `digest()`, so that versions with different digests can be compared.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import podium
from podium.boosting import Gradient, LeafLineSearch, LineSearch, Newton
from podium.measures import registered


def _hash(*arrays: Any) -> str:
    """Return a hash of the bits of some arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _clicked(data: podium.RankingData) -> podium.RankingData:
    """Return the data with clicks, positions and weights."""
    rng = np.random.default_rng(3)
    labels = {"relevance": data.relevance, "clicks": rng.random(len(data)).astype(np.float32)}
    return podium.RankingData(
        data.features, labels=labels, qid=data.qid, positions=rng.integers(1, 11, len(data)),
        document_weights=rng.random(len(data)) + 0.5,
    )  # fmt: skip


def _preferring(data: podium.RankingData) -> podium.RankingData:
    """Return data with preferences and without labels."""
    rng = np.random.default_rng(4)
    rows = [rng.choice(data.rows(q), 2, replace=False) for q in range(data.n_queries) for _ in range(5)]
    first, second = np.array(rows).T
    return podium.RankingData(data.features, qid=data.qid, preferences=(first, second, rng.random(len(first))))


OBJECTIVES = (
    "lambda(ndcg)", "lambda(ndcg, truncation=5)", "lambda(ndcg, normalize=true)", "lambda(err)", "lambda(ap)",
    "lambda(rr)", "lambda(precision@5)", "lambda(dcg@10)", "lambda(recall@5)", "lambda(rbp)", "lambda(accuracy)",
    "pairwise", "pairwise(squared_hinge)", "lambdaloss", "listnet", "listmle", "xendcg", "queryregression",
    "regression", "logistic",
)  # fmt: skip
FLAT_OBJECTIVES = (
    "local(ndcg@3)", "pairwise(hinge)", "pairwise(fidelity)", "rankcosine",
    "anneal(lambda(ndcg), local(ndcg@3), linear_growth(0.1, 0.01))",
)  # fmt: skip
CLICK_OBJECTIVES = (
    "tiers(lambda(ndcg), lambda(cndcg), weights=(0.8, 0.2))",
    "anneal(lambda(ndcg), lambda(cndcg), exponential_share(0.9))",
    "debiased(lambda(cndcg))",
    "lambda(ndcg)",
)


def models(train: podium.RankingData, valid: podium.RankingData) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Return a model of each kind by name, as functions that fit it."""
    few: dict[str, Any] = {"n_trees": 8, "n_leaves": 8, "min_documents_in_leaf": 5}
    mart = podium.LambdaMART
    for objective in OBJECTIVES:
        yield objective, lambda o=objective: mart(objective=o, **few).fit(train)
    for objective in FLAT_OBJECTIVES:
        yield objective, lambda o=objective: mart(objective=o, step="gradient", **few).fit(train)
    clicked = _clicked(train)
    for objective in CLICK_OBJECTIVES:
        yield f"{objective} of clicks", lambda o=objective: mart(objective=o, **few).fit(clicked)
    preferring = _preferring(train)
    yield "preferences", lambda: podium.RankNetTrees(**few).fit(preferring)
    for name, step in {
        "newton": Newton(l2=0.5, max_delta_step=0.3), "gradient": Gradient(),
        "flat gradient": Gradient(normalize=False),
        "line search": LineSearch(), "line search, ERR": LineSearch("err", shrink="alpha"),
        "line search, Newton": LineSearch(values=Newton(l2=0.0)), "leaf line search": LeafLineSearch(bounds=(0.1, 3.0)),
    }.items():  # fmt: skip
        yield f"step: {name}", lambda s=step: mart(step=s, **few).fit(train)
    yield "line search on valid", lambda: mart(step=LineSearch(on="valid"), **few).fit(train, valid=valid)
    for name, settings in {
        "sampled documents": {"document_fraction": 0.6, "random_state": 3}, "sampled queries": {"query_fraction": 0.6},
        "sampled features": {"feature_fraction": 0.6}, "split fraction .3": {"split_fraction": 0.3},
        "split fraction 1": {"split_fraction": 1.0}, "least squares": {"split": "least-squares"},
        "sampled least squares": {"split": "least-squares", "split_fraction": 0.4, "document_fraction": 0.7},
        "monotone": {"monotone": {0: 1, 1: -1}},
        "monotone least squares": {"monotone": {0: 1, 1: -1}, "split": "least-squares"},
        "categorical": {"categorical": [2]}, "depth": {"max_depth": 3, "n_leaves": 64}, "few bins": {"max_bins": 7},
        "many leaves": {"n_leaves": 100, "min_documents_in_leaf": 1, "l2": 0.0},
        "published": {"normalize": False, "l2": 0},
        "tree options": {
            "l1": 0.05, "min_gain_to_split": 1.0, "min_hessian_in_leaf": 2.0, "feature_fraction_per_node": 0.6,
            "interaction_constraints": [[0, 1, 2], [2, 3, 4, 5, 6]],
        },
        "symmetric": {"symmetric": True, "n_leaves": 16},
        "symmetric, sampled": {"symmetric": True, "split_fraction": 0.3, "monotone": {0: 1}, "categorical": [2]},
    }.items():  # fmt: skip
        yield name, lambda s=settings: mart(**few | s).fit(_rounded(train))
    yield "patience", lambda: mart(150, 15, patience=10, metrics=["err", "ap"]).fit(train, valid=valid)
    yield (
        "graded",
        lambda: mart(measure=podium.Graded(["ndcg@3", "err"], tolerance=0.01), **few).fit(train, valid=valid),
    )
    yield "weights", lambda: mart(**few).fit(clicked)
    yield "missing", lambda: mart(**few).fit(_missing(train))
    yield "sparse", lambda: mart(**few).fit(csr_matrix(_zeros(train)), train.relevance, qid=train.qid)
    yield "submodel of features", lambda: mart(submodel={0: 1.0}, **few).fit(train)
    yield "submodel", lambda: mart(submodel=mart(3).fit(train).model_, **few).fit(train, valid=valid)
    yield (
        "submodel as code",
        lambda: mart(submodel=train.features[:, 0].astype(float), submodel_scale=0.5, **few).fit(train),
    )
    yield "MART", lambda: podium.MART(**few).fit(train)
    yield "MARTClassifier", lambda: podium.MARTClassifier(**few).fit(train.features, train.relevance > 1)
    yield "McRank", lambda: podium.McRank(**few).fit(train)
    yield "McRank sampled", lambda: podium.McRank(document_fraction=0.5, **few).fit(train)
    yield "OrdinalMART", lambda: podium.OrdinalMART(**few).fit(train, valid=valid)
    yield "softrank", lambda: mart(objective="softrank(ndcg, 1.0, 10)", step="gradient", **few).fit(train)
    yield "PRank", lambda: podium.PRank().fit(train, valid=valid)
    yield "additive groves", lambda: podium.AdditiveGroves(3, 3, 0.05).fit(train)
    yield "linear", lambda: podium.LinearRanker().fit(train, valid=valid)
    yield "linear err", lambda: podium.LinearRanker(measure="err").fit(train)
    chosen = {"members": [("lambda(ndcg)", 2), ("xendcg", 1), ("queryregression", 1)], "n_trees": 20}
    yield "committee", lambda: podium.Committee(**chosen).fit(train, valid=valid)
    yield "committee by folds", lambda: podium.Committee(**chosen).fit(train)
    yield "adapt", lambda: podium.adapt(mart(5).fit(train), valid, n_trees=5, n_leaves=4).adapted
    yield "RankNet", lambda: podium.RankNet(epochs=3).fit(train, valid=valid)
    yield "RankNet preferences", lambda: podium.RankNet(epochs=2).fit(preferring)
    yield "LambdaRank", lambda: podium.LambdaRank(epochs=3).fit(train)


def _rounded(data: podium.RankingData) -> podium.RankingData:
    """Return the data with few distinct values in the third feature."""
    features = data.features.copy()
    features[:, 2] = np.floor(3 * features[:, 2])
    return podium.RankingData(features, data.relevance, qid=data.qid)


def _missing(data: podium.RankingData) -> podium.RankingData:
    features = data.features.copy()
    features[np.random.default_rng(5).random(features.shape) < 0.2] = np.nan
    return podium.RankingData(features, data.relevance, qid=data.qid)


def _zeros(data: podium.RankingData) -> Any:
    return np.where(np.random.default_rng(6).random(data.features.shape) < 0.7, 0, data.features)


def results(train: podium.RankingData, test: podium.RankingData) -> Iterator[tuple[str, Callable[[], str]]]:
    """Return other results by name, as functions that return their hashes."""
    a, b = train.features[:, 0].astype(float), np.round(train.features[:, 1].astype(float), 1)
    clicked = _clicked(train)
    yield "artificial", lambda: _hash(train.features, train.relevance, test.features)
    yield "artificial web", lambda: _hash(*_parts(podium.artificial_web(30)))
    yield "clicks", lambda: _hash(*podium.data.datasets.simulate_clicks(train, seed=1).labels.values())
    yield "canonical order", lambda: _hash(train.canonical_order, clicked.canonical_order)
    for name, kind in registered().items():
        if name == "preferences":
            continue
        for cutoff in (None, 5):
            for ties in ("stable", "expected") if kind.knows_expected_ties else ("stable",):
                try:
                    measure = kind(cutoff, ties=ties)  # type: ignore[arg-type]
                except podium.DataError:  # a measure of the whole list
                    continue
                what = f"{name}@{cutoff}, {ties} ties"
                yield f"measure {what}", lambda m=measure: _hash(*podium.evaluate(clicked, b, [m]).values.values())
                if kind.has_swaps and not (cutoff is None and kind.needs_cutoff):
                    yield f"combine {what}", lambda m=measure: _combination(a, b, clicked, m)
    yield "combine all", lambda: _hash(podium.combine(a, b, a * b, train, "ndcg@10").weights)
    yield "compare", lambda: str(podium.compare(train, {"a": a, "b": b}, ["ndcg@10", "err"]))
    yield (
        "importance",
        lambda: repr(podium.explain.permutation_importance(podium.LambdaMART(3).fit(train), test, "ndcg@10")),
    )
    yield "text", lambda: _round_trip(train)


def _combination(a: Any, b: Any, data: podium.RankingData, measure: podium.Measure) -> str:
    found = podium.combine(a, b, data, measure)
    return f"{found.alpha.hex()} {found.value.hex()}"


def _parts(data: podium.RankingData) -> tuple[Any, ...]:
    return data.features, data.relevance


def _round_trip(data: podium.RankingData) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.txt"
        podium.write(data, path)
        again = podium.read(path)
        return f"{hashlib.sha256(path.read_bytes()).hexdigest()[:16]} {_hash(again.features, again.relevance)}"


def _model_hash(model: Any) -> str:
    """Return a hash of the arrays and weights in a model's file, and of the weights of combined models."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        with zipfile.ZipFile(Path(folder) / "model") as archive:
            names = sorted(name for name in archive.namelist() if not name.endswith(".json"))
            content = [name.encode() + archive.read(name) for name in names]
    weights = getattr(getattr(model, "model_", model), "weights", ())
    return hashlib.sha256(b"".join(content) + np.array(weights).tobytes()).hexdigest()[:16]


def main(words: list[str]) -> None:
    """Print all digests, or those whose names contain one of the words."""
    warnings.simplefilter("ignore", podium.PodiumWarning)
    train, valid = (podium.artificial(120, features=10, part=part) for part in ("train", "valid"))
    found: dict[str, str] = {}
    everything: list[tuple[str, Callable[[], Any]]] = [*results(train, valid), *models(train, valid)]
    for name, result in everything:
        if words and not any(word in name for word in words):
            continue
        try:
            value = result()
            found[name] = value if isinstance(value, str) else _model_hash(value)
        except Exception as error:  # what is refused is a result, too
            found[name] = f"{type(error).__name__}: {error}"
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1:])
