"""Files larger than memory: binning into a folder and training within a limit, against memory and LightGBM."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bench.harness import Report

SOURCE_BYTES = 4 << 30  # of the CSV file
LIMIT_BYTES = 1536 << 20  # of memory, for the ways that are made for that
N_TREES, N_LEAVES = 50, 31
PART_QUERIES = 500  # number of queries to generate at a time
SPREAD = 3  # number of places in the second file with documents of a query
POLL_SECONDS = 0.02

WAYS = {  # and whether they run within the limit
    "Podium, in memory": False, "Podium, binned": True, "Podium, folder opened again": True,
    "Podium, binned, queries apart": True, "LightGBM, one round": False, "LightGBM, two rounds": True,
}  # fmt: skip


def make_files(folder: Path, size: int) -> dict[str, Any]:
    """Write web-like data as CSV: `together.csv` query by query, `apart.csv` with each query in several places."""
    n_parts = n_documents = 0
    with (folder / "together.csv").open("wb") as file:
        while file.tell() < size:
            n_documents += _append(n_parts, file, slice(None))
            n_parts += 1
    with (folder / "apart.csv").open("wb") as file:
        for place in range(SPREAD):
            for part in range(n_parts):
                _append(part, file, slice(place, None, SPREAD))
    return {"documents": n_documents, "bytes": (folder / "together.csv").stat().st_size}


def _append(part: int, file: Any, rows: slice) -> int:
    """Write some rows of one part of the data; return their number."""
    import numpy as np
    import pyarrow
    import pyarrow.csv

    import podium

    data = podium.artificial_web(PART_QUERIES, seed=part)
    selected = np.arange(len(data))[rows]
    columns = {"label": data.relevance[selected], "qid": data.query_of_row[selected] + PART_QUERIES * part}
    columns |= {f"f{k}": data.features[selected, k] for k in range(data.n_features)}
    if file.tell() == 0:
        file.write((",".join(columns) + "\n").encode())  # without quotes, which LightGBM does not expect
    options = pyarrow.csv.WriteOptions(include_header=False)
    pyarrow.csv.write_csv(pyarrow.table(columns), file, options)
    return len(selected)


def child(way: str, folder: Path) -> dict[str, Any]:
    """Prepare the data and train in this process."""
    return (_lightgbm if way.startswith("LightGBM") else _podium)(way, folder)


def _podium(way: str, folder: Path) -> dict[str, Any]:
    import podium

    started = time.perf_counter()
    if way == "Podium, in memory":
        data, steps = podium.read(folder / "together.csv"), {}
    elif way == "Podium, folder opened again":
        data, steps = podium.open_binned(folder / "together.bins"), {}
    else:
        name = "apart" if way.endswith("apart") else "together"
        data = podium.bin_files(folder / f"{name}.csv", folder / f"{name}.bins", overwrite=True)
        steps = dict(data.seconds)
    prepared = time.perf_counter()
    model = podium.LambdaMART(N_TREES, n_leaves=N_LEAVES).fit(data)
    seconds = time.perf_counter() - prepared
    return {"prepared": prepared - started, "trained": seconds, "steps": steps, "digest": model.digest()[:12]}


def _lightgbm(way: str, folder: Path) -> dict[str, Any]:
    import lightgbm

    started = time.perf_counter()
    parameters = {
        "objective": "lambdarank", "num_leaves": N_LEAVES, "verbose": -1, "num_threads": os.cpu_count(), "header": True,
        "label_column": "name:label", "group_column": "name:qid", "two_round": way.endswith("two rounds"),
    }  # fmt: skip
    data = lightgbm.Dataset(str(folder / "together.csv"), params=parameters).construct()
    prepared = time.perf_counter()
    lightgbm.train(parameters, data, N_TREES)
    return {"prepared": prepared - started, "trained": time.perf_counter() - prepared, "steps": {}, "digest": ""}


def measured(way: str, folder: Path, is_limited: bool) -> dict[str, Any]:
    """Run one way in a separate process; return its result, its peak anonymous memory, and whether it was limited."""
    command, group = [sys.executable, "-m", "bench.out_of_core", way, str(folder)], is_limited and has_groups()
    if group:
        limit = ["-p", f"MemoryMax={LIMIT_BYTES}", "-p", "MemorySwapMax=0"]
        command = ["systemd-run", "--scope", "--quiet", *limit, *command]
    elif is_limited:
        command.append(str(LIMIT_BYTES))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak = _Peak(process.pid)
    output, errors = process.communicate()
    peak.stop()
    if process.returncode:
        return {"failed": f"fails: {errors.strip().splitlines()[-1][:60] if errors.strip() else 'killed'}"}
    return json.loads(output.splitlines()[-1]) | {"anonymous": peak.bytes}


def has_groups() -> bool:
    """Return whether systemd can give a process a control group with a limit."""
    if shutil.which("systemd-run") is None:
        return False
    done = subprocess.run(["systemd-run", "--scope", "--quiet", "true"], capture_output=True, check=False)
    return done.returncode == 0


class _Peak:
    """Polls a running process for its peak anonymous memory."""

    def __init__(self, pid: int) -> None:
        self.bytes, self._status, self._is_over = 0, Path(f"/proc/{pid}/status"), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.wait(POLL_SECONDS):
            try:
                lines = self._status.read_text().splitlines()
            except OSError:
                return
            self.bytes = max([self.bytes, *(1024 * int(x.split()[1]) for x in lines if x.startswith("RssAnon"))])

    def stop(self) -> None:
        """Stop polling."""
        self._is_over.set()
        self._thread.join()


def run(size: int = SOURCE_BYTES) -> Report:
    """Measure every way once, one after the other: a run takes minutes."""
    rows = []
    folder_to_keep = os.environ.get("PODIUM_BENCH_FOLDER")  # its files are written once, and stay
    with nullcontext(folder_to_keep) if folder_to_keep else tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        facts = _write_once(folder, size)
        measured("Podium, in memory", _small(folder), is_limited=False)  # compiles the kernels
        for way, is_limited in WAYS.items():
            found = measured(way, folder, is_limited)
            row = {"way": way, "limit, MB": f"{LIMIT_BYTES >> 20}" if is_limited else "none"}
            if "failed" in found:
                rows.append(row | {"prepare, s": found["failed"]})
                continue
            steps = ", ".join(f"{step} {seconds:.0f}" for step, seconds in found["steps"].items())
            rows.append(
                row | {
                    "prepare, s": f"{found['prepared']:.1f}", "of which": steps, "train, s": f"{found['trained']:.1f}",
                    "peak anonymous memory, MB": f"{found['anonymous'] / 2**20:.0f}", "digest": found["digest"],
                }
            )  # fmt: skip
    enforced = "a control group" if has_groups() else "RLIMIT_DATA, which counts anonymous memory"
    notes = [
        f"CSV of {facts['bytes'] / 2**30:.2f} GiB, {facts['documents']:,} documents × 136 features; {N_TREES} trees of "
        f"{N_LEAVES} leaves. The limit is enforced by {enforced}. Prepare: reading or binning; for a folder that is "
        f"opened again, verifying its checksums. Queries apart: the documents of each query are in {SPREAD} places of "
        "the file. Equal digests mean the same model, to the bit.",
    ]
    return Report("out_of_core", "Files larger than memory", rows, notes)


def _write_once(folder: Path, size: int) -> dict[str, Any]:
    """Create the files if they do not exist; return what is in them."""
    facts = folder / "facts.json"
    if not facts.exists():
        command = [sys.executable, "-m", "bench.out_of_core", "make", str(folder), str(size)]
        facts.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout, encoding="utf-8")
    found: dict[str, Any] = json.loads(facts.read_text(encoding="utf-8"))
    return found


def _small(folder: Path) -> Path:
    """Write a small file next to the large one, to compile kernels before anything is timed."""
    small = folder / "small"
    small.mkdir(exist_ok=True)
    make_files(small, 1)
    return small


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    number = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    if number and what != "make":
        resource.setrlimit(resource.RLIMIT_DATA, (number, number))
    print(json.dumps(make_files(where, number) if what == "make" else child(what, where)))
