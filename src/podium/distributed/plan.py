"""What all parts of a run must know beside their own documents."""

from __future__ import annotations

from dataclasses import dataclass

from podium.boosting.sampling import Sampling
from podium.boosting.steps import Step
from podium.measures import Measure
from podium.objectives import Objective
from podium.trees.parameters import SplitMode


@dataclass(frozen=True)
class SweepPlan:
    """What a line search sweeps: the measure, how ties stand, and on which data, None for the training documents."""

    measure: Measure
    ties: str | int
    on: str | None


@dataclass(frozen=True)
class Plan:
    """The settings of a run as parts need them.

    Attributes:
        objective: to be bound to parts, its measures as they are on all data.
        step: that gives leaf values.
        split: what the weights of splits are.
        sampling: what each tree sees.
        n_documents: of all parts.
        keeps_original: whether the line search needs gradients as the objective gave them.
        measures: of the validation data, by name, as they are on all data.
        sweep: what a line search sweeps, if there is one.

    """

    objective: Objective
    step: Step
    split: SplitMode
    sampling: Sampling
    n_documents: int
    keeps_original: bool
    measures: dict[str, Measure]
    sweep: SweepPlan | None
