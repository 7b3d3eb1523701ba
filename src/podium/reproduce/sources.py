"""The data of experiments: made as the papers' was, and real data where the user has it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
Triple = tuple[RankingData, RankingData, RankingData]
Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class Source:
    """A data set of an experiment.

    Attributes:
        name: as tables have it.
        parts: the training, validation and test data for a seed and numbers of queries: one triple, or one for each
            fold.

    """

    name: str
    parts: Callable[[int, Sizes], list[Triple]]


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
    if not found:
        raise DataError(f"{folder}: no folds were found; expected Fold1/train.txt …, train.txt, or set1.train.txt")

    def parts(seed: int, sizes: Sizes) -> list[Triple]:
        train, valid, test = _read(found[seed % len(found)])
        return [(_some(train, sizes[0], seed), _some(valid, sizes[1], seed), _some(test, sizes[2], seed))]

    return Source(name, parts)


def _read(fold: Fold) -> Triple:
    if fold.valid is None or fold.test is None:
        raise DataError(f"{fold.name}: there is no validation or test data")
    return fold.train, fold.valid, fold.test


def _some(data: RankingData, queries: int, seed: int) -> RankingData:
    """As many queries, drawn by their ids."""
    if data.n_queries <= queries:
        return data
    drawn = np.argsort([int(seed_of("queries", seed, query)) for query in data.query_ids])
    return data.select(drawn[:queries])


@lru_cache
def real_sources() -> tuple[Source, ...]:
    """MQ2008 and OHSUMED with all their folds, where the folder that `PODIUM_DATA` names has them."""
    root = os.environ.get(FOLDER_VARIABLE)
    if root is None:
        return ()
    layouts: dict[str, Parts] = {"mq2008": "letor", "ohsumed": "ohsumed"}
    present = [name for name in layouts if (Path(root) / name).is_dir()]
    return tuple(_all_folds(name.upper(), folds(Path(root) / name, parts=layouts[name])) for name in present)


def _all_folds(name: str, found: Sequence[Fold]) -> Source:
    return Source(name, lambda seed, sizes: [_read(fold) for fold in found])
