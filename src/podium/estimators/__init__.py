"""scikit-learn estimators: parameters and validation, no algorithm."""

from podium.estimators.adapting import Adaptation, adapt
from podium.estimators.committee import Committee
from podium.estimators.lambdamart import LambdaMART, RankNetTrees
from podium.estimators.linear import LinearRanker
from podium.estimators.mart import MART, MARTClassifier, McRank
from podium.estimators.nets import LambdaRank, RankNet
from podium.estimators.normalizer import QueryNormalizer
from podium.estimators.splitter import QueryKFold

__all__ = [
    "MART", "Adaptation", "Committee", "LambdaMART", "LambdaRank", "LinearRanker", "MARTClassifier", "McRank",
    "QueryKFold", "QueryNormalizer", "RankNet", "RankNetTrees", "adapt",
]  # fmt: skip
