"""`podium features`: compute features of (query, document) pairs, list them, explain and export them."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.options import Command
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.features import FeatureSet, Index

features = typer.Typer(
    help="Compute features of queries and documents, list them, explain and export them.", no_args_is_help=True
)


class EngineName(StrEnum):
    """Search engines that features can be exported to."""

    elasticsearch_plugin = "elasticsearch-plugin"
    opensearch = "opensearch"
    elasticsearch = "elasticsearch"
    solr = "solr"
    vespa = "vespa"


Folder = Annotated[Path, typer.Argument(help="The folder of an index.")]
Texts = Annotated[
    list[str] | None, typer.Option("--feature", "-f", help="A feature, as 'bm25(title, k1=0.9)'. Repeatable.")
]
Saved = Annotated[Path | None, typer.Option("--set", help="A file of features, as --save-set writes it.")]


def chosen_features(texts: list[str] | None, saved: Path | None, index: Index | None = None) -> FeatureSet:
    """Return the features that the options name; those of `default` if they name none."""
    from podium.features import FeatureSet, default

    chosen = [*(FeatureSet.load(saved) if saved is not None else ()), *(texts or ())]
    if chosen:
        return FeatureSet(chosen)
    if index is None:
        raise DataError("name features with --feature or --set")
    return default(index)


@features.command(cls=Command)
def compute(
    folder: Folder,
    queries: Annotated[Path, typer.Argument(help="Queries: JSONL or CSV with id and text, or TSV.")],
    judgements: Annotated[
        Path | None, typer.Argument(help="Judgements: TREC qrels, or JSONL or CSV with query, document and grade.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write: .parquet keeps all, else LETOR text.")
    ] = Path("features.parquet"),
    feature: Texts = None,
    saved: Saved = None,
    candidates: Annotated[
        str | None, typer.Option(help="'judged' (default), or the first documents by BM25, as 'bm25 top 100'.")
    ] = None,
    save_set: Annotated[Path | None, typer.Option(help="Also write the set of features, as JSON.")] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Leave out what LETOR text cannot hold, such as names.")
    ] = False,
) -> None:
    """Compute features of all candidates of queries; without --feature and --set, a default set for the index."""
    from podium.features import Index

    index = Index.load(folder)
    chosen = chosen_features(feature, saved, index)
    data = chosen.compute(index, queries, judgements, candidates)
    data.write(output, lossy=lossy)
    if save_set is not None:
        chosen.save(save_set)
    typer.echo(f"{output}: {data}")


@features.command("list", cls=Command)
def list_(as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False) -> None:
    """List all features with their formulas, sources, and the pairs for which each is not defined."""
    from podium.evaluation.tables import Table
    from podium.features.feature import definitions

    columns = ["feature", "what it is", "formula", "source", "not defined"]
    rows = definitions()
    if as_json:
        typer.echo(Table(columns, [list(row) for row in rows]).render("json"))
        return
    for call, meaning, formula, source, undefined in rows:
        typer.echo(f"{call}\n    {meaning}: {formula}")
        typer.echo("    " + (f"source: {source}; " if source else "") + f"not defined: {undefined}")


@features.command(cls=Command)
def explain(
    folder: Folder,
    query: Annotated[str, typer.Argument(help="The text of a query.")],
    document: Annotated[str, typer.Argument(help="The id of a document.")],
    feature: Texts = None,
    saved: Saved = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False,
) -> None:
    """Show the features of a query and a document, with what each term of the query adds."""
    from podium.evaluation.tables import Table
    from podium.features import Index

    index = Index.load(folder)
    values = chosen_features(feature, saved, index).explain(index, query, document)
    if as_json:
        records = [{"feature": one.feature, "value": _plain(one.value), "terms": one.terms} for one in values]
        typer.echo(json.dumps(records, indent=2, ensure_ascii=False))
        return
    rows = [[one.feature, one.value, ", ".join(f"{t} {x:.4g}" for t, x in one.terms.items())] for one in values]
    typer.echo(str(Table(["feature", "value", "terms"], rows)))


@features.command(cls=Command)
def export(
    engine: Annotated[EngineName, typer.Argument(help="The search engine.")],
    output: Annotated[Path, typer.Argument(help="The file to write.")],
    feature: Texts = None,
    saved: Saved = None,
    name: Annotated[str, typer.Option(help="Of the feature set, store or rank profile.")] = "podium",
) -> None:
    """Write features for a search engine, where it has the same formula; say which it has not."""
    from podium.core.files import write_text
    from podium.features import export_features

    result = export_features(chosen_features(feature, saved), engine.value, name)
    write_text(output, result.content)
    typer.echo(f"{output}: {len(result.names)} features for {engine.value}")
    for text, reason in result.left_out.items():
        typer.echo(f"left out: {text}: {reason}")
    for note in result.notes:
        typer.echo(f"note: {note}")


def _plain(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)
