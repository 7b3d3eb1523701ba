"""Podium: learning to rank, from RankNet to LambdaMART and beyond.

Everything that users need stands here; each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from podium.data import RankingData as RankingData
    from podium.data import read as read
    from podium.data import write as write
    from podium.data.folds import Fold as Fold
    from podium.data.folds import folds as folds
    from podium.data.making.artificial import artificial as artificial
    from podium.data.making.artificial import artificial_web as artificial_web
    from podium.data.making.clicks import simulate_clicks as simulate_clicks
    from podium.errors import DataError as DataError
    from podium.errors import FileFormatError as FileFormatError
    from podium.errors import MissingExtraError as MissingExtraError
    from podium.errors import PodiumError as PodiumError
    from podium.errors import PodiumWarning as PodiumWarning
    from podium.estimators import QueryKFold as QueryKFold
    from podium.estimators import QueryNormalizer as QueryNormalizer

# The map: every public name and the module that it comes from.
_HOMES = {
    # data, in and out
    "RankingData": "podium.data",  # documents with features and labels, grouped into queries
    "read": "podium.data",  # LETOR text, CSV, TSV, Parquet
    "write": "podium.data",  # LETOR text, Parquet
    "folds": "podium.data.folds",  # folders of benchmark data, as folds
    "Fold": "podium.data.folds",  # one of them
    # data made here
    "artificial": "podium.data.making.artificial",  # the papers' random cubic polynomials
    "artificial_web": "podium.data.making.artificial",  # in the shape of MSLR-WEB
    "simulate_clicks": "podium.data.making.clicks",  # click labels from simulated users
    # scikit-learn
    "QueryKFold": "podium.estimators",  # cross-validation by query
    "QueryNormalizer": "podium.estimators",  # per-query normalisation
    # errors
    "PodiumError": "podium.errors",  # the base of all of them
    "DataError": "podium.errors",  # data or parameters that cannot be right
    "FileFormatError": "podium.errors",  # with file, line and column
    "MissingExtraError": "podium.errors",  # an optional dependency is not installed
    "PodiumWarning": "podium.errors",  # legal, but often a mistake
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'podium' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
