"""The boosting loop and its parts: steps, sampling, stopping."""

from podium.boosting.checkpoints import Checkpoint
from podium.boosting.committee import CommitteeResult, CommitteeTraining
from podium.boosting.sampling import Sampling
from podium.boosting.steps import Gradient, LeafLineSearch, LineSearch, Newton, Step, as_step
from podium.boosting.training import Boosting, Prepared, Round, Start, TrainingResult

__all__ = [
    "Boosting",
    "Checkpoint",
    "CommitteeResult",
    "CommitteeTraining",
    "Gradient",
    "LeafLineSearch",
    "LineSearch",
    "Newton",
    "Prepared",
    "Round",
    "Sampling",
    "Start",
    "Step",
    "TrainingResult",
    "as_step",
]  # fmt: skip
