"""The service as a command: workers, signals, slow clients."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest

import podium
from podium.clicks import ClickLog, LiveLog
from podium.clicks.simulating import simulate_events

pytestmark = pytest.mark.slow  # processes start

COMMAND = [sys.executable, "-c", "from podium.cli import main; main()", "serve"]


def until(condition, seconds=90.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if value := condition():
                return value
        except httpx.TransportError:
            pass
        time.sleep(0.02)
    raise AssertionError("the condition did not become true in time")


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Running:
    """A service that runs in separate processes."""

    def __init__(self, folder, *options, log=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = log or folder / "log"
        with self.log.open("w") as file:
            self.process = subprocess.Popen([*COMMAND, str(folder), "--port", str(self.port), *options], stderr=file)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=20)

    def rank(self, rows):
        return self.client.post("/rank", json={"documents": rows})

    def events(self, name):
        """Return the lines of the log, which are JSON; the last line may be incomplete."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in lines if line["event"] == name]

    def workers(self):
        """Return the ids of the workers that are ready and alive."""
        return {event["pid"] for event in self.events("ready") if is_alive(event["pid"])}

    def end(self, number=signal.SIGTERM):
        self.client.close()
        self.process.send_signal(number)
        return self.process.wait(20)


@pytest.fixture
def running(models, tmp_path):
    shutil.copy(models["web"], tmp_path / "web.podium")
    service = Running(tmp_path, "--watch", "0.05", "--max-seconds", "1", "--workers", "2", "--no-access-log")
    try:
        until(lambda: service.client.get("/ready").status_code == 200)
        until(lambda: len(service.events("ready")) == 2)
        yield service
    finally:
        if service.process.poll() is None:
            service.process.kill()


ROWS = [[1, 2, 3, 4], [4, 3, 2, 1]]


def test_a_service_lives_through_changes_deaths_and_slow_clients(running, models, tmp_path):
    digest = {name: podium.load(path).digest() for name, path in models.items()}

    def served():
        return running.client.get("/models").json()["models"][0]["digest"]

    started = time.perf_counter()
    assert running.rank(ROWS).status_code == 200
    assert time.perf_counter() - started < 1  # the first request compiles nothing
    assert served() == digest["web"]
    statuses = answered_under_changes(running, models, tmp_path)
    assert set(statuses) == {200}
    assert served() == digest["web"]

    (tmp_path / "web.podium").write_bytes(b"bad")  # a bad file, and a worker that starts with it
    until(lambda: len(running.events("model refused")) >= 2)
    victim = min(before := running.workers())
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(running.workers()) == 2 and victim not in running.workers())
    until(lambda: len(running.events("ready")) == 3)
    assert len(before & running.workers()) == 1
    assert {served() for _ in range(10)} == {digest["web"]}

    assert running.client.get("/ready").json() == {"models": 1, "refused": ["web"]}

    shutil.copy(models["news"], tmp_path / "web.podium")
    running.process.send_signal(signal.SIGHUP)  # uvicorn replaces the workers one by one
    until(lambda: served() == digest["news"])
    until(lambda: len(running.events("ready")) == 5 and len(running.workers()) == 2)

    head = b"POST /rank HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
    slow_body = slow_client(running.port, head)
    assert slow_body.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not arrive within 1 seconds" in slow_body
    wordy = slow_client(running.port, b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000)
    assert wordy.startswith(b"HTTP/1.1 400 ")
    with socket.create_connection(("127.0.0.1", running.port)) as gone:  # a client that leaves in the middle
        gone.sendall(head)
    assert running.rank(ROWS).status_code == 200
    large = running.client.post("/rank", content=b" " * 10_000_000, headers={"content-type": "application/json"})
    assert large.status_code == 413
    assert not running.events("failure")
    assert "server" not in running.client.get("/health").headers
    counts = running.client.get("/metrics").text
    assert f'podium_requests_total{{path="/rank",status="200"}} {len(statuses) + 2:.1f}' in counts
    assert "podium_requests_in_flight 1.0" in counts  # this one: none of the killed worker's
    ended = len(running.events("end"))
    assert running.end() == 0
    assert len(running.events("end")) == ended + 2


def answered_under_changes(running, models, folder):
    """Return the statuses of all requests while the model changes repeatedly."""
    statuses, end = [], threading.Event()

    def load():
        with httpx.Client(base_url=running.client.base_url, timeout=20) as client:
            while not end.is_set():
                statuses.append(client.post("/rank", json={"documents": ROWS}).status_code)

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    for k in range(6):  # models change under load
        shutil.copy(models["web" if k % 2 else "news"], folder / "new")
        (folder / "new").replace(folder / "web.podium")
        changes = 2 * (k + 1)
        until(lambda changes=changes: len(running.events("model loaded")) >= changes)
    end.set()
    for thread in threads:
        thread.join()
    return statuses


def slow_client(port, data):
    """Return the response to a client that sends these bytes and nothing more."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(data)
        received = b""
        while part := connection.recv(1 << 16):
            received += part
        return received


def lines_of(done):
    """Return the log of a service that has ended; every line is JSON."""
    return [json.loads(line) for line in done.stderr.splitlines()]


def run(*arguments, timeout=60):
    return subprocess.run(
        [*COMMAND, "--port", "0", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=timeout
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_without_a_good_model_ends_with_an_error(tmp_path, workers):
    (tmp_path / "web.podium").write_bytes(b"no model")
    (tmp_path / "empty.podium").touch()
    done = run(tmp_path, "--workers", workers)
    assert done.returncode == 1
    lines = lines_of(done)
    refused = [line for line in lines if line["event"] == "model refused"]
    assert {line["model"] for line in refused} == {"web", "empty"}
    assert all(line["model"] in line["reason"] for line in refused)
    assert (lines[-1]["event"], lines[-1]["level"]) == ("cannot serve", "error")
    assert "no model could be loaded" in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_damaged_model_does_not_keep_others_from_being_served(models, tmp_path, workers):
    """Workers must not restart forever if a good model precedes a damaged one."""
    shutil.copy(models["web"], tmp_path / "a.podium")
    (tmp_path / "b.podium").write_bytes(models["web"].read_bytes()[:500])
    service = Running(tmp_path, "--watch", "0.05", "--workers", str(workers))
    try:
        until(lambda: service.client.get("/ready").status_code == 200)
        assert service.client.get("/ready").json() == {"models": 1, "refused": ["b"]}
        assert service.rank(ROWS).json()["model"] == "a"
        named = service.client.post("/rank", json={"documents": ROWS, "model": "b"})
        assert named.status_code == 503
        assert "'b' could not be loaded" in named.json()["error"]
        until(lambda: len(service.events("ready")) == workers)
        assert [line["model"] for line in service.events("model refused")] == ["b"] * workers
        assert all(line["refused"] == ["b"] for line in service.events("ready"))
        shutil.copy(models["news"], tmp_path / "b.podium")
        until(lambda: len(service.events("model loaded")) == workers)
        assert service.client.get("/ready").json() == {"models": 2, "refused": []}
        assert service.end() == 0
    finally:
        if service.process.poll() is None:
            service.process.kill()


def test_workers_that_die_as_they_start_end_the_service(models, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, podium.models\npodium.models.load_model = lambda path: os.kill(os.getpid(), 9)\n"
    )
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [*COMMAND, str(models["web"]), "--workers", "2", "--port", "0"], capture_output=True, text=True, check=False,
        env=environment, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "workers died while they started" in done.stderr
    assert lines_of(done)[-1]["event"] == "cannot serve"


def test_errors_in_arguments_are_also_lines_of_json(models, tmp_path):
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        for arguments, words in (
            ((tmp_path,), "there is no model to serve"),
            ((models["web"], "--split", "new=1"), "there is no model 'new'"),
            ((tmp_path / "none.podium",), "none.podium"),
        ):
            done = run(*arguments)
            assert done.returncode == 1
            assert words in done.stderr
            assert lines_of(done)[-1]["event"] == "cannot serve"
        for workers in (1, 2):
            done = run(models["web"], "--port", occupied.getsockname()[1], "--workers", workers)
            assert done.returncode != 0
            assert any("in use" in line.get("text", "") for line in lines_of(done))


FEATURES = ["count(impression, by=document)", "rate(click, by=document, smoothing=2)"]


def click_model(folder):
    log = ClickLog.read(simulate_events(200), format="metarank")
    path = folder / "clicks.podium"
    podium.LambdaMART(n_trees=3, n_leaves=4).fit(log.ranking_data(FEATURES)).save(path)


def rank_and_click(service, seed, acknowledged):
    """Send rankings and clicks until the service is gone; record the accepted clicks."""
    rng = random.Random(seed)
    with httpx.Client(base_url=service.client.base_url, timeout=20) as client:
        while True:
            ids = rng.sample("abcdefgh", 4)
            try:
                shown = client.post("/rank", json={"documents": [{}] * 4, "ids": ids, "query": "tea"}).json()
                item = shown["ranking"][rng.randrange(2)]["id"]
                event = {"event": "interaction", "type": "click", "ranking": shown["id"], "item": item}
                if client.post("/events", json={"events": [event]}).json() == {"accepted": 1, "ignored": 0}:
                    acknowledged.append((shown["id"], item))
            except httpx.TransportError:
                return


def test_a_killed_service_loses_no_acknowledged_event_and_its_log_replays_to_the_bit(tmp_path):
    click_model(tmp_path)
    folder, acknowledged = tmp_path / "shown", []
    for part in range(2):
        service = Running(
            tmp_path / "clicks.podium", "--log-requests", str(folder), "--no-access-log", log=tmp_path / "log"
        )
        try:
            until(lambda: service.client.get("/ready").status_code == 200)  # noqa: B023
            before = len(acknowledged)
            users = [
                threading.Thread(target=rank_and_click, args=(service, 10 * part + k, acknowledged)) for k in range(3)
            ]
            for user in users:
                user.start()
            until(lambda: len(acknowledged) >= before + 60)  # noqa: B023
        finally:
            service.process.kill()
            service.process.wait(20)
        for user in users:
            user.join()
    assert len(acknowledged) >= 120
    LiveLog(folder, FEATURES).close()  # drops a line that the kill left unfinished
    events = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
    clicks = {(event["ranking"], event["item"]) for event in events if event["event"] == "interaction"}
    assert set(acknowledged) <= clicks
    log = ClickLog.read(folder / "events.jsonl", format="metarank")
    values = log.features(FEATURES).features
    for k, name in enumerate(FEATURES):
        np.testing.assert_array_equal(log.shown[name].astype(np.float32), values[:, k].astype(np.float32))
    assert log.clicked.sum() >= len(acknowledged)
