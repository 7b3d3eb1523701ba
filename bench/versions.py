"""Two checkouts of Podium side by side: did a change make anything slower?

`python -m bench.versions OTHER` compares this checkout with the one in the folder OTHER. Each task is a separate
process. The checkouts take turns, and alternate in going first. The ratio is OTHER's time divided by this one's (above
1: this one is faster): the geometric mean over the pairs, with a 95% interval by Student's t on the logarithms.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.harness import Report, timed, write

ROOT = Path(__file__).parent.parent
PAIRS = 8


def train(leaves: int, queries: int, trees: int) -> Callable[[Path], float]:
    """Return seconds to train on web-shaped data, without the compilation."""

    def seconds(_: Path) -> float:
        import podium

        podium.LambdaMART(1, min_documents_in_leaf=1).fit(podium.artificial_web(20))
        data = podium.artificial_web(queries)
        data.canonical_order  # noqa: B018, both checkouts have it before the clock starts
        return timed(lambda: podium.LambdaMART(trees, leaves, truncation=30, n_threads=2).fit(data))

    return seconds


def train_small(_: Path) -> float:
    """Return seconds to train on a small set with validation data."""
    import podium

    data, valid = (podium.artificial(200, documents=40, part=part) for part in ("train", "valid"))
    podium.LambdaMART(2).fit(data, valid=valid)
    return min(timed(lambda: podium.LambdaMART(200, 15, n_threads=2).fit(data, valid=valid)) for _ in range(5))


def measures(_: Path) -> float:
    """Return seconds for the usual measures of two million documents."""
    import numpy as np

    import podium

    rng = np.random.default_rng(0)
    n = 2_000_000
    data = podium.RankingData(np.zeros((n, 1), np.float32), rng.integers(0, 5, n), qid=np.arange(n) // 100)
    scores, names = rng.normal(size=n), ["ndcg@10", "err", "ap", "rr", "precision@5"]
    podium.evaluate(data, scores, names)
    return min(timed(lambda: podium.evaluate(data, scores, names)) for _ in range(3))


def sweep(_: Path) -> float:
    """Return seconds to combine two rankers exactly."""
    import podium

    data = podium.artificial(1000)
    a, b = data.features[:, 0].astype(float), data.features[:, 1].astype(float)
    podium.combine(a, b, data, "ndcg@10")
    return min(timed(lambda: podium.combine(a, b, data, "ndcg@10")) for _ in range(3))


def reader(folder: Path) -> float:
    """Return seconds to read LETOR text."""
    import podium

    podium.read(folder / "data.txt")
    return min(timed(lambda: podium.read(folder / "data.txt")) for _ in range(3))


def predict(_: Path) -> float:
    """Return seconds to score documents by 100 trees."""
    import podium

    data = podium.artificial_web(300)
    model = podium.LambdaMART(100, 31, n_threads=2).fit(data)
    model.predict(data)
    return min(timed(lambda: model.predict(data)) for _ in range(30))


def explain(_: Path) -> float:
    """Return seconds to explain documents by 100 trees."""
    import podium
    from podium.explain import explain as explain_scores

    data = podium.artificial_web(30)
    model = podium.LambdaMART(100, 31, n_threads=2).fit(data)
    explain_scores(model, data)
    return min(timed(lambda: explain_scores(model, data)) for _ in range(10))


def process(*command: str) -> Callable[[Path], float]:
    """Return the seconds of a whole process."""

    def seconds(_: Path) -> float:
        return min(timed(lambda: subprocess.run([sys.executable, *command], check=True, capture_output=True))
                   for _ in range(3))  # fmt: skip

    return seconds


def command(*arguments: str) -> Callable[[Path], float]:
    """Return the seconds of a `podium` command."""
    return process("-c", f"import sys; from podium.cli import main; sys.argv[1:] = {list(arguments)}; main()")


TASKS: dict[str, Callable[[Path], float]] = {
    "train: 31 leaves, 100 trees, 180,000 × 136": train(31, 1500, 100),
    "train: 255 leaves, 30 trees, 180,000 × 136": train(255, 1500, 30),
    "train: 15 leaves, 200 trees, 8,000 × 50, with validation data": train_small,
    "measures": measures,
    "sweep": sweep,
    "reader": reader,
    "predict": predict,
    "explain": explain,
    "startup: import podium": process("-c", "import podium"),
    "startup: podium --help": command("--help"),
    "startup: podium train --help": command("train", "--help"),
}
COMPILING = "compilation: a first LambdaMART on an empty cache"
FIRST_FIT = "import podium; podium.LambdaMART(2).fit(podium.artificial(20))"


def _child(checkout: Path, task: str, folder: Path, cache: Path) -> float:
    """Return one measurement in a process that uses one checkout."""
    environment = os.environ | {"PYTHONPATH": f"{checkout / 'src'}:{ROOT}", "NUMBA_CACHE_DIR": str(cache)}
    if task == COMPILING:
        with tempfile.TemporaryDirectory() as empty:
            environment["NUMBA_CACHE_DIR"] = empty
            command = [sys.executable, "-c", FIRST_FIT]
            return timed(lambda: subprocess.run(command, check=True, capture_output=True, env=environment))
    done = subprocess.run(
        [sys.executable, "-m", "bench.versions", "--task", task, str(folder)], check=True, capture_output=True,
        text=True, env=environment, cwd=folder,
    )  # fmt: skip
    return float(json.loads(done.stdout.splitlines()[-1]))


def compare(other: Path, tasks: list[str], pairs: int = PAIRS) -> Report:
    """Measure all tasks on both checkouts."""
    from scipy import stats

    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        caches = {checkout: folder / f"cache{k}" for k, checkout in enumerate((other, ROOT))}
        _write_text(folder / "data.txt")
        for task in tasks:
            n_pairs = 3 if task == COMPILING else pairs
            for checkout in (other, ROOT):  # compiles
                if task != COMPILING:
                    _child(checkout, task, folder, caches[checkout])
            logs, best = [], {other: math.inf, ROOT: math.inf}
            for k in range(n_pairs):
                times = {c: _child(c, task, folder, caches[c]) for c in ((other, ROOT) if k % 2 else (ROOT, other))}
                logs.append(math.log(times[other] / times[ROOT]))
                best = {c: min(best[c], times[c]) for c in best}
            mean = sum(logs) / n_pairs
            half = stats.t.ppf(0.975, n_pairs - 1) * stats.tstd(logs) / math.sqrt(n_pairs)
            rows.append({
                "task": task, "before, s": f"{best[other]:.3f}", "after, s": f"{best[ROOT]:.3f}",
                "before / after": f"{math.exp(mean):.3f}",
                "95% interval": f"{math.exp(mean - half):.3f} to {math.exp(mean + half):.3f}",
            })  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
    notes = [
        f"Best times of {pairs} pairs of processes, taking turns (3 pairs for compilation). Ratio: geometric mean over "
        "the pairs."
    ]
    return Report("versions", "Two versions of Podium side by side", rows, notes)


def _write_text(path: Path) -> None:
    import podium

    podium.write(podium.artificial_web(150), path)


def main(arguments: list[str]) -> None:
    """Run a task in a child process, or the comparison."""
    if arguments[0] == "--task":
        print(json.dumps(TASKS[arguments[1]](Path(arguments[2]))))
        return
    other, *words = arguments
    tasks = [task for task in (*TASKS, COMPILING) if not words or any(word in task for word in words)]
    print(write(compare(Path(other).resolve(), tasks)))


if __name__ == "__main__":
    main(sys.argv[1:])
