"""Turn docstrings in Markdown into the reStructuredText that autodoc reads."""

import re
from typing import Any

from sphinx.application import Sphinx

# A field or a directive, which napoleon made of "Args:" and other sections. Its first part must not change.
MARKED = re.compile(r"(\s*(?::\w+(?: [^:`]+)?:|\.\. \w+::.*|:\w+:.*))(.*)")
SHARED = re.compile(r":ivar ([^:`]+, [^:`]+):(.*)")


def escape(text: str) -> str:
    """Escape everything that has a meaning in reStructuredText, except *emphasis*."""
    text = re.sub(r"(?<!\\)\|", r"\\|", text)
    text = re.sub(r"(?<=[\w)])_(?![\w`])", r"\\_", text)
    text = re.sub(r"(?<=\s)\*(?=\s)", r"\\*", text)
    text = re.sub(r"(?<=\w)@(?=\w)", r"\\@", text)  # NDCG@10 is not a mail address
    return re.sub(r"(?<!\\)`", r"\\`", text)


def line_as_rst(line: str) -> str:
    """Convert a line of text: `code` gets two backticks, and the rest is escaped."""
    marked = MARKED.fullmatch(line)
    start, line = (re.sub(r"_(?=:)", r"\\_", marked[1]), marked[2]) if marked else ("", line)
    parts = re.split(r"(`+[^`]+`+)", line)
    text = [f"``{part.strip('`')}``" if k % 2 else escape(part) for k, part in enumerate(parts)]
    text[0] = re.sub(r"^(\s*)(?=[A-Za-z]\.$)", r"\1\\", text[0])  # "m." is not the number of a list item
    text[2::2] = [re.sub(r"^(?=\w)", r"\\ ", part) for part in text[2::2]]  # a letter may not follow code directly
    return start + "".join(text)


def as_rst(lines: list[str]) -> list[str]:
    """Convert a docstring. Examples do not change; indented code becomes a literal block."""
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
    """Return whether the last line that is not empty is text at the margin, not a field or a directive."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return bool(last) and not last.startswith((" ", ":", "..", "- "))


def split_shared_attributes(lines: list[str]) -> list[str]:
    """Repeat a text that several attributes share: Sphinx would read the first name as the type of the second."""
    result: list[str] = []
    k = 0
    while k < len(lines):
        end = k + 1
        if shared := SHARED.fullmatch(lines[k]):
            while end < len(lines) and lines[end].startswith(" "):
                end += 1
            for name in shared[1].split(", "):
                result += [f":ivar {name}:{shared[2]}", *lines[k + 1 : end]]
        else:
            result.append(lines[k])
        k = end
    return result


def without_types(lines: list[str]) -> list[str]:
    """Restore sentences with a colon: napoleon reads their first half as the type of a property or a return value."""
    lines = [re.sub(r"^(:returns: )\*?(.+?)\*? -- ", r"\1\2: ", line) for line in lines]
    for k, line in enumerate(lines):
        if line.startswith(":type: "):
            first = f"{line.removeprefix(':type: ')}: {lines[0]}"
            return [first, *lines[1:k], *lines[k + 1 :]]
    return lines


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place, after napoleon."""
    lines[:] = as_rst(split_shared_attributes(without_types(lines)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Convert docstrings after napoleon, whose priority is 500."""
    app.connect("autodoc-process-docstring", process, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
