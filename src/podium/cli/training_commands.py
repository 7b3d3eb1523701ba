"""Commands that train beyond `podium train`: `tune`, `adapt`, `committee`, `combine`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.options import with_parameters
from podium.cli.reading import Reader, chosen_options, for_model, reads_data, require_alike
from podium.cli.runs import read_config, to_toml
from podium.cli.train import DEFAULT_MODEL, require_model
from podium.core.files import write_text
from podium.estimators.parameters import MODELS, AdaptParameters, CommitteeParameters


@reads_data
def tune(
    reader: Reader,
    data: Annotated[list[str], typer.Argument(help="Training files, read as one.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files, read as one; else folds.")] = None,
    model: Annotated[str, typer.Option(help="The model, as in podium train.")] = DEFAULT_MODEL,
    config: Annotated[
        Path | None, typer.Option(help="TOML with parameters that are not searched, as in podium train.")
    ] = None,
    measure: Annotated[str | None, typer.Option(help="What is searched for: ndcg@10, or ndcg@3>ap~0.01.")] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            help="A parameter to search: n_leaves=4..64, learning_rate=0.02..0.2:log, or split=newton|least-squares. "
            "By default those that matter most."
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Settings that are tried.")] = 50,
    folds: Annotated[int | None, typer.Option(help="Folds of the queries, without validation files; 5.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which no further settings are tried.")] = None,
    seed: Annotated[int, typer.Option(help="Of proposals and folds.")] = 0,
    n_threads: Annotated[int | None, typer.Option(help="For all trials together; all cores by default.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder of the search: model, trials, config.")
    ] = Path("tuned"),
    report: Annotated[Path | None, typer.Option(help="Draw how the search went (SVG, PNG or HTML).")] = None,
) -> None:
    """Search the parameters of a model for a measure. The same command resumes a search that was interrupted.

    The folder has trials.jsonl (all trials), config.toml (for podium train --config) and model.podium.
    """
    import podium

    require_model(model)
    fixed = {name: value for name, value in read_config(config).items() if name not in ("data", "valid", "model")}
    fixed.pop("reading", None)
    estimator = getattr(podium.estimators, MODELS[model].estimator)(**fixed)
    documents = reader(data)
    tuning = podium.tune(
        estimator, documents, valid=reader(valid) if valid else None, folds=folds, measure=measure,
        space=dict(map(_searched, search)) if search else None, n_trials=trials, timeout=timeout,
        path=output / "trials.jsonl", seed=seed, n_threads=n_threads,
    )  # fmt: skip
    typer.echo(str(tuning))
    tuned = tuning.estimator
    text = to_toml({"data": data, "model": model, **tuned.get_params()}, chosen_options(reader))
    write_text(output / "config.toml", text)
    tuned.fit(documents).save(output / "model.podium")
    if report is not None:
        podium.save_chart(tuning.plot(), report)
    typer.echo(
        f"\n{output / 'model.podium'}: {tuned.model_!r}, trained with the settings of trial {tuning.best.number}"
    )


def _searched(text: str) -> tuple[str, Any]:
    """Return a parameter and its values to try, from `name=low..high`, `name=low..high:log` or `name=a|b|c`."""
    import podium

    name, equals, over = text.partition("=")
    name, (over, _, scale) = name.strip().replace("-", "_"), over.partition(":") if ".." in over else (over, "", "")
    low, dots, high = over.partition("..")
    if not (name and equals and over) or scale not in ("", "log"):
        raise typer.BadParameter(f"--search takes name=low..high, name=low..high:log or name=a|b, not {text!r}")
    if not dots:
        return name, [_value(choice) for choice in over.split("|")]
    ends = _value(low), _value(high)
    if not all(isinstance(end, int | float) for end in ends):
        raise typer.BadParameter(f"--search {text!r}: the ends of a range must be numbers")
    return name, podium.tuning.Between(*ends, log=scale == "log")


def _value(text: str) -> Any:
    """Return the number, true, false or null that the text is, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


@reads_data
@with_parameters(AdaptParameters, without=("submodel", "verbose"))
def adapt(
    reader: Reader,
    chosen: dict[str, Any],
    background: Annotated[Path, typer.Argument(help="The model file of the background model.")],
    data: Annotated[list[str], typer.Argument(help="The domain's training files, read as one.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files; a fifth of the data else.")] = None,
    test: Annotated[list[str] | None, typer.Option(help="Files to compare on; the validation queries else.")] = None,
    other: Annotated[list[Path] | None, typer.Option(help="More models to compare and interpolate with.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the adapted model here.")] = None,
) -> None:
    """Adapt a model to a domain; compare with the background, an in-domain and an interpolated model."""
    from podium.estimators import adapt as adapted_to
    from podium.models import load

    model, others = load(background), {str(path): load(path) for path in other or []}
    for name, scorer in others.items():
        require_alike(model, scorer, (str(background), name))

    def read(files: list[str] | None) -> Any:
        return for_model(reader, model, str(background))(files) if files else None

    result = adapted_to(
        model, read(data), valid=read(valid), test=read(test), others=others,
        **chosen,
    )  # fmt: skip
    typer.echo(result)
    if output is not None:
        result.adapted.save(output)
        typer.echo(f"{output}: {result.adapted.n_trees_} trees on top of {background}")


@reads_data
@with_parameters(CommitteeParameters)
def committee(
    reader: Reader,
    chosen: dict[str, Any],
    data: Annotated[list[str], typer.Argument(help="Training files, read as one.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files; folds of all queries else.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")] = Path(
        "committee.podium"
    ),
) -> None:
    """Just give me the best model: several objectives, bagged and weighed, in one ensemble of trees."""
    from podium.estimators import Committee

    documents = reader(data)
    model = Committee(**chosen)
    model.fit(documents, valid=reader(valid) if valid else None)
    typer.echo(model.tried_table().render())
    for name in ("equal weights", "committee"):
        typer.echo(f"{model.values_[name]:.4f}  {name}")
    model.save(output)
    typer.echo(f"{output}: {model.n_trees_} trees of {len(model.members_)} members")


class FusionMethod(StrEnum):
    """Methods that fuse runs."""

    rrf = "rrf"
    combsum = "combsum"
    combmnz = "combmnz"
    borda = "borda"


@reads_data
def combine(
    reader: Reader,
    a: Annotated[Path, typer.Argument(help="A model file; with --by a TREC run.")],
    b: Annotated[Path, typer.Argument(help="Another.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Files with labels, read as one: validation queries. With --by further runs, if any."),
    ] = None,
    by: Annotated[
        FusionMethod | None, typer.Option(help="Fuse TREC runs by this method, without labels or training.")
    ] = None,
    k: Annotated[float, typer.Option(help="Of --by rrf: Σ 1 / (k + rank).")] = 60.0,
    measure: Annotated[str, typer.Option("--measure", "-m", help="Such as ndcg@10, err, ap.")] = "ndcg@10",
    lower: Annotated[float, typer.Option(help="α at least.")] = 0.0,
    upper: Annotated[float, typer.Option(help="α at most.")] = 1.0,
    ties: Annotated[str, typer.Option(help="expected, stable, jitter, or the name of a feature.")] = "expected",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the combined model, or run, here.")
    ] = None,
) -> None:
    """Find the α for which (1 − α) a + α b is best, of all α there are; or fuse TREC runs."""
    if by is not None:
        _fuse([str(a), str(b), *(data or [])], by, k, output)
        return
    if not data:
        raise typer.BadParameter("give labelled data to find α on; to fuse TREC runs, give --by rrf")
    from podium.models import combine as best
    from podium.models import load, save

    first, second = load(a), load(b)
    require_alike(first, second, (str(a), str(b)))
    documents = for_model(for_model(reader, first, str(a)), second, str(b))(data)
    result = best(first, second, documents, measure, bounds=(lower, upper), ties=ties)
    typer.echo(result)
    if output is not None and result.model is not None:
        save(result.model, output)
        typer.echo(f"{output}: {result.model.weights[0]:.4g} · {a} + {result.model.weights[1]:.4g} · {b}")


def _fuse(files: list[str], by: FusionMethod, k: float, output: Path | None) -> None:
    """Fuse TREC runs into one."""
    from podium.errors import DataError
    from podium.evaluation import fuse, read_run
    from podium.models.archive import is_archive

    for file in filter(is_archive, files):
        raise DataError(f"{file} is a model: --by fuses TREC runs, which podium score {file} DATA --trec NAME writes")
    fused = fuse(*map(read_run, files), by=by.value, k=k)
    if output is None:
        typer.echo("".join(fused.lines()), nl=False)
    else:
        fused.write(output)
        typer.echo(f"{output}: {len(files)} runs by {by.value}, {len(fused.scores)} queries")
