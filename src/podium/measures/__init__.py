"""Measures of rankings as immutable values: per-query values, swap deltas, names that parse back."""

from podium.measures.average_precision import AP
from podium.measures.base import Measure, as_measure, parse, register, registered, warn_of_powers
from podium.measures.cascade import ERR, RR
from podium.measures.discounted import CNDCG, DCG, NDCG, RBP, Precision, Recall
from podium.measures.gains import Gain
from podium.measures.graded import Graded, as_selection, as_watched, has_preferences_alone, selection_for
from podium.measures.pairwise import KendallTau, PairwiseAccuracy, PreferenceAccuracy
from podium.measures.presets import letor
from podium.measures.ranking import Ranking

__all__ = [
    "AP",
    "CNDCG",
    "DCG",
    "ERR",
    "NDCG",
    "RBP",
    "RR",
    "Gain",
    "Graded",
    "KendallTau",
    "Measure",
    "PairwiseAccuracy",
    "Precision",
    "PreferenceAccuracy",
    "Ranking",
    "Recall",
    "as_measure",
    "as_selection",
    "as_watched",
    "has_preferences_alone",
    "letor",
    "parse",
    "register",
    "registered",
    "selection_for",
    "warn_of_powers",
]
