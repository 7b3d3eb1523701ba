"""Ranking data: what it is, where it comes from, how it is split, and how to make some.

`podium.data.datasets` is loaded when it is first used: models and services do without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from podium.data.io.reading import read, read_blocks
from podium.data.io.writing import write
from podium.data.ranking_data import RankingData

if TYPE_CHECKING:
    from podium.data import datasets as datasets

__all__ = ["RankingData", "read", "read_blocks", "write"]


def __getattr__(name: str) -> Any:
    if name != "datasets":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.datasets")
