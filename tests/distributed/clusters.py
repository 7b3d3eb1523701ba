"""A small cluster of each kind, and how to lose one of its workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from podium.distributed.engine import Engine


class Cluster(NamedTuple):
    """A cluster of two workers."""

    engine: Engine
    collect: Callable[[Any], Any]  # a pandas frame as a collection of several partitions
    lose: Callable[[], None]  # a worker that holds documents


def strike(engine: Any, sent: signal.Signals, position: int = 0) -> None:
    """Send a signal to one of the workers that hold documents."""
    holders = sorted(engine.holders)
    worker = holders[position % len(holders)]
    if engine.cluster == "ray":
        import ray

        pid = ray.get(engine.holders[worker].compute.remote(os.getpid, []))
    elif engine.cluster == "spark":
        pid = engine.compute(pid_of_task, range(engine.n_workers))[position % engine.n_workers]
    else:
        (nanny,) = (nanny for nanny in engine.client.cluster.workers.values() if nanny.worker_address == worker)
        while nanny.process.status.name != "running":  # it would not restart a worker that dies while it starts
            time.sleep(0.05)
        pid = nanny.pid
    os.kill(pid, sent)


def pid_of_task(_: Any) -> int:
    return os.getpid()


def names_of(calls: Any) -> Iterator[str]:
    """Return the names of the calls to all workers, and of the work in steps that they start."""
    for name, arguments in next(iter(calls.values())):
        yield arguments[0] if name == "train" else name
        if name == "start":
            yield arguments[0]


def require_same(model: Any, local: Any) -> None:
    assert model.digest() == local.digest()
    assert model.model_.info == local.model_.info
    assert model.history_ == local.history_
    assert model.best_iteration_ == local.best_iteration_
