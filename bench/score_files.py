"""`podium score` on a file: rows per second and peak memory, in blocks and for the whole file at once."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.harness import Report, best, in_child, peak_bytes

N_QUERIES = 700  # about 120 MB of text
RUNS = 3
WAYS = ("whole file", "in blocks")
FORMATS = ("txt", "parquet")


def prepare(folder: Path) -> dict[str, Any]:
    """Write web-like data as LETOR text and Parquet, small files to load the kernels, and a model."""
    import podium

    small, data = podium.artificial_web(20), podium.artificial_web(N_QUERIES)
    podium.LambdaMART(100, 31).fit(small).save(folder / "model.podium")
    for documents, name in ((small, "small"), (data, "data")):
        podium.write(documents, folder / f"{name}.txt", absent="none")
        podium.write(documents, folder / f"{name}.parquet")
    return {"rows": len(data)}


def child(way: str, suffix: str, folder: Path) -> dict[str, Any]:
    """Score the file once in this process."""
    _score(way, folder, f"small.{suffix}")
    before, start = peak_bytes(), time.perf_counter()
    _score(way, folder, f"data.{suffix}")
    return {"seconds": time.perf_counter() - start, "bytes": peak_bytes() - before}


def _score(way: str, folder: Path, name: str) -> None:
    import podium
    from podium.cli import main

    output = folder / f"scores.{os.getpid()}"
    if way == "whole file":
        scores = podium.load(folder / "model.podium").predict(podium.read(folder / name))
        output.write_text("".join(f"{value!r}\n" for value in scores.tolist()))
        return
    sys.argv = ["podium", "score", str(folder / "model.podium"), str(folder / name), "-o", str(output)]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def run() -> Report:
    """Measure the ways in turn, each in a separate process; keep the best of three runs."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_rows = in_child("bench.score_files", "prepare", "", folder)["rows"]
        for suffix in FORMATS:
            runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
            for _ in range(RUNS):
                for way in WAYS:
                    runs[way].append(in_child("bench.score_files", way, suffix, folder))
            for way in WAYS:
                fastest = best(runs[way])
                rows.append(
                    {
                        "file": f"{suffix}, {(folder / f'data.{suffix}').stat().st_size / 1e6:.0f} MB",
                        "read": way,
                        "seconds": f"{fastest['seconds']:.2f}",
                        "rows/s": f"{n_rows / fastest['seconds']:,.0f}",
                        "peak memory, MB": f"{best(runs[way], 'bytes')['bytes'] / 1e6:.0f}",
                    }
                )
    notes = [
        f"A model of 100 trees, 136 features; best of {RUNS} with compiled kernels, the processes taking turns. Peak "
        "memory is that of the process above its state after it has scored a small file. In blocks, memory does not "
        "grow with the file.",
    ]
    return Report("score_files", "Scoring files", rows, notes)


if __name__ == "__main__":
    way, suffix, folder = sys.argv[1:]
    print(json.dumps(prepare(Path(folder)) if way == "prepare" else child(way, suffix, Path(folder))))
