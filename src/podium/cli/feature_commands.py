"""`podium features` and `podium pipeline`: features of (query, document) pairs, and pipelines that rank by them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from podium.cli.app import Group
from podium.cli.options import Command
from podium.cli.runs import fixed_parameters
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.features import FeatureSet, Index

features = typer.Typer(
    help="Compute, list, explain and export features of queries and documents.", no_args_is_help=True, cls=Group
)


EngineName = Literal["elasticsearch-plugin", "opensearch", "elasticsearch", "solr", "vespa"]
Folder = Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of an index.")]
Queries = Annotated[Path, typer.Argument(help="Queries: JSONL or CSV with id and text, or TSV.")]
Judgements = typer.Argument(help="Judgements: TREC qrels, or JSONL or CSV with query, document and grade.")
Texts = Annotated[
    list[str] | None, typer.Option("--feature", "-f", help="A feature, for example 'bm25(title, k1=0.9)'. Repeatable.")
]
Saved = Annotated[Path | None, typer.Option("--set", help="A feature set that --save-set wrote.")]


def select_features(texts: list[str] | None, saved: Path | None, index: Index | None = None) -> FeatureSet:
    """Return the features that the options name, or a default set for the index if they name none."""
    from podium.features import FeatureSet, default

    names = [*(FeatureSet.load(saved) if saved is not None else ()), *(texts or ())]
    if names:
        return FeatureSet(names)
    if index is None:
        raise DataError("there are no features: name them with --feature or --set")
    return default(index)


@features.command(cls=Command)
def compute(
    folder: Folder,
    queries: Queries,
    judgements: Annotated[Path | None, Judgements] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: Parquet if it ends in .parquet, else LETOR text.")
    ] = Path("features.parquet"),
    feature: Texts = None,
    saved: Saved = None,
    candidates: Annotated[
        str | None,
        typer.Option(help="'judged' (the default), or the top documents by a feature, for example 'bm25 top 100'."),
    ] = None,
    save_set: Annotated[Path | None, typer.Option(help="Also write the feature set to this JSON file.")] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Write LETOR text even if it cannot hold everything, such as names.")
    ] = False,
) -> None:
    """Compute features of the candidate documents of queries.

    Without --feature and --set, compute a default set of features for the index.
    """
    from podium.features import Index

    index = Index.load(folder)
    feature_set = select_features(feature, saved, index)
    data = feature_set.compute(index, queries, judgements, candidates)
    data.write(output, lossy=lossy)
    if save_set is not None:
        feature_set.save(save_set)
    typer.echo(f"{output}: {data}")


@features.command("list", cls=Command)
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List all features with their formulas, their sources, and when they are undefined."""
    from podium.evaluation.tables import Table
    from podium.features.feature import definitions

    columns = ["feature", "what it is", "formula", "source", "not defined"]  # keys of --json, which programs rely on
    rows = definitions()
    if as_json:
        typer.echo(Table(columns, [list(row) for row in rows]).render("json"))
        return
    for call, meaning, formula, source, undefined in rows:
        typer.echo(f"{call}\n    {meaning}: {formula}")
        typer.echo("    " + (f"source: {source}; " if source else "") + f"undefined: {undefined}")


@features.command(cls=Command)
def explain(
    folder: Folder,
    query: Annotated[str, typer.Argument(help="The text of a query.")],
    document: Annotated[str, typer.Argument(help="The id of a document.")],
    feature: Texts = None,
    saved: Saved = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the features of a query and a document, and what each query term contributes."""
    from podium.evaluation.tables import Table
    from podium.features import Index

    index = Index.load(folder)
    values = select_features(feature, saved, index).explain(index, query, document)
    if as_json:
        records = []
        for entry in values:
            value = None if math.isnan(entry.value) else float(entry.value)
            records.append({"feature": entry.feature, "value": value, "terms": entry.terms})
        typer.echo(json.dumps(records, indent=2, ensure_ascii=False))
        return
    rows = [
        [entry.feature, entry.value, ", ".join(f"{term} {share:.4g}" for term, share in entry.terms.items())]
        for entry in values
    ]
    typer.echo(str(Table(["feature", "value", "terms"], rows)))


@features.command(cls=Command)
def export(
    engine: Annotated[EngineName, typer.Argument(help="The search engine.")],
    output: Annotated[Path, typer.Argument(help="The file to write.")],
    feature: Texts = None,
    saved: Saved = None,
    name: Annotated[str, typer.Option(help="Name of the feature set, store or rank profile.")] = "podium",
) -> None:
    """Export the features that a search engine computes by the same formula, and list the others."""
    from podium.core.files import write_text
    from podium.features import export_features

    result = export_features(select_features(feature, saved), engine, name)
    write_text(output, result.content)
    typer.echo(f"{output}: {len(result.names)} features for {engine}")
    for text, reason in result.left_out.items():
        typer.echo(f"left out: {text}: {reason}")
    for note in result.notes:
        typer.echo(f"note: {note}")


def pipeline(
    folder: Folder,
    queries: Queries,
    judgements: Annotated[Path, Judgements],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path("pipeline"),
    model: Annotated[str, typer.Option(help="The model, as in podium train.")] = "ranker",
    config: Annotated[Path | None, typer.Option(help="TOML file with parameters, as in podium train.")] = None,
    feature: Texts = None,
    saved: Saved = None,
    candidates: Annotated[int, typer.Option(help="Number of documents to retrieve, which the model then ranks.")] = 100,
    by: Annotated[
        str, typer.Option(help="The feature to retrieve candidates by, for example 'bm25f(title:3, body)'.")
    ] = "bm25",
    valid: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="QUERIES JUDGEMENTS", help="Validation queries, for early stopping."),
    ] = None,
    test: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="QUERIES JUDGEMENTS", help="Test queries, to compare the model with the ranking by --by."),
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure to compare by.")] = "ndcg@10",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing pipeline.")] = False,
) -> None:
    """Train a search pipeline: an index, features and a model in one folder.

    Pass the folder to podium search or podium serve. Without --feature and --set, the pipeline uses a default set of
    features for the index.
    """
    import podium
    from podium.cli.train import require_model
    from podium.estimators.parameters import MODELS
    from podium.features import FeatureSet, Index, SearchPipeline
    from podium.features.pipeline import is_pipeline

    require_model(model)
    if is_pipeline(output) and not overwrite:
        raise DataError(f"{output} is already a pipeline: choose another folder, or replace it with --overwrite")
    estimator = getattr(podium.estimators, MODELS[model].estimator)(**fixed_parameters(config))
    index = Index.load(folder)
    features = select_features(feature, saved, index)
    trained = SearchPipeline.train(index, queries, judgements, estimator, features, candidates, by, valid=valid)
    trained.save(output)
    typer.echo(f"{output}: {trained!r}")
    if test is not None:
        retrieved, ranked = (
            used.compute(index, *test, candidates=f"{by} top {candidates}") for used in (FeatureSet([by]), features)
        )
        systems = {by: retrieved.feature(0), model: trained.model}
        typer.echo(f"\n{podium.compare(ranked, systems, measure)}")
