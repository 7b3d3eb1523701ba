"""Training runs that survive being killed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.files import remove_leftovers
from podium.core.validation import require_number, require_whole
from podium.data import RankingData
from podium.data.canonical import content_hashes, query_keys
from podium.errors import DataError
from podium.models import Ensemble, load, save


@dataclass(frozen=True)
class Checkpoint:
    """A file that keeps the trees, or the weights of a net, so far.

    A run that finds the file goes on from there; the model is the same, to the bit, as without the interruption.

    Args:
        path: the file; replaced only once the new one is written whole.
        every: trees, or epochs, between two writes; by default time decides.
        seconds: between two writes, at least, where time decides; more where writing takes long, so that it takes
            about 1% of the time.

    """

    path: str | os.PathLike[str]
    every: int | None = None
    seconds: float = 30.0

    def __post_init__(self) -> None:
        require_whole("every", self.every, 1, optional=True)
        require_number("seconds", self.seconds, least=0)

    def pace(self) -> Pace:
        """Says when it is time to write, from now on."""
        return Pace(self)

    def write(self, ensemble: Ensemble, fingerprint: str) -> None:
        """Keep the trees so far."""
        save(ensemble.with_info(fingerprint=fingerprint), self.path)

    def read(self, fingerprint: str) -> Ensemble | None:
        """The trees of an earlier run of the same settings and data, if there are any."""
        remove_leftovers(Path(self.path))
        if not Path(self.path).exists():
            return None
        found = load(self.path)
        if not isinstance(found, Ensemble) or found.info.get("fingerprint") != fingerprint:
            raise self.of_others()
        return found

    def of_others(self) -> DataError:
        """The error for a file of another run."""
        return DataError(
            f"{os.fspath(self.path)} is a checkpoint of other data or other settings: delete it, or name another; "
            "on the command line, --overwrite starts anew "
            "(a function as schedule and an objective without a repr of its own are others in every process)"
        )


WRITING = 0.01  # the share of the time that writing takes at most, but for the first write


class Pace:
    """When to write a checkpoint: every so many steps, or as time goes by."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.last, self.took = time.monotonic(), 0.0

    def is_due(self, steps: int) -> bool:
        """Whether to write after so many steps."""
        if self.checkpoint.every is not None:
            return steps % self.checkpoint.every == 0
        return time.monotonic() - self.last >= max(self.checkpoint.seconds, self.took / WRITING)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Time a write."""
        started = time.monotonic()
        yield
        self.last = time.monotonic()
        self.took = self.last - started


def fingerprint(
    settings: Any, beside: tuple[str, ...], start: str, train: RankingData, valid: Mapping[str, RankingData]
) -> str:
    """What a run depends on, but for some settings; the order of rows does not matter. `start` is a hash as well."""
    shown = {f.name: str(getattr(settings, f.name)) for f in fields(settings) if f.name not in beside}
    shown["start"] = start
    found = hashlib.sha256(repr(sorted(shown.items())).encode())
    for name, data in {"training data": train, **valid}.items():
        found.update(name.encode() + _digest(data))
    return found.hexdigest()


def _digest(data: RankingData) -> bytes:
    """A hash of all documents, each with its query and labels, in no order; what queries are called does not matter."""
    keys = content_hashes(data)
    keys[data.order] ^= np.repeat(query_keys(data), data.query_sizes)
    return hashlib.sha256(np.sort(keys).tobytes()).digest()
