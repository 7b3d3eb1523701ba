"""Functions that benchmarks share: child processes to measure in, cached runs, the machine's description, tables."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
CACHE = Path(__file__).parent / ".cache"
DATA = Path(os.environ.get("PODIUM_DATA", "../shared/data"))  # real data sets, which are not part of the project
PACKAGES = (
    "numpy", "numba", "scipy", "scikit-learn", "lightgbm", "xgboost-cpu", "catboost", "ranx",
    "pytrec-eval-terrier", "torch", "shap", "dask", "distributed", "ray", "pyspark", "bm25s", "tantivy", "searcharray",
    "podium",
)  # fmt: skip


@dataclass
class Report:
    """The result of a benchmark: rows of a table, and the notes that explain them."""

    name: str
    title: str
    rows: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)
    constants: dict[str, float] = field(default_factory=dict)  # for another benchmark, only in the JSON


def in_child(module: str, *arguments: object, timeout: float | None = None) -> dict[str, Any]:
    """Run `python -m module arguments…` and return the JSON that it prints last.

    Do heavy work in children, since a child's `ru_maxrss` starts at the memory of its parent. A child that takes more
    than `timeout` seconds is ended, with all processes that it started, and `subprocess.TimeoutExpired` is raised.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            out, errors = child.communicate(timeout=timeout)
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{errors}")
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result


def cached(name: str, measure: Callable[[], Any]) -> Any:
    """Return the JSON in a file below `CACHE`; the first time, measure and write it, so that a stopped run resumes."""
    path = CACHE / name
    if not path.exists():
        content = json.dumps(measure())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return json.loads(path.read_text())


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def as_haswell() -> dict[str, str]:
    """Return variables that make Numba compile as for a Haswell, without AVX-512."""
    import llvmlite.binding

    names = [f"-{name}" for name in llvmlite.binding.get_host_cpu_features() if name.startswith("avx512")]
    features = ",".join(["+avx2", "+fma", "-gfni", *names])
    return {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(CACHE / "haswell")}


def best(runs: list[dict[str, Any]], key: str = "seconds") -> dict[str, Any]:
    """Return the run with the smallest value."""
    return min(runs, key=lambda run: run[key])


def peak_bytes() -> int:
    """Return the peak memory of this process so far, in bytes."""
    import resource

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Memory:
    """The peak memory above the initial memory, in bytes."""

    peak = 0


@contextmanager
def measured_memory() -> Iterator[Memory]:
    """Measure the peak memory of the process within a block; on systems other than Linux by `ru_maxrss`."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")

    def held(what: str) -> int:
        return next(1024 * int(x.split()[1]) for x in status.read_text().splitlines() if x.startswith(what))

    memory = Memory()
    if not reset.exists():
        before = peak_bytes()
        yield memory
        memory.peak = peak_bytes() - before
        return
    reset.write_text("5")  # forget the peak so far
    before = held("VmRSS")
    yield memory
    memory.peak = held("VmHWM") - before


def _version(package: str) -> str:
    """Return the version of a package, or an empty text if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def machine() -> dict[str, Any]:
    """Return what the figures depend on: processor, cores, Python and packages."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((x.split(":")[1].strip() for x in info.read_text().splitlines() if "model name" in x), cpu)
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "packages": {name: number for name in PACKAGES if (number := _version(name))},
    }


def write(report: Report) -> str:
    """Write a report as JSON and Markdown, draw its picture if it has one, and return the Markdown."""
    from bench.drawing import draw

    RESULTS.mkdir(exist_ok=True)
    facts = machine()
    columns = list(dict.fromkeys(key for row in report.rows for key in row))
    lines = [f"## {report.title}", "", "| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(str(row.get(c, "")) for c in columns) + " |" for row in report.rows]
    packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items())
    lines += ["", *report.notes]
    lines += [f"{facts['cores']} cores, {facts['cpu']}, Python {facts['python']}, {packages}.", ""]
    lines += [f"Measure again: `.venv/bin/python -m bench {report.name}` (or `make bench` for all).", ""]
    table = "\n".join(lines)
    (RESULTS / f"{report.name}.md").write_text(table, encoding="utf-8")
    content = {"title": report.title, "machine": facts, "rows": report.rows, "notes": report.notes}
    content |= {"constants": report.constants} if report.constants else {}
    (RESULTS / f"{report.name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    draw(report.name, report.rows, RESULTS)
    return table
