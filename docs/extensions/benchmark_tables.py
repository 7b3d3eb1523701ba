"""The page of benchmarks: what `python -m bench` measured (bench/results/*.json), put in place of its marker.

Links of other pages to files in bench/results, which work in the repository, lead to the sections of this page.
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
    """A table with its heading, picture and notes, as Markdown."""
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
    """A row of a Markdown table; options stand as code, else -- would become a dash, and ± stays with its number."""
    cells = (re.sub(r"(?<!\S)--[\w-]+", r"`\g<0>`", str(value)) for value in values)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("± ", "±\xa0") for cell in cells) + " |"


def tables(results: Path = RESULTS) -> str:
    """All sections, by name."""
    return "\n".join(section(path) for path in sorted(results.glob("*.json")))


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the tables in place of the marker, and have links to them lead there."""
    source[0] = LINK.sub(lambda link: f"](#bench-{link[1] or 'tables'})", source[0])
    if MARKER in source[0]:
        source[0] = source[0].replace(MARKER, tables())
        for path in RESULTS.glob("*.json"):
            app.env.note_dependency(path, docname=name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at each page as it is read."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
