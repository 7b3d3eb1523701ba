"""The context of an experiment: its size, seeds and data, and steps that are done once."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from experiments.claims import QUERY
from podium.core.files import write_text
from podium.core.random import seed_of
from podium.data import RankingData
from podium.data.datasets.artificial import PARTS, artificial, artificial_web
from podium.data.datasets.benchmark_folds import Fold, Parts, folds
from podium.errors import DataError, FileFormatError, PodiumWarning
from podium.estimators import LambdaMART, fit_many
from podium.evaluation import evaluate

T = TypeVar("T")
FOLDER_VARIABLE = "PODIUM_DATA"  # names the folder of mq2008 and ohsumed
LAYOUTS: dict[str, Parts] = {"mq2008": "letor", "ohsumed": "ohsumed"}
Triple = tuple[RankingData, RankingData, RankingData]
Sizes = tuple[int, int, int]
# Trees as in the papers: least-squares splits searched on all documents, leaf values without L2.
PAPERS_TREES: dict[str, Any] = {"split": "least-squares", "split_fraction": 1.0, "l2": 0.0}


@dataclass(frozen=True)
class Source:
    """A data set of an experiment.

    Attributes:
        name: the name in tables.
        parts: the training, validation and test data for a seed and numbers of queries: one triple, or one for each
            fold.
        queries_of: returns a key for the test queries of a seed, which is equal for equal queries; by default the
            seed, because each seed draws its own queries.

    """

    name: str
    parts: Callable[[int, Sizes], list[Triple]]
    queries_of: Callable[[int], object] = int

    def prefix(self, seed: int) -> str:
        """Return the prefix for `Work.values`: the same for seeds that measure the same queries."""
        return f"{self.name} {self.queries_of(seed)}".strip()

    @property
    def slug(self) -> str:
        """The name as part of a file's name."""
        return words_of(self.name)


def artificial_source(**shape: Any) -> Source:
    """Return the papers' artificial data ([W] 5.1), with different queries for each seed."""
    return Source("artificial", lambda seed, sizes: [_draw(artificial, seed, sizes, shape)])


def web_source(**shape: Any) -> Source:
    """Return artificial data in the shape of web search, with different queries for each seed."""
    return Source("artificial web", lambda seed, sizes: [_draw(artificial_web, seed, sizes, shape)])


def _draw(make: Callable[..., RankingData], seed: int, sizes: Sizes, shape: dict[str, Any]) -> Triple:
    train, valid, test = (make(n, seed=seed, part=part, **shape) for n, part in zip(sizes, PARTS, strict=True))
    return train, valid, test


def folder_sources(folders: Sequence[str | os.PathLike[str]]) -> list[Source]:
    """Return folders of MSLR-WEB, Yahoo or Istella data as sources."""
    sources = [_folder_source(folder) for folder in folders]
    if len({source.name for source in sources}) < len(sources):
        raise DataError("folders of data must have different names, which tables and files use")
    return sources


def _folder_source(folder: str | os.PathLike[str]) -> Source:
    """Return a folder as a source: each seed takes a fold, and random queries of it."""
    all_folds, name = folds(folder), Path(folder).resolve().name
    for fold in all_folds:
        if missing := [part for part in PARTS if part not in fold.files]:
            raise DataError(f"{folder}, {fold.name}: an experiment also needs {' and '.join(missing)} data")

    def parts(seed: int, sizes: Sizes) -> list[Triple]:
        train, valid, test = (
            _sample(part, n, seed) for part, n in zip(_read(all_folds[seed % len(all_folds)]), sizes, strict=True)
        )
        return [(train, valid, test)]

    return Source(name, parts, lambda seed: all_folds[seed % len(all_folds)].name)


def _sample(data: RankingData, queries: int, seed: int) -> RankingData:
    """Return at most this number of queries, drawn by their ids."""
    if data.n_queries <= queries:
        return data
    order = np.argsort([int(seed_of("queries", seed, query)) for query in data.query_ids])
    return data.select(order[:queries])


def _read(fold: Fold) -> Triple:
    train, valid, test = fold
    assert train is not None and valid is not None and test is not None  # noqa: PT018, all folds here have all parts
    return train, valid, test


def real_folders() -> tuple[Path, ...]:
    """Return the folders of MQ2008 and OHSUMED that exist in the folder of `PODIUM_DATA`."""
    root = os.environ.get(FOLDER_VARIABLE)
    return tuple(Path(root, name) for name in LAYOUTS if Path(root, name).is_dir()) if root else ()


@lru_cache
def real_sources(folders: tuple[Path, ...]) -> tuple[Source, ...]:
    """Return MQ2008 and OHSUMED with all folds; every seed measures the same queries. Files are read once."""

    def source(path: Path) -> Source:
        all_folds = folds(path, parts=LAYOUTS[path.name])
        return Source(path.name.upper(), lambda seed, sizes: [_read(fold) for fold in all_folds], lambda seed: "")

    return tuple(map(source, folders))


def files_state(folders: Sequence[str | os.PathLike[str]]) -> str:
    """Return a hash of the names, sizes and times of all files; an empty text without folders."""
    files = [
        (folder.name, path.relative_to(folder).as_posix(), path.stat().st_size, path.stat().st_mtime_ns)
        for folder in (Path(f).resolve() for f in folders) for path in sorted(folder.rglob("*")) if path.is_file()
    ]  # fmt: skip
    return short_hash(repr(files)) if folders else ""


class Work:
    """The context of an experiment, which its `run` receives.

    Attributes:
        seeds: the seeds of data and models.
        quick: whether all experiments should take only a few minutes.
        data: folders of the user's own web data.
        inputs: the state of the files of each kind of data that was requested, `web` or `real`.
        seconds_before: the time of steps that an earlier run did.

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
        """Return a number or setting for the full run or for the quick run."""
        return quick if self.quick else full

    def web(self, **shape: Any) -> list[Source]:
        """Return the user's web data, or artificial data of that shape if there is none."""
        self.inputs["web"] = self.state_of("web")
        return folder_sources(self.data) or [web_source(**shape)]

    def real(self) -> list[Source]:
        """Return MQ2008 and OHSUMED if the folder of `PODIUM_DATA` has them; nothing in the quick run."""
        self.inputs["real"] = self.state_of("real")
        return [] if self.quick else list(real_sources(real_folders()))

    def state_of(self, kind: str) -> str:
        """Return a hash of the files of `web` or `real` data as they are now."""
        return files_state(self.data if kind == "web" else () if self.quick else real_folders())

    def steps(self, name: str, do: Callable[[int], T]) -> list[T]:
        """Do something once for each seed; see `step`."""
        return [self.step(f"{name}, seed {seed}", lambda seed=seed: do(seed)) for seed in self.seeds]  # type: ignore[misc]

    def step(self, name: str, do: Callable[[], T]) -> T:
        """Do something once, and store its result in the folder for the next run: plain values, with arrays as lists.

        The step is repeated if the code, the settings or the data have changed. NaN becomes None.
        """
        if name in self._steps:
            raise DataError(f"the step {name!r} was asked for twice: keep its result, or give the other a name")
        self._steps.add(name)
        file = self.folder / f"{words_of(name)}-{short_hash(name)[:8]}.json"
        state = [name, self.fingerprint, self.inputs]
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            if stored["state"] != state:
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError):  # no file, a broken one, or one of other code
            self.report(name)
            started = time.perf_counter()
            result = plain(do())
            stored = {"state": state, "seconds": round(time.perf_counter() - started, 2), "result": result}
            write_json(file, stored)
        else:
            self.seconds_before += stored["seconds"]
        value: T = stored["result"]
        return value

    def values(
        self, scores: Any, test: RankingData, measures: Sequence[str], prefix: object = ""
    ) -> dict[str, list[Any]]:
        """Return the value of each measure for each test query, for an `Arm`.

        Queries whose labels are all equal have no value, since all rankings of them are equally good. A prefix
        distinguishes the queries of different seeds if each seed draws its own: see `Source.prefix`.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PodiumWarning)  # of ties
            evaluation = evaluate(test, scores, list(measures), drop_uniform=True)  # [W] 5.3
        names = [f"{prefix}/{query}" for query in evaluation.query_ids]
        return {QUERY: names, **{measure: plain(values) for measure, values in evaluation.values.items()}}


def best_of_each(groups: Mapping[str, Sequence[LambdaMART]], train: Any, valid: Any) -> dict[str, LambdaMART]:
    """Fit all models together; return the best of each group on validation data, the first of equal ones.

    `train` is one data set, or one for each model.
    """
    names = [name for name, models in groups.items() for _ in models]
    fitted = fit_many([model for models in groups.values() for model in models], train, valid=valid, verbose=0)
    pairs = list(zip(names, fitted, strict=True))
    return {name: max((model for other, model in pairs if other == name), key=best_value) for name in groups}


def best_value(model: LambdaMART) -> float:
    """Return the highest value of a model's measure on validation data."""
    return float(max(model.history_[f"valid/{model.measure}"]))


def joined(parts: Sequence[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """Return the values of several folds as those of one seed."""
    return {key: [value for part in parts for value in part[key]] for key in parts[0]}


def plain(value: Any) -> Any:
    """Return a value as lists, dictionaries, texts and numbers; NaN becomes None, since JSON has no NaN.

    Example:
        >>> import numpy as np
        >>> from experiments.work import plain
        >>> plain({"a": np.array([1.0, np.nan]), "b": (np.int64(2), True)})
        {'a': [1.0, None], 'b': [2, True]}

    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def write_json(file: Path, content: Any, indent: int | None = None) -> None:
    """Write a JSON file atomically, and create its folder."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(file.parent, f"cannot hold results: {error.strerror or error}") from error
    write_text(file, json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False) + "\n")


def short_hash(text: str) -> str:
    """Return a hash of 16 hexadecimal digits."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def words_of(name: str) -> str:
    """Return the letters and digits of a name, for files."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60]
