"""`podium tune`: search the parameters of a model, and train it with the best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.config import read_config, to_toml
from podium.cli.reading import Reader, chosen_options, reads_data
from podium.cli.train import DEFAULT_MODEL, require_model
from podium.estimators.parameters import MODELS


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
    """Search the parameters of a model for a measure. The same command goes on with a search that was broken off.

    The folder has trials.jsonl (all trials), config.toml (for podium train --config) and model.podium.
    """
    import podium
    from podium.core.files import write_text

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
    reading = chosen_options(reader)
    text = to_toml({"data": data, "model": model, **tuned.get_params()})
    write_text(output / "config.toml", text + ("\n[reading]\n" + to_toml(reading) if reading else ""))
    tuned.fit(documents).save(output / "model.podium")
    if report is not None:
        podium.save_chart(tuning.plot(), report)
    typer.echo(
        f"\n{output / 'model.podium'}: {tuned.model_!r}, trained with the settings of trial {tuning.best.number}"
    )


def _searched(text: str) -> tuple[str, Any]:
    """A parameter and what is tried of it, from `name=low..high`, `name=low..high:log` or `name=a|b|c`."""
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
    return name, podium.Between(*ends, log=scale == "log")


def _value(text: str) -> Any:
    """A number, true, false or null where the text is one; else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()
