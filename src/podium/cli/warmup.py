"""`podium warmup`: compile every kernel before anybody waits for one."""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path

import typer


def warmup() -> None:
    """Compile all kernels into the cache: for container images, or once after installation."""
    from podium.core.compiling import cache_folder

    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        use_everything(Path(folder))
    typer.echo(f"compiled in {time.perf_counter() - started:.1f} s; cached in {cache_folder()}")


def use_everything(folder: Path) -> None:
    """Read, train on, score and measure a little data in every way that has its kernels."""
    from scipy import sparse

    import podium
    from podium.explain import explain
    from podium.objectives import Lambda, ListMLE

    data = podium.artificial_web(12, features=20)
    podium.write(data, folder / "data.txt")
    podium.read(folder / "data.txt")
    podium.read(folder / "data.txt", sparse=True)
    sparse_data = podium.RankingData(sparse.csr_array(data.features), data.relevance, qid=data.qid)
    model = podium.LambdaMART(n_trees=2, n_leaves=4)
    for documents in (data, sparse_data):
        model.fit(documents, valid=documents)
        model.apply(documents)
    podium.LambdaMART(n_trees=1, n_leaves=4, categorical=[0], max_bins=255).fit(
        data.replace(features=data.features.round().clip(0, 3))
    )
    scorer = model.scorer()
    for n_documents in (1, 100, 600):
        scorer(data.features[:n_documents])
    explain(model, data.features[:2], n_threads=1)
    podium.PRank(epochs=1).fit(data)
    podium.AdditiveGroves(n_groves=1, n_trees_in_grove=1, alpha=0.5).fit(data)
    ListMLE().bind(data).gradients(model.predict(data))
    podium.combine(data.feature(0), data.feature(1), data)
    scores = model.predict(data)
    for measure in ("ndcg@10", "err@10", "ap", "rr", "precision@5"):
        Lambda(measure).bind(data).gradients(scores)
        podium.evaluate(data, scores, measure)
    podium.compare(data, {"a": scores, "b": -scores}, "ndcg@10")
