"""The tasks of a Spark barrier stage, which connect to the driver and answer it until it ends them.

Driver and task prove to each other that they know the token of the run; only then do they exchange pickled messages.
The token reaches the tasks with the function that Spark sends them. Messages are not encrypted, like Spark's own unless
`spark.network.crypto.enabled` is set.
"""

from __future__ import annotations

import hmac
import pickle
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from podium.data import RankingData
from podium.data.canonical import document_hashes
from podium.distributed.engine import Placement
from podium.distributed.holder import Calls, Holder
from podium.distributed.sources import Source, computed, empty_data
from podium.distributed.spark_frames import Reading, columns_of
from podium.errors import DataError, PodiumError

SECONDS_TO_CONNECT = 30.0  # to the driver
SECONDS_TO_MISS_DRIVER = 60.0  # without an acknowledgement from the driver's machine
CHUNK = 1 << 20  # bytes to send within the time limit of the socket
SET = "__podium_set__"  # the column with the number of a row's set
DRIVER, TASK = b"driver", b"task"


# --- messages


class Wire:
    """Sends and receives messages over a socket.

    An empty message from a task is a heartbeat. An empty message from the driver ends the task.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lock = threading.Lock()

    def send(self, message: bytes) -> None:
        """Send a message; raise `OSError` if the other side does not accept it."""
        with self._lock:
            self.socket.sendall(len(message).to_bytes(8, "big"))
            view = memoryview(message)
            for start in range(0, len(view), CHUNK):
                self.socket.sendall(view[start : start + CHUNK])

    def receive(self, size: int | None = None) -> bytearray:
        """Wait for a message, of `size` bytes if given; raise `OSError` if the connection ends."""
        length = int.from_bytes(self._exactly(8), "big")
        if size is not None and length != size:
            raise ConnectionError(f"expected a message of {size} bytes, but got one of {length}")
        return self._exactly(length)

    def _exactly(self, size: int) -> bytearray:
        content, n_bytes = bytearray(size), 0
        while n_bytes < size:
            received = self.socket.recv_into(memoryview(content)[n_bytes:])
            if not received:
                raise ConnectionError("the other side has closed the connection")
            n_bytes += received
        return content

    def close(self) -> None:
        """End the connection; a thread that waits for a message gets a `ConnectionError`."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def authenticate(wire: Wire, token: bytes, role: bytes, other: bytes) -> None:
    """Prove that this side knows the token, and raise `ConnectionError` if the other side does not."""
    nonce = secrets.token_bytes(32)
    wire.send(nonce)
    wire.send(_proof(token, role, wire.receive(32)))
    if not hmac.compare_digest(wire.receive(32), _proof(token, other, nonce)):
        raise ConnectionError("the other side does not know the token")


def _proof(token: bytes, role: bytes, nonce: bytes | bytearray) -> bytes:
    return hmac.digest(token, role + nonce, "sha256")  # the role makes a reflected nonce useless


@dataclass(frozen=True)
class TaskPartition:
    """A source: the rows of a set in the partition of a task."""

    set_number: int
    task: int


# --- the task


@dataclass(frozen=True)
class BarrierTask:
    """The function that each task runs on the rows of its partition.

    Attributes:
        readings: the conversion of the rows of each set to documents.
        has_own_queries: whether each query must be in one set only.
        seconds_between_beats: the time between two heartbeats of the task.
        address: the address of the driver.
        token: the secret that both sides must know.

    """

    readings: tuple[Reading, ...]
    has_own_queries: bool
    seconds_between_beats: float
    address: tuple[str, int] = ("", 0)
    token: bytes = b""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        number = TaskContext.get().partitionId()
        with closing(self._connect()) as wire:
            wire.send(number.to_bytes(8, "big"))
            threading.Thread(target=self._beat, args=(wire,), daemon=True).start()
            worker = TaskWorker(number, batches, self)
            while message := wire.receive():
                wire.send(worker.answer(message))
        return iter(())

    def _connect(self) -> Wire:
        try:
            connection = socket.create_connection(self.address, SECONDS_TO_CONNECT)
            wire = Wire(connection)
            authenticate(wire, self.token, TASK, DRIVER)
        except OSError as error:
            raise PodiumError(
                f"a task on {socket.gethostname()} cannot reach the driver at {':'.join(map(str, self.address))} "
                f"({error}): tasks must be able to connect to spark.driver.host on any port"
            ) from error
        connection.settimeout(None)  # any time may pass between two calls of the driver
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # unacknowledged beats end the connection
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SECONDS_TO_MISS_DRIVER * 1000))
        return wire

    def _beat(self, wire: Wire) -> None:
        """Send heartbeats until the connection ends; end it if the driver is gone, so that the task can end."""
        with closing(wire), suppress(OSError):
            while True:
                time.sleep(self.seconds_between_beats)
                wire.send(b"")


class TaskWorker:
    """Holds the documents of a task, and answers the requests of the driver."""

    def __init__(self, number: int, batches: Iterable[Any], task: BarrierTask) -> None:
        self.number, self.batches, self.task = number, batches, task
        self.holder: Holder | None = None

    @cached_property
    def partitions(self) -> list[RankingData]:
        """The documents of each set, read on first use."""
        import pyarrow as pa
        import pyarrow.compute as pc

        assert self.holder is None  # the holder takes over the documents
        readings = self.task.readings
        batches = list(self.batches) if readings else []
        if not batches:
            return [empty_data() for _ in readings]
        table = pa.Table.from_batches(batches).rename_columns([*columns_of(readings), SET])
        parts = [table] if len(readings) == 1 else [table.filter(pc.equal(table[SET], k)) for k in range(len(readings))]
        sets = [reading.to_data(part) for reading, part in zip(readings, parts, strict=True)]
        if self.task.has_own_queries:
            for other in sets[1:]:
                shared = np.intersect1d(sets[0].query_ids, other.query_ids)
                if len(shared):
                    raise DataError(
                        f"query {shared[0]!r} has rows in the training data and in the validation data: "
                        "validationIndicatorCol must be the same in all rows of a query"
                    )
        return sets

    def answer(self, message: bytearray) -> Any:
        """Return the pickled answer to a pickled request: whether it succeeded, and its result or error."""
        from pyspark import cloudpickle

        try:
            method, argument = pickle.loads(message)
            return bytes(cloudpickle.dumps((True, getattr(self, f"do_{method}")(argument))))
        except Exception as error:
            if not isinstance(error, PodiumError):
                error.add_note(traceback.format_exc())  # pickling drops the traceback
            try:
                return bytes(cloudpickle.dumps((False, error)))
            except Exception:
                return pickle.dumps((False, PodiumError(f"{type(error).__name__}: {error}")))

    def do_compute(self, task: tuple[Callable[..., Any], Sequence[Source]]) -> list[Any]:
        """Apply a function to the value of each source, and return the results."""
        function, sources = task
        return [function(self._computed(source)) for source in sources]

    def do_hold(self, placement: Placement) -> list[int]:
        """Hold documents, and return a hash of the rows of each set."""
        sets = placement.resolved(self._computed)
        hashes = [int(document_hashes(data).sum(dtype=np.uint64)) if len(data) else 0 for data in self.partitions]
        del self.partitions  # the holder drops features once they are binned
        self.holder = Holder(placement.number, sets, placement.n_threads)
        return hashes

    def do_ask(self, calls: Calls) -> Any:
        """Return the answer to calls of the holder."""
        assert self.holder is not None
        return self.holder.run(calls)

    def _computed(self, source: Source) -> Any:
        return computed(source, self._value_of)

    def _value_of(self, source: Source) -> Any:
        if not isinstance(source, TaskPartition):
            return source
        if source.task != self.number:
            raise DataError("Spark treats equal query ids as different: use whole numbers or strings as ids")
        return self.partitions[source.set_number]
