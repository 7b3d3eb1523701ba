"""Fill the page of all benchmarks with what `python -m bench` measured (bench/results/*.json).

Links to files in bench/results, which work in the repository, become links to the sections of this page.
"""

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

RESULTS = Path(__file__).parent.parent.parent / "bench" / "results"
LINK = re.compile(r"\]\((?:\.\./)+bench/results(?:/(\w+)\.md)?/?\)")
MARKER = "<!-- all tables of bench/results -->"


def section(path: Path) -> str:
    """Return a table with its heading, picture and notes, as Markdown."""
    report = json.loads(path.read_text(encoding="utf-8"))
    machine, rows = report["machine"], report["rows"]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [f"(bench-{path.stem})=", "", f"## {report['title']}", "", row_of(columns), "|" + " --- |" * len(columns)]
    lines += [row_of([row.get(column, "") for column in columns]) for row in rows]
    if path.with_suffix(".svg").exists():
        lines += ["", f"![{report['title']}](../bench/results/{path.stem}.svg)"]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    lines += ["", *(f"{note}\n" for note in report["notes"])]
    lines += [f"{machine['cores']} cores, {machine['cpu']}, Python {machine['python']}, {packages}.", ""]
    return "\n".join([*lines, f"Measure again: `python -m bench {path.stem}`.", ""])


def row_of(values: list[Any]) -> str:
    """Return a row of a Markdown table. Options are code, or -- would become a dash; ± keeps its number on the line."""
    cells = (re.sub(r"(?<!\S)--[\w-]+", r"`\g<0>`", str(value)) for value in values)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("± ", "±\xa0") for cell in cells) + " |"


def tables(results: Path = RESULTS) -> str:
    """Return all sections, in the order of their names."""
    return "\n".join(section(path) for path in sorted(results.glob("*.json")))


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the marker by the tables, and links to result files by links to their sections."""
    source[0] = LINK.sub(lambda link: f"](#bench-{link[1] or 'tables'})", source[0])
    if MARKER in source[0]:
        source[0] = source[0].replace(MARKER, tables())
        for path in RESULTS.glob("*.json"):
            app.env.note_dependency(path, docname=name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Process each page when Sphinx reads it."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
