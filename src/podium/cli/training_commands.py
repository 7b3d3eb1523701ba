"""The other commands that train models: `tune`, `adapt`, `refit`, `committee`, `combine`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.options import with_parameters
from podium.cli.reading import Reader, for_model, non_default_options, reads_data, require_same_reading
from podium.cli.runs import config_text, fixed_parameters
from podium.cli.train import DEFAULT_MODEL, require_model
from podium.core.choices import Fusion
from podium.core.files import write_text
from podium.errors import DataError
from podium.estimators.parameters import MODELS, AdaptParameters, CommitteeParameters


@reads_data
def tune(
    reader: Reader,
    data: Annotated[list[str], typer.Argument(help="Training files, read as one data set.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files, read as one data set. Repeatable.")] = None,
    model: Annotated[str, typer.Option(help="The model, as in podium train.")] = DEFAULT_MODEL,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with parameters to keep fixed, as in podium train.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="The measure to maximize, for example ndcg@10 or ndcg@3>ap~0.01.")
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            help="A parameter to search, for example n_leaves=4..64, learning_rate=0.02..0.2:log or "
            "split=newton|least-squares; by default, the parameters that matter most. Repeatable."
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Number of combinations of parameters to try.")] = 50,
    folds: Annotated[
        int | None, typer.Option(help="Number of cross-validation folds, if there is no --valid; 5 by default.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Start no new trials after this many seconds.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search and the folds.")] = 0,
    n_threads: Annotated[
        int | None, typer.Option(help="Number of threads for all trials together; all cores by default.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write: model, trials, config.")] = Path(
        "tuned"
    ),
    report: Annotated[Path | None, typer.Option(help="Also save a chart of the search (.svg, .png or .html).")] = None,
) -> None:
    """Search for the parameters of a model that maximize a measure.

    The output folder holds trials.jsonl (all trials), config.toml (for podium train --config) and model.podium. To
    resume an interrupted search, run the same command again.
    """
    import podium

    require_model(model)
    estimator = getattr(podium.estimators, MODELS[model].estimator)(**fixed_parameters(config))
    documents = reader(data)
    tuning = podium.tune(
        estimator, documents, valid=reader(valid) if valid else None, folds=folds, measure=measure,
        space=dict(map(_parse_search, search)) if search else None, n_trials=trials, timeout=timeout,
        path=output / "trials.jsonl", seed=seed, n_threads=n_threads,
    )  # fmt: skip
    typer.echo(str(tuning))
    tuned = tuning.estimator
    text = config_text({"data": data, "model": model, **tuned.get_params()}, non_default_options(reader))
    write_text(output / "config.toml", text)
    tuned.fit(documents).save(output / "model.podium")
    if report is not None:
        podium.save_chart(tuning.plot(), report)
    typer.echo(
        f"\n{output / 'model.podium'}: {tuned.model_!r}, trained with the settings of trial {tuning.best.number}"
    )


def _parse_search(text: str) -> tuple[str, Any]:
    """Parse `name=low..high`, `name=low..high:log` or `name=a|b|c` into a parameter and the values to try."""
    import podium

    name, _, values = text.partition("=")
    name, scale = name.strip().replace("-", "_"), ""
    if ".." in values:
        values, _, scale = values.partition(":")
    if not (name and values) or scale not in ("", "log"):
        raise typer.BadParameter(f"--search must be name=low..high, name=low..high:log or name=a|b, but got {text!r}")
    low, dots, high = values.partition("..")
    if not dots:
        return name, [_parse_value(choice) for choice in values.split("|")]
    ends = _parse_value(low), _parse_value(high)
    if not all(isinstance(end, int | float) for end in ends):
        raise typer.BadParameter(f"--search {text!r}: the ends of a range must be numbers")
    return name, podium.tuning.Between(*ends, log=scale == "log")


def _parse_value(text: str) -> Any:
    """Parse text as a number, true, false or null; return other text unchanged."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


@reads_data
@with_parameters(AdaptParameters, without=("submodel", "verbose"))
def adapt(
    reader: Reader,
    settings: dict[str, Any],
    background: Annotated[Path, typer.Argument(help="The model file of the background model.")],
    data: Annotated[list[str], typer.Argument(help="The domain's training files, read as one data set.")],
    valid: Annotated[
        list[str] | None, typer.Option(help="Validation files; by default a fifth of the data. Repeatable.")
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Files to compare on; by default the validation data. Repeatable.")
    ] = None,
    other: Annotated[
        list[Path] | None, typer.Option(help="Another model to compare and interpolate with. Repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write the adapted model to.")
    ] = None,
) -> None:
    """Adapt a model to a new domain.

    Compare the adapted model with the background model, one trained on the domain alone, and an interpolation of both.
    """
    from podium.estimators import adapt as adapt_model
    from podium.models import load

    model, others = load(background), {str(path): load(path) for path in other or []}
    for name, scorer in others.items():
        require_same_reading(model, scorer, (str(background), name))

    def read(files: list[str] | None) -> Any:
        return for_model(reader, model, str(background))(files) if files else None

    result = adapt_model(model, read(data), valid=read(valid), test=read(test), others=others, **settings)
    typer.echo(result)
    if output is not None:
        result.adapted.save(output)
        typer.echo(f"{output}: {result.adapted.n_trees_} trees on top of {background}")


@reads_data
def refit(
    reader: Reader,
    model: Annotated[Path, typer.Argument(help="A model file that podium train wrote.")],
    data: Annotated[list[str], typer.Argument(help="Files with the new documents, read as one data set.")],
    decay_rate: Annotated[
        float, typer.Option(help="The share of the old value in the new one: 1 keeps it, 0 drops it.")
    ] = 0.9,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")] = Path("refitted.podium"),
) -> None:
    """Recompute the leaf values of a model from other data, and keep its splits."""
    import podium

    ranker = podium.load(model)
    if not hasattr(ranker, "refit"):
        raise DataError(f"{model} is not an estimator of boosted trees, which refit needs: {ranker!r}")
    refitted = ranker.refit(for_model(reader, ranker.model_, str(model))(data), decay_rate=decay_rate)
    refitted.save(output)
    typer.echo(f"{output}: {refitted.n_trees_} trees of {model}, refitted")


@reads_data
@with_parameters(CommitteeParameters)
def committee(
    reader: Reader,
    settings: dict[str, Any],
    data: Annotated[list[str], typer.Argument(help="Training files, read as one data set.")],
    valid: Annotated[
        list[str] | None, typer.Option(help="Validation files; by default, cross-validate. Repeatable.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")] = Path("committee.podium"),
) -> None:
    """Train the best model without tuning: bagged, weighted trees of several objectives in one ensemble."""
    from podium.estimators import Committee

    documents = reader(data)
    model = Committee(**settings)
    model.fit(documents, valid=reader(valid) if valid else None)
    typer.echo(model.tried_table().render())
    for name in ("equal weights", "committee"):
        typer.echo(f"{model.values_[name]:.4f}  {name}")
    model.save(output)
    typer.echo(f"{output}: {model.n_trees_} trees of {len(model.members_)} members")


@reads_data
def combine(
    reader: Reader,
    a: Annotated[Path, typer.Argument(help="A model file; with --by, a TREC run.")],
    b: Annotated[Path, typer.Argument(help="Another model file or run.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Labelled validation files, read as one data set; with --by, further runs."),
    ] = None,
    by: Annotated[Fusion | None, typer.Option(help="Fuse TREC runs with this method, without labels.")] = None,
    k: Annotated[float, typer.Option(help="The constant of --by rrf, Σ 1 / (k + rank).")] = 60.0,
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="The measure to maximize, for example ndcg@10, err or ap.")
    ] = "ndcg@10",
    lower: Annotated[float, typer.Option(help="Smallest α.")] = 0.0,
    upper: Annotated[float, typer.Option(help="Largest α.")] = 1.0,
    ties: Annotated[
        str, typer.Option(help="How to rank ties: expected, stable, jitter, or the name of a feature.")
    ] = "expected",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write the combined model or run to.")
    ] = None,
) -> None:
    """Find the exact α for which (1 − α) a + α b ranks best, or fuse TREC runs."""
    if by is not None:
        _fuse([str(a), str(b), *(data or [])], by, k, output)
        return
    if not data:
        raise typer.BadParameter("pass labelled data to find α on, or --by rrf to fuse TREC runs")
    from podium.models import combine as combine_models
    from podium.models import load, save

    first, second = load(a), load(b)
    require_same_reading(first, second, (str(a), str(b)))
    documents = for_model(for_model(reader, first, str(a)), second, str(b))(data)
    result = combine_models(first, second, documents, measure, bounds=(lower, upper), ties=ties)
    typer.echo(result)
    if output is not None and result.model is not None:
        save(result.model, output)
        typer.echo(f"{output}: {result.model.weights[0]:.4g} · {a} + {result.model.weights[1]:.4g} · {b}")


def _fuse(files: list[str], by: Fusion, k: float, output: Path | None) -> None:
    from podium.evaluation import fuse, read_run
    from podium.models.archive import is_archive

    for file in filter(is_archive, files):
        raise DataError(
            f"{file} is a model, but --by fuses TREC runs: write one with podium score {file} DATA --trec NAME"
        )
    fused = fuse(*map(read_run, files), by=by, k=k)
    if output is None:
        typer.echo("".join(fused.lines()), nl=False)
    else:
        fused.write(output)
        typer.echo(f"{output}: {len(files)} runs by {by}, {len(fused.scores)} queries")
