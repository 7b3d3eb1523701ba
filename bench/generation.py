"""Generating artificial data, and writing it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from bench.harness import Report, best, in_child, peak_bytes, timed

RUNS = 3


def child() -> dict[str, float]:
    """Measure the papers' three parts, web-like data, and its LETOR text."""
    import podium

    podium.artificial(10, clicks=True)
    podium.artificial_web(10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "web.txt"
        podium.write(podium.artificial(5), path)
        before = peak_bytes()

        def papers() -> None:
            for part, queries in (("train", 10_000), ("valid", 5_000), ("test", 10_000)):
                podium.artificial(queries, part=part)  # type: ignore[arg-type]

        results = {"papers": timed(papers), "papers memory": peak_bytes() - before}
        results["clicks"] = timed(lambda: podium.artificial(1_000, clicks=True))
        results["web"] = timed(lambda: podium.artificial_web(6_000))
        data = podium.artificial_web(1_000)
        results["write"] = timed(lambda: podium.write(data, path, absent="none"))
        results["written MB"] = path.stat().st_size / 1e6
    return results


def run() -> Report:
    """Return the best of three processes."""
    in_child("bench.generation")
    runs = [in_child("bench.generation") for _ in range(RUNS)]
    lowest = {key: best(runs, key)[key] for key in runs[0]}
    rate = lowest["written MB"] / lowest["write"]
    rows = [
        {"what": "artificial, 10K + 5K + 10K queries × 50 × 50", "seconds": f"{lowest['papers']:.2f}"},
        {"what": "artificial with clicks, 1K queries", "seconds": f"{lowest['clicks']:.2f}"},
        {"what": "artificial_web, 6K queries × 120 × 136", "seconds": f"{lowest['web']:.2f}"},
        {
            "what": f"write LETOR text, {lowest['written MB']:.0f} MB ({rate:.0f} MB/s)",
            "seconds": f"{lowest['write']:.2f}",
        },
    ]
    memory = lowest["papers memory"] / 1e6
    return Report(
        "generation", "Generating and writing data", rows,
        [f"Best of {RUNS} processes with compiled kernels. First row: peak memory {memory:.0f} MB."],
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(child()))
