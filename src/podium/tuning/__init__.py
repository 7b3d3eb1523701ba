"""The search for parameters: Optuna proposes settings, Podium trains them side by side."""

from podium.tuning.space import Between
from podium.tuning.trials import Trial
from podium.tuning.tuning import Tuning, tune

__all__ = ["Between", "Trial", "Tuning", "tune"]
