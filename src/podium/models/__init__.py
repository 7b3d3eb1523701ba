"""Scorers, and the file that keeps them."""

from podium.models.classes import ClassEnsemble
from podium.models.ensemble import Ensemble
from podium.models.file import load, save
from podium.models.linear import LinearScorer
from podium.models.scorer import Scorer

__all__ = ["ClassEnsemble", "Ensemble", "LinearScorer", "Scorer", "load", "save"]
