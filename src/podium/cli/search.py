"""`podium search`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from podium.errors import DataError

SNIPPET = 100  # characters


def search(
    folder: Annotated[Path, typer.Argument(help="The folder of an index, or of a search pipeline.")],
    query: Annotated[str, typer.Argument(help="The query.")],
    k: Annotated[int, typer.Option("-k", help="Maximum number of documents to show.")] = 10,
    by: Annotated[
        str | None,
        typer.Option(
            help="Rank by this feature, for example 'bm25f(title:3, body)'; by default the pipeline's model, or bm25."
        ),
    ] = None,
    explain: Annotated[
        str | None, typer.Option(metavar="ID", help="Explain the score of a document by features and terms.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Search an index with BM25, or a search pipeline with its model."""
    from podium.features import Index, SearchPipeline
    from podium.features.pipeline import is_pipeline

    pipeline = SearchPipeline.load(folder) if is_pipeline(folder) else None
    if explain is not None:
        if pipeline is None or by is not None:
            raise DataError("--explain needs a model: pass the folder of a search pipeline, and omit --by")
        explanation = pipeline.explain(query, explain)
        typer.echo(json.dumps(explanation.to_dict(), indent=2) if as_json else _printable(str(explanation), "\n"))
        return
    index = Index.load(folder) if pipeline is None else pipeline.index
    hits = pipeline.search(query, k) if pipeline is not None and by is None else index.search(query, k, by or "bm25")
    texts = [index.text(row) if index.has_texts else {} for row in hits.rows.tolist()]
    results = zip(hits.ids, hits.scores.tolist(), texts, strict=True)
    if as_json:
        typer.echo(json.dumps([{"id": key, "score": score, **text} for key, score, text in results], indent=2))
        return
    for rank, (key, score, text) in enumerate(results, 1):
        words = " ".join(" · ".join(filter(None, text.values())).split())
        typer.echo(f"{rank:>3}  {score:9.4f}  {_printable(key)}  {_printable(words[:SNIPPET])}".rstrip())
    if not hits.ids:
        typer.echo("no document contains any of the query's words", err=True)


def _printable(text: str, also: str = "") -> str:
    """Replace control characters, which could change the terminal, except those in `also`."""
    return "".join(character if character.isprintable() or character in also else " " for character in text)
