"""How long a person waits before anything happens."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.harness import Report

RUNS = 7
COMMAND = Path(sys.executable).parent / "podium"
READ = "import podium; podium.read('{}')"


def seconds(command: list[str], runs: int = RUNS, **environment: str) -> float:
    """The best wall time of a command."""
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=os.environ | environment)
        found.append(time.perf_counter() - start)
    return min(found)


def run() -> Report:
    """Whole processes, from start to end."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "a.txt"
        text.write_text("0 qid:1 1:0.5\n1 qid:1 1:0.7\n")
        cold = str(Path(folder) / "cache")
        python = [sys.executable, "-c"]
        rows = [
            ("python -c pass", seconds([*python, "pass"])),
            ("import podium", seconds([*python, "import podium"])),
            ("podium --help", seconds([str(COMMAND), "--help"])),
            ("podium describe --help", seconds([str(COMMAND), "describe", "--help"])),
            ("first read after installation (compiles)",
             seconds([*python, READ.format(text)], 1, NUMBA_CACHE_DIR=cold)),
            ("read a small file, kernels compiled", seconds([*python, READ.format(text)])),
        ]  # fmt: skip
    return Report(
        "startup",
        "Waiting for the first result",
        [{"process": name, "seconds": f"{value:.2f}"} for name, value in rows],
        [f"Wall time of whole processes, best of {RUNS} (the compiling one: once)."],
    )


if __name__ == "__main__":
    run()
