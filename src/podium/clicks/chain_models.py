"""Click models of users who read down the list and stop: the cascade model and its generalizations.

A user examines the first result. After a result without a click the user goes on to the next with probability γ. After
a click the user stops with probability σ, and otherwise goes on with probability γ:

| model | σ | γ |
|---|---|---|
| `Cascade` | 1 | 1 |
| `DependentClicks` | 1 − λ of the position | 1 |
| `DBN`, simplified | of the pair | 1 |
| `DBN` | of the pair | estimated or given |
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from podium.clicks.click_model import (
    ClickCounts,
    ClickModel,
    Fitted,
    PairValues,
    Parameters,
    check_em,
    count_clicks,
    for_impressions,
    from_fixed_point,
    run_em,
    summed,
)
from podium.core.array_types import Bools, Floats, Ints
from podium.core.compiling import kernel
from podium.core.sums import group_exponent
from podium.core.validation import require_number
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.clicks.log import ClickLog


class _ChainModel(ClickModel):
    """A model with a probability of stopping after a click, and one of continuing."""

    def _examination(self, log: ClickLog, rows: Ints, given_clicks: bool) -> Floats:
        stopping, places = self._stopping(log, rows)
        result = np.empty(len(rows))
        attraction, continuation = self._extended("attraction"), self._continuation()

        def work(first: int, last: int) -> None:
            fill_examination(
                first, last, log.starts, log.clicked, rows, places, attraction, stopping, continuation, given_clicks,
                result,
            )  # fmt: skip

        for_impressions(log, work)
        return result

    @abstractmethod
    def _stopping(self, log: ClickLog, rows: Ints) -> tuple[Floats, Ints]:
        """Return the probabilities of stopping after a click, and the index of each row's probability."""

    def _continuation(self) -> float:
        """Return the probability of continuing for users who do not stop."""
        return 1.0


@kernel
def fill_examination(
    first: int, last: int, starts: Ints, clicked: Bools, rows: Ints, places: Ints, attraction: Floats,
    stopping: Floats, continuation: float, given_clicks: bool, result: Floats,
) -> None:  # fmt: skip
    """Fill in P(E_r = 1) of the rows of some impressions, or P(E_r = 1 | clicks above)."""
    for impression in range(first, last):
        examined = 1.0
        for row in range(starts[impression], starts[impression + 1]):
            result[row] = examined
            attracts, stops = attraction[rows[row]], stopping[places[row]]
            if not given_clicks:
                examined *= continuation * (1.0 - attracts * stops)
            elif clicked[row]:
                examined = continuation * (1.0 - stops)
            else:
                examined *= continuation * (1.0 - attracts) / (1.0 - examined * attracts)


@dataclass
class Cascade(_ChainModel):
    """The cascade model: users read down the list to the first click, and stop there (Craswell et al. 2008).

    `fit` uses every impression down to its first click: α = clicks / rows seen, with the prior of `smoothing`. A second
    click has probability 0, so the log-likelihood of a log with one is −∞.

    Args:
        smoothing: the weight of the prior of attractiveness, in examined impressions.

    Example:
        >>> from podium.clicks import Cascade, ClickLog
        >>> log = ClickLog.from_arrays(
        ...     impression=[1, 1, 2, 2, 3, 3], query=["tea"] * 6, document=["a", "b", "b", "a", "a", "b"],
        ...     position=[1, 2, 1, 2, 1, 2], clicked=[0, 1, 1, 0, 1, 0],
        ... )
        >>> table = Cascade().fit(log).attractiveness
        >>> table.document.tolist(), table.value.round(3).tolist(), table.impressions.tolist()
        (['a', 'b'], [0.583, 0.833], [3, 3])

    """

    name: ClassVar[str] = "cascade"

    def _fitted(self, log: ClickLog, rows: Ints, n_pairs: int) -> Fitted:
        counts = count_clicks(log, rows, n_pairs, first_only=True)
        return Fitted({"attraction": counts.attraction(self.smoothing)}, {"attraction": counts.mean})

    def _stopping(self, log: ClickLog, rows: Ints) -> tuple[Floats, Ints]:
        return np.ones(1), np.zeros(len(rows), np.int64)


@dataclass
class DependentClicks(_ChainModel):
    """The dependent click model: after a click at position r, users continue with probability λ_r (Guo et al. 2009).

    `fit` uses the closed form of the paper, which assumes that users stop at the last click: α = clicks / rows at or
    above the last click, and 1 − λ_r = last clicks at r / clicks at r. The prior of 1 − λ_r is one success in two
    trials.

    Args:
        smoothing: the weight of the prior of attractiveness, in examined impressions.

    Example:
        >>> from podium.clicks import ClickLog, DependentClicks
        >>> log = ClickLog.from_arrays(
        ...     impression=[1, 1, 2, 2, 3, 3], query=["tea"] * 6, document=["a", "b", "b", "a", "a", "b"],
        ...     position=[1, 2, 1, 2, 1, 2], clicked=[0, 1, 1, 0, 1, 0],
        ... )
        >>> DependentClicks().fit(log).parameters["continuation"].round(3).tolist()
        [0.25, 0.333]

    """

    name: ClassVar[str] = "dependent clicks"
    other_parameters: ClassVar[tuple[str, ...]] = ("continuation",)

    def _fitted(self, log: ClickLog, rows: Ints, n_pairs: int) -> Fitted:
        counts = count_clicks(log, rows, n_pairs)
        ends = counts.last_rows[counts.last_rows >= log.starts[:-1]]
        n_positions = int(log.position.max())
        clicks = np.bincount(log.position[log.clicked] - 1, minlength=n_positions)
        last_clicks = np.bincount(log.position[ends] - 1, minlength=n_positions)
        return Fitted(
            {
                "attraction": counts.attraction(self.smoothing),
                "continuation": 1.0 - (1.0 + last_clicks) / (2.0 + clicks),
            },
            {"attraction": counts.mean},
        )

    def _stopping(self, log: ClickLog, rows: Ints) -> tuple[Floats, Ints]:
        stopping = 1.0 - self.fitted_.parameters["continuation"]
        return stopping, np.minimum(log.position, len(stopping)).astype(np.int64) - 1


@dataclass
class DBN(_ChainModel):
    """The dynamic Bayesian network: a click satisfies with a probability of the pair (Chapelle and Zhang 2009).

    A user who is not satisfied continues with probability γ. The full model is fitted by expectation maximization with
    exact expectations, computed by a pass up and a pass down each impression. The simplified model has γ = 1 and the
    closed form of the paper: α = clicks / rows at or above the last click, σ = last clicks / clicks.

    Clicks on the last row of an impression do not show whether the user was satisfied, so the full model ignores them
    for σ.

    Args:
        smoothing: the weight of the prior of attractiveness and of satisfaction, in examined impressions and in clicks.
            The prior mean of satisfaction is the share of last clicks among all clicks.
        simplified: whether to fit the simplified model.
        continuation: γ; estimated by default.
        max_steps: the maximum number of EM steps.
        tolerance: EM ends when no parameter changes by more than this.

    Example:
        >>> from podium.clicks import DBN, ClickLog
        >>> log = ClickLog.from_arrays(
        ...     impression=[1, 1, 2, 2, 3, 3], query=["tea"] * 6, document=["a", "b", "b", "a", "a", "b"],
        ...     position=[1, 2, 1, 2, 1, 2], clicked=[0, 1, 1, 0, 1, 0],
        ... )
        >>> model = DBN(continuation=0.9).fit(log)
        >>> model.satisfaction.value.round(3).tolist(), model.labels(log).round(3).tolist()
        ([0.853, 0.838], [0.489, 0.694, 0.694, 0.489, 0.489, 0.694])

    """

    simplified: bool = False
    continuation: float | None = None
    max_steps: int = 2000
    tolerance: float = 1e-4
    name: ClassVar[str] = "dbn"
    pair_parameters: ClassVar[tuple[str, ...]] = ("attraction", "satisfaction")
    other_parameters: ClassVar[tuple[str, ...]] = ("continuation",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.continuation is not None:
            require_number("continuation", self.continuation, above=0, most=1)
            if self.simplified and self.continuation != 1:
                raise DataError(f"continuation must be 1 for the simplified DBN, but got {self.continuation}")
        check_em(self.max_steps, self.tolerance)

    def _fitted(self, log: ClickLog, rows: Ints, n_pairs: int) -> Fitted:
        counts = count_clicks(log, rows, n_pairs)
        ends = counts.last_rows[counts.last_rows >= log.starts[:-1]]
        last_clicks = np.bincount(rows[ends], minlength=n_pairs)
        mean = (1.0 + len(ends)) / (2.0 + int(counts.clicks.sum()))
        attraction = counts.attraction(self.smoothing)
        satisfaction = (self.smoothing * mean + last_clicks) / (self.smoothing + counts.clicks)
        unknown, n_steps, continuation = {"attraction": counts.mean, "satisfaction": mean}, 0, np.ones(1)
        if not self.simplified:
            steps = _DBNSteps(self, log, rows, counts, unknown)
            continuation = np.array([0.9 if self.continuation is None else float(self.continuation)])
            (attraction, satisfaction, continuation), n_steps = run_em(
                steps.step, (attraction, satisfaction, continuation), self.max_steps, self.tolerance
            )
        parameters = {"attraction": attraction, "satisfaction": satisfaction, "continuation": continuation}
        return Fitted(parameters, unknown, n_steps)

    @property
    def satisfaction(self) -> PairValues:
        """The probability that a click satisfies, for each pair of the training log."""
        return self.pairs_.table(self._require_fit().parameters["satisfaction"])

    def labels(self, log: ClickLog) -> Floats:
        """Return a relevance label between 0 and 1 for each row: attractiveness × satisfaction of its pair."""
        rows = self._rows(log)
        return self._extended("attraction")[rows] * self._extended("satisfaction")[rows]

    def _stopping(self, log: ClickLog, rows: Ints) -> tuple[Floats, Ints]:
        return self._extended("satisfaction"), rows

    def _continuation(self) -> float:
        return float(self.fitted_.parameters["continuation"][0])


class _DBNSteps:
    """EM steps of the full DBN.

    Sums over impressions are integers, multiples of 2^-exponent, so that neither threads nor the order of impressions
    change a bit. A step only counts events that depend on the clicks: an impression of a pair counts for its
    attractiveness to the degree that it was examined. This has the same fixed points as the updates of the book, which
    also add unexamined impressions with their current attractiveness, but converges in fewer steps.
    """

    def __init__(self, model: DBN, log: ClickLog, rows: Ints, counts: ClickCounts, means: dict[str, float]) -> None:
        self.log, self.rows, self.counts = log, rows, counts
        self.smoothing, self.means, self.is_fixed = model.smoothing, means, model.continuation is not None
        self.exponent = group_exponent(1.0, len(rows) + 1)
        self.longest = int(np.diff(log.starts).max())
        n_pairs = len(counts.clicks)
        self.seen, self.judged = np.zeros(n_pairs, np.int64), counts.clicks.copy()
        self.continued = count_certain(log.starts, rows, counts.last_rows, self.seen, self.judged)

    def step(self, attraction: Floats, satisfaction: Floats, continuation: Floats) -> Parameters:
        """Return the parameters after one step."""

        def work(first: int, last: int) -> tuple[Ints, ...]:
            sums = tuple(np.zeros(size, np.int64) for size in (len(attraction), len(attraction), 2))
            add_expectations(
                first, last, self.log.starts, self.rows, self.counts.last_rows, attraction, satisfaction,
                float(continuation[0]), 2.0**self.exponent, np.empty(self.longest + 1), *sums,
            )  # fmt: skip
            return sums

        totals = summed(work, len(self.log.starts) - 1)
        examined, satisfied, went_on = (from_fixed_point(total, self.exponent) for total in totals)
        strength = self.smoothing
        new_attraction = (strength * self.means["attraction"] + self.counts.clicks) / (strength + self.seen + examined)
        new_satisfaction = (strength * self.means["satisfaction"] + satisfied) / (strength + self.judged)
        if not self.is_fixed:
            continuation = np.array([(1.0 + self.continued + went_on[1]) / (2.0 + self.continued + went_on[0])])
        return new_attraction, new_satisfaction, continuation


@kernel
def count_certain(starts: Ints, rows: Ints, last_rows: Ints, seen: Ints, judged: Ints) -> int:
    """Count the events that are certain given the clicks, and return how often users certainly continued.

    Args:
        starts, rows, last_rows: arrays of the log.
        seen: receives the number of rows of each pair at or above a last click.
        judged: the number of clicks, from which clicks on the last row of an impression are subtracted.

    """
    continued = 0
    for impression in range(len(starts) - 1):
        begin, end, last = starts[impression], starts[impression + 1], last_rows[impression]
        for row in range(begin, last + 1):
            seen[rows[row]] += 1
        if last >= begin:
            continued += last - begin
            if last == end - 1:
                judged[rows[last]] -= 1
    return continued


@kernel
def add_expectations(
    first: int, last: int, starts: Ints, rows: Ints, last_rows: Ints, attraction: Floats, satisfaction: Floats,
    continuation: float, scale: float, silent: Floats, examined: Ints, satisfied: Ints, went_on: Ints,
) -> None:  # fmt: skip
    """Add the expected events of some impressions, given their clicks, as multiples of 1 / scale.

    Args:
        first, last: the range of impressions.
        starts, rows, last_rows: arrays of the log.
        attraction, satisfaction: the parameters of each pair.
        continuation: γ.
        scale: the value of 1 in the integer sums.
        silent: scratch for P(no click from row k on | row k is examined).
        examined: receives the examined rows of each pair below the last click.
        satisfied: receives the clicks of each pair that satisfied.
        went_on: receives the trials and successes of γ below the row before the last click.

    """
    for impression in range(first, last):
        begin, end, last_click = starts[impression], starts[impression + 1], last_rows[impression]
        below = last_click + 1
        if below >= end:
            continue
        silent[end - below] = 1.0  # nothing is clicked after the end
        for row in range(end - 1, below - 1, -1):
            goes_on = 1.0 if row == end - 1 else 1.0 - continuation + continuation * silent[row + 1 - below]
            silent[row - below] = (1.0 - attraction[rows[row]]) * goes_on
        chance = 1.0  # P(the next row was examined)
        if last_click >= begin:
            stops = satisfaction[rows[last_click]]
            onward = (1.0 - stops) * continuation * silent[0]
            evidence = stops + (1.0 - stops) * (1.0 - continuation) + onward
            satisfied[rows[last_click]] += np.int64(np.rint(stops / evidence * scale))
            went_on[0] += np.int64(np.rint((1.0 - stops / evidence) * scale))
            chance = onward / evidence
            went_on[1] += np.int64(np.rint(chance * scale))
        for row in range(below, end):
            whole = np.int64(np.rint(chance * scale))
            examined[rows[row]] += whole
            if row < end - 1:
                went_on[0] += whole
                onward = continuation * silent[row + 1 - below]
                if continuation < 1.0:  # otherwise `onward` of a long list may be 0
                    chance *= onward / (onward + 1.0 - continuation)
                went_on[1] += np.int64(np.rint(chance * scale))
