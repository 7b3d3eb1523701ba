"""Dask workers that are killed or hang, at every stage of a fit: nothing hangs, and the model is the local one.

`test_stages.py` loses one of two workers on a cluster of each kind.
"""

import os
import signal
import time
from types import SimpleNamespace

import pytest

import podium
from podium.boosting import Checkpoint
from podium.errors import PodiumError, PodiumWarning

distributed = pytest.importorskip("distributed")

from podium.distributed import DaskLambdaMART, DaskOrdinalMART, dask_engine, engine, score_files  # noqa: E402
from podium.distributed.dask_engine import DaskEngine  # noqa: E402
from podium.distributed.engine import WorkerLostError  # noqa: E402
from tests.distributed.clusters import names_of  # noqa: E402

HEARTBEAT = 2.0
SLOW = 5  # how much slower the machine may be than an idle one
SECONDS_TO_NOTICE = {  # on an idle machine
    signal.SIGKILL: 4.0,
    signal.SIGSTOP: HEARTBEAT + 2 * engine.SECONDS_BETWEEN_CHECKS + dask_engine.SECONDS_TO_RESTART,
}
STAGES = ("facts", "find_bins", "bind", "hash_documents", "answer", "measure", "gather", "find_thresholds")
SETTINGS = {"n_trees": 3, "n_leaves": 6}


def cluster_of(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )


@pytest.fixture(scope="module")
def three_workers():
    """A cluster for all tests of this file that kill or stop workers, which Dask replaces."""
    with cluster_of(3) as cluster:
        yield cluster


class Saboteur:
    """Sends a signal to a worker just before a stage begins, once for each stage."""

    def __init__(self, cluster, sent, stages, monkeypatch):
        self.cluster, self.signal, self.stages, self.position = cluster, sent, list(stages), 0
        self.seconds = []
        ask = DaskEngine.ask

        def sabotaged(engine, calls):
            stage = next((name for name in names_of(calls) if name in self.stages), None)
            if stage is None:
                return ask(engine, calls)
            self.stages.remove(stage)
            self.strike(sorted(engine.holders))
            started = time.monotonic()
            try:
                return ask(engine, calls)
            except WorkerLostError:
                self.seconds.append(time.monotonic() - started)
                raise

        monkeypatch.setattr(DaskEngine, "ask", sabotaged)

    def strike(self, addresses):
        address = addresses[self.position % len(addresses)]
        (nanny,) = (nanny for nanny in self.cluster.workers.values() if nanny.worker_address == address)
        while nanny.process.status.name != "running":  # it would not restart a worker that dies while it starts
            time.sleep(0.1)
        os.kill(nanny.pid, self.signal)
        self.position += 1


def fit_on_cluster(train, valid, folder, **options):
    seen = []
    model = DaskOrdinalMART(**SETTINGS).fit(
        train, valid=valid, observers=[lambda round_: seen.append(round_.scores)],
        checkpoint=Checkpoint(folder / "run"), heartbeat=HEARTBEAT, timeout=300, **options,
    )  # fmt: skip
    assert len(seen) == 3
    return model


def require_survival(sent, stages, cluster, train, valid, folder, monkeypatch):
    local = podium.OrdinalMART(**SETTINGS).fit(train, valid=valid)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(3)
        saboteur = Saboteur(cluster, sent, stages, monkeypatch)
        with pytest.warns(PodiumWarning, match="has left|sent no heartbeat"):
            model = fit_on_cluster(train, valid, folder, client=client)
    assert model.digest() == local.digest()
    assert model.model_.info == local.model_.info
    assert model.history_ == local.history_
    assert not saboteur.stages
    assert len(saboteur.seconds) == len(stages)
    assert max(saboteur.seconds) < SLOW * SECONDS_TO_NOTICE[sent]


@pytest.mark.slow
def test_killed_workers_at_every_stage(three_workers, train, valid, tmp_path, monkeypatch):
    require_survival(signal.SIGKILL, STAGES, three_workers, train, valid, tmp_path, monkeypatch)


@pytest.mark.slow
def test_hung_workers(three_workers, train, valid, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "SECONDS_TO_RESTART", 1.0)
    stages = ("find_bins", "hash_documents", "gather", "find_thresholds")
    require_survival(signal.SIGSTOP, stages, three_workers, train, valid, tmp_path, monkeypatch)


@pytest.mark.slow
def test_scaling_up_and_down(train, valid, monkeypatch):
    monkeypatch.setattr("podium.distributed.training.SECONDS_BETWEEN_CHECKS", 0.0)
    local = podium.LambdaMART(n_trees=4, n_leaves=6).fit(train, valid=valid)
    sizes = []
    with cluster_of(2) as cluster, distributed.Client(cluster) as client:

        def scale(round_):
            sizes.append(len(client.nthreads()))
            if round_.iteration == 0:
                cluster.scale(4)
                client.wait_for_workers(4, timeout=60)
            if round_.iteration == 1:
                cluster.scale(1)
                while len(client.nthreads()) > 1:
                    time.sleep(0.1)

        with pytest.warns(PodiumWarning, match="has left"):
            model = DaskLambdaMART(n_trees=4, n_leaves=6).fit(train, valid=valid, client=client, observers=[scale])
    assert sizes == [2, 4, 1, 1]
    assert model.digest() == local.digest()


@pytest.mark.slow
def test_an_adaptive_cluster_that_starts_empty(train):
    local = podium.LambdaMART(n_trees=2, n_leaves=6).fit(train)
    with cluster_of(0) as cluster, distributed.Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=2, interval="200ms")
        model = DaskLambdaMART(n_trees=2, n_leaves=6).fit(train, client=client, timeout=100)
    assert model.digest() == local.digest()


def test_no_worker_is_an_error_that_comes_soon(train):
    with cluster_of(0) as cluster, distributed.Client(cluster) as client:
        started = time.monotonic()
        with pytest.raises(
            PodiumError, match="the cluster has no workers, and none joined within 1 seconds: start workers"
        ):
            DaskLambdaMART(n_trees=2).fit(train, client=client, timeout=1)
        assert time.monotonic() - started < SLOW * 3


@pytest.mark.slow
def test_a_lost_scheduler_is_an_error_and_its_checkpoint_is_resumed(three_workers, train, tmp_path):
    settings, checkpoint, rounds = {"n_trees": 3, "n_leaves": 6}, Checkpoint(tmp_path / "run", every=1), []

    def lose(round_):
        if round_.iteration == 1:
            cluster.close()

    with (
        cluster_of(1) as cluster,
        distributed.Client(cluster.scheduler_address, timeout=1) as client,
        pytest.raises(PodiumError, match=r"cannot reach the Dask scheduler.*checkpoint=… resumes"),
    ):
        DaskLambdaMART(**settings).fit(train, client=client, observers=[lose], checkpoint=checkpoint)
    with distributed.Client(three_workers) as client:
        observers = [lambda round_: rounds.append(round_.iteration)]
        model = DaskLambdaMART(**settings).fit(train, client=client, observers=observers, checkpoint=checkpoint)
    assert rounds[0] > 0
    assert model.digest() == podium.LambdaMART(**settings).fit(train).digest()


def test_tasks_that_wait_without_a_worker_are_an_error_that_comes_soon(monkeypatch):
    monkeypatch.setattr(engine, "SECONDS_TO_REPLACE", 1.0)
    with cluster_of(0) as cluster, distributed.Client(cluster) as client:
        started = time.monotonic()
        with pytest.raises(
            PodiumError, match="the cluster has no workers, and none joined within 1 seconds: start workers"
        ):
            DaskEngine(client, timeout=60).compute(len, ["a source"])
        assert time.monotonic() - started < SLOW * 5


def test_errors_of_workers_come_at_once(train, tmp_path):
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        started = time.monotonic()
        with pytest.raises(PodiumError, match="cannot be opened"):
            DaskLambdaMART(n_trees=2).fit([str(tmp_path / "missing.txt")], client=client)
        assert time.monotonic() - started < SLOW * 2


@pytest.mark.slow
def test_a_hung_worker_does_not_stop_scoring(three_workers, train, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "SECONDS_TO_RESTART", 1.0)
    model = podium.LambdaMART(2, n_leaves=6).fit(train)
    for k in range(4):
        podium.write(train.select([k]).replace(positions=None), tmp_path / f"{k}.txt", lossy=True)
    with distributed.Client(three_workers) as client:
        client.wait_for_workers(3)
        os.kill(next(iter(three_workers.workers.values())).pid, signal.SIGSTOP)
        written = score_files(model, str(tmp_path / "*.txt"), tmp_path / "scores", client=client, heartbeat=HEARTBEAT)
    assert all(path.exists() for path in written)


def test_workers_that_leave_again_at_once_are_waited_for():
    class Flapping:
        """A client of a cluster whose only worker leaves again after it has run a task."""

        def __init__(self):
            self.seen = [{}, {}, {}, {"tcp://worker": 2}]

        def nthreads(self):
            return self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]

        def submit(self, *_, **__):
            return SimpleNamespace(result=lambda timeout: 0)

    assert DaskEngine(Flapping()).workers() == {"tcp://worker": 2}
