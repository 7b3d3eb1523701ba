"""The service compared with FastAPI around LightGBM, with the same model and requests, in turn.

A request has 100 documents with 136 features; the model has 500 trees. Each service has one worker with one thread on
one core. The client runs on another core and keeps a number of connections busy. Then the model is changed 100 times
under load, and memory is measured while 100,000 requests are answered.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Report, in_child

TREES, LEAVES, DOCUMENTS, FEATURES = 500, 31, 100, 136
BODIES, CONNECTIONS, SECONDS, ROUNDS = 50, 8, 10.0, 3
CHANGES, MANY = 100, 100_000
FASTAPI, PODIUM = "FastAPI, LightGBM", "podium serve"


# ---- models and requests ----


def make_files(folder: Path) -> None:
    """Write LightGBM's model, the same model in Podium, and bodies of requests."""
    import lightgbm

    import podium

    data = podium.artificial_web(300, documents=100, features=FEATURES, seed=1)
    train = lightgbm.Dataset(data.features, data.relevance, group=data.query_sizes)
    settings = {"objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": 0.1, "verbose": -1, "num_threads": 2}
    lightgbm.train(settings, train, TREES).save_model(str(folder / "model.txt"))
    model = podium.import_model(folder / "model.txt")
    model.save(folder / "model.podium")
    model.truncate(TREES - 1).save(folder / "other.podium")
    for k in range(BODIES):
        rows = data.features[k * DOCUMENTS : (k + 1) * DOCUMENTS]
        documents = [[float(str(value)) for value in row] for row in rows]  # float32 in its shortest digits
        (folder / f"{k}.json").write_text(json.dumps({"documents": documents}), encoding="utf-8")


def fastapi_service(folder: Path, port: int) -> None:
    """Return a typical service: validated bodies, an array, `predict`, a sorted answer."""
    import lightgbm
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    booster = lightgbm.Booster(model_file=str(folder / "model.txt"))
    app = FastAPI()

    class Query(BaseModel):
        documents: list[list[float | None]]
        ids: list[str] | None = None
        k: int | None = None

    class Ranked(BaseModel):
        index: int
        score: float
        id: str | None = None

    class Ranking(BaseModel):
        model: str
        ranking: list[Ranked]

    # FastAPI evaluates the annotations when the path is declared, so names inside a function must be real objects.
    def rank(query: Any) -> Any:
        scores = booster.predict(np.array(query.documents, dtype=np.float64), num_threads=1)
        order = np.argsort(-scores, kind="stable")[: query.k]
        ids = query.ids or [None] * len(scores)
        return Ranking(
            model="model", ranking=[Ranked(index=int(k), score=float(scores[k]), id=ids[int(k)]) for k in order]
        )

    rank.__annotations__ = {"query": Query, "return": Ranking}
    app.post("/rank")(rank)
    app.get("/ready")(lambda: {"ready": True})
    uvicorn.run(app, port=port, access_log=False, log_level="warning")


# ---- the client ----


class Connection(asyncio.Protocol):
    """Sends a request as soon as the last one is answered, and records the time of each."""

    def __init__(self, load: Load, first: int) -> None:
        self.load, self.number = load, first
        self.received = b""
        self.sent = 0.0
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        """Begin to send requests."""
        self.transport = transport
        self.send()

    def send(self) -> None:
        """Send the next request, unless the time is up."""
        if self.load.is_over():
            self.transport.close()
            return
        self.number += 1
        self.received, self.sent = b"", time.perf_counter()
        self.load.begun += 1
        self.transport.write(self.load.requests[self.number % len(self.load.requests)])

    def data_received(self, data: bytes) -> None:
        """Read until the answer is complete."""
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return
        length = re.search(rb"content-length: (\d+)", head.lower())
        if length is None or len(body) < int(length[1]):
            return
        self.load.milliseconds.append(1000 * (time.perf_counter() - self.sent))
        if not head.startswith(b"HTTP/1.1 200"):
            self.load.failed += 1
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        """Reopen a connection that the service closed; count the open request as lost."""
        self.load.ended(self.number)


class Load:
    """Keeps connections busy for some seconds or for a number of requests."""

    def __init__(self, folder: Path, port: int, seconds: float, most: int) -> None:
        head = f"POST /rank HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\n"
        bodies = [(folder / f"{k}.json").read_bytes() for k in range(BODIES)]
        self.requests = [f"{head}content-length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
        self.port, self.most = port, most
        self.milliseconds: list[float] = []
        self.begun = self.failed = 0
        self.end = time.perf_counter() + seconds
        self.open = 0
        self.over = asyncio.Event()

    def is_over(self) -> bool:
        """Whether to stop sending requests."""
        return time.perf_counter() >= self.end or self.begun >= self.most

    def ended(self, number: int) -> None:
        """Record that a connection has ended."""
        self.open -= 1
        if not self.is_over():
            self.connect(number)
        elif not self.open:
            self.over.set()

    def connect(self, first: int) -> None:
        """Open a connection."""
        self.open += 1
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.create_connection(lambda: Connection(self, first), "127.0.0.1", self.port))
        task.add_done_callback(lambda done: done.exception() and self.ended(first))

    async def run(self) -> dict[str, Any]:
        """Send requests until the end; return the times of all requests."""
        started = time.perf_counter()
        for k in range(CONNECTIONS):
            self.connect(k * BODIES // CONNECTIONS)
        await self.over.wait()
        seconds = time.perf_counter() - started
        p50, p99 = np.percentile(self.milliseconds, [50, 99])
        answered = len(self.milliseconds)
        return {
            "answered": answered, "lost": self.begun - answered + self.failed, "per second": answered / seconds,
            "p50": p50, "p99": p99, "seconds": seconds,
        }  # fmt: skip


def keep_on(core: int, pid: int = 0) -> None:
    """Pin a process and those that it starts to one core, if there are several."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {cores[core % len(cores)]})


# ---- the measurement ----


@contextmanager
def service(name: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Run a service; yield its port and the id of the process that answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if name == PODIUM:
        code = "from podium.cli import main; main()"
        command = ["-c", code, "serve", str(folder / "served"), "--no-access-log", "--watch", "0.05"]
        command += ["--port", str(port)]
    else:
        command = ["-m", "bench.serving", "fastapi", str(folder), str(port)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.PIPE)
    keep_on(0, process.pid)
    lines: list[bytes] = []
    try:
        wait_for(lambda: get(port, "/ready"))
        answering = process.pid
        if name == PODIUM:
            assert process.stderr is not None
            while b'"ready"' not in (lines or [b""])[-1]:
                lines.append(process.stderr.readline())
            answering = json.loads(lines[-1])["pid"]
        yield port, answering
    finally:
        process.terminate()
        process.communicate()


def get(port: int, path: str) -> str:
    """Return the answer of a path."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        text: str = answer.read().decode()
        return text


def wait_for(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Wait for a condition and return its first true value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except OSError:
            pass
        time.sleep(0.05)
    raise TimeoutError("the service did not do it in time")


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """Return the memory of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def metric(port: int, name: str) -> float:
    """Return a number of /metrics, summed over its labels."""
    found = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", get(port, "/metrics"), re.MULTILINE)
    return sum(map(float, found))


def loaded(folder: Path, port: int, seconds: float = SECONDS, most: int = 1 << 40) -> dict[str, Any]:
    """Return what a client measures in a separate process."""
    return in_child("bench.serving", "load", folder, port, seconds, most)


def measured(name: str, folder: Path) -> dict[str, Any]:
    """Return throughput and times of one service, after a warm-up."""
    with service(name, folder) as (port, pid):
        loaded(folder, port, most=200)
        scoring, worked = (metric(port, "podium_scoring_seconds_sum") if name == PODIUM else 0.0), cpu_seconds(pid)
        result = loaded(folder, port)
        worked = cpu_seconds(pid) - worked
        result["cpu ms"] = 1000 * worked / result["answered"]
        if name == PODIUM:
            result["share"] = (metric(port, "podium_scoring_seconds_sum") - scoring) / worked
        return result


def changed(folder: Path) -> dict[str, Any]:
    """Return the requests lost while the model changes repeatedly under load."""
    served = folder / "served" / "model.podium"
    with service(PODIUM, folder) as (port, _):
        command = [sys.executable, "-m", "bench.serving", "load", str(folder), str(port), "600", str(1 << 40)]
        client = subprocess.Popen([*command, str(folder / "stop")], stdout=subprocess.PIPE, text=True)
        for k in range(CHANGES):
            shutil.copy(folder / ("model.podium" if k % 2 else "other.podium"), folder / "new")
            (folder / "new").replace(served)
            wait_for(lambda k=k: metric(port, "podium_model_changes_total") >= k + 1)  # type: ignore[misc]
        (folder / "stop").touch()
        result: dict[str, Any] = json.loads(client.communicate()[0].splitlines()[-1])
        return result


def remembered(folder: Path) -> tuple[dict[str, Any], int, int]:
    """Return memory after a tenth of many requests, and after all of them."""
    with service(PODIUM, folder) as (port, pid):
        loaded(folder, port, 3600, MANY // 10)
        before = memory(pid)
        result = loaded(folder, port, 3600, MANY - MANY // 10)
        return result, before, memory(pid)


def run() -> Report:
    """Measure both services in turn, and check that they give the same rankings."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_child("bench.serving", "files", folder)
        (folder / "served").mkdir()
        shutil.copy(folder / "model.podium", folder / "served")
        require_same_rankings(folder)
        runs: dict[str, list[dict[str, Any]]] = {PODIUM: [], FASTAPI: []}
        for _ in range(ROUNDS):
            for service_name, results in runs.items():
                results.append(measured(service_name, folder))
        changes = changed(folder)
        many, before, after = remembered(folder)
    rows = []
    for service_name, results in runs.items():
        best = max(results, key=lambda result: result["per second"])
        share = f"{best['share']:.0%}" if "share" in best else ""
        rows.append(
            {
                "service": service_name, "requests per second": f"{best['per second']:.0f}",
                "p50 ms": f"{best['p50']:.2f}", "p99 ms": f"{best['p99']:.2f}",
                "CPU ms per request": f"{min(result['cpu ms'] for result in results):.2f}", "time in scoring": share,
                "lost": sum(result["lost"] for result in results),
            }
        )  # fmt: skip
    faster, shorter = (
        max(run["per second"] for run in runs[PODIUM]) / max(run["per second"] for run in runs[FASTAPI]),
        min(run["p99"] for run in runs[FASTAPI]) / min(run["p99"] for run in runs[PODIUM]),
    )
    notes = [
        f"{DOCUMENTS} documents × {FEATURES} features, {TREES} trees of {LEAVES} leaves, one worker on one core, "
        f"{CONNECTIONS} connections from another core; best of {ROUNDS} rounds of {SECONDS:.0f} s.",
        f"Throughput is {faster:.1f} times that of FastAPI around LightGBM, whose p99 is {shorter:.1f} times as long.",
        f"{CHANGES} changes of the model under load: {changes['answered']} requests answered, {changes['lost']} lost, "
        f"p99 {changes['p99']:.1f} ms.",
        f"Memory of the worker: {before / 2**20:.1f} MiB after {MANY // 10} requests, {after / 2**20:.1f} MiB after "
        f"{MANY} ({many['lost']} lost).",
    ]
    return Report("serving", "A ranking service", rows, notes)


def require_same_rankings(folder: Path) -> None:
    """Raise if the services give different rankings."""
    body = (folder / "0.json").read_bytes()
    answers = []
    for name in (PODIUM, FASTAPI):
        with service(name, folder) as (port, _):
            headers = {"content-type": "application/json"}
            request = urllib.request.Request(f"http://127.0.0.1:{port}/rank", body, headers)
            with urllib.request.urlopen(request) as answer:
                answers.append([document["index"] for document in json.loads(answer.read())["ranking"]])
    assert answers[0] == answers[1]


def main(what: str, folder: Path, *arguments: str) -> None:
    """Run one of the parts that need a separate process."""
    if what == "files":
        make_files(folder)
        print("{}")
    elif what == "fastapi":
        fastapi_service(folder, int(arguments[0]))
    else:
        port, seconds, most, *stop = arguments
        keep_on(1)
        print(json.dumps(asyncio.run(_load(folder, int(port), float(seconds), int(most), *map(Path, stop)))))


async def _load(folder: Path, port: int, seconds: float, most: int, stop: Path | None = None) -> dict[str, Any]:
    """Send requests until the time is up, the number of requests is reached, or a file appears."""
    load = Load(folder, port, seconds, most)

    async def watch(path: Path) -> None:
        while not path.exists():
            await asyncio.sleep(0.05)
        load.end = 0.0

    watching = asyncio.create_task(watch(stop)) if stop is not None else None
    result = await load.run()
    if watching is not None:
        await watching
    return result


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
