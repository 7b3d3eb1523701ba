"""Reading LETOR text: time and memory of Podium and scikit-learn, on 200 MB in the shape of MSLR-WEB."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.harness import Report, best, in_child, peak_bytes

TEXT_BYTES = 200_000_000
RUNS = 3


def make_text(path: Path) -> dict[str, Any]:
    """Write 200 MB of web-like LETOR text with every feature on every line, as in MSLR-WEB."""
    import podium

    data = podium.artificial_web(1_220)
    podium.write(data, path, absent="none")
    with path.open("rb+") as file:
        file.seek(TEXT_BYTES)
        file.readline()
        file.truncate()
    return {}


def child(tool: str, path: str) -> dict[str, Any]:
    """Read the file once in this process."""
    import numpy as np

    if tool == "scikit-learn":
        from sklearn.datasets import load_svmlight_file

        before, start = peak_bytes(), time.perf_counter()
        X, y, qid = load_svmlight_file(path, query_id=True, dtype=np.float32)
        seconds = time.perf_counter() - start
        arrays = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes + qid.nbytes
    else:
        import podium
        from podium.data.io import letor_reader  # noqa: F401

        warm = Path(path).with_name("warm.txt")
        before = peak_bytes()
        podium.read(warm)  # loads the compiled kernels
        start = time.perf_counter()
        data = podium.read(path, n_threads=1 if tool.endswith("1 thread") else None)
        seconds = time.perf_counter() - start
        arrays = data.features.nbytes + data.relevance.nbytes + data.qid.nbytes + data.order.nbytes
    return {"seconds": seconds, "bytes": peak_bytes() - before, "arrays": arrays}


def run() -> Report:
    """Measure the tools in turn, each in a separate process; keep the best of three runs."""
    tools = ("scikit-learn", "podium, 1 thread", "podium")
    runs: dict[str, list[dict[str, Any]]] = {tool: [] for tool in tools}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "web.txt"
        in_child("bench.reader", "make text", path)
        Path(folder, "warm.txt").write_text("0 qid:1 1:0.5\n")
        size = path.stat().st_size
        in_child("bench.reader", "podium", path)
        for _ in range(RUNS):
            for tool in tools:
                runs[tool].append(in_child("bench.reader", tool, path))
    slowest = best(runs["scikit-learn"])["seconds"]
    rows = []
    for tool in tools:
        fastest = best(runs[tool])
        allowed = size + 1.5 * fastest["arrays"]
        rows.append(
            {
                "reader": tool,
                "seconds": f"{fastest['seconds']:.2f}",
                "MB/s": f"{size / 1e6 / fastest['seconds']:.0f}",
                "times as fast": f"{slowest / fastest['seconds']:.1f}",
                "peak memory, MB": f"{fastest['bytes'] / 1e6:.0f}",
                "text + 1.5 × arrays, MB": f"{allowed / 1e6:.0f}",
            }
        )
    notes = [
        f"{size / 1e6:.0f} MB of text, 136 features; best of {RUNS} with compiled kernels, the processes taking turns. "
        "Peak memory is that of the process above its state after imports. scikit-learn's arrays are sparse, Podium's "
        "dense.",
    ]
    return Report("reader", "Reading LETOR text", rows, notes)


if __name__ == "__main__":
    print(json.dumps(make_text(Path(sys.argv[2])) if sys.argv[1] == "make text" else child(*sys.argv[1:])))
