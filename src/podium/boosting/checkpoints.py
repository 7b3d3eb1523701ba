"""Checkpoints: files from which an interrupted training run continues."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from podium.core.files import remove_leftovers
from podium.core.hashing import content_hash
from podium.core.validation import require_number, require_whole, to_path
from podium.data import RankingData
from podium.data.canonical import digest_of
from podium.errors import DataError
from podium.models import Ensemble, load, save


@dataclass(frozen=True)
class Checkpoint:
    """A file that stores the trees, or the weights of a net, so far.

    A run that finds the file resumes from it, and gives the same model to the bit as an uninterrupted run.

    Args:
        path: the file, which is only replaced when the new one is complete.
        every: the number of trees, or epochs, between two writes; by default, the time since the last write decides.
        seconds: the minimum time between two writes if `every` is None. If writing is slow, the interval is longer, so
            that writing takes about 1% of the time.

    Examples:
        >>> import podium, tempfile
        >>> from podium.boosting import Checkpoint
        >>> train = podium.artificial(20, features=4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint = Checkpoint(f"{folder}/run", every=1)
        ...     stopped = podium.LambdaMART(3).fit(train, checkpoint=checkpoint)
        ...     resumed = podium.LambdaMART(5).fit(train, checkpoint=checkpoint)
        >>> resumed.digest() == podium.LambdaMART(5).fit(train).digest()
        True

    """

    path: str | os.PathLike[str]
    every: int | None = None
    seconds: float = 30.0

    def __post_init__(self) -> None:
        to_path(self.path)
        require_whole("every", self.every, 1, optional=True)
        require_number("seconds", self.seconds, least=0)

    def write(self, ensemble: Ensemble, fingerprint: str) -> None:
        """Write the trees so far."""
        save(ensemble.with_info(fingerprint=fingerprint), self.path)

    def read(self, fingerprint: str) -> Ensemble | None:
        """Return the trees of an earlier run with the same settings and data, if any."""
        remove_leftovers(Path(self.path))
        if not Path(self.path).exists():
            return None
        trees = load(self.path)
        if not isinstance(trees, Ensemble) or trees.info.get("fingerprint") != fingerprint:
            raise self.mismatch()
        return trees

    def mismatch(self) -> DataError:
        """Return the error for a file of another run."""
        return DataError(
            f"{os.fspath(self.path)} is a checkpoint of other data or other settings: delete it, or use another file; "
            "on the command line, --overwrite starts again (a function, such as a schedule, is different in every "
            "process)"
        )


def require_checkpoint(checkpoint: object) -> None:
    """Raise if `checkpoint` is neither a `Checkpoint` nor None."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return
    example = "…" if not isinstance(checkpoint, str | os.PathLike) else repr(os.fspath(checkpoint))
    raise DataError(
        f"checkpoint must be a podium.boosting.Checkpoint or None, but is {checkpoint!r:.60}: "
        f"pass checkpoint=Checkpoint({example})"
    )


MAX_SHARE = 0.01  # the share of the time that writing may take, after the first write


class Pace:
    """Decides when to write a checkpoint: after a number of steps, or of seconds."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.last_write, self.seconds_of_write = time.monotonic(), 0.0

    def is_due(self, n_steps: int) -> bool:
        """Return whether to write after `n_steps` steps."""
        if self.checkpoint.every is not None:
            return n_steps % self.checkpoint.every == 0
        interval = max(self.checkpoint.seconds, self.seconds_of_write / MAX_SHARE)
        return time.monotonic() - self.last_write >= interval

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Time the write within the block."""
        started = time.monotonic()
        yield
        self.last_write = time.monotonic()
        self.seconds_of_write = self.last_write - started


class Checkpointer:
    """Reads and writes the trees of one run; does nothing without a checkpoint."""

    def __init__(self, checkpoint: Checkpoint | None, fingerprint: str) -> None:
        self.checkpoint, self.fingerprint = checkpoint, fingerprint
        self.pace = Pace(checkpoint) if checkpoint else None

    def read(self) -> Ensemble | None:
        """Return the trees of an earlier run, if any."""
        return self.checkpoint.read(self.fingerprint) if self.checkpoint else None

    def write(self, ensemble: Callable[[], Ensemble]) -> None:
        """Write the trees so far; `ensemble` returns them."""
        if self.checkpoint and self.pace:
            with self.pace.writing():
                self.checkpoint.write(ensemble(), self.fingerprint)

    def write_if_due(self, n_rounds: int, ensemble: Callable[[], Ensemble]) -> None:
        """Write the trees so far if a write is due."""
        if self.pace and self.pace.is_due(n_rounds):
            self.write(ensemble)


def fingerprint(
    settings: Any, ignored: tuple[str, ...], train: RankingData, valid: Mapping[str, RankingData], start: str = ""
) -> str:
    """Return a hash of everything that a run depends on; it does not depend on the order of rows.

    Args:
        settings: a dataclass.
        ignored: its fields that do not change the result.
        train, valid: the data, with their base scores if there are any.
        start: anything else that the run starts from.

    """
    digests = {name: digest_of(data) for name, data in {"training data": train, **valid}.items()}
    return fingerprint_of_digests(settings, ignored, digests, start)


def fingerprint_of_digests(settings: Any, ignored: tuple[str, ...], digests: Mapping[str, bytes], start: str) -> str:
    """Return `fingerprint` for data given by its hashes, by name."""
    values = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name not in ignored}
    return content_hash([values, start, list(digests.items())])
