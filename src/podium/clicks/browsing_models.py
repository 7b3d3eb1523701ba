"""Click models of users who may skip results: examination depends on the position, and on the last click above it.

Both models have P(C = 1) = α · γ, where α belongs to the pair and γ to a *slot*: the position for `PositionBased`, the
position and that of the last click above it for `UserBrowsing`. Only the numbers of clicks and impressions by pair and
slot matter, so EM runs on these counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from podium.clicks.click_model import (
    ClickModel,
    Fitted,
    Pairs,
    check_em,
    count_clicks,
    for_impressions,
    from_fixed_point,
    run_em,
    summed,
)
from podium.core.array_types import Bools, Floats, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.core.sums import GroupSums, group_exponent
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.clicks.log import ClickLog

LONGEST_LIST = 2000  # maximum position of `UserBrowsing`, which has a parameter for each pair of positions


class Cells(NamedTuple):
    """Counts by pair and slot, sorted by both.

    Attributes:
        starts: where the cells of each pair begin.
        slots: the slot of each cell.
        shown, clicks: the counts; weighted for interventions.
        n_slots: the number of slots, including those without cells.

    """

    starts: Ints
    slots: Ints
    shown: Floats
    clicks: Floats
    n_slots: int

    @classmethod
    def of(cls, rows: Ints, slots: Ints, clicked: Bools, n_pairs: int, n_slots: int) -> Cells:
        """Count the rows of each pair and slot."""
        keys, places = np.unique(rows * n_slots + slots, return_inverse=True)
        shown = np.bincount(places).astype(np.float64)
        clicks = np.bincount(places[clicked], minlength=len(keys)).astype(np.float64)
        starts = np.searchsorted(keys, np.arange(n_pairs + 1) * n_slots)
        return cls(starts, keys % n_slots, shown, clicks, n_slots)


class _CellSteps:
    """EM steps for α and γ. The hidden event is the examination; the first slot is always examined.

    α = (prior + clicks) / (prior + expected examinations), γ = (1 + expected examinations) / (2 + impressions). The
    likelihood does not determine the scale of α and γ. With γ = 1 for the first slot, γ is relative to it, as
    propensities are.
    """

    def __init__(self, cells: Cells, smoothing: float, mean: float) -> None:
        self.cells, self.smoothing, self.mean = cells, smoothing, mean
        self.exponent = group_exponent(1.0, int(np.ceil(cells.shown.sum())) + len(cells.slots))
        groups = GroupSums(cells.slots, cells.n_slots)
        self.shown = from_fixed_point(groups.whole(cells.shown, self.exponent), self.exponent)

    def step(self, attraction: Floats, examination: Floats) -> tuple[Floats, Floats]:
        """Return α and γ after one step."""
        new = np.empty(len(attraction))

        def work(first: int, last: int) -> tuple[Ints]:
            examined = np.zeros(self.cells.n_slots, np.int64)
            add_examinations(
                first, last, self.cells.starts, self.cells.slots, self.cells.shown, self.cells.clicks, attraction,
                examination, self.smoothing, self.mean, 2.0**self.exponent, new, examined,
            )  # fmt: skip
            return (examined,)

        (total,) = summed(work, len(attraction))
        new_examination = (1.0 + from_fixed_point(total, self.exponent)) / (2.0 + self.shown)
        new_examination[0] = 1.0
        return new, np.minimum(new_examination, 1.0)


@kernel
def add_examinations(
    first: int, last: int, starts: Ints, slots: Ints, shown: Floats, clicks: Floats, attraction: Floats,
    examination: Floats, smoothing: float, mean: float, scale: float, new_attraction: Floats, examined: Ints,
) -> None:  # fmt: skip
    """Set the attractiveness of some pairs, and add expected examinations of slots as multiples of 1 / scale."""
    for pair in range(first, last):
        attracts = attraction[pair]
        all_clicks, all_examined = 0.0, 0.0
        for cell in range(starts[pair], starts[pair + 1]):
            gamma = examination[slots[cell]]
            unclicked = gamma * (1.0 - attracts) / (1.0 - gamma * attracts)  # P(E = 1 | C = 0)
            expected = clicks[cell] + (shown[cell] - clicks[cell]) * unclicked
            all_clicks += clicks[cell]
            all_examined += expected
            examined[slots[cell]] += np.int64(np.rint(expected * scale))
        new_attraction[pair] = (smoothing * mean + all_clicks) / (smoothing + all_examined)


@dataclass
class _BrowsingModel(ClickModel):
    """A click model with an examination γ for each slot, fitted by EM."""

    max_steps: int = 2000
    tolerance: float = 1e-4
    other_parameters: ClassVar[tuple[str, ...]] = ("examination",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_em(self.max_steps, self.tolerance)

    def _start(self, log: ClickLog, rows: Ints, n_pairs: int) -> tuple[Floats, float]:
        """Return the initial attractiveness and its prior mean."""
        if int(log.position.min()) > 1:
            raise DataError(
                f"the log has no row at position 1, but {type(self).__name__} estimates examination relative to it: "
                "count positions from 1"
            )
        counts = count_clicks(log, rows, n_pairs)
        return counts.attraction(self.smoothing), counts.mean

    def _by_em(self, cells: Cells, start: Floats, mean: float) -> Fitted:
        examination = np.full(cells.n_slots, 0.5)
        examination[0] = 1.0
        steps = _CellSteps(cells, self.smoothing, mean)
        (attraction, examination), n_steps = run_em(steps.step, (start, examination), self.max_steps, self.tolerance)
        return Fitted({"attraction": attraction, "examination": examination}, {"attraction": mean}, n_steps)


@dataclass
class PositionBased(_BrowsingModel):
    """The position-based model: a click requires examination of the position and attraction (Craswell et al. 2008).

    P(C = 1) = α of the pair × γ of the position. Position 1 has γ = 1, so the other γ are relative to it: they are the
    propensities of inverse propensity scoring. Positions beyond those of the log have the last γ.

    "em" estimates both together. Only pairs that were shown at different positions separate α from γ, so it needs many
    of them.

    "intervention" estimates γ from these pairs alone, as after an experiment that swaps positions. A pair has the same
    attractiveness at all positions, so the click rates of the pairs that were shown at both k and k' give γ_k / γ_k'.
    All such comparisons are fitted together (the all-pairs estimator of Agarwal et al. 2019). A pair that was shown n
    and n' times has weight n n' / (n + n') at both positions (Mantel and Haenszel 1959). Then EM estimates α for
    these γ.

    Args:
        smoothing: the weight of the prior of attractiveness, in examined impressions.
        max_steps: the maximum number of EM steps.
        tolerance: EM ends when no parameter changes by more than this.
        by: "em" or "intervention".

    Example:
        >>> from podium.clicks import ClickLog, PositionBased
        >>> log = ClickLog.from_arrays(
        ...     impression=[1, 1, 2, 2, 3, 3], query=["tea"] * 6, document=["a", "b", "b", "a", "a", "b"],
        ...     position=[1, 2, 1, 2, 1, 2], clicked=[0, 1, 1, 0, 1, 0],
        ... )
        >>> model = PositionBased().fit(log)
        >>> [round(p, 3) for p in model.propensities(log)]
        [1.0, 0.495]
        >>> model.perplexity(log).by_position.round(3).tolist()
        [1.713, 1.787]

    """

    by: str = "em"
    name: ClassVar[str] = "position based"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by not in ("em", "intervention"):
            raise DataError(f"by must be 'em' or 'intervention', but got {self.by!r}")

    def _fitted(self, log: ClickLog, rows: Ints, n_pairs: int) -> Fitted:
        start, mean = self._start(log, rows, n_pairs)
        slots = log.position.astype(np.int64) - 1
        cells = Cells.of(rows, slots, log.clicked, n_pairs, int(log.position.max()))
        if self.by == "em":
            return self._by_em(cells, start, mean)
        swaps = _swaps(cells)
        fit_of_swaps = self._by_em(swaps, np.full(len(swaps.starts) - 1, mean), mean)
        examination = fit_of_swaps.parameters["examination"]
        steps = _CellSteps(cells, self.smoothing, mean)

        def attraction_step(attraction: Floats) -> tuple[Floats]:
            return (steps.step(attraction, examination)[0],)

        (attraction,), n_steps = run_em(attraction_step, (start,), self.max_steps, self.tolerance)
        parameters = {"attraction": attraction, "examination": examination}
        return Fitted(parameters, {"attraction": mean}, fit_of_swaps.n_steps + n_steps)

    def _examination(self, log: ClickLog, rows: Ints, given_clicks: bool) -> Floats:
        examination = self.fitted_.parameters["examination"]
        return np.asarray(examination[np.minimum(log.position, len(examination)) - 1])


def _swaps(cells: Cells) -> Cells:
    """Return counts for each two positions, from the pairs that were shown at both."""
    sizes, n_slots = np.diff(cells.starts), cells.n_slots
    firsts, seconds = np.empty(0, np.int64), np.empty(0, np.int64)
    for size in np.unique(sizes[sizes > 1]).tolist():  # all combinations of two cells of a pair
        a, b = np.triu_indices(size, 1)
        begins = cells.starts[:-1][sizes == size][:, None]
        firsts, seconds = np.append(firsts, begins + a), np.append(seconds, begins + b)
    low, high = cells.slots[firsts], cells.slots[seconds]
    _require_connected(low, high, cells)
    weights = cells.shown[firsts] * cells.shown[seconds] / (cells.shown[firsts] + cells.shown[seconds])
    keys, sets = np.unique(low * n_slots + high, return_inverse=True)
    groups = GroupSums(sets, len(keys))
    exponent = group_exponent(float(weights.max(initial=0.0)), len(weights))  # no weights if all rows have position 1

    def weighted(rates: Floats) -> Floats:
        return from_fixed_point(groups.whole(weights * rates, exponent), exponent)

    rates = cells.clicks / cells.shown
    shown = np.repeat(weighted(np.ones(len(weights))), 2)
    clicks = np.stack((weighted(rates[firsts]), weighted(rates[seconds])), axis=1).ravel()
    slots = np.stack((keys // n_slots, keys % n_slots), axis=1).ravel()
    return Cells(np.arange(len(keys) + 1) * 2, slots, shown, clicks, n_slots)


def _require_connected(low: Ints, high: Ints, cells: Cells) -> None:
    """Raise if swaps do not connect every position of the log with position 1."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = cells.n_slots
    graph = coo_array((np.ones(len(low)), (low, high)), shape=(n, n))
    parts = connected_components(graph, directed=False)[1]
    apart = [int(slot) + 1 for slot in np.unique(cells.slots) if parts[slot] != parts[0]]
    if apart:
        raise DataError(
            f"by='intervention' needs documents that were shown at different positions for the same query, but none "
            f"connects position {apart[0]} with position 1, directly or in steps: use by='em'"
        )


@dataclass
class UserBrowsing(_BrowsingModel):
    """The user browsing model: examination depends on the distance to the last click (Dupret and Piwowarski 2008).

    P(C_r = 1 | clicks above) = α of the pair × γ_{r, r'}, with r' the position of the last click above r, 0 if there is
    none. γ_{1, 0} = 1. EM estimates both. Positions beyond those of the log have the γ of the last one.

    Args:
        smoothing: the weight of the prior of attractiveness, in examined impressions.
        max_steps: the maximum number of EM steps.
        tolerance: EM ends when no parameter changes by more than this.

    Example:
        >>> from podium.clicks import ClickLog, UserBrowsing
        >>> log = ClickLog.from_arrays(
        ...     impression=[1, 1, 2, 2, 3, 3], query=["tea"] * 6, document=["a", "b", "b", "a", "a", "b"],
        ...     position=[1, 2, 1, 2, 1, 2], clicked=[0, 1, 1, 0, 1, 0],
        ... )
        >>> UserBrowsing().fit(log).examination_by_last_click.round(3).tolist()
        [[1.0, nan], [0.667, 0.31]]

    """

    name: ClassVar[str] = "user browsing"

    def _fitted(self, log: ClickLog, rows: Ints, n_pairs: int) -> Fitted:
        n_positions = int(log.position.max())
        if n_positions > LONGEST_LIST:
            raise DataError(
                f"UserBrowsing supports at most {LONGEST_LIST} positions, but the log has position {n_positions}: "
                "truncate the impressions, or use PositionBased"
            )
        slots = np.empty(len(rows), np.int64)
        fill_slots(log.starts, log.position, log.clicked, n_positions, slots)
        cells = Cells.of(rows, slots, log.clicked, n_pairs, n_positions * (n_positions + 1) // 2)
        return self._by_em(cells, *self._start(log, rows, n_pairs))

    def _examination(self, log: ClickLog, rows: Ints, given_clicks: bool) -> Floats:
        gamma = self.fitted_.parameters["examination"]
        n_positions = _n_positions(gamma)
        if given_clicks:
            slots = np.empty(len(rows), np.int64)
            fill_slots(log.starts, log.position, log.clicked, n_positions, slots)
            return gamma[slots]
        result, attraction = np.empty(len(rows)), self._extended("attraction")
        longest = int(np.diff(log.starts).max())

        def work(first: int, last: int) -> None:
            room = np.empty(longest + 1)
            fill_marginals(first, last, log.starts, log.position, rows, attraction, gamma, n_positions, room, result)

        for_impressions(log, work)
        return result

    @property
    def examination_by_last_click(self) -> Floats:
        """γ as a matrix with row r − 1 and column r' (0 for no click above); NaN if r' is not above r."""
        gamma = self._require_fit().parameters["examination"]
        n = _n_positions(gamma)
        table = np.full((n, n), np.nan)
        table[np.tril_indices(n)] = gamma
        return table

    def _problem(self, pairs: Pairs, fitted: Fitted) -> str:
        n_slots = len(fitted.parameters.get("examination", ()))
        n = _n_positions(np.empty(n_slots))
        return super()._problem(pairs, fitted) or ("" if n * (n + 1) // 2 == n_slots else "its examination is damaged")


def _n_positions(gamma: Floats) -> int:
    """Return n such that the number of parameters is n (n + 1) / 2."""
    return int((np.sqrt(8 * len(gamma) + 1) - 1) / 2)


@helper
def slot_of(position: int, last_click: int, n_positions: int) -> int:
    """Return the index of γ for a position and that of the last click above it, in a triangle by rows."""
    place = min(position, n_positions) - 1
    return place * (place + 1) // 2 + min(last_click, place)


@kernel
def fill_slots(starts: Ints, position: Int32s, clicked: Bools, n_positions: int, slots: Ints) -> None:
    """Fill in the slot of each row, given the clicks above it."""
    for impression in range(len(starts) - 1):
        last_click = 0
        for row in range(starts[impression], starts[impression + 1]):
            slots[row] = slot_of(position[row], last_click, n_positions)
            if clicked[row]:
                last_click = position[row]


@kernel
def fill_marginals(
    first: int, last: int, starts: Ints, position: Int32s, rows: Ints, attraction: Floats, gamma: Floats,
    n_positions: int, chances: Floats, result: Floats,
) -> None:  # fmt: skip
    """Fill in P(E_r = 1) of the rows of some impressions, a sum over the possible places of the last click above.

    `chances` is scratch for P(the last click so far is on row k − 1 of the impression), with k = 0 for no click.
    """
    for impression in range(first, last):
        begin = starts[impression]
        chances[0] = 1.0
        for row in range(begin, starts[impression + 1]):
            attracts, examined = attraction[rows[row]], 0.0
            for k in range(row - begin + 1):
                last_click = 0 if k == 0 else position[begin + k - 1]
                seen = gamma[slot_of(position[row], last_click, n_positions)]
                examined += chances[k] * seen
                chances[k] *= 1.0 - attracts * seen
            result[row] = examined
            chances[row - begin + 1] = attracts * examined
