"""`podium info`: facts for bug reports."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer


def info(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, processor, extras and the kernel cache, for bug reports."""
    facts = _facts()
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        typer.echo(f"{name:{width}}  {_shown(value)}")


def _facts() -> dict[str, Any]:
    from podium import __version__
    from podium.core.compiling import cache_folder
    from podium.core.threads import thread_count

    extras = dict(sorted(_required().items()))
    required = extras.pop("")
    optional = sorted({"pandas", "polars"}.union(*extras.values()))
    names = dict.fromkeys([*required, "llvmlite", *optional])  # without duplicates
    return {
        "podium": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "processor": _processor(),
        "threads": f"{thread_count()} of {os.cpu_count()}",
        "memory": _memory(),
        "packages": {name: number for name in names if (number := _version(name))},
        "extras": {extra: [name for name in packages if not _version(name)] for extra, packages in extras.items()},
        "kernels": str(cache_folder()),
        "installed in": str(Path(sys.modules["podium"].__file__ or "").parent),
        "variables": {name: os.environ[name] for name in sorted(os.environ) if _is_shown(name)},
    }  # fmt: skip


def _memory() -> str:
    """Return the memory of the machine, if the system reports it."""
    try:
        return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB"
    except (AttributeError, OSError, ValueError):
        return "unknown"


def _is_shown(variable: str) -> bool:
    """Return whether an environment variable belongs to Podium or Numba and is not a secret."""
    return variable.startswith(("PODIUM_", "NUMBA_")) and "TOKEN" not in variable


def _shown(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    parts = [
        f"{name} ({'installed' if not entry else 'missing ' + ', '.join(entry)})" if isinstance(entry, list)
        else f"{name} {entry}"
        for name, entry in value.items()
    ]  # fmt: skip
    return ", ".join(parts) or "none"


def _processor() -> str:
    """Return the name of the processor, and whether it has AVX-512."""
    file = Path("/proc/cpuinfo")
    if not file.exists():
        return platform.processor() or platform.machine()
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    flags = next((line for line in lines if line.startswith("flags")), "")
    return f"{name}, {'with' if 'avx512f' in flags else 'without'} AVX-512"


def _required() -> dict[str, list[str]]:
    """Return the packages that each extra for users requires, and under "" those that Podium itself requires."""
    from importlib.metadata import PackageNotFoundError, requires

    packages: dict[str, list[str]] = {"": []}
    try:
        lines = requires("podium") or []
    except PackageNotFoundError:  # run from its source without installation
        return packages
    for line in lines:
        name, _, condition = line.partition(";")
        extra = condition.partition("extra ==")[2].strip(" '\"")
        if extra not in ("dev", "docs", "bench", "all"):
            names = packages.setdefault(extra, [])
            if not name.startswith("podium"):
                names.append(re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0])
    return packages


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
