"""The boosting loop and its parts: steps, sampling, stopping."""

from podium.boosting.checkpoints import Checkpoint
from podium.boosting.loop import Boosted, Boosting, Round
from podium.boosting.sampling import Sampling
from podium.boosting.steps import Gradient, Newton, Step, as_step

__all__ = ["Boosted", "Boosting", "Checkpoint", "Gradient", "Newton", "Round", "Sampling", "Step", "as_step"]
