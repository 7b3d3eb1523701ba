"""Measures of rankings as immutable values, with per-query values, swap deltas, and names that can be parsed."""

from podium.measures.base import Example, Measure
from podium.measures.binary import F1, RBP, InterpolatedPrecision, Precision, Recall, RPrecision
from podium.measures.blended import AP, QMeasure
from podium.measures.bound import BoundMeasures
from podium.measures.cascade import ERR, RR, PFound, Success
from podium.measures.discounted import CNDCG, DCG, NDCG, PropensityNDCG, register_discount
from podium.measures.diversity import ERRIA, AlphaNDCG
from podium.measures.families import LookupTables
from podium.measures.gains import Gain, warn_of_powers
from podium.measures.graded import Graded, as_selection, as_watched, has_preferences_alone, selection_for
from podium.measures.incomplete import Bpref, InferredAP, Judged
from podium.measures.pairs import KendallTau, PairwiseAccuracy, PreferenceAccuracy
from podium.measures.presets import letor
from podium.measures.ranking import Ranking
from podium.measures.registry import as_measure, parse, register, registered

__all__ = [
    "AP", "CNDCG", "DCG", "ERR", "ERRIA", "F1", "NDCG", "RBP", "RR", "AlphaNDCG", "BoundMeasures", "Bpref",
    "Example", "Gain", "Graded", "InferredAP", "InterpolatedPrecision", "Judged", "KendallTau", "LookupTables",
    "Measure", "PFound", "PairwiseAccuracy", "Precision", "PreferenceAccuracy", "PropensityNDCG", "QMeasure",
    "RPrecision", "Ranking", "Recall", "Success", "as_measure", "as_selection", "as_watched",
    "has_preferences_alone", "letor", "parse", "register", "register_discount", "registered", "selection_for",
    "warn_of_powers",
]  # fmt: skip
