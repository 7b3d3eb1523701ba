"""`podium pipeline`: train a search pipeline for `podium search` and `podium serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.features import Saved, Texts, chosen_features
from podium.cli.runs import read_config
from podium.cli.train import require_model
from podium.errors import DataError
from podium.estimators.parameters import MODELS


def pipeline(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of an index.")],
    queries: Annotated[Path, typer.Argument(help="Training queries: JSONL or CSV with id and text, or TSV.")],
    judgements: Annotated[
        Path, typer.Argument(help="Judgements: TREC qrels, or JSONL or CSV with query, document and grade.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path("pipeline"),
    model: Annotated[str, typer.Option(help="The model, as in podium train.")] = "ranker",
    config: Annotated[Path | None, typer.Option(help="TOML with parameters of the model, as in podium train.")] = None,
    feature: Texts = None,
    saved: Saved = None,
    candidates: Annotated[int, typer.Option(help="Number of documents to retrieve for the model to rank.")] = 100,
    by: Annotated[
        str, typer.Option(help="The feature to retrieve them by, for example 'bm25f(title:3, body)'.")
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
    from podium.features import FeatureSet, Index, SearchPipeline
    from podium.features.pipeline import is_pipeline

    require_model(model)
    if is_pipeline(output) and not overwrite:
        raise DataError(f"{output} is already a pipeline: choose another folder, or replace it with --overwrite")
    parameters = {name: value for name, value in read_config(config).items() if name not in ("data", "valid", "model")}
    parameters.pop("reading", None)
    estimator = getattr(podium.estimators, MODELS[model].estimator)(**parameters)
    index = Index.load(folder)
    features = chosen_features(feature, saved, index)
    trained = SearchPipeline.train(index, queries, judgements, estimator, features, candidates, by, valid=valid)
    trained.save(output)
    typer.echo(f"{output}: {trained!r}")
    if test is not None:
        retrieved, ranked = (
            one.compute(index, *test, candidates=f"{by} top {candidates}") for one in (FeatureSet([by]), features)
        )
        systems = {by: retrieved.feature(0), model: trained.model}
        typer.echo(f"\n{podium.compare(ranked, systems, measure)}")
