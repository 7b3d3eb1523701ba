"""An engine whose workers are objects in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.distributed.engine import Engine, Placement, WorkerLostError
from podium.distributed.holder import Calls, Holder
from podium.distributed.sources import Source, computed


class InProcess(Engine):
    """Workers that are objects in this process."""

    cluster = "dask"  # which estimators train on it: any
    collections = "nothing else"

    def __init__(self, n_workers: int, n_threads: int = 1) -> None:
        super().__init__()
        self._workers = {f"worker {k}": n_threads for k in range(n_workers)}

    def current_workers(self) -> dict[str, int]:
        return dict(self._workers)

    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:
        return [function(computed(source)) for source in sources]

    def start_holders(self, placement: Mapping[str, Placement]) -> dict[str, Any]:
        holders = {}
        for worker, p in placement.items():
            self._require(worker)
            holders[worker] = Holder(p.number, p.resolved(computed), p.n_threads)
        return holders

    def ask(self, calls: Mapping[str, Calls]) -> list[Any]:
        answers = []
        for worker, of_worker in calls.items():
            self._require(worker)
            answers.append(self.holders[worker].run(of_worker))
        return answers

    def result(self, pending: Any, seconds: float) -> Any:
        return pending

    def check_workers(self) -> None:
        pass

    def _require(self, worker: str) -> None:
        if worker not in self._workers:
            raise WorkerLostError(f"{worker} has left")

    def lose(self, worker: str) -> None:
        """Let a worker leave."""
        del self._workers[worker]

    def join(self, worker: str, n_threads: int = 1) -> None:
        """Let a worker join."""
        self._workers[worker] = n_threads

    def release(self) -> None:
        self.holders = {}
