"""scikit-learn's conventions: parameters and validation, no algorithms."""

from podium.estimators.lambdamart import LambdaMART
from podium.estimators.normalizer import QueryNormalizer
from podium.estimators.splitter import QueryKFold

__all__ = ["LambdaMART", "QueryKFold", "QueryNormalizer"]
