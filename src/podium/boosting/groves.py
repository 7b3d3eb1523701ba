"""Additive groves: bagged sums of trees that are fitted in turn to the residuals of the others (backfitting)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from podium.boosting.binned_data import BinnedData
from podium.boosting.evaluation import Evaluator
from podium.boosting.settings import Boosting
from podium.boosting.steps import Newton
from podium.core import hyperparameters as h
from podium.core.array_types import Bools, Floats, Int32s, Ints
from podium.core.interrupts import between_steps
from podium.core.parameters import settings
from podium.core.progress import progress
from podium.core.random import uniform
from podium.core.sums import total
from podium.core.team import Team
from podium.core.threads import at_most_threads, thread_count
from podium.data import RankingData
from podium.data.canonical import ContentRandom
from podium.errors import warn
from podium.measures import Graded, Measure
from podium.measures.losses import RMSE
from podium.models import Ensemble
from podium.objectives import Regression
from podium.objectives.pointwise import Points
from podium.trees import Grower, GrownTree, GrowthParameters, Tree
from podium.trees.quantization import BoundedGradients, quantize

SMALL_CHANGE = 0.002  # stop after a cycle over the trees that lowers the error by at most this share
# Trees have at most 8/α and 4096 leaves, which limits memory; the paper's had about 2.5/α.
LEAVES_PER_SHARE, MAX_LEAVES = 8, 4096


@dataclass(frozen=True)
class Grove:
    """A sum of trees."""

    trees: list[tuple[GrownTree, Floats]]  # with the values of their leaves
    predictions: Floats  # of each tree (row) for each training document
    scores: Floats  # the sum of the trees for each training document
    error_out_of_bag: float  # on the documents that the trees did not see


class Bootstrap:
    """Bootstrap samples of documents, which depend on content and purpose."""

    def __init__(self, data: RankingData, rows: Ints) -> None:
        self.n_documents = data.n_documents
        self.rows = rows[np.argsort(ContentRandom(data).document_keys[rows], kind="stable")]

    def times(self, purpose: str) -> Ints:
        """Return how often each document is drawn."""
        n, times = len(self.rows), np.zeros(self.n_documents, np.int64)
        drawn = (uniform(np.arange(n, dtype=np.uint64), purpose) * n).astype(np.int64)
        times[self.rows] = np.bincount(drawn, minlength=n)
        return times


class Backfitting:
    """Fits groves to labels, by least squares.

    Args:
        data: the binned data.
        alpha: the smallest share of documents in a node that may be split.
        min_documents_in_leaf: see `GrowthParameters`.
        team: the threads.

    Attributes:
        labels, weights: of each document; documents without a label have weight 0.

    """

    def __init__(self, data: BinnedData, alpha: float, min_documents_in_leaf: int, team: Team) -> None:
        points = Points(data.train, "relevance", Regression())
        self.binned, self.team = data.binned, team
        self.labels, self.weights = points.by_row(points.labels), points.by_row(points.weights)
        n_leaves = max(2, min(math.ceil(LEAVES_PER_SHARE / alpha), MAX_LEAVES))
        growth = GrowthParameters(n_leaves=n_leaves, min_documents_in_leaf=min_documents_in_leaf, split="least-squares")
        self.grower, self.words = Grower(data.binned, growth, team), np.empty(data.train.n_documents, np.int64)

    def converge(self, predictions: Floats, alpha: float, times: Ints) -> Grove:
        """Fit the trees of a grove in turn, until a cycle hardly lowers the error on the sample (algorithm 1).

        Each cycle begins with the last tree, which may be new.

        Args:
            predictions: the predictions of the initial trees, a row for each; 0 for new trees.
            alpha: nodes with a smaller share of the sample's documents are not split.
            times: the number of times that each document is in the sample.

        """
        rows = np.flatnonzero(times * self.weights).astype(np.int32)
        min_documents = max(2, math.ceil(alpha * len(rows)))
        self.grower.parameters = replace(self.grower.parameters, min_documents_to_split=min_documents)
        predictions, n_trees = predictions.copy(), len(predictions)
        scores, trees = predictions.sum(axis=0), dict[int, tuple[GrownTree, Floats]]()
        error, before = self.error(scores, times), math.inf
        while error < (1 - SMALL_CHANGE) * before:
            before = error
            for k in (n_trees - 1, *range(n_trees - 1)):
                others = scores - predictions[k]
                trees[k] = self._fit_tree(others, times, rows)
                predictions[k] = 0.0
                grown, values = trees[k]
                grown.add_by_bins(values, self.binned, predictions[k], self.team)
                scores = others + predictions[k]
            error = self.error(scores, times)
        return Grove([trees[k] for k in range(n_trees)], predictions, scores, self.error(scores, times == 0))

    def _fit_tree(self, others: Floats, times: Ints, rows: Int32s) -> tuple[GrownTree, Floats]:
        """Return a tree fitted to the residuals of the sample, and its leaf values, which are their means."""
        weights = self.weights * times
        residuals = BoundedGradients.of(weights * (self.labels - others), weights, self.team)
        grown = self.grower.grow(quantize(residuals, "least-squares", self.team, self.words, weights), rows)
        return grown, Newton(l2=0.0).leaf_values(grown, residuals, self.team)

    def error(self, scores: Floats, times: Ints | Bools) -> float:
        """Return the root mean square error, with each document counted `times`; 0 without documents."""
        weights = self.weights * times
        n = total(weights)
        return math.sqrt(total(weights * (self.labels - scores) ** 2) / n) if n > 0 else 0.0


def shares_down_to(alpha: float) -> list[float]:
    """Return 0.5, 0.2, 0.1, 0.05, … as far as they exceed α, then α (algorithm 2).

    >>> shares_down_to(0.03)
    [0.5, 0.2, 0.1, 0.05, 0.03]
    """
    steps = (digit / 10.0**place for place in range(1, 400) for digit in (5, 2, 1))
    larger: list[float] = []
    for share in steps:
        if share <= alpha:
            break
        larger.append(share)
    return [*larger, alpha]


def sizes_up_to(n_trees: int) -> list[int]:
    """Return the rounded powers of √2 below `n_trees`, then `n_trees`.

    >>> sizes_up_to(7)
    [1, 2, 3, 4, 6, 7]
    """
    powers = (round(math.sqrt(2.0) ** k) for k in range(0, 2 * n_trees.bit_length() + 1))
    return sorted({size for size in powers if size < n_trees} | {n_trees})


@dataclass(frozen=True)
class GrovesResult:
    """The result of Additive Groves.

    Attributes:
        ensemble: all trees of the best groves, their leaf values divided by the number of groves.
        grid: α and the number of trees of all groves that were tried.
        history: the error or measure of each grid entry: `oob/rmse`, or with validation data keyed by `set/measure`.
        best_iteration: the index of the best entry.
        n_groves: the number of averaged groves; fewer than requested if Ctrl-C ended training.

    Example:
        >>> import podium
        >>> from podium.boosting import GrovesTraining
        >>> result = GrovesTraining(n_groves=2, n_trees_in_grove=2, alpha=0.5).fit(podium.artificial(20, features=4))
        >>> result.grid, result.n_groves
        (((0.5, 1), (0.5, 2)), 2)

    """

    ensemble: Ensemble
    grid: tuple[tuple[float, int], ...]
    history: dict[str, list[float]]
    best_iteration: int
    n_groves: int


@settings
class GrovesTraining:
    """The settings of Additive Groves, see `podium.AdditiveGroves`.

    Args:
        categorical: numbers of the categorical features.
        selection: the measure, or graded measures, that picks α and the number of trees with validation data.
        seed: the seed of the bootstrap samples.
        watched: measures to record in the history in addition to those of the selection.

    Example:
        >>> import podium
        >>> from podium.boosting import GrovesTraining
        >>> result = GrovesTraining(n_groves=3, n_trees_in_grove=2, alpha=0.2).fit(podium.artificial(20, features=4))
        >>> result.grid
        ((0.5, 1), (0.5, 2), (0.2, 1), (0.2, 2))

    """

    n_groves: int = h.N_GROVES()
    n_trees_in_grove: int = h.N_TREES_IN_GROVE()
    alpha: float = h.ALPHA()
    training: str = h.TRAINING()
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_GROVE_LEAF()
    max_bins: int = h.MAX_BINS()
    categorical: tuple[int, ...] = ()
    selection: Measure | Graded | str = h.STOPPING_MEASURE.default
    seed: int = h.RANDOM_STATE()
    n_threads: int | None = h.N_THREADS()
    watched: tuple[Measure, ...] = ()
    verbose: int | None = h.VERBOSE()

    def fit(self, train: RankingData, valid: Mapping[str, RankingData] | None = None) -> GrovesResult:
        """Train; the first validation set picks α and the number of trees, or out-of-bag documents without one."""
        documents = train.with_weight()
        boosting = Boosting(  # for binning and evaluation
            objective=Regression(), max_bins=self.max_bins, categorical=self.categorical, selection=self.selection,
            watched=self.watched, n_threads=self.n_threads,
        )  # fmt: skip
        data = BinnedData.of(documents, valid or {}, boosting)
        with at_most_threads(thread_count(self.n_threads)), Team(self.n_threads) as team:
            run = _GrovesRun(self, data, Evaluator(boosting, data, Regression().bind(documents), team), team)
            run.grow()
            return run.result()


class _GrovesRun:
    """A run in progress: the groves of every cell of the grid (α and number of trees), and the sums of their scores."""

    def __init__(self, settings: GrovesTraining, data: BinnedData, evaluator: Evaluator, team: Team) -> None:
        self.settings, self.data, self.evaluator, self.team = settings, data, evaluator, team
        n = data.train.n_documents
        alphas, sizes = shares_down_to(max(settings.alpha, 1.0 / n)), sizes_up_to(settings.n_trees_in_grove)
        self.grid = tuple((alpha, size) for alpha in alphas for size in sizes)
        self.smaller = {size: smaller for smaller, size in pairwise(sizes)}
        self.fitting = Backfitting(data, alphas[-1], settings.min_documents_in_leaf, team)
        self.bootstrap = Bootstrap(data.train, np.flatnonzero(self.fitting.weights))
        self.groves: list[list[list[Tree]]] = [[] for _ in self.grid]
        self.adds_trees: dict[int, bool] = {}  # by cell, the better start of the first grove; used by `"fast"`
        self.valid_scores = {name: np.zeros((len(self.grid), len(part))) for name, part in data.valid.items()}
        n = 0 if data.valid else n  # without validation data, scores out of bag are summed
        self.scores_out_of_bag, self.n_out_of_bag = np.zeros((len(self.grid), n)), np.zeros((len(self.grid), n), int)

    def grow(self) -> None:
        """Grow all groves; on Ctrl-C, keep the groves so far."""
        n_groves, verbose, n_cells = self.settings.n_groves, self.settings.verbose, len(self.grid)
        with (
            progress("growing groves", n_groves * n_cells, verbose=verbose, unit="groves", steps=n_cells) as advance,
            between_steps() as check_signals,
        ):
            try:
                for number in range(n_groves):
                    predictions: dict[int, Floats] = {}  # of the trees of the last grove of each size
                    for cell, (alpha, size) in enumerate(self.grid):
                        check_signals()
                        times = self.bootstrap.times(f"{self.settings.seed}/{number}/{alpha}/{size}/grove")
                        grove = self._best_attempt(cell, times, predictions)
                        predictions[size] = grove.predictions
                        self._add(cell, grove, times)
                        advance(1, f"{size} trees, α = {alpha:g}")
            except KeyboardInterrupt:
                n_complete = len(self.groves[-1])
                if not n_complete:
                    raise
                warn(f"interrupted: the {n_complete} groves so far are kept", stacklevel=4)

    def _best_attempt(self, cell: int, times: Ints, predictions: dict[int, Floats]) -> Grove:
        """Grow a grove from one with smaller trees or one with fewer trees, depending on the settings (algorithm 3).

        If both starts are equally good, prefer the one with smaller trees.
        """
        (alpha, size), training, n = self.grid[cell], self.settings.training, len(times)
        starts: dict[bool, Floats] = {}  # by whether trees are added
        if size in predictions or size not in self.smaller or training == "layered":
            starts[False] = predictions.get(size, np.zeros((size, n)))
        if size in self.smaller and training != "layered":
            fewer = predictions[self.smaller[size]]
            starts[True] = np.concatenate([fewer, np.zeros((size - len(fewer), n))])
        if cell in self.adds_trees:
            starts = {self.adds_trees[cell]: starts[self.adds_trees[cell]]}
        attempts = {adds: self.fitting.converge(start, alpha, times) for adds, start in starts.items()}
        adds = min(attempts, key=lambda adds: attempts[adds].error_out_of_bag)
        if training == "fast":
            self.adds_trees[cell] = adds
        return attempts[adds]

    def _add(self, cell: int, grove: Grove, times: Ints) -> None:
        """Keep the trees of a grove, and add its scores to those of its grid cell."""
        self.groves[cell].append([grown.with_values(values) for grown, values in grove.trees])
        for name, scores in self.valid_scores.items():
            for grown, values in grove.trees:
                grown.add_by_bins(values, self.data.binned_valid[name], scores[cell], self.team)
        if not self.valid_scores:
            out_of_bag = times == 0
            self.scores_out_of_bag[cell] += np.where(out_of_bag, grove.scores, 0.0)
            self.n_out_of_bag[cell] += out_of_bag

    def result(self) -> GrovesResult:
        """Return the best α and number of trees, and the ensemble of their groves."""
        history, best = self._measured() if self.data.valid else self._errors_out_of_bag()
        groves, train = self.groves[best], self.data.train
        trees = [replace(tree, leaf_value=tree.leaf_value / len(groves)) for grove in groves for tree in grove]
        (alpha, size), measures = self.grid[best], [str(m) for m in self.evaluator.measures.values()]
        info = {
            "measures": measures, "history": history, "best_iteration": best, "alpha": alpha, "n_trees_in_grove": size,
            "features_with_missing": self.data.binned.features_with_missing,
        }  # fmt: skip
        ensemble = Ensemble.of_trees(
            trees, train.n_features, feature_names=train.feature_names, info=info, encoding=train.encoding
        )
        return GrovesResult(ensemble, self.grid, history, best, len(groves))

    def _measured(self) -> tuple[dict[str, list[float]], int]:
        """Return the measures of every grid cell on the validation data, and the best cell."""
        evaluator, history = self.evaluator, dict[str, list[float]]()
        for cell, groves in enumerate(self.groves):
            for name, scores in self.valid_scores.items():
                evaluator.scores[name][:] = scores[cell] / len(groves)
            for name, mean in evaluator.measure().items():
                history.setdefault(name, []).append(mean)
        best = evaluator.best_iteration(history)
        assert best is not None
        return history, best

    def _errors_out_of_bag(self) -> tuple[dict[str, list[float]], int]:
        """Return the error of every grid cell on out-of-bag documents, and the best cell."""
        errors = []
        for scores, times in zip(self.scores_out_of_bag, self.n_out_of_bag, strict=True):
            errors.append(self.fitting.error(scores / np.maximum(times, 1), times > 0))
        return {"oob/rmse": errors}, RMSE().pick(np.array(errors))
