"""What an experiment works with: its size, seeds and data, and steps that are done once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from podium.core.files import write_text
from podium.data import RankingData
from podium.errors import DataError, FileFormatError, PodiumWarning
from podium.evaluation import evaluate
from podium.reproduce.arms import QUERY
from podium.reproduce.plain import plain
from podium.reproduce.sources import Source, files_state, folder_sources, real_folders, real_sources, web_source

T = TypeVar("T")


class Work:
    """Given to an experiment's `run`.

    Attributes:
        seeds: of data and models.
        quick: whether a few minutes for all experiments must do.
        data: folders of the user's own web data.
        inputs: the state of the files of each kind of data that was asked for, `web` or `real`.
        seconds_before: that the steps took which an earlier run did.

    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        seeds: Sequence[int] = (0, 1, 2),
        quick: bool = False,
        data: Sequence[str | os.PathLike[str]] = (),
        fingerprint: str = "",
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.folder, self.seeds, self.quick = Path(folder), tuple(seeds), quick
        self.data, self.fingerprint, self.report = tuple(data), fingerprint, report
        self.inputs: dict[str, str] = {}
        self.seconds_before = 0.0
        self._steps: set[str] = set()

    def pick(self, full: T, quick: T) -> T:
        """A number or setting for the full run, or for the quick one."""
        return quick if self.quick else full

    def web(self, **shape: Any) -> list[Source]:
        """The user's web data, or artificial data of that shape where there is none."""
        self.inputs["web"] = self.state_of("web")
        return folder_sources(self.data) or [web_source(**shape)]

    def real(self) -> list[Source]:
        """MQ2008 and OHSUMED, where the folder named by `PODIUM_DATA` has them; not in the quick run."""
        self.inputs["real"] = self.state_of("real")
        return [] if self.quick else list(real_sources(real_folders()))

    def state_of(self, kind: str) -> str:
        """A hash of the files of `web` or `real` data as they are now; empty where there are none."""
        folders = self.data if kind == "web" else () if self.quick else real_folders()
        return files_state(folders) if folders else ""

    def step(self, name: str, do: Callable[[], T]) -> T:
        """Do something once: its result, plain values and arrays as lists, is kept in the folder for the next run.

        A step of other code, settings or data than the present ones is done again. NaN comes back as None.
        """
        if name in self._steps:
            raise DataError(f"the step {name!r} was asked for twice: keep its result, or give the other a name")
        self._steps.add(name)
        file, state = self.folder / f"{slug(name)}.json", [self.fingerprint, self.inputs]
        kept = _kept(file)
        if kept.get("state") == state and kept.get("step") == name:
            self.seconds_before += kept["seconds"]
            result: T = kept["result"]
            return result
        self.report(name)
        started = time.perf_counter()
        found = plain(do(), f"the result of the step {name!r}")
        seconds = round(time.perf_counter() - started, 2)
        content = {"step": name, "state": state, "seconds": seconds, "result": found}
        text = json.dumps(content, allow_nan=False)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileFormatError(self.folder, f"cannot hold steps: {error.strerror or error}") from error
        write_text(file, text + "\n")
        again: T = json.loads(text)["result"]  # the same values whether the step was done now or earlier
        return again

    def values(
        self, scores: Any, test: RankingData, measures: Sequence[str], prefix: object = ""
    ) -> dict[str, list[Any]]:
        """The value of each measure for each test query, for an `Arm`.

        Queries whose labels are all equal have none: every ranking is as good there. A prefix tells queries of
        different seeds apart, where each seed draws its own: `Source.prefix`.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PodiumWarning)  # of ties
            found = evaluate(test, scores, list(measures), drop_uniform=True)  # [W] 5.3
        names = [f"{prefix}/{query}" for query in found.query_ids]
        return {QUERY: names, **{measure: plain(values) for measure, values in found.values.items()}}


def joined(parts: Sequence[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """The values of several folds as those of one seed."""
    return {key: [value for part in parts for value in part[key]] for key in parts[0]}


def _kept(file: Path) -> dict[str, Any]:
    """What a step's file has; nothing where there is none, or a broken one."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) and {"step", "state", "seconds", "result"} <= content.keys() else {}


def slug(name: str) -> str:
    """A file name: readable, and different for different names."""
    return f"{words_of(name)}-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"


def words_of(name: str) -> str:
    """The letters and digits of a name, for files."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60]
