"""Why a model ranks as it does."""

from podium.explain.comparing import ExplanationComparison, compare_explanations
from podium.explain.dependence import PartialDependence, partial_dependence
from podium.explain.explaining import explain
from podium.explain.explanation import DocumentExplanation, Explanation, PairExplanation, QueryExplanation
from podium.explain.importance import Importance, permutation_importance

__all__ = [
    "DocumentExplanation", "Explanation", "ExplanationComparison", "Importance", "PairExplanation",
    "PartialDependence", "QueryExplanation", "compare_explanations", "explain", "partial_dependence",
    "permutation_importance",
]  # fmt: skip
