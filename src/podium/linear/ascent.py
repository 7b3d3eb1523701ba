"""Feature weights by coordinate ascent on the measure, with the exact sweep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.combining import Sweep
from podium.combining.lines import CLOSE
from podium.core import hyperparameters as h
from podium.core.array_types import Floats
from podium.core.observing import Observations, Observer
from podium.core.parameters import settings
from podium.core.progress import progress
from podium.data import RankingData
from podium.linear.descent import DescentResult, LinearStep
from podium.linear.design import DesignMatrix
from podium.measures import Graded, Measure, Ranking, as_selection, warn_of_powers
from podium.models.base import checked_sets


@settings
class Ascent:
    """The settings of a linear training run without gradients.

    Training starts from the best single feature. It sets one weight after another to its exact optimum while the others
    are fixed, and stops when a cycle no longer raises the mean of the measure. Metzler and Croft (2007) tried weights
    in steps; the sweep covers all of them.

    Args:
        measure: the measure to maximize on the training queries.
        reach: weights of the standardized features are searched between −reach and reach; after each cycle they are
            scaled so that their squares sum to 1.
        watched: measures to record in the history in addition to those of the selection.

    Example:
        >>> import podium
        >>> from podium.linear import Ascent
        >>> result = Ascent(measure="ndcg@5", n_iterations=1).fit(podium.artificial(20, features=4))
        >>> len(result.history["train/ndcg@5"])
        1

    """

    measure: Measure | Graded | str = h.MEASURE.default
    n_iterations: int = h.N_ITERATIONS()
    reach: float = 2.0
    n_threads: int | None = h.N_THREADS()
    watched: tuple[Measure, ...] = ()
    verbose: int | None = h.VERBOSE()

    def fit(self, train: RankingData, observers: Sequence[Observer] = ()) -> DescentResult:
        """Train; record the mean of the measure after each cycle, and pass a `LinearStep` to observers."""
        measure = as_selection(self.measure).measures[0]
        checked_sets(train, None)
        warn_of_powers([measure], train)
        design = DesignMatrix(train, self.n_threads)
        sweep = Sweep(train, measure, "expected" if measure.knows_expected_ties else "jitter", self.n_threads)
        weights, value = _best_feature(design, sweep)
        scores = design.scores(weights)
        others = {f"train/{m}": m.fixed(train) for m in dict.fromkeys(self.watched) if m != measure}
        history: dict[str, list[float]] = {key: [] for key in (f"train/{measure}", *others)}
        observations = Observations()
        n, steps = self.n_iterations, train.n_features
        with progress("ascending", n * steps, verbose=self.verbose, unit="cycles", steps=steps) as advance:
            for iteration in range(n):
                before = value
                for k in range(train.n_features):
                    column = design.column(k)
                    rest = scores - weights[k] * column
                    best = sweep.best(rest, column, -self.reach, self.reach, near=weights[k])
                    if best.value > value + CLOSE:
                        weights[k], value = best.alpha, best.value
                        scores = rest + best.alpha * column
                    advance(1, f"train/{measure} {value:.4f}")
                length = float(np.sqrt((weights * weights).sum()))
                weights, scores = weights / length, scores / length
                history[f"train/{measure}"].append(value)
                ranking = Ranking(train, scores)
                for key, other in others.items():
                    history[key].append(other.mean(ranking))
                means = {key: values[-1] for key, values in history.items()}
                observations.record(observers, LinearStep(iteration, weights.copy(), means, None, train, None, scores))
                if value <= before:
                    break
        fixed = [str(m) for m in (measure.fixed(train), *others.values())]
        history |= observations.columns(len(history[f"train/{measure}"]))
        return DescentResult(design.model(weights, 0.0).with_info(measures=fixed), history, None)


def _best_feature(design: DesignMatrix, sweep: Sweep) -> tuple[Floats, float]:
    """Return weights of 1 or −1 for the best single feature and 0 for the others, and the value of the measure."""
    n_features = design.data.n_features
    values = [sweep.value(sign * design.column(k)) for k in range(n_features) for sign in (1.0, -1.0)]
    first = int(np.argmax(values))
    weights = np.zeros(n_features)
    weights[first // 2] = 1.0 if first % 2 == 0 else -1.0
    return weights, values[first]
