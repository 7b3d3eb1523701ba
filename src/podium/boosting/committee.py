"""A committee: several objectives, each bagged, weighed by the exact sweep, in one ensemble of trees."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from podium.boosting.binned_data import BinnedData
from podium.boosting.sampling import Sampling
from podium.boosting.settings import Boosting
from podium.boosting.steps import Gradient, Newton
from podium.combining import Sweep, ascend, deviation, weighted
from podium.core import hyperparameters as h
from podium.core.jobs import each_warning_once, run_jobs
from podium.core.parameters import settings
from podium.core.progress import progress
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.selecting import without_features
from podium.errors import DataError
from podium.measures import Graded, Measure, as_selection
from podium.models import Ensemble
from podium.objectives import XENDCG, Lambda, Objective, Pairwise, QueryRegression, describe
from podium.trees import GrowthParameters

Floats = NDArray[np.float64]
# [B] §1: an ensemble of LambdaMART rankers won the Yahoo! challenge; other objectives err elsewhere.
MEMBERS: tuple[tuple[Objective, int], ...] = (
    (Lambda("ndcg", normalize=True), 2), (QueryRegression(), 2), (XENDCG(), 2), (Pairwise(), 2),
    (Lambda("ap", normalize=True), 2), (Lambda("ndcg", 10, normalize=True), 2),
)  # fmt: skip
TRUSTED_QUERIES = 1000  # validation queries whose best weights count as much as equal ones


@dataclass(frozen=True)
class CommitteeResult:
    """The result of a committee.

    Attributes:
        ensemble: all members' trees, their leaves multiplied by the members' weights.
        members: the objective and the number of trees of each.
        weights: of each member, in units of its standardised scores.
        values: the measure on the validation queries of each member alone, of equal weights, and of the committee.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting, CommitteeTraining
        >>> from podium.objectives import XENDCG, Lambda
        >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
        >>> training = CommitteeTraining(((Lambda("ndcg"), 1), (XENDCG(), 1)), Boosting(n_trees=3, verbose=0))
        >>> result = training.fit(train, valid)
        >>> len(result.members), list(result.values)[-2:]
        (2, ['equal weights', 'committee'])

    """

    ensemble: Ensemble
    members: tuple[tuple[str, int], ...]
    weights: tuple[float, ...]
    values: dict[str, float]


@settings
class CommitteeTraining:
    """The settings of a committee.

    Args:
        members: objectives, and how many members each has; they take turns.
        boosting: how each member is trained; the seed of its sampling changes from member to member.
        measure: by which the weights are found.

    Example:
        >>> from podium.boosting import CommitteeTraining
        >>> from podium.objectives import Lambda, QueryRegression
        >>> training = CommitteeTraining(members=((Lambda("ndcg"), 2), (QueryRegression(), 1)))
        >>> sum(count for _, count in training.members)
        3

    """

    members: tuple[tuple[Objective, int], ...] = MEMBERS
    boosting: Boosting = field(
        default_factory=lambda: Boosting(
            growth=GrowthParameters(15, min_documents_in_leaf=20, l2=1.0), sampling=Sampling(0.7, 1.0, 0.5),
            n_trees=1000, learning_rate=0.05, patience=100,
        )
    )  # fmt: skip
    measure: Measure | Graded | str = "ndcg@10"
    cycles: int = h.CYCLES(2)
    shrinkage: float | None = h.SHRINKAGE(None)
    time_budget: float | None = h.TIME_BUDGET(None)

    def __post_init__(self) -> None:
        if not self.members:
            raise DataError("a committee needs members")
        for objective, count in self.members:
            if not isinstance(objective, Objective):
                raise DataError(f"a member is an objective and a number, not {objective!r}")
            require_whole("the number of members", count, 1)

    def fit(self, train: RankingData, valid: RankingData) -> CommitteeResult:
        """Train the members on the same bins, one on each thread, then weigh them on the validation queries."""
        turns = self._turns()
        data = BinnedData.of(train, {"valid": valid}, replace(self.boosting, selection=self.measure))
        trained: dict[int, Ensemble] = {}
        jobs = (partial(self._member(*turn).fit, train, {"valid": valid}, data=data) for turn in self._in_time(turns))
        with (
            each_warning_once(),
            progress("training members", len(turns), verbose=self.boosting.verbose, unit="members") as advance,
            closing(run_jobs(jobs, len(turns), self.boosting.n_threads)) as outcomes,
        ):
            try:
                for number, member in outcomes:
                    trained[number] = member.ensemble
                    advance(1, describe_or_name(self.members[turns[number][0]][0]))
            except KeyboardInterrupt:  # the committee of those so far
                if not trained:
                    raise
        members = [(turns[number][0], ensemble) for number, ensemble in sorted(trained.items())]
        return self._combine(members, train, data.valid["valid"])

    def _in_time(self, turns: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The turns that begin within the time budget, and the first of each objective."""
        started = time.perf_counter()
        for number, turn in enumerate(turns):
            late = self.time_budget is not None and time.perf_counter() - started > self.time_budget
            if late and number >= len(self.members):
                return
            yield turn

    def _member(self, kind: int, seed: int) -> Boosting:
        """The settings of one member."""
        objective, boosting = self.members[kind][0], self.boosting
        return replace(
            boosting, objective=objective, selection=self.measure,
            step=Newton(boosting.growth.l2) if objective.has_hessian else Gradient(),
            sampling=replace(boosting.sampling, seed=boosting.sampling.seed + seed),
        )  # fmt: skip

    def _turns(self) -> list[tuple[int, int]]:
        """Objectives in turn, each as often as it has members, and the number of each member."""
        most = max(count for _, count in self.members)
        rounds = [(kind, k) for k in range(most) for kind, (_, count) in enumerate(self.members) if k < count]
        return [(kind, 1000 * kind + k) for kind, k in rounds]

    def _combine(self, trained: list[tuple[int, Ensemble]], train: RankingData, valid: RankingData) -> CommitteeResult:
        threads, order = self.boosting.n_threads, valid.canonical_order
        sizes = [deviation(train, e.predict(train, n_threads=threads)) for _, e in trained]
        scores = [
            e.predict(valid, n_threads=threads)[order] / size for (_, e), size in zip(trained, sizes, strict=True)
        ]  # in the order in which ties stand, whatever that of the rows
        valid = without_features(valid).take(order)
        fixed = [measure.fixed(train, valid) for measure in as_selection(self.measure).measures]
        sweep = Sweep(valid, fixed[0], "stable", threads)
        kinds = sorted({kind for kind, _ in trained})
        shared = [sum(s for (k, _), s in zip(trained, scores, strict=True) if k == kind) for kind in kinds]
        share = valid.n_queries / (valid.n_queries + TRUSTED_QUERIES) if self.shrinkage is None else self.shrinkage
        weights = self._weights(sweep, [np.asarray(part) for part in shared], share)
        member_weights = tuple(weights[kinds.index(kind)] for kind, _ in trained)
        names = [describe_or_name(self.members[kind][0]) for kind, _ in trained]
        values = {f"{name} {k}": sweep.value(s) for k, (name, s) in enumerate(zip(names, scores, strict=True))}
        values["equal weights"] = sweep.value(weighted(scores, [1.0] * len(scores)))
        values["committee"] = sweep.value(weighted(scores, member_weights))
        trees = []
        for (_, member), weight, size in zip(trained, member_weights, sizes, strict=True):
            for tree in map(member.tree, range(member.n_trees)):
                trees.append(replace(tree, leaf_value=tree.leaf_value * (weight / (size * len(trained)))))
        info = {"members": names, "weights": list(member_weights), "values": values}
        info["features_with_missing"] = trained[0][1].info["features_with_missing"]  # all have the same documents
        ensemble = Ensemble.of_trees(
            trees, train.n_features, feature_names=train.feature_names, encoding=train.encoding,
            info=info | {"measures": [str(m) for m in fixed]},
        )  # fmt: skip
        members = tuple((name, member.n_trees) for name, (_, member) in zip(names, trained, strict=True))
        return CommitteeResult(ensemble, members, member_weights, values)

    def _weights(self, sweep: Sweep, parts: list[Floats], share: float) -> list[float]:
        """A weight for each objective: the exact best in turn, from equal ones, and part of the way back."""
        weights = [1.0] * len(parts)
        if len(parts) > 1:
            weights = ascend(sweep, parts, weights, self.cycles, (0.0, 3.0))[0]
        return [1.0 + share * (weight - 1.0) for weight in weights]


def describe_or_name(objective: Objective) -> str:
    """An objective as text, or its class where it has none."""
    try:
        return describe(objective)
    except DataError:
        return type(objective).__name__
