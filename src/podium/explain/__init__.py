"""Explanations of models: contributions of features, importance, partial dependence."""

from podium.explain.changed_features import Importance, PartialDependence, partial_dependence, permutation_importance
from podium.explain.comparing import ExplanationComparison, compare_explanations
from podium.explain.explaining import explain
from podium.explain.explanation import DocumentExplanation, Explanation, PairExplanation, QueryExplanation

__all__ = [
    "DocumentExplanation", "Explanation", "ExplanationComparison", "Importance", "PairExplanation",
    "PartialDependence", "QueryExplanation", "compare_explanations", "explain", "partial_dependence",
    "permutation_importance",
]  # fmt: skip
