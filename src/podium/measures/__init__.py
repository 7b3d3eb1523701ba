"""Measures of rankings as immutable values: per-query values, swap deltas, names that parse back."""

from podium.measures.alpha_ndcg import AlphaNDCG
from podium.measures.average_precision import AP
from podium.measures.base import Example, Measure
from podium.measures.bound import BoundMeasures
from podium.measures.err import ERR
from podium.measures.err_ia import ERRIA
from podium.measures.families import LookupTables
from podium.measures.gains import Gain, warn_of_powers
from podium.measures.graded import Graded, as_selection, as_watched, has_preferences_alone, selection_for
from podium.measures.kendall_tau import KendallTau
from podium.measures.ndcg import CNDCG, DCG, NDCG
from podium.measures.pairwise_accuracy import PairwiseAccuracy
from podium.measures.precision import Precision
from podium.measures.preference_accuracy import PreferenceAccuracy
from podium.measures.presets import letor
from podium.measures.propensity_ndcg import PropensityNDCG
from podium.measures.q_measure import QMeasure
from podium.measures.ranking import Ranking
from podium.measures.rbp import RBP
from podium.measures.recall import Recall
from podium.measures.reciprocal_rank import RR
from podium.measures.registry import as_measure, parse, register, registered

__all__ = [
    "AP",
    "CNDCG",
    "DCG",
    "ERR",
    "ERRIA",
    "NDCG",
    "RBP",
    "RR",
    "AlphaNDCG",
    "BoundMeasures",
    "Example",
    "Gain",
    "Graded",
    "KendallTau",
    "LookupTables",
    "Measure",
    "PairwiseAccuracy",
    "Precision",
    "PreferenceAccuracy",
    "PropensityNDCG",
    "QMeasure",
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
