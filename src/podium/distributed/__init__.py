"""Training and scoring on a cluster (extra `dask`).

`DaskLambdaMART` and its like train on the workers of a Dask cluster; `score_files` has them score files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.distributed.estimators import DaskLambdaMART as DaskLambdaMART
    from podium.distributed.estimators import DaskMART as DaskMART
    from podium.distributed.estimators import DaskMARTClassifier as DaskMARTClassifier
    from podium.distributed.estimators import DaskMcRank as DaskMcRank
    from podium.distributed.estimators import DaskOrdinalMART as DaskOrdinalMART
    from podium.distributed.estimators import DaskRanker as DaskRanker
    from podium.distributed.estimators import DaskRankNetTrees as DaskRankNetTrees
    from podium.distributed.scoring import score_files as score_files

_MODULES = {
    "DaskLambdaMART": "estimators", "DaskMART": "estimators", "DaskMARTClassifier": "estimators",
    "DaskMcRank": "estimators", "DaskOrdinalMART": "estimators", "DaskRankNetTrees": "estimators",
    "DaskRanker": "estimators", "score_files": "scoring",
}  # fmt: skip

__all__ = [*_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
