"""Comparison of rankings query by query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from podium.core.array_types import Bools
from podium.core.plotting import draw
from podium.core.sums import mean, with_weights
from podium.errors import DataError
from podium.evaluation.evaluating import Evaluation, Measures, as_measures, evaluated, measures_of, rankings_of
from podium.evaluation.significance import equivalence, holm, paired_t, randomization, t_interval
from podium.evaluation.tables import Table
from podium.measures import as_measure, warn_of_powers


@dataclass(frozen=True)
class Pair:
    """The comparison of system b with system a by one measure, on the queries that have a value for both."""

    measure: str
    a: str
    b: str
    difference: float  # mean of b minus mean of a, with its 95% interval `low` … `high` (Student's t)
    low: float
    high: float
    # p_t, p_random: two-sided p of the paired t-test and of Fisher's randomization test
    p_t: float
    p_random: float
    # p_t_holm, p_random_holm: the same, corrected for the number of pairs (Holm)
    p_t_holm: float
    p_random_holm: float
    p_equivalent: float | None  # p of the equivalence test (TOST) with a margin, or None
    # wins, ties, losses: numbers of queries on which b is better, equal, worse
    wins: int
    ties: int
    losses: int


COLUMNS = {
    "measure": "measure", "a": "a", "b": "b", "b - a": "difference", "95% from": "low", "to": "high", "p (t)": "p_t",
    "p (t, Holm)": "p_t_holm", "p (random)": "p_random", "p (random, Holm)": "p_random_holm", "wins": "wins",
    "ties": "ties", "losses": "losses", "p (equivalent)": "p_equivalent",
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Attributes:
        evaluations: the `Evaluation` of each system by name.
        pairs: a `Pair` for each measure and pair of systems.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> result = podium.compare(data, {"a": data.feature(0), "b": data.relevance}, "ndcg@10")
        >>> len(result.pairs), result.pairs[0].b, result.evaluations["b"].means["ndcg@10"]
        (1, 'b', 1.0)

    """

    evaluations: dict[str, Evaluation]
    pairs: list[Pair]

    def moved(self, a: str, b: str, measure: str | None = None, most: int = 10) -> Table:
        """Return the queries on which two systems differ most, by decreasing difference."""
        for name in (a, b):
            if name not in self.evaluations:
                raise DataError(f"there is no system {name!r}; choose from {', '.join(self.evaluations)}")
        left, right = self.evaluations[a], self.evaluations[b]
        name = str(as_measure(measure)) if measure else next(iter(left.values))
        if name not in left.values:
            raise DataError(f"{name!r} was not measured; choose from {', '.join(left.values)}")
        change = np.nan_to_num(right.values[name] - left.values[name])
        order = np.argsort(-np.abs(change), kind="stable")[:most]
        rows = [
            [left.query_ids[k], float(left.values[name][k]), float(right.values[name][k]), float(change[k])]
            for k in order
        ]
        return Table(["qid", a, b, f"change of {name}"], rows)

    def means_table(self) -> Table:
        """Return a table of the mean of each system by each measure."""
        names = list(next(iter(self.evaluations.values())).means)
        rows = [[system, *(result.means[name] for name in names)] for system, result in self.evaluations.items()]
        return Table(["system", *names], rows)

    def table(self) -> Table:
        """Return a table with a row for each pair."""
        columns = dict(COLUMNS)
        if all(pair.p_equivalent is None for pair in self.pairs):
            del columns["p (equivalent)"]
        rows = [[getattr(pair, name) for name in columns.values()] for pair in self.pairs]
        return Table(list(columns), rows)

    def plot(self) -> Any:
        """Return a chart of the means and paired differences with 95% intervals (extra `report`)."""
        return draw("comparison", self)

    def __str__(self) -> str:
        return f"{self.means_table()}\n\n{self.table()}"

    def _repr_html_(self) -> str:
        return self.means_table().render("html") + self.table().render("html")

    def __rich__(self) -> Any:
        from rich.console import Group

        return Group(self.means_table().__rich__(), self.table().__rich__())


def compare(
    data: Any,
    systems: Mapping[str, Any],
    measures: Measures = "ndcg@10",
    *,
    baseline: str | None = None,
    margin: float | None = None,
    drop_uniform: bool = False,
    judged_only: bool = False,
    resamples: int = 100_000,
    seed: int = 0,
) -> Comparison:
    """Compare rankings of the same data, query by query.

    Args:
        data, measures, drop_uniform, judged_only: as in `evaluate`.
        systems: scores by name, as in `evaluate`.
        baseline: the only system to compare the others with; by default every pair is compared.
        margin: if passed, also test for equivalence: whether the means of two systems differ by less than this. Systems
            that do not differ significantly are not necessarily equivalent.
        resamples: the number of resamples of the randomization test.
        seed: the seed of the randomization test.

    Returns:
        The evaluation of each system, and for each pair the difference with its interval and p-values.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> pair = podium.compare(data, {"a": data.feature(0), "b": data.relevance}, "ndcg@10").pairs[0]
        >>> pair.wins > pair.losses, pair.p_random < 0.05
        (True, True)

    """
    if not isinstance(systems, Mapping):
        raise DataError("systems must be a mapping from names to scores, as in {'a': scores, 'b': scores}")
    distinct = as_measures(measures)
    data, rankings = rankings_of(data, list(systems.values()))
    warn_of_powers(distinct, data)
    trained_by = measures_of(systems.values())
    evaluations = {
        name: evaluated(data, ranking, distinct, drop_uniform, name, trained_by, judged_only)
        for name, ranking in zip(systems, rankings, strict=True)
    }
    return compared(evaluations, baseline, margin, resamples, seed)


def compared(
    evaluations: dict[str, Evaluation],
    baseline: str | None = None,
    margin: float | None = None,
    resamples: int = 100_000,
    seed: int = 0,
) -> Comparison:
    """Compare evaluations of the same queries, see `compare`."""
    names = list(evaluations)
    if len(names) < 2:
        raise DataError("pass at least two systems to compare")
    if baseline is not None and baseline not in names:
        raise DataError(f"baseline: there is no system {baseline!r}; choose from {', '.join(names)}")
    sides = list(combinations(names, 2)) if baseline is None else [(baseline, b) for b in names if b != baseline]
    pairs = []
    for measure in evaluations[names[0]].values:
        tests = [_compare_pair(evaluations, measure, a, b, margin, resamples, seed) for a, b in sides]
        t_holm, random_holm = holm([p["p_t"] for p in tests]), holm([p["p_random"] for p in tests])
        pairs += [
            Pair(**entry, p_t_holm=t, p_random_holm=r) for entry, t, r in zip(tests, t_holm, random_holm, strict=True)
        ]
    return Comparison(evaluations, pairs)


def _compare_pair(
    evaluations: Mapping[str, Evaluation], measure: str, a: str, b: str, margin: float | None, resamples: int, seed: int
) -> dict[str, Any]:
    """Return the figures of one pair, before the correction for the number of pairs."""
    change = evaluations[b].values[measure] - evaluations[a].values[measure]
    both: Bools = ~np.isnan(change)
    differences, weights = change[both], evaluations[a].weights
    weights = None if weights is None else weights[both]
    weighted = with_weights(differences, weights)
    flipped = differences if weights is None else differences * (weights / max(mean(weights), 1e-300))
    low, high = t_interval(weighted)
    queries = evaluations[a].query_ids[both].tolist()
    return {
        "measure": measure, "a": a, "b": b, "difference": mean(weighted), "low": low, "high": high,
        "p_t": paired_t(weighted),
        "p_random": randomization(flipped, queries, resamples, seed),
        "p_equivalent": None if margin is None else equivalence(weighted, margin),
        "wins": int((differences > 0).sum()), "ties": int((differences == 0).sum()),
        "losses": int((differences < 0).sum()),
    }  # fmt: skip
