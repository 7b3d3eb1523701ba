"""scikit-learn estimators: parameters and validation, no algorithm."""

from podium.estimators.lambdamart import LambdaMART, RankNetTrees
from podium.estimators.linear import LinearRanker
from podium.estimators.mart import MART, MARTClassifier, McRank
from podium.estimators.normalizer import QueryNormalizer
from podium.estimators.splitter import QueryKFold

__all__ = [
    "MART", "LambdaMART", "LinearRanker", "MARTClassifier", "McRank", "QueryKFold", "QueryNormalizer", "RankNetTrees",
]  # fmt: skip
