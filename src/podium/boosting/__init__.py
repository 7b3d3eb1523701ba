"""The boosting loop and its parts: steps, sampling, stopping."""

from podium.boosting.checkpoints import Checkpoint
from podium.boosting.loop import Boosted, Boosting, Round
from podium.boosting.sampling import Sampling
from podium.boosting.steps import Newton, Step

__all__ = ["Boosted", "Boosting", "Checkpoint", "Newton", "Round", "Sampling", "Step"]
