"""Docstrings have Markdown's `code` and plain text; this makes the reStructuredText that autodoc reads."""

import re
from typing import Any

from sphinx.application import Sphinx

# What napoleon has made of "Args:" and its like: a field or a directive, whose first part stays as it is.
MARKED = re.compile(r"(\s*(?::\w+(?: [^:`]+)?:|\.\. \w+::.*|:\w+:.*))(.*)")
TOGETHER = re.compile(r":ivar ([^:`]+, [^:`]+):(.*)")


def escape(text: str) -> str:
    """Text in which nothing but *emphasis* has a meaning."""
    text = re.sub(r"(?<!\\)\|", r"\\|", text)
    text = re.sub(r"(?<=[\w)])_(?![\w`])", r"\\_", text)
    text = re.sub(r"(?<=\s)\*(?=\s)", r"\\*", text)
    text = re.sub(r"(?<=\w)@(?=\w)", r"\\@", text)  # NDCG@10 is no address for mail
    return re.sub(r"(?<!\\)`", r"\\`", text)


def line_as_rst(line: str) -> str:
    """One line of text: `code` in two backticks, the rest escaped."""
    marked = MARKED.fullmatch(line)
    start, line = (re.sub(r"_(?=:)", r"\\_", marked[1]), marked[2]) if marked else ("", line)
    parts = re.split(r"(`+[^`]+`+)", line)
    text = [f"``{part.strip('`')}``" if k % 2 else escape(part) for k, part in enumerate(parts)]
    text[0] = re.sub(r"^(\s*)(?=[A-Za-z]\.$)", r"\1\\", text[0])  # "m." is no number of a list
    text[2::2] = [re.sub(r"^(?=\w)", r"\\ ", part) for part in text[2::2]]  # a letter may not follow code directly
    return start + "".join(text)


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


def told_apart(lines: list[str]) -> list[str]:
    """Attributes that share a text, each with it: Sphinx would take the first for the type of the second."""
    result: list[str] = []
    k = 0
    while k < len(lines):
        end = k + 1
        if together := TOGETHER.fullmatch(lines[k]):
            while end < len(lines) and lines[end].startswith(" "):
                end += 1
            for name in together[1].split(", "):
                result += [f":ivar {name}:{together[2]}", *lines[k + 1 : end]]
        else:
            result.append(lines[k])
        k = end
    return result


def without_types(lines: list[str]) -> list[str]:
    """Sentences with a colon, whose first half napoleon takes for the type of a property or of what is returned."""
    lines = [re.sub(r"^(:returns: )\*?(.+?)\*? -- ", r"\1\2: ", line) for line in lines]
    for k, line in enumerate(lines):
        if line.startswith(":type: "):
            first = f"{line.removeprefix(':type: ')}: {lines[0]}"
            return [first, *lines[1:k], *lines[k + 1 :]]
    return lines


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place, after napoleon."""
    lines[:] = as_rst(told_apart(without_types(lines)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Work after napoleon, whose priority is 500."""
    app.connect("autodoc-process-docstring", process, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
