"""Training and scoring on a cluster (extras `dask`, `ray`, `spark`).

`fit` trains an estimator on the workers of a cluster. `DaskLambdaMART`, `RayLambdaMART` and similar classes do the same
as estimators. `score_files` scores files on the workers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from podium.distributed.clusters import CLUSTERS, ESTIMATORS

if TYPE_CHECKING:
    from podium.distributed.estimators import fit as fit
    from podium.distributed.scoring import score_files as score_files

_MODULES = {f"{kind.prefix}{name}": kind.estimators for kind in CLUSTERS.values() for name in ESTIMATORS}
_MODULES |= {f"{kind.prefix}Engine": f"{name}_engine" for name, kind in CLUSTERS.items()}
_MODULES |= {"fit": "estimators", "score_files": "scoring"}
_MODULES |= dict.fromkeys(("SparkRankingEvaluator", "SparkRankingModel", "spark_folds"), "spark_estimators")

__all__ = [*_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
