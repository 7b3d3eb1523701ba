"""Which code a result came from: what is kept is used again only by the same code."""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import podium
from podium.reproduce.experiments import EXPERIMENTS

# What no measured value depends on.
ASIDE = ("cli/", "formats/", "reports/", "testing/", "demo.py", *(
    f"reproduce/{name}.py" for name in ("figures", "fingerprints", "page", "runner")
))  # fmt: skip


def fingerprint(name: str, settings: dict[str, Any]) -> str:
    """A hash of the code that an experiment runs, without comments and docstrings, and of its settings."""
    own = f"reproduce/experiments/{name}.py"
    others = {f"reproduce/experiments/{other}.py" for other in EXPERIMENTS} - {own}
    code = [digest for path, digest in _digests().items() if path not in others]
    return _hash(json.dumps([podium.__version__, settings, code]))


@cache
def _digests() -> dict[str, str]:
    """A hash of each source file of Podium's as it was when the run began."""
    root = Path(podium.__file__).parent
    paths = {file.relative_to(root).as_posix(): file for file in sorted(root.rglob("*.py"))}
    return {path: code_hash(file.read_bytes()) for path, file in paths.items() if not path.startswith(ASIDE)}


def code_hash(source: bytes) -> str:
    """A hash of what a source file does: comments, docstrings and layout do not count.

    Example:
        >>> from podium.reproduce.fingerprints import code_hash
        >>> code_hash(b"x = 1  # one") == code_hash(b"x=1"), code_hash(b"x = 1") == code_hash(b"x = 2")
        (True, False)

    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not _is_text(part)]
    return _hash(ast.dump(tree))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
