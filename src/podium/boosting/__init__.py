"""The boosting loop and its parts: steps, sampling, stopping."""

from podium.boosting.base_scores import BaseScores
from podium.boosting.binned_data import BinnedData, SharedBins
from podium.boosting.checkpoints import Checkpoint
from podium.boosting.committee import CommitteeResult, CommitteeTraining, Tried
from podium.boosting.folds import RoundsByFolds, rounds_by_folds
from podium.boosting.groves import GrovesResult, GrovesTraining
from podium.boosting.rankboost import RankBoostStep
from podium.boosting.sampling import Sampling
from podium.boosting.settings import Boosting
from podium.boosting.steps import Gradient, LeafLineSearch, LineSearch, Newton, Step, as_step
from podium.boosting.training_state import Round, TrainingResult

__all__ = [
    "BaseScores", "BinnedData", "Boosting", "Checkpoint", "CommitteeResult", "CommitteeTraining", "Gradient",
    "GrovesResult", "GrovesTraining", "LeafLineSearch", "LineSearch", "Newton", "RankBoostStep", "Round",
    "RoundsByFolds", "Sampling", "SharedBins", "Step", "TrainingResult", "Tried", "as_step", "rounds_by_folds",
]  # fmt: skip
