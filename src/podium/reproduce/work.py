"""What an experiment works with: its size, seeds and data, and steps that are done once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from podium.core.files import write_text
from podium.data import RankingData
from podium.errors import PodiumWarning
from podium.evaluation import evaluate
from podium.reproduce.arms import QUERY
from podium.reproduce.sources import Source, folder_source, real_sources, web_source

T = TypeVar("T")


class Work:
    """Given to an experiment's `run`.

    Attributes:
        seeds: of data and models.
        quick: whether a few minutes for all experiments must do.
        data: folders of the user's own web data.

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

    def pick(self, full: T, quick: T) -> T:
        """A number or setting for the full run, or for the quick one."""
        return quick if self.quick else full

    def web(self, **shape: Any) -> list[Source]:
        """The user's web data, or artificial data of that shape where there is none."""
        return [folder_source(folder) for folder in self.data] or [web_source(**shape)]

    def real(self) -> list[Source]:
        """MQ2008 and OHSUMED, where the folder named by `PODIUM_DATA` has them; not in the quick run."""
        return [] if self.quick else list(real_sources())

    def step(self, name: str, do: Callable[[], T]) -> T:
        """Do something once: its result, plain values and arrays as lists, is kept in the folder for the next run.

        A step of other code or settings than the present ones is done again.
        """
        file = self.folder / f"{_slug(name)}.json"
        if file.exists():
            kept = json.loads(file.read_text(encoding="utf-8"))
            if kept.get("fingerprint") == self.fingerprint and kept.get("step") == name:
                result: T = kept["result"]
                return result
        self.report(name)
        found = do()
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"step": name, "fingerprint": self.fingerprint, "result": found}
        text = json.dumps(content, default=_plain)
        write_text(file, text + "\n")
        again: T = json.loads(text)["result"]  # the same values whether the step was done now or earlier
        return again

    def values(
        self, scores: Any, test: RankingData, measures: Sequence[str], prefix: object = ""
    ) -> dict[str, list[Any]]:
        """The value of each measure for each test query, for an `Arm`.

        Queries whose labels are all equal have none: every ranking is as good there. A prefix tells queries of
        different seeds apart, where each seed draws its own.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PodiumWarning)  # of ties
            found = evaluate(test, scores, list(measures), drop_uniform=True)  # [W] 5.3
        names = [f"{prefix}/{query}" for query in found.query_ids]
        return {QUERY: names, **{measure: _plain(values) for measure, values in found.values.items()}}


def joined(parts: Sequence[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """The values of several folds as those of one seed."""
    return {key: [value for part in parts for value in part[key]] for key in parts[0]}


def _plain(value: Any) -> Any:
    """Arrays and their numbers as JSON has them, NaN as null."""
    if isinstance(value, np.ndarray):
        return [None if isinstance(v, float) and np.isnan(v) else v for v in value.tolist()]
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a step gave {type(value).__name__}, which JSON cannot hold")


def _slug(name: str) -> str:
    """A file name: readable, and different for different steps."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60]
    return f"{words}-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"
