"""The papers' experiments, each by name: what is claimed, what was measured, and whether it holds."""

from podium.reproduce.arms import Arm
from podium.reproduce.claims import Claim, better, decided_by, equal, no_worse
from podium.reproduce.experiment import Experiment, Figure, Outcome
from podium.reproduce.experiments import EXPERIMENTS, experiment
from podium.reproduce.runner import reproduce
from podium.reproduce.work import Work

__all__ = [
    "EXPERIMENTS", "Arm", "Claim", "Experiment", "Figure", "Outcome", "Work", "better", "decided_by", "equal",
    "experiment", "no_worse", "reproduce",
]  # fmt: skip
