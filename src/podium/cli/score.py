"""`podium score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.reading import Reader, for_model, reads_data


@reads_data
def score(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[list[str], typer.Argument(help="Files to score, read as one.")],
    reader: Reader,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; standard output else.")] = None,
    trec: Annotated[str | None, typer.Option(help="Write a TREC run of this name instead of plain scores.")] = None,
    n_trees: Annotated[int | None, typer.Option(help="Only the first trees.")] = None,
) -> None:
    """Score documents: one number per line in the order of the rows, or a TREC run."""
    from podium.core.files import replacing
    from podium.errors import DataError
    from podium.models import ClassEnsemble, Ensemble, load

    loaded = load(model)
    documents = for_model(reader, loaded, str(model))(data)
    if n_trees is not None and not isinstance(loaded, Ensemble | ClassEnsemble):
        raise DataError(f"{model}: {loaded!r} has no trees to be cut")
    options: dict[str, Any] = {} if n_trees is None else {"n_trees": n_trees}
    scores = loaded.predict(documents, **options)
    if trec is not None:
        from podium.evaluation import write_run

        if output is None:
            raise DataError("--trec writes a file: name it with --output")
        write_run(documents, scores, output, trec)
        return
    text = "".join(f"{value!r}\n" for value in scores.tolist())
    if output is None:
        typer.echo(text, nl=False)
    else:
        with replacing(output) as temporary:
            temporary.write_text(text, encoding="utf-8")
