"""Gradient boosting: an objective, a step, a sampler and observers, one tree after the other."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.boosting.base_scores import BaseScores, fitted_scale
from podium.boosting.binned_data import BinnedData
from podium.boosting.checkpoints import Checkpoint, fingerprint
from podium.boosting.sampling import BoundSampling
from podium.core.interrupts import Stopped, between_steps
from podium.core.progress import progress
from podium.core.threads import Team
from podium.data import RankingData
from podium.errors import DataError, PodiumWarning
from podium.measures import Ranking, as_selection
from podium.models import Ensemble
from podium.models.trees_on_base_scores import checksum
from podium.objectives import BoundObjective
from podium.objectives.base import require_one_output
from podium.trees import Grower, Tree
from podium.trees.growing import GrownTree
from podium.trees.quantising import Thinning, quantised

if TYPE_CHECKING:
    from podium.boosting.settings import Boosting

Floats = NDArray[np.float64]
log = logging.getLogger("podium")


@dataclass(frozen=True)
class Round:
    """What observers see after each tree, or each tree of all outputs.

    Attributes:
        iteration: from 0.
        trees: one for each output of the objective, with their final leaf values.
        scores: of the training documents, with these trees; a row for each output where there are several.
        gradients, hessians: λ and w that the trees were grown on, likewise.
        weights: of the trees, as a line search found them, 1 else.
        means: of each measure on each evaluation set, by `set/measure`.

    """

    iteration: int
    trees: tuple[Tree, ...]
    scores: Floats
    gradients: Floats
    hessians: Floats
    weights: tuple[float, ...]
    means: dict[str, float]

    @property
    def tree(self) -> Tree:
        """The tree of the first output; mostly there is only one."""
        return self.trees[0]


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training run.

    Attributes:
        ensemble: the trees, cut after the best round; of several outputs in turn.
        history: what was measured after each round.
        best_iteration: the best of them, where there was validation data; −1 where the submodel alone is.
        objective: as training left it, with what it learnt itself.
        base_scores: what training began with, if it began with a submodel.
        n_splits: of all trees that were grown and whose leaves differ; without any, all documents got the same.
        interrupted: whether Ctrl-C ended it.

    """

    ensemble: Ensemble
    history: dict[str, list[float]]
    best_iteration: int | None
    objective: BoundObjective
    base_scores: BaseScores | None
    n_splits: int
    interrupted: bool = False


def train_trees(
    settings: Boosting, data: BinnedData, observers: Sequence[Callable[[Round], None]], checkpoint: Checkpoint | None
) -> TrainingResult:
    """Train as the settings say (`Boosting.fit`)."""
    with Team(settings.n_threads) as team:
        return _grow_trees(settings, _Run(settings, data, team), observers, checkpoint)


def _grow_trees(
    settings: Boosting, run: _Run, observers: Sequence[Callable[[Round], None]], checkpoint: Checkpoint | None
) -> TrainingResult:
    mark = ""
    if checkpoint:
        start = "" if run.begin is None else checksum(run.begin.scores)
        mark = fingerprint(settings, ("n_trees", "n_threads", "submodel", "verbose"), start, run.train, run.valid)
        run.resume(checkpoint.read(mark))
    pace = checkpoint.pace() if checkpoint else None
    interrupted = False
    try:
        with (
            progress("growing trees", settings.n_trees, verbose=settings.verbose, unit="trees") as advance,
            between_steps() as check_signals,
        ):
            advance(run.rounds)
            while not run.is_done():
                check_signals()
                found = run.add_round()
                if observers:  # the run writes the next tree's over these
                    arrays = ("scores", "gradients", "hessians")
                    found = replace(found, **{name: getattr(found, name).copy() for name in arrays})
                for observer in observers:
                    observer(found)
                if checkpoint and pace and pace.is_due(run.rounds):
                    with pace.writing():
                        checkpoint.write(run.all_trees().with_info(states=run.states), mark)
                advance(1, ", ".join(f"{name} {value:.4f}" for name, value in found.means.items()))
    except (KeyboardInterrupt, Stopped) as stop:
        run.forget_unfinished()
        if checkpoint and run.trees:
            checkpoint.write(run.all_trees().with_info(states=run.states), mark)
        if not run.trees or isinstance(stop, Stopped):
            raise
        warnings.warn(f"interrupted: the {len(run.trees)} trees so far are kept", PodiumWarning, stacklevel=2)
        interrupted = True
    return replace(run.result(), interrupted=interrupted)


class _Run:
    """A training run in progress."""

    def __init__(self, settings: Boosting, prepared: BinnedData, team: Team) -> None:
        self.settings, self.team = settings, team
        self.train, self.valid, self.bins = prepared.train, prepared.valid, prepared.bins
        self.binned, self.binned_valid = prepared.binned, prepared.binned_valid
        self.selection = as_selection(settings.selection)
        train = self.train
        growth = settings.growth
        if not settings.step.uses_hessians:
            growth = replace(growth, split="least-squares", l2=0.0)
        self.sampling, self.thinning = BoundSampling(settings.sampling, train), None
        if self.sampling.split_fraction < 1:  # before the grower takes its memory: keys take some for a moment
            keys = self.sampling.chances.document_keys
            self.thinning = Thinning(self.sampling.split_fraction, keys, growth.split, team)
        self.grower = Grower(self.binned, growth, team)
        self.objective = settings.objective.measuring(train, *self.valid.values()).bind(train)
        if not isinstance(self.objective, BoundObjective):
            raise DataError(f"{type(settings.objective).__name__}.bind must return a BoundObjective")
        self.objective.team = team
        self.outputs = self.objective.n_outputs
        shown = dict.fromkeys((*self.selection.measures, *settings.watched))
        self.measures = {str(m): m.fixed(train, *self.valid.values()) for m in shown}
        shape = (train.n_documents,) if self.outputs == 1 else (self.outputs, train.n_documents)
        self.scores = np.zeros(shape)
        self.lambdas, self.curvatures = np.empty(shape), np.empty(shape)
        self.words = np.empty(train.n_documents, np.int64)
        self.valid_scores = {name: np.zeros((*shape[:-1], data.n_documents)) for name, data in self.valid.items()}
        self.trees: list[Tree] = []
        self.history: dict[str, list[float]] = {}
        self.best: int | None = None
        self.exhausted = False
        self.start = self.objective.start
        self.begin = None if settings.submodel is None else self._begin(settings.submodel)
        self.step = settings.step.bind(settings.objective, train, self.valid, settings.n_threads)
        self.weights: list[float] = []
        self.first_state = self.objective.state()
        self.states: list[dict[str, list[float]]] = []  # of an objective that learns itself, by round
        self.finished = 0  # rounds of which all is noted

    def _begin(self, submodel: Callable[[RankingData], Floats]) -> BaseScores:
        """Take over the scores of a submodel, on the scale that training needs."""
        require_one_output(self.objective, "a submodel")
        scores, scale = submodel(self.train), self.settings.submodel_scale
        if isinstance(scale, str):
            scale = fitted_scale(self.train, scores, self.settings.objective, self.team)
        scale = float(scale)
        self.scores[:], self.start = scale * scores, 0.0
        means: dict[str, float] = {}
        for name, data in self.valid.items():
            self.valid_scores[name][:] = scale * submodel(data)
            means |= self._measured(name, data, self.valid_scores[name])
        log.info("submodel: scores times %.6g%s", scale, "".join(f", {key} {v:.4f}" for key, v in means.items()))
        return BaseScores(scores, scale, means)

    @property
    def rounds(self) -> int:
        """Rounds so far: trees of each output."""
        return len(self.trees) // self.outputs

    def is_done(self) -> bool:
        """Whether there are enough trees, or no better one for too long, or nothing left to learn."""
        patience, n = self.settings.patience, self.rounds
        waited = patience is not None and self.best is not None and n - 1 - self.best >= patience
        return n >= self.settings.n_trees or waited or self.exhausted

    def add_round(self) -> Round:
        """Grow a tree for each output, add them to all scores, and measure."""
        iteration, started = self.rounds, time.perf_counter()
        lambdas, curvatures, start = self.lambdas, self.curvatures, self.start
        scores = self.scores if iteration or start == 0 else self.scores + start
        self.objective.fill(scores, iteration, lambdas, curvatures)
        self.step.prepare(self.train, lambdas, curvatures)
        rows, features = self.sampling.rows(iteration), self.sampling.features(iteration)
        for output in range(self.outputs):
            own = slice(None) if self.outputs == 1 else output
            self._add_tree(lambdas[own], curvatures[own], own, rows, features, start if iteration == 0 else 0.0)
        trees = tuple(self.trees[-self.outputs :])
        self.exhausted = all(self._nothing_left(tree) for tree in trees)
        if not any(self.weights[-self.outputs :]):
            warnings.warn(
                f"tree {iteration} has the weight 0, and so would have all after it", PodiumWarning, stacklevel=2
            )
            self.exhausted = True
        if state := self.objective.state():
            self.states.append(state)
        means: dict[str, float] = {}
        for name, data in self.valid.items():
            means |= self._measured(name, data, self.valid_scores[name])
        for key, value in means.items():
            self.history.setdefault(key, []).append(value)
        self._choose()
        self.finished += 1
        log.info(
            "tree %d: %s leaves, %.3f s%s", iteration, "+".join(str(tree.n_leaves) for tree in trees),
            time.perf_counter() - started, "".join(f", {key} {value:.4f}" for key, value in means.items()),
        )  # fmt: skip
        return Round(
            iteration, trees, self.scores, lambdas, curvatures, tuple(self.weights[-self.outputs :]), means
        )  # fmt: skip

    def _add_tree(
        self, lambdas: Floats, curvatures: Floats, own: slice | int, rows: NDArray[np.int32] | None,
        features: NDArray[np.int64] | None, start: float,
    ) -> None:  # fmt: skip
        """Grow one tree and add it to the scores of its output; the first holds F_0 as well."""
        grown = self._grown(lambdas, curvatures, rows, features)
        tree = grown.with_values(self.step.leaf_values(grown, self.team))
        values, weight = self.step.settle(
            grown, tree.leaf_value, self.settings.learning_rate,
            lambda on: self._documents(grown, on, rows is None), self.team,
        )  # fmt: skip
        self.weights.append(weight)
        tree = replace(tree, leaf_value=values + start if start else values)
        if rows is None:
            grown.add_to_leaves(tree.leaf_value, self.scores[own], self.team)
        else:
            grown.add_by_bins(tree.leaf_value, self.binned, self.scores[own], self.team)
        for name, scores in self.valid_scores.items():
            grown.add_by_bins(tree.leaf_value, self.binned_valid[name], scores[own], self.team)
        self.trees.append(tree)

    def _grown(
        self, lambdas: Floats, curvatures: Floats, rows: NDArray[np.int32] | None, features: NDArray[np.int64] | None
    ) -> GrownTree:
        """A tree, on thinned documents if asked for; where they show nothing to split by, on all."""
        if self.thinning is not None:
            seed = self.sampling.split_seed(len(self.trees))
            thinned = self.thinning.quantised(lambdas, curvatures, seed, self.words, self.objective.document_weights)
            grown = self.grower.grow(thinned, rows, features)
            if grown.tree.n_leaves > 1:
                return grown
        split, weights = self.grower.parameters.split, self.objective.document_weights
        packed = quantised(lambdas, curvatures, split, self.team, self.words, weights)
        return self.grower.grow(packed, rows, features)

    def _documents(self, grown: GrownTree, on: str, all_rows: bool) -> tuple[Floats, NDArray[np.int64]]:
        """The scores so far, of the training or the first validation data, and the leaf of each document."""
        name = next(iter(self.valid), "")
        scores = self.scores if on == "train" else self.valid_scores[name]
        numbers, leaves = np.arange(len(grown.starts), dtype=np.float64), np.zeros(len(scores))
        if on == "train" and all_rows:
            grown.add_to_leaves(numbers, leaves, self.team)
        else:
            grown.add_by_bins(numbers, self.binned if on == "train" else self.binned_valid[name], leaves, self.team)
        return scores, leaves.astype(np.int64)

    def resume(self, earlier: Ensemble | None) -> None:
        """Take over the trees of an earlier run, and all that followed from them."""
        if earlier is None:
            return
        earlier = earlier.truncate(min(earlier.n_trees, self.settings.n_trees * self.outputs))
        self.trees = [earlier.tree(k) for k in range(earlier.n_trees)]
        self.history = {key: list(values)[: self.rounds] for key, values in earlier.info["history"].items()}
        self.exhausted = bool(self.trees) and all(map(self._nothing_left, self.trees[-self.outputs :]))
        self.states = earlier.info.get("states", [])[: self.rounds]
        if self.states:
            self.objective.restore(self.states[-1])
        sets = [(self.train.features, self.scores)]
        sets += [(data.features, self.valid_scores[name]) for name, data in self.valid.items()]
        for features, scores in sets:
            for part, mine in zip(earlier.outputs(self.outputs), scores.reshape(self.outputs, -1), strict=True):
                part._add(features, 0, part.n_trees, mine, self.settings.n_threads)
        self._choose()
        self.finished = self.rounds
        log.info("resumed after %d trees", earlier.n_trees)

    def forget_unfinished(self) -> None:
        """Take back a round that was broken off."""
        for values in self.history.values():
            del values[self.finished :]
        del self.states[self.finished :]
        del self.trees[self.finished * self.outputs :]
        if state := self.states[-1] if self.states else self.first_state:
            self.objective.restore(state)
        self._choose()

    def _nothing_left(self, tree: Tree) -> bool:
        """Whether a tree of one leaf, grown on all documents and features, says that there is nothing to learn."""
        sampling = self.settings.sampling
        sees_all = sampling.takes_all_documents and sampling.feature_fraction == 1
        return tree.n_leaves == 1 and sees_all and not self.objective.changes

    def _choose(self) -> None:
        """Pick the best round so far by the first validation set; −1 is the submodel alone."""
        if self.valid and self.trees:
            first = next(iter(self.valid))
            before = [] if self.begin is None else [self.begin.means]
            names = [f"{first}/{m}" for m in self.selection.measures]
            table = np.column_stack([[*(m[name] for m in before), *self.history[name]] for name in names])
            self.best = self.selection.pick(table) - len(before)

    def _measured(self, name: str, data: RankingData, scores: Floats) -> dict[str, float]:
        """Means over queries; ties stand in the canonical order."""
        ranking = Ranking(data, self.objective.ranked_by(scores), base=data.canonical_order)
        return {f"{name}/{shown}": measure.mean(ranking) for shown, measure in self.measures.items()}

    def all_trees(self) -> Ensemble:
        """Every tree so far."""
        info: dict[str, Any] = {"measures": [str(m) for m in self.measures.values()], "history": self.history}
        if self.begin is not None:
            info |= {"submodel_scale": self.begin.scale, "submodel_means": self.begin.means}
        if self.best is not None:
            info["best_iteration"] = self.best
        return Ensemble.of_trees(
            self.trees, self.train.n_features,
            feature_names=self.train.feature_names, cuts=self.bins.cuts, info=info, encoding=self.train.encoding,
        )  # fmt: skip

    def result(self) -> TrainingResult:
        """The model, cut after the best tree where there was validation data."""
        whole = self.all_trees()
        if self.best is not None:
            whole = whole.truncate((self.best + 1) * self.outputs)
            if self.states:
                self.objective.restore([self.first_state, *self.states][self.best + 1])
        said = 0.0 in self.weights[-self.outputs :]  # a weight of 0, which was warned of, ended training
        n_splits = sum(len(tree.feature) for tree in self.trees if said or np.ptp(tree.leaf_value) > 0)
        return TrainingResult(whole, self.history, self.best, self.objective, self.begin, n_splits)
