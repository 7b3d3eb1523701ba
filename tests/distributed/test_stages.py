"""Workers and drivers that are lost at several stages of a fit, on a cluster of each kind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import podium
from podium.boosting import Checkpoint
from podium.distributed import fit
from podium.distributed.engine import WorkerLostError
from podium.errors import PodiumWarning
from tests.distributed.clusters import names_of, strike

HEARTBEAT = 2.0
SLOW = 5  # how much slower the machine may be than an idle one
SECONDS_TO_NOTICE = {signal.SIGKILL: 12.0, signal.SIGSTOP: HEARTBEAT + 12.0}  # with the end of the tasks of Spark

pytestmark = pytest.mark.slow


STAGES = ("facts", "find_bins", "bind", "hash_documents", "answer", "measure", "gather", "find_thresholds")
SOME = ("facts", "measure", "find_thresholds")  # before, during and after the rounds: the client recovers in one way
ENGINES = ("dask", "ray", "spark")


@pytest.mark.parametrize(
    ("real_cluster", "sent", "stages"),
    [
        ("dask", signal.SIGKILL, STAGES),
        ("dask", signal.SIGSTOP, ("find_bins",)),  # `test_ray.py` and `test_spark.py` let workers hang as well
        ("ray", signal.SIGKILL, SOME[1:2]),
        ("spark", signal.SIGKILL, SOME[1:2]),
        *(
            pytest.param(name, sent, STAGES, marks=pytest.mark.thorough)
            for name in ENGINES
            for sent in (signal.SIGKILL, signal.SIGSTOP)
            if (name, sent) != ("dask", signal.SIGKILL)
        ),
    ],
    indirect=["real_cluster"],
)
def test_workers_lost_at_every_stage(sent, stages, real_cluster, train, valid, tmp_path, monkeypatch):
    engine = real_cluster.engine
    remaining, seconds, seen = list(stages), [], []
    ask = engine.ask

    def sabotaged(calls):
        stage = next((name for name in names_of(calls) if name in remaining), None)
        if stage is None:
            return ask(calls)
        remaining.remove(stage)
        strike(engine, sent, len(remaining))
        usual, engine.heartbeat = engine.heartbeat, HEARTBEAT
        started = time.monotonic()
        try:
            return ask(calls)
        except WorkerLostError:
            seconds.append(time.monotonic() - started)
            raise
        finally:
            engine.heartbeat = usual  # workers that start on a busy machine are silent for longer

    monkeypatch.setattr(engine, "ask", sabotaged)
    estimator = podium.OrdinalMART(3, n_leaves=6)
    with pytest.warns(PodiumWarning, match="has left|sent no heartbeat"):
        model = fit(
            estimator, train, valid=valid, engine=engine, checkpoint=Checkpoint(tmp_path / "run"),
            observers=[lambda round_: seen.append(len(round_.scores))],
        )  # fmt: skip
    local = estimator.fit(train, valid=valid)
    assert model.digest() == local.digest()
    assert model.model_.info == local.model_.info
    assert model.history_ == local.history_
    assert not remaining
    assert seen == [int((train.document_weights > 0).sum())] * 3
    assert len(seconds) == len(stages)
    assert max(seconds) < SLOW * SECONDS_TO_NOTICE[sent]


# --- lost drivers

DRIVER = """
import os, signal, sys
import podium
from podium.boosting import Checkpoint
from podium.distributed import fit

def die(round_):
    if round_.iteration == 2:
        os.kill(os.getpid(), signal.SIGKILL)

{connect}
train = podium.artificial(30, documents=12, features=6)
options = dict(observers=[die], checkpoint=Checkpoint(sys.argv[1], every=1))
fit(podium.LambdaMART(4, n_leaves=6), train, engine={engine!r}, **options, **connection)
"""
CONNECT = {
    "dask": "from distributed import Client\nconnection = dict(client=Client({address!r}))",
    "ray": "import ray\nray.init({address!r}, logging_level='error', log_to_driver=False)\n"
    "connection = dict(n_workers=1)",
    "spark": "from pyspark.sql import SparkSession\nimport os\nos.environ['PYSPARK_PYTHON'] = sys.executable\n"
    "SparkSession.builder.master('local[2]').config('spark.ui.enabled', False).getOrCreate()\nconnection = dict()",
}


def address_of(engine):
    if engine.cluster == "ray":
        import ray

        return ray.get_runtime_context().gcs_address
    return engine.client.scheduler.address if engine.cluster == "dask" else None


def n_left(engine, mark):
    """Return the number of actors of the lost driver on a cluster that outlives it, or of its processes."""
    if engine.cluster == "ray":
        import ray

        actors = ray._private.state.actors().values()
        alive = [a for a in actors if "RayWorker" in a["ActorClassName"] and a["State"] != "DEAD"]
        return len(alive) - len(engine._workers) - len(engine._starting)
    if engine.cluster == "dask":
        return sum(engine.client.run(lambda dask_worker: len(dask_worker.state.actors)).values())
    return sum(is_marked(process, mark) for process in Path("/proc").glob("[0-9]*"))


def is_marked(process, mark):
    try:
        return mark.encode() in (process / "environ").read_bytes()
    except OSError:  # it has ended
        return False


def test_a_lost_driver_leaves_nothing_and_its_checkpoint_is_resumed(real_cluster, tmp_path):
    engine = real_cluster.engine
    connect = CONNECT[engine.cluster].format(address=address_of(engine))
    mark = f"PODIUM_TEST={tmp_path}"
    done = subprocess.run(
        [sys.executable, "-c", DRIVER.format(connect=connect, engine=engine.cluster), str(tmp_path / "run")],
        env=os.environ | dict([mark.split("=")]), capture_output=True, text=True, timeout=SLOW * 60, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    deadline = time.monotonic() + SLOW * 10
    while (n := n_left(engine, mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not n
    train, rounds = podium.artificial(30, documents=12, features=6), []
    model = fit(
        podium.LambdaMART(4, n_leaves=6), train, engine=engine, checkpoint=Checkpoint(tmp_path / "run", every=1),
        observers=[lambda round_: rounds.append(round_.iteration)],
    )  # fmt: skip
    assert rounds[0] > 0
    local = podium.LambdaMART(4, n_leaves=6).fit(train)
    assert model.digest() == local.digest()
    assert np.array_equal(model.predict(train), local.predict(train))
