"""The settings of a training run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from podium.boosting.base_scores import require_scale
from podium.boosting.binned_data import BinnedData, SharedBins
from podium.boosting.checkpoints import Checkpoint
from podium.boosting.refitting import refit_trees
from podium.boosting.sampling import Sampling
from podium.boosting.steps import Newton, Step
from podium.boosting.training import Trainer, run_training
from podium.boosting.training_state import TrainingResult
from podium.core import hyperparameters as h
from podium.core.array_types import Floats
from podium.core.observing import Observer
from podium.core.parameters import settings
from podium.core.team import Team
from podium.core.threads import at_most_threads, thread_count
from podium.data import RankingData
from podium.errors import DataError
from podium.measures import Graded, Measure, as_selection
from podium.models import Ensemble
from podium.objectives import Lambda, Objective
from podium.trees import GrowthParameters


@settings
class Boosting:
    """The settings of a training run.

    Args:
        objective: the training objective, which computes λ and w.
        step: the rule for leaf values.
        growth: the parameters of tree growth.
        sampling: the shares of documents, queries and features that each tree sees.
        categorical: numbers of the categorical features.
        selection: the measure, or graded measures, that picks the number of trees if there is validation data.
        submodel: a function from data to the scores that training starts from ([W] §3: LambdaSMART); by default, it
            starts from the base score F_0 of the objective.
        watched: measures to record in the history in addition to those of the selection.
        watches_loss: whether to record the loss of the objective on training and validation data.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting
        >>> result = Boosting(n_trees=3).fit(podium.artificial(20, features=4))
        >>> result.ensemble.n_trees
        3

    """

    objective: Objective = field(default_factory=Lambda)
    step: Step = field(default_factory=Newton)
    growth: GrowthParameters = field(default_factory=GrowthParameters)
    sampling: Sampling = field(default_factory=Sampling)
    n_trees: int = h.N_TREES()
    learning_rate: h.ByRound = h.LEARNING_RATE()
    max_bins: int = h.MAX_BINS()
    categorical: tuple[int, ...] = ()
    selection: Measure | Graded | str = h.STOPPING_MEASURE.default
    patience: int | None = h.PATIENCE()
    min_delta: float = h.MIN_DELTA()
    n_threads: int | None = h.N_THREADS()
    submodel: Callable[[RankingData], Floats] | None = None
    submodel_scale: float | str = h.SUBMODEL_SCALE()
    watched: tuple[Measure, ...] = ()
    watches_loss: bool = False
    verbose: int | None = h.VERBOSE()

    def __post_init__(self) -> None:
        require_scale(self.submodel_scale)
        self.step.check(self.objective)
        if self.min_delta and isinstance(as_selection(self.selection), Graded):
            raise DataError(f"min_delta is for a single measure, but {self.selection} has tolerances: set them instead")

    def rate(self, iteration: int) -> float:
        """Return the learning rate of a round, counted from 0."""
        return h.LEARNING_RATE.in_round(self.learning_rate, iteration)

    def fit(
        self,
        train: RankingData,
        valid: Mapping[str, RankingData] | None = None,
        observers: Sequence[Observer] = (),
        checkpoint: Checkpoint | None = None,
        data: BinnedData | None = None,
        bins: SharedBins | None = None,
    ) -> TrainingResult:
        """Train; the first validation set decides when to stop, and which tree is the last.

        Observers are called after each round; the numbers that they return are added to the history. With a checkpoint,
        the run resumes where an earlier one stopped. Runs on the same data can share its bins: pass `data` if they bin
        it with the same settings, else `bins`.
        """
        if data is None:
            documents = train.with_weight() if self.objective.pointwise else train
            data = BinnedData.of(documents, valid or {}, self, bins if documents is train else None)
        # `at_most_threads` also limits code that does not take a number of threads, such as measures.
        with at_most_threads(thread_count(self.n_threads)), Team(self.n_threads) as team:
            return run_training(Trainer(self, data, team), observers, checkpoint)

    def refit(self, trees: Ensemble, data: RankingData, decay_rate: float = 0.9) -> TrainingResult:
        """Give the leaves of trees new values from other documents: decay_rate × old + (1 − decay_rate) × new.

        The step computes new values from gradients at the scores of the refitted trees before each one. Splits stay as
        they are, and all documents count.
        """
        return refit_trees(self, trees, data, decay_rate)
