"""Committees: several objectives, bagged over folds and weighted by the exact sweep, in one ensemble of trees."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from podium.boosting.binned_data import BinnedData
from podium.boosting.folds import share_of_features, with_feature_fraction
from podium.boosting.settings import Boosting
from podium.boosting.steps import Gradient, Newton
from podium.boosting.training_state import TrainingResult
from podium.combining import Sweep, ascend, deviation, weighted
from podium.core import hyperparameters as h
from podium.core.array_types import Floats, Ints
from podium.core.jobs import each_warning_once, run_jobs
from podium.core.parameters import settings
from podium.core.progress import progress
from podium.core.random import seed_of
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.subsets import folds_by_content, without_features
from podium.errors import DataError
from podium.measures import Graded, Measure, as_selection
from podium.models import Ensemble
from podium.objectives import XENDCG, Objective, default_objective, describe
from podium.trees import Tree

Members = tuple[tuple[Objective, int], ...]
TRUSTED_QUERIES = 1000  # with this number of validation queries, weights are halfway between equal and best
MANY_QUERIES = 5000  # with more training queries, one fold is enough


def default_members(measure: Measure) -> Members:
    """Return the default objectives and their numbers of members; the objectives make different errors ([B] §1)."""
    return (default_objective(measure), 1), (XENDCG(measure.labels), 1)


class Tried(NamedTuple):
    """A trial of a committee: a member for each part of the data, on one objective.

    Attributes:
        objective: the objective, as text.
        seconds: the training time.
        alone: the measure of these members on unseen queries.
        together: the measure of these members and all those kept before.
        kept: whether these members are in the committee.

    Example:
        >>> from podium.boosting import Tried
        >>> Tried("lambda(ndcg)", 1.5, alone=0.48, together=0.5, kept=True).kept
        True

    """

    objective: str
    seconds: float
    alone: float
    together: float
    kept: bool


@dataclass(frozen=True)
class CommitteeResult:
    """The result of a committee.

    Attributes:
        ensemble: all members' trees, their leaves multiplied by the members' weights.
        members: the objective and the number of trees of each.
        weights: the weight of each member, in units of its standardized scores.
        values: the measure on unseen queries: of each member, of equal weights, and of the committee.
        tried: all trials, in order.
        counts: the objectives, and the number of kept members of each for each part; as `members` of
            `CommitteeTraining`, they train the same committee again.
        feature_fraction: the share of features that each tree was grown on.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting, CommitteeTraining
        >>> from podium.objectives import XENDCG, Lambda
        >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
        >>> members = ((Lambda("ndcg"), 1), (XENDCG(), 1))
        >>> result = CommitteeTraining(members=members, boosting=Boosting(n_trees=3, verbose=0)).fit(train, valid)
        >>> len(result.members), list(result.values)[-2:]
        (2, ['equal weights', 'committee'])

    """

    ensemble: Ensemble
    members: tuple[tuple[str, int], ...]
    weights: tuple[float, ...]
    values: dict[str, float]
    tried: tuple[Tried, ...]
    counts: Members
    feature_fraction: float


class _CommitteePart(NamedTuple):
    """Data that members train on, with the validation data that stops them, and its rows in the judging data."""

    data: BinnedData
    rows: Ints


class _Block(NamedTuple):
    """One member per part, on one objective."""

    kind: int  # the number of the objective
    number: int  # among the blocks of this objective


@dataclass
class _Trained:
    """The members of a block."""

    ensembles: list[Ensemble]  # one for each part
    deviations: list[float]  # the standard deviations of their scores, which standardize them
    scores: Floats  # of all judging documents, each by a member that did not train on it
    seconds: float  # training time


@settings
class CommitteeTraining:
    """The settings of a committee.

    Args:
        members: the objectives, which take turns, and the number of members of each for each part of the data.
        boosting: the settings of each member, except for the seed of its sampling.
        measure: the measure by which members are stopped, kept and weighted.
        tries_all_features: whether each tree sees half of the features, or all if the first objective is clearly better
            with all (`share_of_features`), instead of the share in `boosting`.

    Example:
        >>> from podium.boosting import Boosting, CommitteeTraining
        >>> from podium.objectives import Lambda, QueryRegression
        >>> members = ((Lambda("ndcg"), 2), (QueryRegression(), 1))
        >>> CommitteeTraining(members=members, boosting=Boosting(n_trees=10)).n_folds
        5

    """

    members: Members
    boosting: Boosting
    measure: Measure | Graded | str = h.MEASURE.default
    n_folds: int = h.N_FOLDS()
    cycles: int = h.CYCLES()
    shrinkage: float | None = h.SHRINKAGE()
    time_budget: float | None = h.TIME_BUDGET()
    tries_all_features: bool = False

    def __post_init__(self) -> None:
        if not self.members:
            raise DataError("a committee needs at least one member")
        for objective, count in self.members:
            if not isinstance(objective, Objective):
                raise DataError(f"each member must be an objective and a number, not {objective!r}")
            require_whole("the number of members", count, 1)

    def fit(self, train: RankingData, valid: RankingData | None = None) -> CommitteeResult:
        """Train the members, and weight them on the validation queries, or on folds if there are none.

        With folds, each member trains on all folds but one. That fold stops it, and its queries are scored by this
        member, which has not seen them.
        """
        started = time.perf_counter()
        with each_warning_once():
            parts, judging = self.parts(train, valid)
            committee = CommitteeRun(self.with_features(parts, train), parts, judging, train)
            try:
                if self.time_budget is None:
                    committee.train([*self.blocks()])
                else:
                    self._train_within(committee, self.time_budget, started)
            except KeyboardInterrupt:  # return the committee of the members so far
                if not committee.trained:
                    raise
            return committee.result()

    def parts(self, train: RankingData, valid: RankingData | None) -> tuple[list[_CommitteePart], RankingData]:
        """Return the parts on which members are trained and stopped, and the judging data, which weights them all."""
        shared = replace(self.boosting, selection=self.measure)
        if valid is not None:
            data = BinnedData.of(train, {"valid": valid}, shared)
            return [_CommitteePart(data, np.arange(valid.n_documents))], data.valid["valid"]
        if train.n_queries < 2:
            raise DataError("a committee needs at least two queries, or validation data: valid=…")
        n_folds = min(self.n_folds, train.n_queries)
        fold = folds_by_content(train, n_folds, self.boosting.sampling.seed)
        n_used = 1 if train.n_queries > MANY_QUERIES else n_folds
        judging = train if n_used > 1 else train.select(fold == 0)
        parts = []
        for k in range(n_used):
            data = BinnedData.of(train.select(fold != k), {"valid": train.select(fold == k)}, shared)
            rows = np.flatnonzero(fold[train.query_of_row] == k) if n_used > 1 else np.arange(judging.n_documents)
            parts.append(_CommitteePart(data, rows))
        return parts, judging

    def blocks(self) -> Iterator[_Block]:
        """Return a block for each member; objectives take turns."""
        n_turns = max(count for _, count in self.members)
        return (_Block(kind, k) for k in range(n_turns) for kind, (_, count) in enumerate(self.members) if k < count)

    def with_features(self, parts: list[_CommitteePart], train: RankingData) -> CommitteeTraining:
        """Return these settings with the better share of features for the first objective, if both are to be tried."""
        if not self.tries_all_features:
            return self
        first = self.member(_Block(0, 0))
        first = replace(first, objective=first.objective.fixed(train)) if len(parts) > 1 else first
        share = share_of_features(first, [part.data for part in parts])
        return replace(self, boosting=with_feature_fraction(self.boosting, share))

    def _train_within(self, committee: CommitteeRun, budget: float, started: float) -> None:
        """Train blocks while there is time: one of each objective, then more of those that raise the measure."""
        last = 0.0
        helpful = list(range(len(self.members)))
        number = 0
        while helpful:
            for kind in tuple(helpful):
                spent = time.perf_counter() - started
                if committee.trained and spent + last > budget:  # the next block likely takes as long as the last
                    return
                committee.train([_Block(kind, number)])
                last = time.perf_counter() - started - spent
                if not committee.keep_if_better(_Block(kind, number)):
                    helpful.remove(kind)
            number += 1

    def member(self, block: _Block) -> Boosting:
        """Return the settings of a block's members, with a seed that does not depend on later objectives."""
        objective, boosting = self.members[block.kind][0], self.boosting
        names = [describe_or_name(earlier) for earlier, _ in self.members[: block.kind + 1]]
        key = seed_of("member", names[-1], names.count(names[-1]))
        offset = 0 if block.kind == 0 else int(key % np.uint64(1 << 30))
        return replace(
            boosting, objective=objective, selection=self.measure,
            step=Newton(l1=boosting.growth.l1, l2=boosting.growth.l2) if objective.has_hessian else Gradient(),
            sampling=replace(boosting.sampling, seed=boosting.sampling.seed + offset + block.number),
        )  # fmt: skip


class CommitteeRun:
    """The members trained so far, and their scores on the judging queries."""

    def __init__(
        self, settings: CommitteeTraining, parts: list[_CommitteePart], judging: RankingData, train: RankingData
    ) -> None:
        self.settings, self.parts, self.train_data = settings, parts, train
        self.order = judging.canonical_order  # breaks ties independently of the order of the rows
        threads = settings.boosting.n_threads
        self.measures = [measure.fixed(train, judging) for measure in as_selection(settings.measure).measures]
        ties = "expected" if self.measures[0].knows_expected_ties else "stable"
        self.sweep = Sweep(without_features(judging).take(self.order), self.measures[0], ties, threads)
        self.trained: dict[_Block, _Trained] = {}
        self.tried: list[Tried] = []
        self.last = 0.0

    def train(self, blocks: list[_Block]) -> None:
        """Train the members of blocks, one per thread; a block counts once all its members are trained."""
        settings, jobs = self.settings, [(block, k) for block in blocks for k in range(len(self.parts))]
        results: dict[_Block, dict[int, tuple[Ensemble, float]]] = {block: {} for block in blocks}
        fits = (partial(self._fit, block, k) for block, k in jobs)
        boosting = settings.boosting
        with (
            progress("training members", len(jobs), verbose=boosting.verbose, unit="members") as advance,
            closing(run_jobs(fits, len(jobs), boosting.n_threads)) as outcomes,
        ):
            for number, (member, seconds) in outcomes:
                block, k = jobs[number]
                results[block][k] = member.ensemble, seconds
                advance(1, self.name(block))
                if len(results[block]) == len(self.parts):
                    self.trained[block] = self._with_scores([results[block][k] for k in range(len(self.parts))])

    def _fit(self, block: _Block, k: int) -> tuple[TrainingResult, float]:
        started, data, member = time.perf_counter(), self.parts[k].data, self.settings.member(block)
        if len(self.parts) > 1:  # a fold may lack labels that other folds have
            member = replace(member, objective=member.objective.fixed(self.train_data))
        return member.fit(data.train, data.valid, data=data), time.perf_counter() - started

    def _with_scores(self, members: list[tuple[Ensemble, float]]) -> _Trained:
        """Return a block's members with their standardized scores of unseen queries."""
        threads, scores, deviations = self.settings.boosting.n_threads, np.zeros(len(self.order)), []
        for (ensemble, _), part in zip(members, self.parts, strict=True):
            train, valid = part.data.train, part.data.valid["valid"]
            deviations.append(deviation(train, ensemble.predict(train, n_threads=threads)))
            scores[part.rows] = ensemble.predict(valid, n_threads=threads) / deviations[-1]
        seconds = sum(seconds for _, seconds in members)
        return _Trained([ensemble for ensemble, _ in members], deviations, scores[self.order], seconds)

    def keep_if_better(self, block: _Block) -> bool:
        """Drop a block unless it is the only one or raises the measure; return whether it is kept."""
        new, others = self.trained[block], [t.scores for b, t in self.trained.items() if b != block]
        together = self._value([*others, new.scores])
        kept = not others or together > self.last
        self.tried.append(Tried(self.name(block), new.seconds, self.sweep.value(new.scores), together, kept))
        if kept:
            self.last = together
        else:
            del self.trained[block]
        return kept

    def name(self, block: _Block) -> str:
        """Return the objective as text."""
        return describe_or_name(self.settings.members[block.kind][0])

    def result(self) -> CommitteeResult:
        """Weight the objectives, and collect all trees in one ensemble."""
        blocks = sorted(self.trained, key=lambda block: (block.number, block.kind))
        kinds = sorted({block.kind for block in blocks})
        scores = [self.trained[block].scores for block in blocks]
        n_queries, shrinkage = self.sweep.data.n_queries, self.settings.shrinkage
        share = n_queries / (n_queries + TRUSTED_QUERIES) if shrinkage is None else shrinkage
        sums = [np.sum([s for b, s in zip(blocks, scores, strict=True) if b.kind == kind], axis=0) for kind in kinds]
        weight_of_kind = dict(zip(kinds, self._weights(sums, share), strict=True))
        weights = [weight_of_kind[block.kind] for block in blocks]
        values = {f"{self.name(block)} {k}": self.sweep.value(scores[k]) for k, block in enumerate(blocks)}
        values |= {"equal weights": self._value(scores), "committee": self._value(scores, weights)}
        if not self.tried:  # without a time budget, all members are kept
            for k, block in enumerate(blocks):
                together = self._value(scores[: k + 1])
                alone, seconds = self.sweep.value(scores[k]), self.trained[block].seconds
                self.tried.append(Tried(self.name(block), seconds, alone, together, kept=True))
        counts = tuple((self.settings.members[kind][0], sum(b.kind == kind for b in blocks)) for kind in kinds)
        members, member_weights, trees = [], [], []
        n_members = len(blocks) * len(self.parts)
        for block, weight in zip(blocks, weights, strict=True):
            trained = self.trained[block]
            for ensemble, size in zip(trained.ensembles, trained.deviations, strict=True):
                members.append((self.name(block), ensemble.n_trees))
                member_weights.append(weight)
                for tree in map(ensemble.tree, range(ensemble.n_trees)):
                    trees.append(replace(tree, leaf_value=tree.leaf_value * (weight / (size * n_members))))
        return CommitteeResult(
            self._ensemble(trees, members, member_weights, values), tuple(members), tuple(member_weights), values,
            tuple(self.tried), counts, self.settings.boosting.sampling.feature_fraction,
        )  # fmt: skip

    def _weights(self, parts: list[Floats], share: float) -> list[float]:
        """Return a weight for each objective: coordinate ascent from equal weights, then shrinkage towards them.

        If the measure is then lower than with equal weights, return equal weights.
        """
        equal = [1.0] * len(parts)
        if len(parts) == 1:
            return equal
        best = ascend(self.sweep, parts, equal, self.settings.cycles, (0.0, 3.0))[0]
        weights = [1.0 + share * (weight - 1.0) for weight in best]
        return weights if self._value(parts, weights) >= self._value(parts) else equal

    def _value(self, parts: list[Floats], weights: list[float] | None = None) -> float:
        """Return the measure of a weighted sum, by default with equal weights."""
        return self.sweep.value(weighted(parts, weights or [1.0] * len(parts)))

    def _ensemble(
        self, trees: list[Tree], members: list[tuple[str, int]], weights: list[float], values: dict[str, float]
    ) -> Ensemble:
        """Return all trees, with the names, weights and values of the members."""
        train = self.train_data
        missing: set[int] = set()
        for trained in self.trained.values():
            missing.update(*(ensemble.info["features_with_missing"] for ensemble in trained.ensembles))
        info = {
            "members": [name for name, _ in members], "weights": weights, "values": values,
            "features_with_missing": sorted(missing), "measures": [str(measure) for measure in self.measures],
        }  # fmt: skip
        return Ensemble.of_trees(
            trees, train.n_features, feature_names=train.feature_names, encoding=train.encoding, info=info
        )


def describe_or_name(objective: Objective) -> str:
    """Return an objective as text, or the name of its class if it has no text."""
    try:
        return describe(objective)
    except DataError:
        return type(objective).__name__
