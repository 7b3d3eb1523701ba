"""`podium inspect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def inspect(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    trees: Annotated[bool, typer.Option("--trees", help="Show the trees.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False,
) -> None:
    """Say what is in a model file: its parameters, its most important features, its trees."""
    from podium.errors import DataError
    from podium.models import ClassEnsemble, Ensemble, load
    from podium.models.over_trees import OverTrees

    scorer = load(model)
    of_trees = isinstance(scorer, Ensemble | OverTrees)
    if trees:
        if not isinstance(scorer, Ensemble | ClassEnsemble):
            raise DataError(f"{model}: {scorer!r} has no trees")
        typer.echo(scorer.dump("json" if as_json else "text"))
        return
    gains = scorer.importance("gain")
    order = [int(k) for k in (-gains).argsort(kind="stable") if gains[k] > 0]
    if as_json:
        content = {
            "model": repr(scorer), "n_features": scorer.n_features, "digest": scorer.digest(),
            "parameters": scorer.info.get("parameters", {}),
            "gain": {scorer.label_of_feature(k): float(gains[k]) for k in order},
        }  # fmt: skip
        if isinstance(scorer, Ensemble | ClassEnsemble):
            content = {"n_trees": scorer.n_trees} | content
        typer.echo(json.dumps(content, indent=2))
        return
    typer.echo(f"{scorer}\ndigest {scorer.digest()}")
    parameters = scorer.info.get("parameters", {})
    for name, value in parameters.items() if isinstance(parameters, dict) else ():
        typer.echo(f"  {name} = {value}")
    typer.echo(f"most important features, by their share of the {'gain' if of_trees else 'weights'}:")
    for k in order[:20]:
        typer.echo(f"  {gains[k] / gains.sum():6.1%}  {scorer.label_of_feature(k)}")
