"""`podium generate`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Part(StrEnum):
    """Parts of artificial data."""

    train = "train"
    valid = "valid"
    test = "test"


def generate(
    output: Annotated[Path, typer.Argument(help="Where to write: LETOR text or .parquet, by suffix.")],
    queries: Annotated[
        int | None, typer.Option(help="Number of queries.  [default: 10000, with --web 6000]", show_default=False)
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(
            help="Documents per query: a number, or FEWEST-MOST.  [default: 50, with --web 40-200]", show_default=False
        ),
    ] = None,
    features: Annotated[
        int | None, typer.Option(help="Number of features.  [default: 50, with --web 136]", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses the polynomial behind the labels.")] = 0,
    part: Annotated[Part, typer.Option(help="Different documents, the same polynomial.")] = Part.train,
    label_noise: Annotated[float, typer.Option(help="Noise on the score before it is cut into labels.")] = 0,
    feature_noise: Annotated[float, typer.Option(help="Noise on the features.")] = 0,
    shift: Annotated[float, typer.Option(help="0 to 1: move the polynomial, for another domain.")] = 0,
    clicks: Annotated[bool, typer.Option("--clicks", help="Simulate clicks too (Parquet only).")] = False,
    web: Annotated[bool, typer.Option("--web", help="Web-like data in the shape of MSLR-WEB.")] = False,
) -> None:
    """Make artificial ranking data: the same seed gives the same data everywhere."""
    from podium.data.datasets.artificial import artificial, artificial_web
    from podium.errors import DataError

    chosen: dict[str, Any] = {"queries": queries, "features": features}
    if documents is not None:
        low, dash, high = documents.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise typer.BadParameter(f"--documents takes a number or FEWEST-MOST, not {documents!r}")
        chosen["documents"] = (int(low), int(high)) if dash else int(low)
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if web:
        if label_noise or feature_noise or shift or clicks:
            raise DataError("--web makes data of one kind: no noise, shift or clicks")
        data = artificial_web(**chosen, seed=seed, part=part.value)
    else:
        data = artificial(
            **chosen, seed=seed, part=part.value, clicks=clicks, label_noise=label_noise,
            feature_noise=feature_noise, shift=shift,
        )  # fmt: skip
    data.write(output)
    typer.echo(f"{output}: {data}")
