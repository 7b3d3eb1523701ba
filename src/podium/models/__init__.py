"""Models that score documents, their combinations, and the model file."""

from podium.models.base import Model
from podium.models.blend import Blend, combine_all
from podium.models.class_ensemble import ClassEnsemble
from podium.models.combination import Combination, combine
from podium.models.combined import Combined
from podium.models.early_exit import EarlyExit
from podium.models.ensemble import Ensemble
from podium.models.file import load, save
from podium.models.linear import LinearModel
from podium.models.ordinal import OrdinalModel
from podium.models.refitting import refit_weights
from podium.models.scorer import Scorer
from podium.models.top import TopDocuments
from podium.models.trees_on_base_scores import TreesOnBaseScores

__all__ = [
    "Blend", "ClassEnsemble", "Combination", "Combined", "EarlyExit", "Ensemble", "LinearModel", "Model",
    "OrdinalModel", "Scorer", "TopDocuments", "TreesOnBaseScores", "combine", "combine_all", "load", "refit_weights",
    "save",
]  # fmt: skip
