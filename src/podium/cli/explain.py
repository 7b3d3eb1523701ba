"""`podium explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.reading import Reader, for_model, reads_data, require_alike


@reads_data
def explain(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[list[str], typer.Argument(help="Files of documents, read as one.")],
    reader: Reader,
    query: Annotated[str | None, typer.Option(help="The documents of this query, in their order.")] = None,
    document: Annotated[str | None, typer.Option(help="One document, by its id or by the number of its row.")] = None,
    above: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Why document A stands above document B.")
    ] = None,
    model_b: Annotated[
        Path | None, typer.Option(help="A second model: what moves in the query, and through which features.")
    ] = None,
    background: Annotated[
        Path | None, typer.Option(help="Documents to compare with; else the training documents, as the model has them.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Show as many features, or documents of a query, at most.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Write all of it as JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw it: a file in .svg, .png, .html or .json.")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark.")] = False,
) -> None:
    """Say why: what each feature adds to scores, why A is above B, what moves between two models."""
    from podium.errors import DataError
    from podium.models import load

    if sum(one is not None for one in (document, above, model_b)) > 1:
        raise DataError("--document, --above and --model-b are different questions: give one of them")
    if model_b is not None and query is None:
        raise DataError("two models are compared on one query: name it with --query")
    loaded = load(model)
    read = for_model(reader, loaded, str(model))
    documents = read(data)
    others = None if background is None else read([str(background)])
    if model_b is not None:
        second = load(model_b)
        require_alike(loaded, second, (str(model), str(model_b)))
        found = _compared(loaded, second, documents, query, others, (str(model), str(model_b)))
    else:
        found = _found(loaded.explain(documents, others), query, document, above)
    if output is not None:
        from podium.reports import save_chart

        save_chart(found.plot(top), output, dark=dark)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        _show(found, top)


def _compared(first: Any, second: Any, documents: Any, query: Any, background: Any, names: tuple[str, str]) -> Any:
    from podium.explain import compare_explanations

    return compare_explanations(first, second, documents, query, background=background, names=names)


def _found(explanation: Any, query: str | None, document: str | None, above: tuple[str, str] | None) -> Any:
    """What was asked for: of all documents, of a query, of a document, of two."""
    if above is not None:
        return explanation.why(*above, query)
    if document is not None:
        return explanation.of_document(document, query)
    return explanation.importance() if query is None else explanation.query(query)


def _show(found: Any, top: int) -> None:
    """The first rows of the table, and what they add up to."""
    from podium.evaluation.tables import Table
    from podium.explain import DocumentExplanation, PairExplanation

    table = found if isinstance(found, Table) else found.table()
    typer.echo(Table(table.columns, table.rows[:top]).render())
    if len(table.rows) > top:
        typer.echo(f"… {len(table.rows) - top} more (--top)")
    if isinstance(found, DocumentExplanation):
        typer.echo(f"\nbase {found.base:.4f} + contributions = score {found.score:.4f}")
    if isinstance(found, PairExplanation):
        gap = f"{found.score_a:.4f} − {found.score_b:.4f} = {found.gap:.4f}"
        place = "above" if found.gap > 0 else "not above"
        typer.echo(f"\nThe differences add up to {gap}: {found.a} is {place} {found.b}")
