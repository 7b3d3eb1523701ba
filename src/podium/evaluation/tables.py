"""Tables for terminals, papers and programs."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from typing import Any

from podium.core.pages import html_table
from podium.errors import DataError

FORMATS = ("text", "markdown", "latex", "csv", "json", "html")
_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "–": "--", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


@dataclass(frozen=True)
class Table:
    """Named columns and rows of text and numbers; display formats show four decimals, CSV and JSON all digits."""

    columns: list[str]
    rows: list[list[Any]]

    def render(self, kind: str = "text") -> str:
        """Return the table as `text`, `markdown`, `latex`, `csv`, `json` or `html`."""
        if kind == "html":
            return html_table(self.columns, self.texts(), self.numeric())
        if kind == "json":
            return json.dumps(self.records(), indent=2)
        if kind == "csv":
            buffer = io.StringIO()
            rows = [["" if _plain(cell) is None else cell for cell in row] for row in self.rows]
            csv.writer(buffer, lineterminator="\n").writerows([self.columns, *rows])
            return buffer.getvalue().rstrip("\n")
        cells = [self.columns, *self.texts()]
        if kind == "markdown":
            cells = [[cell.replace("|", "\\|") for cell in row] for row in cells]
        if kind == "latex":
            return _latex(cells, self.numeric())
        if kind not in ("text", "markdown"):
            raise DataError(f"the format of a table must be one of {', '.join(FORMATS)}, but got {kind!r}")
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.columns))]
        numeric = self.numeric()
        lines = [
            [cell.rjust(w) if n else cell.ljust(w) for cell, w, n in zip(row, widths, numeric, strict=True)]
            for row in cells
        ]
        if kind == "text":
            return "\n".join("  ".join(line).rstrip() for line in lines)
        rule = ["-" * (w - 1) + ":" if n else "-" * w for w, n in zip(widths, numeric, strict=True)]
        return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])

    def records(self) -> list[dict[str, Any]]:
        """Return rows as dictionaries of plain values, with None for undefined ones."""
        return [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]

    def texts(self) -> list[list[str]]:
        """Return the cells as text for display."""
        return [[_shown(cell, name) for cell, name in zip(row, self.columns, strict=True)] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Return whether each column is numeric."""
        return [any(isinstance(row[k], int | float) for row in self.rows) for k in range(len(self.columns))]

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self.render("html")

    def __rich__(self) -> Any:
        from rich.markup import escape
        from rich.table import Table as RichTable

        table = RichTable()
        for name, numeric in zip(self.columns, self.numeric(), strict=True):
            table.add_column(escape(name), justify="right" if numeric else "left")
        for row in self.texts():
            table.add_row(*map(escape, row))
        return table


class ShownAsTable:
    """A result that terminals and notebooks show as its table."""

    def table(self) -> Table:
        """Return the numbers as a table."""
        raise NotImplementedError

    def _shown_table(self) -> Table:
        return self.table()

    def __str__(self) -> str:
        return str(self._shown_table())

    def _repr_html_(self) -> str:
        return self._shown_table().render("html")

    def __rich__(self) -> Any:
        return self._shown_table().__rich__()


def _shown(cell: Any, column: str) -> str:
    if cell is None:
        return ""
    if column.startswith("p (") and cell < 0.00005:
        return "<0.0001"
    if isinstance(cell, float):
        return "–" if math.isnan(cell) else f"{cell:.4f}"
    return str(cell)


def _plain(cell: Any) -> Any:
    if isinstance(cell, float) and math.isnan(cell):
        return None
    return cell.item() if hasattr(cell, "item") else cell


def _latex(cells: list[list[str]], numeric: list[bool]) -> str:
    head, *body = [" & ".join(cell.translate(_LATEX) for cell in row) + r" \\" for row in cells]
    columns = "".join("r" if n else "l" for n in numeric)
    return "\n".join(
        [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    )
