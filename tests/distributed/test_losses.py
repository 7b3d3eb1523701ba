"""Dask clusters that grow, shrink, start empty or lose their scheduler, and workers that hang while they score."""

import os
import signal
import time
from types import SimpleNamespace

import pytest

import podium
from podium.boosting import Checkpoint
from podium.errors import PodiumError, PodiumWarning

distributed = pytest.importorskip("distributed")

from podium.distributed import DaskLambdaMART, dask_engine, engine, score_files  # noqa: E402
from podium.distributed.dask_engine import DaskEngine  # noqa: E402

HEARTBEAT = 2.0
SLOW = 5  # how much slower the machine may be than an idle one


def cluster_of(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )


@pytest.mark.slow
@pytest.mark.thorough
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


def test_without_a_worker_training_soon_raises(train):
    with cluster_of(0) as cluster, distributed.Client(cluster) as client:
        started = time.monotonic()
        with pytest.raises(
            PodiumError, match="the cluster has no workers, and none joined within 1 seconds: start workers"
        ):
            DaskLambdaMART(n_trees=2).fit(train, client=client, timeout=1)
        assert time.monotonic() - started < SLOW * 3


@pytest.mark.slow
def test_training_resumes_from_its_checkpoint_after_a_lost_scheduler(dask_here, train, tmp_path):
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
    with distributed.Client(dask_here) as client:
        observers = [lambda round_: rounds.append(round_.iteration)]
        model = DaskLambdaMART(**settings).fit(train, client=client, observers=observers, checkpoint=checkpoint)
    assert rounds[0] > 0
    assert model.digest() == podium.LambdaMART(**settings).fit(train).digest()


def test_without_a_worker_waiting_tasks_soon_raise(monkeypatch):
    monkeypatch.setattr(engine, "SECONDS_TO_REPLACE", 1.0)
    with cluster_of(0) as cluster, distributed.Client(cluster) as client:
        started = time.monotonic()
        with pytest.raises(
            PodiumError, match="the cluster has no workers, and none joined within 1 seconds: start workers"
        ):
            DaskEngine(client, timeout=60).compute(len, ["a source"])
        assert time.monotonic() - started < SLOW * 5


@pytest.mark.slow
def test_a_hung_worker_does_not_stop_scoring(train, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "SECONDS_TO_RESTART", 1.0)
    model = podium.LambdaMART(2, n_leaves=6).fit(train)
    for k in range(4):
        podium.write(train.select([k]).replace(positions=None), tmp_path / f"{k}.txt", lossy=True)
    with cluster_of(2) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGSTOP)
        written = score_files(model, str(tmp_path / "*.txt"), tmp_path / "scores", client=client, heartbeat=HEARTBEAT)
    assert all(path.exists() for path in written)


def test_a_worker_that_leaves_at_once_is_waited_for_again():
    class Flapping:
        """A client of a cluster whose only worker leaves after it has run a task."""

        def __init__(self):
            self.seen = [{}, {}, {}, {"tcp://worker": 2}]

        def nthreads(self):
            return self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]

        def submit(self, *_, **__):
            return SimpleNamespace(result=lambda timeout: 0)

    assert DaskEngine(Flapping()).workers() == {"tcp://worker": 2}
