"""What one setting measured on each test query, over all seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.sums import mean
from podium.errors import DataError
from podium.evaluation.significance import t_interval

Floats = NDArray[np.float64]
QUERY = "query"  # the column of the queries' names


class Arm:
    """One setting of an experiment: a value of each measure for each test query.

    A query that several seeds measured counts once, with the mean of its values: the tests are over queries. Queries
    of different seeds (where each seed draws its own data) all count.

    Attributes:
        name: of the setting.
        of_seeds: what `Work.values` gave, seed by seed.

    Example:
        >>> from podium.reproduce import Arm
        >>> arm = Arm("a", [{"query": ["1", "2"], "ndcg": [0.5, 1.0]}, {"query": ["1", "2"], "ndcg": [0.7, 1.0]}])
        >>> round(arm.mean("ndcg"), 2), arm.n_queries("ndcg")
        (0.8, 2)

    """

    def __init__(self, name: str, of_seeds: Iterable[Mapping[str, Any]]) -> None:
        self.name, self.of_seeds = name, list(of_seeds)

    def of_queries(self, measure: str) -> dict[str, float]:
        """The mean over seeds for each query; queries without a value are left out."""
        found: dict[str, list[float]] = {}
        for seed in range(len(self.of_seeds)):
            for query, values in self._of_seed(seed, measure).items():
                found.setdefault(query, []).extend(values)
        return {query: mean(np.array(several)) for query, several in sorted(found.items())}

    def _of_seed(self, seed: int, measure: str) -> dict[str, list[float]]:
        """The values of each query; several where several folds test on it."""
        values = self.of_seeds[seed]
        if measure not in values:
            raise DataError(f"{self.name!r} was not measured by {measure}, but by {', '.join(sorted(values))}")
        found: dict[str, list[float]] = {}
        for query, value in zip(values[QUERY], values[measure], strict=True):
            if value is not None and not np.isnan(value):
                found.setdefault(query, []).append(value)
        return found

    def n_queries(self, measure: str) -> int:
        """How many queries have a value."""
        return len(self.of_queries(measure))

    def mean(self, measure: str) -> float:
        """The mean over queries."""
        return mean(np.array(list(self.of_queries(measure).values())))

    def interval(self, measure: str) -> tuple[float, float]:
        """Student's 95% interval of the mean."""
        return t_interval(np.array(list(self.of_queries(measure).values())))

    def shown(self, measure: str) -> str:
        """Mean and half the width of its 95% interval, as the papers print it."""
        low, high = self.interval(measure)
        return f"{self.mean(measure):.4f} ± {(high - low) / 2:.4f}"

    def differences(self, other: Arm, measure: str) -> Floats:
        """Query by query, this minus the other; each seed must have measured both on the same queries."""
        if len(self.of_seeds) != len(other.of_seeds):
            raise DataError(
                f"{self.name!r} has {len(self.of_seeds)} seeds, {other.name!r} has {len(other.of_seeds)}: "
                "only equal numbers can be compared"
            )
        for seed in range(len(self.of_seeds)):
            mine, theirs = self._of_seed(seed, measure), other._of_seed(seed, measure)
            if {query: len(v) for query, v in mine.items()} != {query: len(v) for query, v in theirs.items()}:
                raise DataError(f"{self.name!r} and {other.name!r} were not measured on the same queries")
        of_mine, of_theirs = self.of_queries(measure), other.of_queries(measure)
        return np.array([of_mine[query] - of_theirs[query] for query in of_mine])

    def by_seed(self, other: Arm, measure: str) -> list[float]:
        """The mean difference of each seed."""
        pairs = zip(self.of_seeds, other.of_seeds, strict=True)
        return [Arm("", [a]).mean(measure) - Arm("", [b]).mean(measure) for a, b in pairs]


def trees_needed(means: Mapping[int, float], target: float) -> int | None:
    """The smallest number of trees whose mean is the target or more, from means by number of trees.

    Example:
        >>> from podium.reproduce.arms import trees_needed
        >>> trees_needed({10: 0.5, 20: 0.7, 30: 0.6}, 0.6), trees_needed({10: 0.5}, 0.6)
        (20, None)

    """
    return next((n for n in sorted(means) if means[n] >= target), None)
