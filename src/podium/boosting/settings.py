"""The settings of a training run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from podium.boosting.base_scores import require_scale
from podium.boosting.binned_data import BinnedData
from podium.boosting.checkpoints import Checkpoint
from podium.boosting.results import Round, TrainingResult
from podium.boosting.sampling import Sampling
from podium.boosting.steps import Newton, Step
from podium.boosting.training import train_trees
from podium.core.validation import require_number, require_whole
from podium.data import RankingData
from podium.measures import Graded, Measure
from podium.objectives import Lambda, Objective
from podium.trees import GrowthParameters

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Boosting:
    """The settings of a training run.

    Args:
        objective: gives λ and w.
        step: gives leaf values.
        growth: how each tree is grown.
        sampling: what each tree sees.
        n_trees: at most so many.
        learning_rate: leaf values are multiplied by it.
        max_bins: of each feature.
        categorical: numbers of the categorical features.
        selection: the measure, or graded measures, that picks the number of trees where there is validation data.
        patience: stop after so many trees without a better one; None grows all.
        n_threads: all cores by default; the model is the same for any number.
        submodel: gives the scores that training starts from, for any data ([W] §3: LambdaSMART); 0 or F_0 without.
        submodel_scale: what its scores are multiplied by; `"fit"` for `podium.boosting.base_scores.fitted_scale`.
        watched: measures that stand in the history beside those of the selection.
        verbose: None for a progress bar on terminals, 0 for silence, n for a line every n trees.

    """

    objective: Objective = field(default_factory=Lambda)
    step: Step = field(default_factory=Newton)
    growth: GrowthParameters = field(default_factory=GrowthParameters)
    sampling: Sampling = field(default_factory=Sampling)
    n_trees: int = 100
    learning_rate: float = 0.1
    max_bins: int = 255
    categorical: tuple[int, ...] = ()
    selection: Measure | Graded | str = "ndcg@10"
    patience: int | None = None
    n_threads: int | None = None
    submodel: Callable[[RankingData], Floats] | None = None
    submodel_scale: float | str = "fit"
    watched: tuple[Measure, ...] = ()
    verbose: int | None = None

    def __post_init__(self) -> None:
        require_whole("verbose", self.verbose, 0, optional=True)
        require_whole("n_trees", self.n_trees, 1)
        require_number("learning_rate", self.learning_rate, above=0)
        require_whole("patience", self.patience, 1, optional=True)
        require_scale(self.submodel_scale)
        self.step.check(self.objective)

    def fit(
        self,
        train: RankingData,
        valid: Mapping[str, RankingData] | None = None,
        observers: Sequence[Callable[[Round], None]] = (),
        checkpoint: Checkpoint | None = None,
        data: BinnedData | None = None,
    ) -> TrainingResult:
        """Train. The first validation set decides when to stop and which tree is the last.

        Observers hear of each tree. With a checkpoint, the run goes on where an earlier one was stopped. Runs on the
        same data may share its bins (`data`).
        """
        if data is None:
            data = BinnedData.of(train.with_weight() if self.objective.pointwise else train, valid or {}, self)
        return train_trees(self, data, observers, checkpoint)
