"""Ranking data: the class `RankingData`, readers and writers, splits, and data sets.

Readers, writers and `podium.data.datasets` are imported on first use, because models and services do not need them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from podium.data.ranking_data import RankingData

if TYPE_CHECKING:
    from podium.data import datasets as datasets
    from podium.data.io.reading import read, read_blocks
    from podium.data.io.writing import write

_LATER = {"read": "io.reading", "read_blocks": "io.reading", "write": "io.writing"}

__all__ = ["RankingData", "read", "read_blocks", "write"]


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module(f"{__name__}.datasets")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
