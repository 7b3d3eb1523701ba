"""Docstrings have Markdown's `code` and plain text; this makes the reStructuredText that autodoc reads."""

import re
from typing import Any

from sphinx.application import Sphinx

# What napoleon has made of "Args:" and its like: a field or a directive, whose first part stays as it is.
MARKED = re.compile(r"(\s*(?::\w+(?: [^:`]+)?:|\.\. \w+::.*|:\w+:.*))(.*)")


def escape(text: str) -> str:
    """Text in which nothing but *emphasis* has a meaning."""
    text = re.sub(r"(?<!\\)\|", r"\\|", text)
    text = re.sub(r"(?<=[\w)])_(?![\w`])", r"\\_", text)
    text = re.sub(r"(?<=\s)\*(?=\s)", r"\\*", text)
    return re.sub(r"(?<!\\)`", r"\\`", text)


def line_as_rst(line: str) -> str:
    """One line of text: `code` in two backticks, the rest escaped."""
    marked = MARKED.fullmatch(line)
    start, line = (marked[1], marked[2]) if marked else ("", line)
    parts = re.split(r"(`+[^`]+`+)", line)
    text = "".join(f"``{part.strip('`')}``" if k % 2 else escape(part) for k, part in enumerate(parts))
    return start + re.sub(r"(?<=\S``)(?=[\w²³])", r"\\ ", text)  # a letter may not follow code directly


def as_rst(lines: list[str]) -> list[str]:
    """All lines; examples stay as they are, and code that is indented becomes a literal block."""
    result: list[str] = []
    example = code = False
    for line in lines:
        example = line.lstrip().startswith(">>> ") or (example and bool(line.strip()))
        if example:
            result.append(line)
            continue
        margin = len(line) - len(line.lstrip())
        if code:
            code = not line.strip() or margin >= 4
        elif line.strip() and margin >= 4 and not result[-1].strip() and is_text(result):
            result += ["::", ""]
            code = True
        result.append(line if code else line_as_rst(line))
    return result


def is_text(lines: list[str]) -> bool:
    """Whether the last line that is not empty stands at the margin, and begins no field or directive."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return bool(last) and not last.startswith((" ", ":", "..", "- "))


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place, after napoleon."""
    lines[:] = as_rst(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Work after napoleon, whose priority is 500."""
    app.connect("autodoc-process-docstring", process, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
