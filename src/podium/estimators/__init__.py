"""scikit-learn estimators: parameters and data in, a model out; no algorithm.

Names are loaded when they are first used, so that the command line can read `podium.estimators.parameters` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.estimators.adapting import Adaptation, adapt
    from podium.estimators.cross_validation import CrossValidation, cross_validate
    from podium.estimators.lambdamart import LambdaMART, RankNetTrees
    from podium.estimators.linear_rankers import LinearRanker, PRank
    from podium.estimators.many import fit_many
    from podium.estimators.net_rankers import LambdaRank, RankNet
    from podium.estimators.pointwise_trees import MART, AdditiveGroves, MARTClassifier, McRank, OrdinalMART
    from podium.estimators.query_tools import QueryKFold, QueryNormalizer, query_score
    from podium.estimators.ranker import Committee, Ranker
    from podium.estimators.saving import load
    from podium.estimators.weak_rankers import AdaRank, RankBoost

__all__ = [
    "MART", "AdaRank", "Adaptation", "AdditiveGroves", "Committee", "CrossValidation", "LambdaMART", "LambdaRank",
    "LinearRanker", "MARTClassifier", "McRank", "OrdinalMART", "PRank", "QueryKFold", "QueryNormalizer", "RankBoost",
    "RankNet", "RankNetTrees", "Ranker", "adapt", "cross_validate", "fit_many", "load", "query_score",
]  # fmt: skip

_MODULES = {
    "adapting": ("Adaptation", "adapt"),
    "cross_validation": ("CrossValidation", "cross_validate"),
    "lambdamart": ("LambdaMART", "RankNetTrees"),
    "linear_rankers": ("LinearRanker", "PRank"),
    "many": ("fit_many",),
    "net_rankers": ("LambdaRank", "RankNet"),
    "pointwise_trees": ("MART", "AdditiveGroves", "MARTClassifier", "McRank", "OrdinalMART"),
    "query_tools": ("QueryKFold", "QueryNormalizer", "query_score"),
    "ranker": ("Committee", "Ranker"),
    "saving": ("load",),
    "weak_rankers": ("AdaRank", "RankBoost"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
