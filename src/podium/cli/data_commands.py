"""Commands about data: `generate`, `describe`, `convert`, `bin`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.reading import Reader, Sources, bin_sources, reads_data
from podium.core.choices import Absent, DataPart
from podium.errors import DataError, FileFormatError


def generate(
    output: Annotated[Path, typer.Argument(help="The file to write: Parquet if it ends in .parquet, else LETOR text.")],
    queries: Annotated[
        int | None, typer.Option(help="Number of queries: by default 10000, or 6000 with --web.", show_default=False)
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(
            help="Documents per query, a number or a range MIN-MAX: by default 50, or 40-200 with --web.",
            show_default=False,
        ),
    ] = None,
    features: Annotated[
        int | None, typer.Option(help="Number of features: by default 50, or 136 with --web.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the polynomial that determines the labels.")] = 0,
    part: Annotated[
        DataPart, typer.Option(help="The part to generate. All parts share the polynomial, but not the documents.")
    ] = "train",
    label_noise: Annotated[float, typer.Option(help="Noise to add to the score before it is cut into labels.")] = 0,
    feature_noise: Annotated[float, typer.Option(help="Noise to add to the features.")] = 0,
    shift: Annotated[float, typer.Option(help="0 to 1: change the polynomial, to simulate another domain.")] = 0,
    clicks: Annotated[bool, typer.Option("--clicks", help="Also simulate clicks (Parquet only).")] = False,
    web: Annotated[bool, typer.Option("--web", help="Generate data like MSLR-WEB.")] = False,
) -> None:
    """Generate artificial ranking data; the same seed gives the same data on every machine."""
    from podium.data.datasets.artificial import artificial, artificial_web

    sizes: dict[str, Any] = {"queries": queries, "features": features}
    if documents is not None:
        low, dash, high = documents.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise typer.BadParameter(f"--documents must be a number or a range MIN-MAX, but got {documents!r}")
        sizes["documents"] = (int(low), int(high)) if dash else int(low)
    sizes = {name: value for name, value in sizes.items() if value is not None}
    if web:
        if label_noise or feature_noise or shift or clicks:
            raise DataError("--web does not support --label-noise, --feature-noise, --shift or --clicks")
        data = artificial_web(**sizes, seed=seed, part=part)
    else:
        data = artificial(
            **sizes, seed=seed, part=part, clicks=clicks, label_noise=label_noise,
            feature_noise=feature_noise, shift=shift,
        )  # fmt: skip
    data.write(output)
    typer.echo(f"{output}: {data}")


@reads_data
def describe(
    sources: Sources, reader: Reader, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Summarize ranking data and point out likely mistakes in it."""
    summary = reader(sources).summary()
    typer.echo(json.dumps(summary.to_dict(), indent=2) if as_json else str(summary))


@reads_data
def convert(
    sources: Sources,
    output: Annotated[Path, typer.Argument(help="The file to write: Parquet if it ends in .parquet, else LETOR text.")],
    reader: Reader,
    leave_out: Annotated[
        Absent, typer.Option(help="LETOR text: which values to omit from each line, zeros or missing values.")
    ] = "zero",
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Write LETOR text even if it cannot hold everything, such as weights.")
    ] = False,
    feature_names: Annotated[
        Path | None, typer.Option(help="A text file with one feature name per line, for Parquet output.")
    ] = None,
) -> None:
    """Convert ranking data from one format to another, merging several files into one."""
    data = reader(sources)
    if feature_names is not None:
        data = data.replace(feature_names=_lines(feature_names))
    data.write(output, absent=leave_out, lossy=lossy)
    typer.echo(f"{output}: {data}")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise FileFormatError(file, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(file, f"is not UTF-8: {error}") from error


Files = Annotated[list[str], typer.Argument(help="Files to bin as one data set; a query's rows need not be adjacent.")]


@reads_data
def bin_(
    sources: Files,
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    reader: Reader,
    max_bins: Annotated[int, typer.Option(help="Maximum number of bins per feature; train with the same value.")] = 255,
    like: Annotated[
        Path | None, typer.Option(help="For validation data: the binned training data, whose bins to use.")
    ] = None,
    keep_values: Annotated[
        bool,
        typer.Option(
            "--keep-values",
            help="Also keep the feature values, to score the documents or to train nets and linear rankers.",
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing folder.")] = False,
) -> None:
    """Bin files that are too large for memory into a folder that podium train reads instead."""
    data = bin_sources(
        reader, sources, folder, max_bins=max_bins, like=like, keep_values=keep_values, overwrite=overwrite
    )
    typer.echo(f"{folder}: {data.n_documents:,} documents in {data.n_queries:,} queries, {data.n_features:,} features")
    typer.echo(", ".join(f"{step} {seconds:.1f} s" for step, seconds in data.seconds.items()))
