"""Scorers, and the file that keeps them."""

from podium.models.classes import ClassEnsemble
from podium.models.combined import Blend, Combination, Combined, combine, combine_all
from podium.models.ensemble import Ensemble
from podium.models.file import load, save
from podium.models.linear import LinearScorer
from podium.models.refitting import refit_weights
from podium.models.scorer import Scorer
from podium.models.started import Started

__all__ = [
    "Blend", "ClassEnsemble", "Combination", "Combined", "Ensemble", "LinearScorer", "Scorer", "Started", "combine",
    "combine_all", "load", "refit_weights", "save",
]  # fmt: skip
