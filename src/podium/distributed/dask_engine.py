"""A Dask cluster as an engine. Documents are Dask's futures; each worker holds its part in an actor.

An actor's method is called directly on its worker, without a task in the scheduler's graph: a call takes a millisecond
or two. The client and the actors form a binary tree, the client its root. A call goes down the tree, answers are merged
on the way up, and the client gets two. Workers are in the order of their addresses, parents before children, so two
runs on the same workers cannot wait for each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from podium.core.merging import merge
from podium.data import RankingData
from podium.distributed.engine import Engine, Placement, WorkerLostError
from podium.distributed.holding import Calls, Holder, merged_results
from podium.distributed.sources import Source, Step
from podium.errors import MissingExtraError, PodiumError

TIMEOUT = 600.0  # seconds that a worker may take for an answer
SECONDS_BETWEEN_LOOKS = 5.0  # while an answer is waited for, whether all workers are there
SECONDS_TO_REACH = 5.0  # in which a worker must answer a direct call
SECONDS_TO_NOTICE = 30.0  # in which the scheduler must have noticed that a worker left
LONGER = 1.1  # than its children a worker waits, so that the one who is lost is named


def import_distributed() -> Any:
    """The package `distributed`, or an error that says how to get it."""
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("distributed", "dask", "training on a Dask cluster") from None
    return distributed


def packed(calls: Calls) -> bytes:
    """Calls as they are sent: pickled once, whoever hears of them.

    Dask by itself sends arrays apart, and they arrive at any address; kernels are compiled for aligned ones.
    """
    result: bytes = import_distributed().protocol.pickle.dumps(calls)
    return result


def unpacked(message: bytes) -> Calls:
    """The calls in a message."""
    calls: Calls = import_distributed().protocol.pickle.loads(message)
    return calls


class TreeHolder(Holder):
    """A holder that has others below it, and merges what they give with its own."""

    children: Sequence[Any] = ()
    timeout = TIMEOUT

    def set_children(self, children: Sequence[Any], timeout: float) -> None:
        """Other actors, whose answers are asked for here."""
        self.children, self.timeout = children, timeout

    def ping(self) -> bool:
        """Whether this can be reached."""
        return True

    def run_packed(self, packed: bytes) -> None:
        """Answer calls that nobody waits for."""
        self.run(unpacked(packed))

    def reduce(self, packed: bytes) -> list[Any]:
        """Answer calls, together with all below."""
        waiting = [child.reduce(packed) for child in self.children]
        results = self.run(unpacked(packed))
        for answer in waiting:
            results = [merge(a, b) for a, b in zip(results, answer.result(timeout=self.timeout), strict=True)]
        return results


class DaskEngine(Engine):
    """The workers of a Dask cluster.

    Args:
        client: of the cluster.
        timeout: seconds that a worker may take for an answer, at most.

    """

    def __init__(self, client: Any, timeout: float = TIMEOUT) -> None:
        super().__init__()
        import_distributed()
        self.client, self.timeout = client, timeout
        self.actors: dict[str, Any] = {}
        self._expected: set[str] = set()  # workers that should hold documents
        self._calls_directly: bool | None = None
        self._direct_before: Any = None
        self._futures: dict[int, tuple[Source, Any]] = {}

    def workers(self) -> dict[str, int]:  # noqa: D102
        return {str(address): int(n) for address, n in sorted(self.client.nthreads().items())}

    def wait_for_workers(self, n: int = 1) -> None:
        """Wait until there are so many."""
        self.client.wait_for_workers(n, timeout=self.timeout)

    # --- sources

    def _delayed(self, source: Source) -> Any:
        """A source as Dask has it; those that were computed before as futures."""
        from dask.delayed import delayed

        if id(source) in self._futures:
            return self._futures[id(source)][1]
        if isinstance(source, Step):
            value = delayed(source.function, pure=False)(*map(self._delayed, source.arguments))
            self._futures[id(source)] = source, value  # a step that several others need is done once
            return value
        if isinstance(source, list):
            return [self._delayed(one) for one in source]
        if isinstance(source, RankingData):
            value = self.client.scatter(source, hash=False)
            self._futures[id(source)] = source, value
            return value
        return source

    def _futures_of(self, sources: Sequence[Source]) -> list[Any]:
        from dask.base import is_dask_collection

        values = [self._delayed(source) for source in sources]
        lazy = [value for value in values if is_dask_collection(value)]
        computed = iter(self.client.compute(lazy, sync=False) if lazy else [])
        futures = [next(computed) if is_dask_collection(value) else value for value in values]
        for source, future in zip(sources, futures, strict=True):
            self._futures[id(source)] = source, future
        return futures

    def compute(self, function: Callable[..., Any], sources: Sequence[Source]) -> list[Any]:  # noqa: D102
        self.wait_for_workers()
        results = [self.client.submit(function, future, pure=False) for future in self._futures_of(sources)]
        return [self._result(result) for result in results]

    def whereabouts(self, sources: Sequence[Source]) -> list[str | None]:  # noqa: D102
        futures = self._futures_of(sources)
        has = self.client.who_has(futures)
        return [next(iter(sorted(has.get(future.key, ()))), None) for future in futures]

    def _result(self, future: Any) -> Any:
        """What a task gives, or an error after a time."""
        return self._wait(future, self.timeout)

    # --- holders

    def place(self, placement: Mapping[str, Placement]) -> None:  # noqa: D102
        self._expected |= set(placement)
        sources = [source for p in placement.values() for of_set in p.sets.values() for _, source in of_set]
        futures = iter(self._futures_of(sources))
        started = {}
        for worker, p in placement.items():
            self.actors.pop(worker, None)
            sets = {name: [(k, next(futures)) for k, _ in of_set] for name, of_set in p.sets.items()}
            started[worker] = self.client.submit(
                TreeHolder, p.number, sets, p.n_threads, actor=True, workers=[worker], allow_other_workers=False,
                pure=False,
            )  # fmt: skip
        for worker, future in started.items():
            self.actors[worker] = self._wait(future, self.timeout)
        self._futures = {}  # the holders have what they need; should one be lost, its documents are computed anew
        self._link()

    def _link(self) -> None:
        """Make the actors a tree, the first two workers those that the client asks."""
        order = sorted(self.actors)
        self.actors = {worker: self.actors[worker] for worker in order}
        actors, n = list(self.actors.values()), len(order)
        done = []
        for k, actor in enumerate(actors):
            below = _levels(n) - _levels(k + 1)
            children = [actors[c] for c in (2 * k + 2, 2 * k + 3) if c < n]
            done.append(actor.set_children(children, self.timeout * LONGER**below))
        for answer in done:
            self._wait(answer, self.timeout)
        self._try_direct_calls(actors[0])

    def _try_direct_calls(self, actor: Any) -> None:
        """Call workers directly where they can be reached from here, as they can in most clusters.

        Else what they say goes through the scheduler, as Dask has it by default.
        """
        if self._calls_directly is not None:
            return
        self._direct_before, self.client.direct_to_workers = self.client.direct_to_workers, True
        self._calls_directly = True
        try:
            actor.ping().result(timeout=SECONDS_TO_REACH)
        except Exception:  # whatever it is that stands between
            self.client.direct_to_workers, self._calls_directly = self._direct_before, False

    def keep_only(self, workers: Iterable[str]) -> None:  # noqa: D102
        self._expected = kept = set(workers)
        self.actors = {worker: actor for worker, actor in self.actors.items() if worker in kept}

    def run_on_each(self, calls: Mapping[str, Calls]) -> None:  # noqa: D102
        try:
            answers = [self.actors[worker].run_packed(packed(of_worker)) for worker, of_worker in calls.items()]
        except RuntimeError as error:  # "Worker holding Actor was lost"
            self._require_all(error, SECONDS_TO_NOTICE)
            raise
        for answer in answers:
            self._wait(answer, self.timeout)

    def reduce(self, calls: Calls) -> list[Any]:  # noqa: D102
        actors, message = list(self.actors.values()), packed(calls)
        try:
            waiting = [actor.reduce(message) for actor in actors[:2]]
        except RuntimeError as error:  # "Worker holding Actor was lost"
            self._require_all(error, SECONDS_TO_NOTICE)
            raise
        timeout = self.timeout * LONGER ** _levels(len(actors))
        results: list[Any] = merged_results([self._wait(answer, timeout) for answer in waiting])
        self.n_bytes += len(actors) * n_bytes_of(results)
        return results

    def _wait(self, answer: Any, timeout: float) -> Any:
        """What a future or an actor's call gives, or an error after a time; now and then, whether all are still there.

        Raises:
            WorkerLostError: a worker that should hold documents has left.

        """
        started = time.monotonic()
        while True:
            left = timeout - (time.monotonic() - started)
            try:
                return answer.result(timeout=max(min(left, SECONDS_BETWEEN_LOOKS), 0.01))
            except TimeoutError as error:
                self._require_all(error)
                if answer.done():  # it came in between, or says itself that another worker took too long
                    return self._result_of_done(answer)
                if left <= 0:
                    raise self._timed_out("a worker") from error
            except PodiumError:
                raise
            except self._signs_of_loss as error:
                self._require_all(error, SECONDS_TO_NOTICE)
                raise

    def _result_of_done(self, answer: Any) -> Any:
        try:
            return answer.result(timeout=SECONDS_BETWEEN_LOOKS)
        except TimeoutError as error:
            raise self._timed_out("a worker") from error

    @property
    def _signs_of_loss(self) -> tuple[type[BaseException], ...]:
        """Errors that may come of a worker that has left."""
        distributed = import_distributed()
        return (
            OSError, RuntimeError, distributed.comm.CommClosedError, distributed.scheduler.KilledWorker,
            distributed.client.FutureCancelledError,
        )  # fmt: skip

    def _require_all(self, error: BaseException, seconds: float = 0.0) -> None:
        """Raise `WorkerLostError` if a worker that should hold documents has left, within some seconds."""
        started = time.monotonic()
        while True:
            lost = sorted(self._expected - set(self.workers()))
            if lost:
                raise WorkerLostError(f"worker {lost[0]} has left") from error
            if time.monotonic() - started >= seconds:
                return
            time.sleep(0.1)

    def _timed_out(self, who: str) -> PodiumError:
        return PodiumError(
            f"{who} gave no answer in {self.timeout:g} seconds: look at the cluster's dashboard and logs, or allow "
            "more with timeout=…"
        )

    def close(self) -> None:  # noqa: D102
        self.actors, self._futures, self._expected = {}, {}, set()
        if self._calls_directly:
            self.client.direct_to_workers = self._direct_before
        self._calls_directly = None


def _levels(n: int) -> int:
    """How deep a tree of so many workers is, below the client."""
    return (n + 1).bit_length() - 1


def n_bytes_of(result: Any) -> int:
    """The bytes of all arrays in an answer."""
    if isinstance(result, np.ndarray):
        return int(result.nbytes)
    if isinstance(result, dict):
        return sum(map(n_bytes_of, result.values()))
    if isinstance(result, list | tuple):
        return sum(map(n_bytes_of, result))
    return n_bytes_of(result.value) if hasattr(result, "value") else 0
