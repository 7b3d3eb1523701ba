"""The common style of all pages, and tables as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any


def base_style() -> str:
    """Return the common style of Podium's pages: colours in light and dark, type, tables, buttons."""
    return files("podium.core").joinpath("pages.css").read_text(encoding="utf-8")


def html_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool], caption: str = ""
) -> str:
    """Return a table as HTML for notebooks, with escaped text; numeric columns are aligned to the right."""
    styles = [f' style="text-align:{"right" if is_number else "left"}"' for is_number in numeric]

    def cells(tag: str, texts: Sequence[Any], scope: str = "") -> str:
        return "".join(
            f"<{tag}{scope}{style}>{escape(str(text))}</{tag}>" for text, style in zip(texts, styles, strict=True)
        )

    head = cells("th", columns, ' scope="col"')
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
