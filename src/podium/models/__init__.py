"""Models that score documents, their combinations, and the model file.

Names that need measures are imported on first use, because a service that only scores does not need them.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from podium.models.base import Model, Scorer
from podium.models.combined import Combined
from podium.models.ensemble import Ensemble
from podium.models.file import load_model, save
from podium.models.linear import LinearModel, OrdinalModel
from podium.models.transformed_ensembles import BoundaryEnsemble, ClassEnsemble, TreesOnBaseScores

if TYPE_CHECKING:
    from podium.models.combination import Combination, combine, combine_all
    from podium.models.refitting import refit_weights

load = load_model  # the older name

_LATER = {"Combination": "combination", "combine": "combination", "combine_all": "combination",
          "refit_weights": "refitting"}  # fmt: skip

__all__ = [
    "BoundaryEnsemble", "ClassEnsemble", "Combination", "Combined", "Ensemble", "LinearModel", "Model", "OrdinalModel",
    "Scorer", "TreesOnBaseScores", "combine", "combine_all", "load", "load_model", "refit_weights", "save",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "Blend":
        warnings.warn("Blend will be removed in the next release: use Combination", FutureWarning, stacklevel=2)
        name = "Combination"
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
