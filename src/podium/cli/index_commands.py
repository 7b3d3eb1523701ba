"""`podium index` and `podium search`: build, change, describe and search an index of documents."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.app import Group
from podium.cli.options import Command
from podium.errors import DataError

index = typer.Typer(
    help="Build, change and describe an index of documents for search and features.", no_args_is_help=True, cls=Group
)
Folder = Annotated[Path, typer.Argument(help="The folder of the index.")]
Documents = Annotated[list[Path], typer.Argument(help="JSONL, CSV, TSV (also .gz, .bz2 or .xz) or Parquet files.")]


@index.command(cls=Command)
def build(
    documents: Documents,
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    field: Annotated[
        list[str],
        typer.Option(help="A text field and its analyzer, for example title=german; english by default. Repeatable."),
    ],
    id_column: Annotated[str, typer.Option("--id", help="The column of document ids.")] = "id",
    attribute: Annotated[
        list[str] | None, typer.Option(help="A numeric column to keep; by default all of them. Repeatable.")
    ] = None,
    positions: Annotated[
        bool, typer.Option("--positions", help="Store positions, for proximity and phrase features.")
    ] = False,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Do not store the text, so that searches show no snippets.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing index.")] = False,
) -> None:
    """Index documents into a folder; the collection may be larger than memory."""
    from podium.features import Index
    from podium.features.index_folder import is_index

    if is_index(folder) and not overwrite:
        raise DataError(f"{folder} is already an index: choose another folder, or replace it with --overwrite")
    fields = {name: analyzer or "english" for name, _, analyzer in (text.partition("=") for text in field)}
    started = time.perf_counter()
    built = Index.build(
        documents, fields, id_column, attribute, positions=positions, store_text=not no_text, folder=folder
    )
    typer.echo(f"{folder}: {len(built):,} documents in {time.perf_counter() - started:.1f} s")


@index.command(cls=Command)
def add(folder: Folder, documents: Documents) -> None:
    """Add documents to an index."""
    from podium.features import Index

    opened = Index.load(folder)
    before = len(opened)
    opened.add(documents)
    opened.save(folder)
    typer.echo(f"{folder}: {len(opened) - before:,} documents added, {len(opened):,} in all")


@index.command(cls=Command)
def remove(
    folder: Folder,
    ids: Annotated[list[str] | None, typer.Argument(help="The ids of the documents.")] = None,
    file: Annotated[Path | None, typer.Option("--from", help="A text file with one id per line.")] = None,
) -> None:
    """Remove documents from an index."""
    from podium.evaluation.trec import text_lines
    from podium.features import Index

    removed = [*(ids or []), *filter(None, text_lines(file) if file is not None else [])]
    if not removed:
        raise DataError("no document ids: pass at least one, or a file of ids with --from")
    opened = Index.load(folder)
    opened.remove(removed)
    opened.save(folder)
    typer.echo(f"{folder}: {len(removed):,} documents removed, {len(opened):,} left")


@index.command(cls=Command)
def describe(folder: Folder, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show statistics of an index: documents, fields, attributes."""
    from podium.features import Index

    facts = Index.load(folder).describe()
    typer.echo(json.dumps(facts, indent=2) if as_json else _table(facts))


def _table(facts: dict[str, Any]) -> str:
    removed = f" ({facts['removed_rows']:,} removed rows)" if facts["removed_rows"] else ""
    lines = [f"{facts['documents']:,} documents{removed}, digest {facts['digest'][:16]}"]
    for name, field in facts["fields"].items():
        extras = ", positions" if field["positions"] else ""
        lines.append(
            f"field {name} ({field['analyzer']}{extras}): {field['words']:,} words, {field['mean_length']:.1f} per "
            f"document, {field['terms']:,} terms, empty in {field['empty_documents']:,} documents"
        )
    for name, attribute in facts["attributes"].items():
        lines.append(f"attribute {name}: missing in {attribute['missing']:,} documents")
    return "\n".join(lines)


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


def _printable(text: str, allowed: str = "") -> str:
    """Replace control characters, which could change the terminal, by spaces, except those in `allowed`."""
    return "".join(character if character.isprintable() or character in allowed else " " for character in text)
