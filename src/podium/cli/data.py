"""The commands that make, describe and convert ranking data."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from podium.data import RankingData


class Format(StrEnum):
    """Formats of ranking data."""

    letor = "letor"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"


class Part(StrEnum):
    """Parts of artificial data."""

    train = "train"
    valid = "valid"
    test = "test"


class Absent(StrEnum):
    """What a feature is that a line of LETOR text does not name."""

    zero = "zero"
    missing = "missing"


Sources = Annotated[list[str], typer.Argument(help="Files to read as one; - is standard input.")]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Format of the input; by default what the suffix says.")
]
AbsentOption = Annotated[Absent, typer.Option(help="LETOR: what a feature that a line does not name is.")]
FirstIndexOption = Annotated[int, typer.Option(help="LETOR: what the file calls its first feature, 1 or 0.")]
QidOption = Annotated[str | None, typer.Option(help="CSV, TSV, Parquet: the column of query ids.")]
LabelOption = Annotated[str | None, typer.Option(help="CSV, TSV, Parquet: the column of relevance labels.")]
LabelsOption = Annotated[
    list[str] | None, typer.Option(help="CSV, TSV, Parquet: a further label source, as NAME=COLUMN.")
]
FeaturesOption = Annotated[
    str | None, typer.Option(help="CSV, TSV, Parquet: the columns of features, separated by commas.")
]
UnlabelledOption = Annotated[float | None, typer.Option(help="A label that stands for 'not labelled'.")]
NormalizeOption = Annotated[str | None, typer.Option(help="Scale features within queries: sum, zscore or minmax.")]


def _read(
    sources: list[str],
    format_: Format | None,
    absent: Absent,
    first_index: int,
    qid: str | None,
    label: str | None,
    labels: list[str] | None,
    features: str | None,
    unlabelled: float | None,
    normalize: str | None,
) -> RankingData:
    from podium.data import read

    named: dict[str, str] = {}
    for entry in labels or ():
        name, equals, column = entry.partition("=")
        if not (name and equals and column):
            raise typer.BadParameter(f"--labels takes NAME=COLUMN, not {entry!r}")
        named[name] = column
    files: list[Any] = [sys.stdin.buffer if source == "-" else source for source in sources]
    kind: Any = format_.value if format_ else None
    return read(
        files, kind, absent=absent.value, first_index=first_index, qid=qid, relevance=label, labels=named,
        feature_names=features.split(",") if features else None, unlabelled=unlabelled, normalize=normalize,
    )  # fmt: skip


def generate(
    output: Annotated[Path, typer.Argument(help="Where to write: LETOR text or .parquet, by suffix.")],
    queries: Annotated[int, typer.Option(help="Number of queries.")] = 10_000,
    documents: Annotated[str, typer.Option(help="Documents per query: a number, or FEWEST-MOST.")] = "50",
    features: Annotated[int, typer.Option(help="Number of features.")] = 50,
    seed: Annotated[int, typer.Option(help="Chooses the polynomial behind the labels.")] = 0,
    part: Annotated[Part, typer.Option(help="Different documents, the same polynomial.")] = Part.train,
    label_noise: Annotated[float, typer.Option(help="Noise on the score before it is cut into labels.")] = 0,
    feature_noise: Annotated[float, typer.Option(help="Noise on the features.")] = 0,
    shift: Annotated[float, typer.Option(help="0 to 1: move the polynomial, for another domain.")] = 0,
    clicks: Annotated[bool, typer.Option("--clicks", help="Simulate clicks too (Parquet only).")] = False,
    web: Annotated[bool, typer.Option("--web", help="Web-like data in the shape of MSLR-WEB.")] = False,
) -> None:
    """Make artificial ranking data: the same seed gives the same data everywhere."""
    from podium.data.making.artificial import artificial, artificial_web
    from podium.errors import DataError

    low, dash, high = documents.partition("-")
    if not low.isdecimal() or (dash and not high.isdecimal()):
        raise typer.BadParameter(f"--documents takes a number or FEWEST-MOST, not {documents!r}")
    sizes = (int(low), int(high)) if dash else int(low)
    if web:
        if label_noise or feature_noise or shift or clicks:
            raise DataError("--web makes data of one kind: no noise, shift or clicks")
        data = artificial_web(queries, documents=sizes, features=features, seed=seed, part=part.value)
    else:
        data = artificial(
            queries, documents=sizes, features=features, seed=seed, part=part.value, clicks=clicks,
            label_noise=label_noise, feature_noise=feature_noise, shift=shift,
        )  # fmt: skip
    data.write(output)
    typer.echo(f"{output}: {data}")


def describe(
    sources: Sources,
    format_: FormatOption = None,
    absent: AbsentOption = Absent.zero,
    first_index: FirstIndexOption = 1,
    qid: QidOption = None,
    label: LabelOption = None,
    labels: LabelsOption = None,
    features: FeaturesOption = None,
    unlabelled: UnlabelledOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False,
) -> None:
    """Say what is in ranking data, and what looks like a mistake."""
    data = _read(sources, format_, absent, first_index, qid, label, labels, features, unlabelled, normalize=None)
    summary = data.summary()
    typer.echo(json.dumps(summary.to_dict(), indent=2) if as_json else str(summary))


def convert(
    sources: Sources,
    output: Annotated[Path, typer.Argument(help="Where to write: LETOR text or .parquet, by suffix.")],
    format_: FormatOption = None,
    absent: AbsentOption = Absent.zero,
    first_index: FirstIndexOption = 1,
    qid: QidOption = None,
    label: LabelOption = None,
    labels: LabelsOption = None,
    features: FeaturesOption = None,
    unlabelled: UnlabelledOption = None,
    normalize: NormalizeOption = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Leave out what LETOR text cannot hold, such as weights.")
    ] = False,
) -> None:
    """Convert ranking data from one format to another; several files become one."""
    data = _read(sources, format_, absent, first_index, qid, label, labels, features, unlabelled, normalize)
    is_text = output.suffix not in (".parquet", ".pq")
    data.write(output, absent=absent.value if is_text else "zero", lossy=lossy)
    typer.echo(f"{output}: {data}")
