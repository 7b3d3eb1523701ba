"""scikit-learn estimators: parameters and data in, a model out; no algorithm.

Names are loaded when they are first used, so that the command line can read `podium.estimators.parameters` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.estimators.adapting import Adaptation as Adaptation
    from podium.estimators.adapting import adapt as adapt
    from podium.estimators.additive_groves import AdditiveGroves as AdditiveGroves
    from podium.estimators.committee import Committee as Committee
    from podium.estimators.cross_validation import CrossValidation as CrossValidation
    from podium.estimators.cross_validation import cross_validate as cross_validate
    from podium.estimators.default_ranker import Ranker as Ranker
    from podium.estimators.lambdamart import LambdaMART as LambdaMART
    from podium.estimators.lambdarank import LambdaRank as LambdaRank
    from podium.estimators.linear_ranker import LinearRanker as LinearRanker
    from podium.estimators.many import fit_many as fit_many
    from podium.estimators.mart import MART as MART
    from podium.estimators.mart_classifier import MARTClassifier as MARTClassifier
    from podium.estimators.mcrank import McRank as McRank
    from podium.estimators.ordinal_mart import OrdinalMART as OrdinalMART
    from podium.estimators.prank import PRank as PRank
    from podium.estimators.query_kfold import QueryKFold as QueryKFold
    from podium.estimators.query_normalizer import QueryNormalizer as QueryNormalizer
    from podium.estimators.ranknet import RankNet as RankNet
    from podium.estimators.ranknet_trees import RankNetTrees as RankNetTrees
    from podium.estimators.saving import load as load

_MODULES = {
    "Adaptation": "adapting", "AdditiveGroves": "additive_groves", "Committee": "committee",
    "CrossValidation": "cross_validation",
    "LambdaMART": "lambdamart", "LambdaRank": "lambdarank", "LinearRanker": "linear_ranker", "MART": "mart",
    "MARTClassifier": "mart_classifier", "McRank": "mcrank", "OrdinalMART": "ordinal_mart", "PRank": "prank",
    "QueryKFold": "query_kfold",
    "QueryNormalizer": "query_normalizer", "RankNet": "ranknet", "RankNetTrees": "ranknet_trees",
    "Ranker": "default_ranker", "adapt": "adapting",
    "cross_validate": "cross_validation", "fit_many": "many", "load": "saving",
}  # fmt: skip

__all__ = [*_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
