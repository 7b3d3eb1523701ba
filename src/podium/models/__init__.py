"""Scorers, and the file that keeps them."""

from podium.models.base import Model
from podium.models.class_ensemble import ClassEnsemble
from podium.models.combined import Blend, Combination, Combined, combine, combine_all
from podium.models.ensemble import Ensemble
from podium.models.file import load, save
from podium.models.linear import LinearModel
from podium.models.refitting import refit_weights
from podium.models.trees_on_base_scores import TreesOnBaseScores

__all__ = [
    "Blend", "ClassEnsemble", "Combination", "Combined", "Ensemble", "LinearModel", "Model", "TreesOnBaseScores",
    "combine", "combine_all", "load", "refit_weights", "save",
]  # fmt: skip
