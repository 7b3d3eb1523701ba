"""The actor of a worker on a Ray cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.data import RankingData
from podium.distributed.holder import Holder
from podium.distributed.sources import frame_to_data
from podium.errors import MissingExtraError


def import_ray() -> Any:
    """Return the package `ray`, or raise an error that says how to install it."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray", "training on a Ray cluster") from None
    return ray


class RayWorker:
    """Computes sources, and holds documents."""

    def __init__(self) -> None:
        self.holder: Any = None

    def place(self) -> tuple[str, str, str]:
        """Return the ids of the actor and of its node, and the node's address."""
        ray = import_ray()
        context = ray.get_runtime_context()
        return context.get_actor_id(), context.get_node_id(), ray.util.get_node_ip_address()

    def compute(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """Apply a function to values and to objects in Ray's store."""
        return function(*_fetched(arguments))

    def hold(self, number: int, sets: Mapping[str, Any], n_threads: int) -> None:
        """Hold documents instead of the previous ones."""
        self.holder = None
        self.holder = Holder(number, _fetched(sets), n_threads)

    def release(self) -> None:
        """Release the documents."""
        self.holder = None

    def run(self, message: bytes) -> bytes:
        """Return the pickled answer of the holder to pickled calls.

        Merging overwrites arrays, but those in Ray's store are read-only. Unpickled arrays are not.
        """
        return pickle.dumps(self.holder.run(pickle.loads(message)), 5)


def actor_class() -> Any:
    """Return the remote class of workers; a separate thread answers `beat`, which shows that the process runs."""
    ray = import_ray()

    class BeatingWorker(RayWorker):
        @ray.method(concurrency_group="beat")  # type: ignore[untyped-decorator]
        def beat(self) -> None:
            pass

    return ray.remote(concurrency_groups={"beat": 1})(BeatingWorker)


def _fetched(value: Any) -> Any:
    """Return a value with references to Ray's store replaced by their objects."""
    ray = import_ray()
    if isinstance(value, ray.ObjectRef):
        return ray.get(value)
    if type(value) in (list, tuple):
        return type(value)(_fetched(one) for one in value)
    return {key: _fetched(one) for key, one in value.items()} if type(value) is dict else value


def block_to_data(block: Any, columns: dict[str, str], categorical: tuple[Any, ...]) -> RankingData:
    """Return a block of a data set, an Arrow table, as data."""
    return frame_to_data(block.to_pandas(), list(columns), list(columns.values()), categorical)
