"""`podium evaluate`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.reading import Reader, reads_data
from podium.cli.systems import (
    Data,
    DropOption,
    MeasureOption,
    PresetOption,
    QrelsOption,
    Shape,
    ShapeOption,
    measures_of,
    models_of,
    read_labelled,
    reader_for,
    scores_by,
    show,
)  # fmt: skip


@reads_data
def evaluate(
    data: Data,
    scores: Annotated[
        str,
        typer.Argument(help="A model file, a file with one score per line, a TREC run, or feature:NAME."),
    ],
    reader: Reader,
    measure: MeasureOption = None,
    preset: PresetOption = None,
    qrels: QrelsOption = False,
    drop_uniform: DropOption = False,
    per_query: Annotated[bool, typer.Option("--per-query", help="A row for each query.")] = False,
    shape: ShapeOption = Shape.text,
) -> None:
    """Measure a ranking: means with 95% intervals, or a value for each query."""
    import podium.evaluation

    models = models_of([scores])
    data_reader = reader_for(reader, models, 1)
    documents = read_labelled(data, qrels, data_reader)
    result = podium.evaluation.evaluate(
        documents,
        scores_by(scores, documents, [data], reader, data_reader, models),
        measures_of(measure, preset),
        drop_uniform=drop_uniform,
    )
    show(result.query_table() if per_query else result.table(), shape)
