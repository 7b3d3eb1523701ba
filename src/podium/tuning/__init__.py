"""Search for parameters: Optuna proposes settings, and Podium trains with them in parallel."""

from podium.tuning.space import Between
from podium.tuning.trials import Trial
from podium.tuning.tuning import Tuning, tune

__all__ = ["Between", "Trial", "Tuning", "tune"]
