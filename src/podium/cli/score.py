"""`podium score`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.reading import Reader, for_model, read_in_blocks, read_one_in_blocks, reads_data

NUMBERS_AT_ONCE = 1 << 25  # features of the documents that are in memory: 128 MiB


@reads_data
def score(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[list[str], typer.Argument(help="Files to score, read as one.")],
    reader: Reader,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; standard output else.")] = None,
    trec: Annotated[str | None, typer.Option(help="Write a TREC run of this name instead of plain scores.")] = None,
    n_trees: Annotated[int | None, typer.Option(help="Only the first trees.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Score on a Dask cluster, tcp://… or local:N; --output is a folder, with a file of scores for each."
        ),
    ] = None,
) -> None:
    """Score documents: one number per line in the order of the rows, or a TREC run."""
    from podium.data.io.reading import ROWS
    from podium.errors import DataError
    from podium.models import ClassEnsemble, Ensemble, load

    loaded = load(model)
    if n_trees is not None and not isinstance(loaded, Ensemble | ClassEnsemble):
        raise DataError(f"{model}: {loaded!r} has no trees to be cut")
    options: dict[str, Any] = {} if n_trees is None else {"n_trees": n_trees}
    if trec is not None and output is None:
        raise DataError("--trec writes a file: name it with --output")
    if cluster is not None:
        _score_on_cluster(cluster, for_model(reader, loaded, str(model)), loaded, data, output, trec, n_trees)
        return
    blocks = read_in_blocks(
        for_model(reader, loaded, str(model)),
        data,
        rows=max(1, min(ROWS, NUMBERS_AT_ONCE // max(1, loaded.n_features))),
        whole_queries=loaded.sees_lists or trec is not None,
        like=loaded.schema if loaded.has_one_schema else None,
    )
    n_rows = 0
    with _writer(output) as write:
        for documents in blocks:
            scores = loaded.predict(documents, **options)
            if trec is not None:
                from podium.evaluation.trec import run_lines

                write("".join(run_lines(documents, scores, trec, n_rows)))
            else:
                write("".join(f"{value!r}\n" for value in scores.tolist()))
            n_rows += len(documents)
            del documents, scores  # before the next block is read


def _score_on_cluster(
    cluster: str,
    reader: Reader,
    model: Any,
    data: list[str],
    output: Path | None,
    trec: str | None,
    n_trees: int | None,
) -> None:
    from podium.distributed import score_files
    from podium.distributed.dask_engine import connected
    from podium.errors import DataError

    if output is None or trec is not None:
        raise DataError("with --cluster, name the folder of the scores with --output, and leave out --trec")
    scored = model if n_trees is None else model.truncate(n_trees)
    with connected(cluster) as client:
        written = score_files(scored, data, output, client=client, blocks=partial(read_one_in_blocks, reader))
    typer.echo(f"{output}: {len(written)} files of scores")


@contextmanager
def _writer(output: Path | None) -> Iterator[Callable[[str], Any]]:
    """A function that writes text to standard output, or to a file that appears when all is written."""
    from podium.core.files import replacing

    if output is None:
        yield lambda text: typer.echo(text, nl=False)
    else:
        with replacing(output) as temporary, temporary.open("w", encoding="utf-8") as file:
            yield file.write
