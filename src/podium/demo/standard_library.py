"""The documentation of Python's standard library as documents and known-item queries.

`python -m podium.demo.standard_library FILE` imports the public modules of the running Python and writes a line of JSON
for each module, class, function, method and topic of the language reference. It runs in a separate process, to isolate
the side effects of imports.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import io
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

FIELDS = {"name": "english", "module": "english", "signature": "english", "text": "english"}
PARTS = {"train": 0.5, "valid": 0.7, "test": 1.0}  # where each part ends, as a share of the queries
SECONDS = 60.0  # timeout of the imports
LONGEST_DEFAULT = 40  # characters of a default value in a signature
LEAST_WORDS = 4  # words that a summary must have to become a query
LEAST_REST = 8  # words that must remain in the document without its summary, for search to match

# Modules that open windows or web pages, print, contain tests or data, or are better known by another name.
SKIPPED = frozenset(
    "antigravity this idlelib test turtledemo turtle lib2to3 tkinter ensurepip venv pydoc_data distutils encodings "
    "nt ntpath posix posixpath".split()
)
_IS_CODE = re.compile(r"->|=|\[,|^\W|^\w+\(")  # some summaries are signatures
_SENTENCE = re.compile(r"(.+?[.?!])(?=\s+[A-Z(`'\"]|\s*$)|(.+)", re.DOTALL)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # addresses of objects in annotations, which differ in every process
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Library:
    """Documents, and queries that each have one relevant document.

    Attributes:
        documents: the documents as mappings with an id and text fields.
        queries: the text of each query, by part and by the id of its document.

    """

    documents: list[dict[str, Any]]
    queries: dict[str, dict[str, str]]


def read_library() -> Library:
    """Return the documentation of the running Python's standard library."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard-library.jsonl"
        command = [sys.executable, "-m", "podium.demo.standard_library", str(path)]
        nothing = subprocess.DEVNULL
        subprocess.run(command, stdin=nothing, stdout=nothing, stderr=nothing, cwd=folder, timeout=SECONDS, check=True)
        return known_items([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])


def known_items(entries: list[dict[str, Any]]) -> Library:
    """Turn entries into documents and queries; a summary that becomes a query is removed from its document.

    A summary becomes a query if it is unique, and if both it and the rest of the text are long enough.
    All queries of a top-level module are in the same part, so that no module is in both training and test data.
    """
    split = [summary_and_rest(entry["doc"]) for entry in entries]
    counts = Counter(" ".join(words_of(summary)) for summary, _ in split)
    documents: list[dict[str, Any]] = []
    texts: dict[str, tuple[str, str]] = {}
    for entry, (summary, rest) in zip(entries, split, strict=True):
        words = words_of(summary)
        is_query = (
            entry["kind"] != "topic" and not _IS_CODE.search(summary) and counts[" ".join(words)] == 1
            and len(words) >= LEAST_WORDS and len(words_of(rest)) >= LEAST_REST
        )  # fmt: skip
        if is_query:
            texts[entry["id"]] = entry["module"].partition(".")[0], " ".join(summary.split())
        text = rest if is_query else entry["doc"]
        documents.append({key: entry[key] for key in ("id", "name", "module", "signature")} | {"text": text})
    part_of = parts_of(Counter(module for module, _ in texts.values()))
    queries: dict[str, dict[str, str]] = {part: {} for part in PARTS}
    for document, (module, text) in texts.items():
        queries[part_of[module]][document] = text
    return Library(documents, queries)


def summary_and_rest(text: str) -> tuple[str, str]:
    """Split a text into the first sentence of its first paragraph and the rest.

    >>> summary_and_rest("Return x. Never y.")
    ('Return x.', 'Never y.')
    """
    paragraph, gap, rest = text.partition("\n\n")
    match = _SENTENCE.match(paragraph)
    summary = match.group(0).strip() if match else ""
    return summary, (paragraph[match.end() if match else 0 :].strip() + gap + rest).strip()


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


def parts_of(modules: Counter[str]) -> dict[str, str]:
    """Assign each top-level module to a part, in the order of a hash, given its number of queries.

    >>> sorted(Counter(parts_of(Counter({f"module{k}": 10 for k in range(20)})).values()).items())
    [('test', 6), ('train', 10), ('valid', 4)]
    """
    total, n_assigned = modules.total(), 0
    parts = {}
    for module in sorted(modules, key=lambda name: hashlib.sha256(name.encode()).digest()):
        parts[module] = next(part for part, end in PARTS.items() if n_assigned < end * total)
        n_assigned += modules[module]
    return parts


def entries() -> Iterator[dict[str, Any]]:
    """Yield the public modules of the standard library, their classes and functions, and the topics of `help`."""
    seen: set[int] = set()
    for name, module in _modules():
        if id(module) not in seen:
            seen.add(id(module))
            yield _entry("module", name, name, "", module)
            for inner, value in _public(module):
                if id(value) not in seen and _is_defined_in(value, name):
                    seen.add(id(value))
                    yield from _described(f"{name}.{inner}", name, value)
    from pydoc_data.topics import topics

    for name, text in topics.items():
        yield {"kind": "topic", "id": f"topic {name}", "name": name, "module": "", "signature": "", "doc": text}


def _modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield the public modules, each after the package that it belongs to."""
    names = [name for name in sorted(sys.stdlib_module_names) if _is_public(name)]
    names.insert(names.index("os") + 1, "os.path")
    for name in names:
        module = _imported(name)
        if module is None:
            continue
        yield name, module
        for submodule in sorted(pkgutil.iter_modules(getattr(module, "__path__", ())), key=attrgetter("name")):
            inner = _imported(f"{name}.{submodule.name}") if _is_public(submodule.name) else None
            if inner is not None:
                yield f"{name}.{submodule.name}", inner


def _is_public(name: str) -> bool:
    return not name.startswith("_") and name not in SKIPPED


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit):  # for another platform, missing its C library, or not meant to be imported
        return None


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    for name in sorted(names):
        value = getattr(module, name, None)
        if inspect.isclass(value) or inspect.isroutine(value):
            yield name, value


def _is_defined_in(value: Any, name: str) -> bool:
    """Return whether a module, or a module that is not public itself, defines a class or a function."""
    home = (getattr(value, "__module__", None) or name).partition(".")[0]
    return home == name.partition(".")[0] or not _is_public(home)


def _described(name: str, module: str, value: Any) -> Iterator[dict[str, Any]]:
    yield _entry("class" if inspect.isclass(value) else "function", name, module, _signature(value), value)
    if inspect.isclass(value):
        for key, inner in sorted(vars(value).items()):
            if not key.startswith("_") and (inspect.isroutine(inner) or isinstance(inner, property)):
                yield _entry("method", f"{name}.{key}", module, _signature(inner), inner)


def _entry(kind: str, name: str, module: str, signature: str, value: Any) -> dict[str, Any]:
    doc = getattr(value, "__doc__", None)
    doc = inspect.cleandoc(doc) if isinstance(doc, str) else ""
    short = name.removeprefix(f"{module}.")
    return {"kind": kind, "id": name, "name": short, "module": module, "signature": signature, "doc": doc}


class _Elided:
    """A placeholder for default values that differ between processes or machines, such as `os.environ`."""

    def __repr__(self) -> str:
        return "…"


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except Exception:  # evaluating the defaults of a builtin may raise anything
        return ""
    parameters = [
        parameter if _is_plain(parameter.default) else parameter.replace(default=_Elided())
        for parameter in signature.parameters.values()
    ]
    return _ADDRESS.sub("", str(signature.replace(parameters=parameters)))


def _is_plain(default: Any) -> bool:
    """Return whether a default value is absent, or short and the same on every machine."""
    is_simple = default is inspect.Parameter.empty or isinstance(default, bool | int | float | str | None)
    return is_simple and len(repr(default)) <= LONGEST_DEFAULT


def main(path: str) -> None:
    """Write the entries that have documentation, one per id."""
    warnings.simplefilter("ignore")
    lines: dict[str, str] = {}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for entry in entries():
            if entry["doc"].strip():
                lines.setdefault(entry["id"], json.dumps(entry, ensure_ascii=True))
    Path(path).write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")
    os._exit(0)  # modules may have started threads or registered exit handlers


if __name__ == "__main__":
    main(sys.argv[1])
