"""`podium warmup`: compile every kernel ahead of time."""

from __future__ import annotations

import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

PARTS = ("training", "everything else")  # with several cores, each is compiled in its own process


def warmup() -> None:
    """Compile all kernels into the cache, for container images or right after installation."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from podium.core.compiling import cache_folder
    from podium.core.threads import thread_count

    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if thread_count() == 1:
            with warnings.catch_warnings():
                for part in PARTS:
                    use(part, folder)
        else:
            with ProcessPoolExecutor(len(PARTS), get_context("spawn")) as pool:
                list(pool.map(use, PARTS, [folder] * len(PARTS)))
    typer.echo(f"compiled in {time.perf_counter() - started:.1f} s; cached in {cache_folder()}")


def use(part: str, folder: Path) -> None:
    """Run all code of one part that uses kernels on small data, with every combination of argument types.

    `tests/cli/test_warmup.py` then runs commands, and fails if one of them still compiles a kernel.
    """
    import podium

    warnings.simplefilter("ignore")
    data = podium.artificial(30, documents=20, features=6, clicks=True, feature_noise=0.1)
    if part == "training":
        use_files(folder, data)
        use_trees(data)
        use_other_models(data)
        use_model(podium.LambdaMART(n_trees=2, n_leaves=4).fit(data), data)
        return
    podium.artificial_web(3, features=20)
    use_index(folder)
    use_clicks()
    use_measures(data)
    if find_spec("distributed"):
        use_cluster(data)


def use_files(folder: Path, data: Any) -> None:
    """Read, write and bin data."""
    import podium

    podium.write(data, folder / "data.txt", lossy=True)
    podium.read(folder / "data.txt", sparse=True)
    documents = podium.read(folder / "data.txt")
    documents.normalized("minmax")
    podium.bin_files(folder / "data.txt", folder / "bins")
    podium.LambdaMART(n_trees=1, n_leaves=4).fit(podium.open_binned(folder / "bins"))


def use_index(folder: Path) -> None:
    """Index documents, search them, and compute features."""
    from podium.features import FeatureSet, Index, default, mslr

    rows = [{"id": k, "title": "red shoes", "body": "a red hat"} for k in range(3)]
    rows.append({"id": 3, "title": " ".join(map(str, range(20_000)))})  # more words than a new table has room for
    Index.build(rows, {"title": "english", "body": "english"}, positions=True, folder=folder / "index")
    index = Index.load(folder / "index")
    for by in ("bm25", "bm25(title)"):
        index.search("red hat", by=by)
    index.remove(["1"])
    index.search("red hat")
    for features in (default(index), mslr(body="body", title="title"), FeatureSet(["phrase(body)"])):
        features.compute(index, {"1": "red hat"}, {"1": {"0": 1, "2": 0}})


def use_clicks() -> None:
    """Replay a click log, compute labels, and fit click models."""
    from podium.clicks import DBN, Cascade, ClickLog, DependentClicks, PositionBased, UserBrowsing
    from podium.clicks.simulating import simulate_events

    log = ClickLog.read(simulate_events(60, n_documents=20), format="metarank")
    log.features(["rate(click, by=document)", "count(impression, by=query+document, window=30d)"])
    for kind in ("ctr", "skip_above"):
        log.labels(kind)
    models: list[Any] = [PositionBased(), PositionBased(by="intervention"), Cascade(), DependentClicks()]
    for model in (*models, DBN(), DBN(simplified=True), UserBrowsing()):
        model.fit(log)
        model.examination(log)
        model.perplexity(log)
        model.propensities(log)


def use_measures(data: Any) -> None:
    """Measure, compare and combine rankings."""
    import numpy as np

    import podium
    from podium.diagnostics import calibration
    from podium.measures import registered
    from podium.objectives import Lambda

    scores, kinds = data.feature(0).astype(float), list[Any](registered().values())
    for kind in kinds:
        for options in ({}, {"ties": "expected"}):
            try:
                measure = kind(5, **options) if kind.needs_cutoff else kind(**options)
                podium.evaluate(data, scores, measure)
                measure.swaps(np.arange(3.0), 0, 3)
                Lambda(measure).bind(data).gradients(scores)
                podium.combine(scores, data.feature(1), data, measure)
            except podium.PodiumError:  # the measure needs other labels, or has no expectation over ties or no λ
                continue
    podium.evaluate(data, scores, "ndcg@10").bootstrap()
    podium.compare(data, {"a": scores, "b": -scores}, "ndcg@10")
    calibration(podium.LambdaMART(n_trees=1, n_leaves=4).fit(data), data)


def use_trees(data: Any) -> None:
    """Train trees with every option that selects other kernels."""
    import numpy as np
    from scipy import sparse

    import podium
    from podium.boosting import LeafLineSearch
    from podium.diagnostics import WatchLambdaShares, WatchRankChanges, WatchTopLabels
    from podium.trees import compilation

    few: dict[str, Any] = {"n_trees": 1, "n_leaves": 4, "min_documents_in_leaf": 1}
    missing = np.where(data.features > 0.9, np.nan, data.features)
    compressed = sparse.csr_array(np.where(data.features < 0.5, 0, data.features))
    weighted = data.replace(document_weights=np.full(len(data), 2.0))
    for documents in (data, weighted, data.replace(features=missing), data.replace(features=compressed)):
        podium.LambdaMART(**few).fit(documents, valid=documents).apply(documents)
    for options in (
        {"categorical": [0], "max_bins": 255}, {"monotone": {0: 1}}, {"split_fraction": 1.0}, {"split_fraction": 0.5},
        {"l1": 1.0}, {"feature_fraction_per_node": 0.5}, {"symmetric": True},
        {"split": "least-squares"}, {"document_fraction": 0.6}, {"step": "line-search"}, {"step": LeafLineSearch()},
        {"objective": "listmle"}, {"objective": "regression"}, {"objective": "debiased(lambda(cndcg))"},
        {"objective": "pairwise(fidelity)", "step": "gradient"}, {"objective": "softrank", "step": "gradient"},
        {"objective": "approx_ndcg", "step": "gradient"}, {"objective": "svm_map", "step": "gradient"},
        {"metrics": ["loss"]}, {"metrics": ["loss"], "objective": "pairwise"},
    ):  # fmt: skip
        podium.LambdaMART(**few | options).fit(data.replace(features=data.features.round(1)))
    podium.MART(1, n_leaves=500, min_documents_in_leaf=1).fit(data.features, np.arange(len(data)))  # > 256 leaves
    observers = [WatchTopLabels(), WatchRankChanges(every=1), WatchLambdaShares()]
    podium.LambdaMART(**few | {"n_trees": 2}).fit(data, observers=observers)
    compilation.grow_small_tree()
    compilation.sample_small_tree_in_shares()


def use_other_models(data: Any) -> None:
    """Train every other model, with and without validation data."""
    import podium
    from podium.estimators.parameters import MODELS

    fewer = {"n_trees": 2, "n_leaves": 4, "epochs": 1, "n_groves": 1, "n_trees_in_grove": 1, "verbose": 0}
    for name, model in MODELS.items():
        if name in ("ranknet", "lambdarank") and not find_spec("torch"):
            continue
        kind = getattr(podium.estimators, model.estimator)
        options = {key: value for key, value in fewer.items() if key in kind().get_params()}
        for valid in ({}, {"valid": data}):
            kind(**options).fit(data, **valid).predict(data)


def use_model(model: Any, data: Any) -> None:
    """Score and explain with a model."""
    from podium.core.team import Team
    from podium.explain import explain

    scorer = model.scorer()
    for n_documents in (1, 100, 600):
        scorer(data.features[:n_documents])
    explain(model, data.features[:2], n_threads=1)
    explain(model, data.features[:2], background=data.features[:2], n_threads=1)
    with Team(2) as team:  # on one core, nothing else starts a second thread
        team.run(lambda thread: thread)


def use_cluster(data: Any) -> None:
    """Train on a local cluster of threads."""
    from distributed import Client

    from podium.distributed import DaskLambdaMART

    client_class: Any = Client
    with client_class(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        for options in (
            {},
            {"split_fraction": 1.0},
            {"categorical": [0]},
            {"min_documents_in_leaf": 100},
            {"symmetric": True},
        ):
            DaskLambdaMART(n_trees=1, n_leaves=4, **options).fit(data, client=client)
