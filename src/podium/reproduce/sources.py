"""The data of experiments: made as the papers' was, and real data where the user has it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.random import seed_of
from podium.data import RankingData
from podium.data.datasets.artificial import artificial
from podium.data.datasets.folds import Fold, Parts, folds
from podium.data.datasets.shape import PARTS
from podium.data.datasets.web import artificial_web
from podium.errors import DataError

FOLDER_VARIABLE = "PODIUM_DATA"  # names the folder of mq2008 and ohsumed
LAYOUTS: dict[str, Parts] = {"mq2008": "letor", "ohsumed": "ohsumed"}
Triple = tuple[RankingData, RankingData, RankingData]
Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class Source:
    """A data set of an experiment.

    Attributes:
        name: as tables have it.
        parts: the training, validation and test data for a seed and numbers of queries: one triple, or one for each
            fold.
        queries_of: what tells the test queries of a seed apart from those of others; by default the seed, since each
            draws its own.

    """

    name: str
    parts: Callable[[int, Sizes], list[Triple]]
    queries_of: Callable[[int], object] = int

    def prefix(self, seed: int) -> str:
        """For `Work.values`: the same for seeds that measure the same queries, which then count once."""
        return f"{self.name} {self.queries_of(seed)}".strip()


def artificial_source(**shape: Any) -> Source:
    """The papers' artificial data ([W] 5.1), other queries for each seed."""
    return Source("artificial", lambda seed, sizes: [_made(artificial, seed, sizes, shape)])


def web_source(**shape: Any) -> Source:
    """Artificial data in the shape of web search, other queries for each seed."""
    return Source("artificial web", lambda seed, sizes: [_made(artificial_web, seed, sizes, shape)])


def _made(make: Callable[..., RankingData], seed: int, sizes: Sizes, shape: dict[str, Any]) -> Triple:
    train, valid, test = (make(n, seed=seed, part=part, **shape) for n, part in zip(sizes, PARTS, strict=True))
    return train, valid, test


def folder_source(folder: str | os.PathLike[str]) -> Source:
    """A folder of MSLR-WEB, Yahoo or Istella data: each seed takes a fold, and queries of it at random."""
    found, name = folds(folder), Path(folder).resolve().name
    for fold in found:
        if missing := [part for part in PARTS if part not in fold.files]:
            raise DataError(f"{folder}, {fold.name}: an experiment needs {' and '.join(missing)} data, too")

    def parts(seed: int, sizes: Sizes) -> list[Triple]:
        train, valid, test = _read(found[seed % len(found)])
        return [(_some(train, sizes[0], seed), _some(valid, sizes[1], seed), _some(test, sizes[2], seed))]

    return Source(name, parts, lambda seed: found[seed % len(found)].name)


def folder_sources(folders: Sequence[str | os.PathLike[str]]) -> list[Source]:
    """One for each folder; folders of the same name are told apart by their numbers."""
    sources = [folder_source(folder) for folder in folders]
    names = [source.name for source in sources]
    return [
        source if names.count(source.name) == 1 else replace(source, name=f"{source.name} ({k + 1})")
        for k, source in enumerate(sources)
    ]


def files_state(folders: Sequence[str | os.PathLike[str]]) -> str:
    """A hash of the names, sizes and times of all files: another one where data has changed."""
    files = [
        (folder, path.relative_to(folder).as_posix(), path.stat().st_size, path.stat().st_mtime_ns)
        for folder in (Path(f).resolve() for f in folders) for path in sorted(folder.rglob("*")) if path.is_file()
    ]  # fmt: skip
    return hashlib.blake2b(repr([(folder.name, *rest) for folder, *rest in files]).encode(), digest_size=8).hexdigest()


def _read(fold: Fold) -> Triple:
    train, valid, test = fold
    assert train is not None and valid is not None and test is not None  # noqa: PT018, as `folder_source` checked
    return train, valid, test


def _some(data: RankingData, queries: int, seed: int) -> RankingData:
    """As many queries, drawn by their ids."""
    if data.n_queries <= queries:
        return data
    drawn = np.argsort([int(seed_of("queries", seed, query)) for query in data.query_ids])
    return data.select(drawn[:queries])


def real_folders() -> tuple[Path, ...]:
    """The folders of MQ2008 and OHSUMED that there are in the one that `PODIUM_DATA` names."""
    root = os.environ.get(FOLDER_VARIABLE)
    return tuple(Path(root, name) for name in LAYOUTS if Path(root, name).is_dir()) if root else ()


@lru_cache
def real_sources(folders: tuple[Path, ...]) -> tuple[Source, ...]:
    """MQ2008 and OHSUMED with all their folds, as `real_folders` found them; their files are read once."""
    return tuple(_all_folds(path.name.upper(), folds(path, parts=LAYOUTS[path.name])) for path in folders)


def _all_folds(name: str, found: Sequence[Fold]) -> Source:
    """Every seed measures the same queries."""
    return Source(name, lambda seed, sizes: [_read(fold) for fold in found], lambda seed: "")
