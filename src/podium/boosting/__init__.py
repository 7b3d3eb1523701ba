"""The boosting loop and its parts: steps, sampling, stopping."""

from podium.boosting.checkpoints import Checkpoint
from podium.boosting.committee import CommitteeTraining, Elected
from podium.boosting.loop import Boosted, Boosting, Prepared, Round, Start
from podium.boosting.sampling import Sampling
from podium.boosting.steps import Gradient, LeafLineSearch, LineSearch, Newton, Step, as_step

__all__ = [
    "Boosted", "Boosting", "Checkpoint", "CommitteeTraining", "Elected", "Gradient", "LeafLineSearch", "LineSearch",
    "Newton", "Prepared", "Round", "Sampling", "Start", "Step", "as_step",
]  # fmt: skip
