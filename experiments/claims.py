"""Claims of the papers, decided from the number that each seed measured.

A seed draws training, validation and test data and trains every model anew, so the numbers of seeds are independent
repetitions of the whole experiment. Tests are t-tests over them: the exact test of a mixed model with random seeds and
random queries, if every seed has the same number of queries. If seeds share their test queries (real data has one set),
the variance of the mean over queries is added to that over seeds, with Satterthwaite's degrees of freedom. That
variance is treated as known, since there are many queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from podium.errors import DataError
from podium.evaluation.significance import holm

HOLDS, DOES_NOT_HOLD, NOT_DECIDED = "holds", "does not hold", "not decided"
LEVEL = 0.025  # in each direction: 5% two-sided, as in both papers with tests
QUERY = "query"  # the column of the queries' names
BEYOND = "beyond"
PAPERS = {
    "B": "Burges, From RankNet to LambdaRank to LambdaMART, 2010",
    "W": "Wu, Burges, Svore, Gao, Adapting Boosting for Information Retrieval Measures, 2010",
    "S": "Svore, Volkovs, Burges, Learning to Rank with Multiple Objective Functions, 2011",
    BEYOND: "Beyond the papers",
}
Kind = Literal["above", "below", "within", "always"]


class Arm:
    """One setting of an experiment: for each seed, the value of each measure on each test query.

    Example:
        >>> from experiments.claims import Arm
        >>> arm = Arm("a", [{"query": ["1", "2"], "ndcg": [0.5, 1.0]}, {"query": ["3", "4"], "ndcg": [0.7, None]}])
        >>> [round(value, 2) for value in arm.by_seed("ndcg")], round(arm.mean("ndcg"), 3)
        ([0.75, 0.7], 0.725)

    """

    def __init__(self, name: str, of_seeds: Sequence[Mapping[str, Any]]) -> None:
        self.name, self.of_seeds = name, list(of_seeds)

    def by_seed(self, measure: str) -> list[float]:
        """Return the mean over queries for each seed."""
        return [float(np.mean(list(values.values()))) for values in self.of_queries(measure)]

    def mean(self, measure: str) -> float:
        """Return the mean over seeds."""
        return float(np.mean(self.by_seed(measure)))

    def of_queries(self, measure: str) -> list[dict[str, float]]:
        """Return by seed the value of each query that has one."""
        for values in self.of_seeds:
            if measure not in values:
                raise DataError(f"{self.name!r} was not measured by {measure}, but by {', '.join(sorted(values))}")
        return [
            {query: value for query, value in zip(values[QUERY], values[measure], strict=True) if value is not None}
            for values in self.of_seeds
        ]


@dataclass(frozen=True)
class Part:
    """The numbers of one test.

    Attributes:
        name: what the number is.
        by_seed: the number of each seed.
        query_error: the standard error of its mean over queries if seeds share their queries, otherwise 0.

    """

    name: str
    by_seed: tuple[float, ...]
    query_error: float = 0.0

    @property
    def estimate(self) -> float:
        """Return the mean over seeds."""
        return float(np.mean(self.by_seed))

    @property
    def error(self) -> tuple[float, float]:
        """The standard error of the mean, and its degrees of freedom."""
        k = len(self.by_seed)
        of_seeds, of_queries = float(np.var(self.by_seed, ddof=1)) / k if k > 1 else math.nan, self.query_error**2
        if of_seeds == 0:
            return self.query_error, math.inf
        return math.sqrt(of_seeds + of_queries), (k - 1) * ((of_seeds + of_queries) / of_seeds) ** 2

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the mean."""
        error, freedom = self.error
        half = float(stats.t.ppf(0.975, freedom)) * error
        return self.estimate - half, self.estimate + half

    def tests(self, bound: float) -> tuple[float, float]:
        """Return p of the tests for "the mean is above the bound" and "the mean is below the bound"."""
        (error, freedom), apart = self.error, self.estimate - bound
        if error == 0:
            return float(apart <= 0), float(apart >= 0)
        return float(stats.t.sf(apart / error, freedom)), float(stats.t.cdf(apart / error, freedom))


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, with the numbers that decide it.

    Attributes:
        text: what is claimed.
        place: the place in the papers, such as `[W] table 1`, whose letter names the paper, or `beyond the papers …`.
        kind: where the mean of each part must be: `above` or `below` the bound, or `within` ± the bound. For `always`
            the numbers of the seeds count exceptions, and there must be none.
        bound: a margin, a lead or a share; for `always` the number of cases.
        parts: the numbers; the claim holds if all parts do.
        why: a sentence built from what was measured, shown if the claim does not hold or is not decided.

    """

    text: str
    place: str
    kind: Kind
    bound: float
    parts: tuple[Part, ...]
    why: str = ""

    def __post_init__(self) -> None:
        if self.paper not in PAPERS:
            raise DataError(
                f"the place of a claim begins with [B], [W], [S] or 'beyond the papers', not {self.place!r}"
            )
        if self.kind == "within" and not self.bound > 0:
            raise DataError(f"the margin of a claim must be positive, but is {self.bound}")

    @property
    def paper(self) -> str:
        """The letter of the paper, or `beyond`."""
        return BEYOND if self.place.startswith("beyond the papers") else self.place[1:].split("]")[0]

    @property
    def exceptions(self) -> int:
        """The number of exceptions of an `always` claim."""
        return int(sum(sum(part.by_seed) for part in self.parts))

    def tests(self) -> list[tuple[float, float]]:
        """Return p of the claim and of its opposite for each part; NaN if nothing is tested."""
        return [self._test(part) for part in self.parts]

    def _test(self, part: Part) -> tuple[float, float]:
        if self.kind == "always":
            return math.nan, math.nan
        if self.kind == "within":
            lower, upper = part.tests(-self.bound), part.tests(self.bound)
            return max(lower[0], upper[1]), min(1.0, 2 * min(lower[1], upper[0]))
        above, below = part.tests(self.bound)
        return (above, below) if self.kind == "above" else (below, above)

    @property
    def weakest(self) -> Part:
        """The part that is furthest from holding."""
        return max(zip(self.parts, self.tests(), strict=True), key=lambda one: one[1][0])[0]

    @property
    def p(self) -> float:
        """The largest p of all parts."""
        return max(p for p, _ in self.tests())

    @property
    def p_against(self) -> float:
        """The smallest p of the opposite, corrected by Bonferroni for the number of parts."""
        return min(1.0, len(self.parts) * min(p for _, p in self.tests()))

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as a dictionary for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Claim:
        """Return the claim of such a dictionary."""
        parts = tuple(Part(one["name"], tuple(one["by_seed"]), one["query_error"]) for one in values["parts"])
        return cls(**{**values, "parts": parts})


@dataclass(frozen=True)
class Decided:
    """A claim with its verdict, p corrected for all claims of the same paper, and the reason."""

    claim: Claim
    verdict: str
    p: float
    p_against: float
    reason: str


def better(text: str, place: str, first: Arm, second: Arm, measure: str, *, lead: float = 0.0, why: str = "") -> Claim:
    """Return the claim that the first arm is better than the second, by more than a lead."""
    return Claim(text, place, "above", lead, (_difference(first, second, measure),), why)


def no_worse(text: str, place: str, first: Arm, second: Arm, measure: str, margin: float, *, why: str = "") -> Claim:
    """Return the claim that the first arm is not worse than the second by more than a margin."""
    return Claim(text, place, "above", -margin, (_difference(first, second, measure),), why)


def equal(text: str, place: str, first: Arm, second: Arm, measure: str, margin: float, *, why: str = "") -> Claim:
    """Return the claim that both arms are equally good, within a margin (two one-sided tests, TOST)."""
    return Claim(text, place, "within", margin, (_difference(first, second, measure),), why)


def compared(
    text: str, place: str, kind: Kind, what: str, by_seed: Sequence[float], bound: float, *, why: str = ""
) -> Claim:
    """Return the claim that the mean of one number per seed is `above`, `below` or `within` a bound."""
    return Claim(text, place, kind, bound, (Part(what, tuple(map(float, by_seed))),), why)


def always(text: str, place: str, what: str, exceptions: Sequence[int], cases: int, *, why: str = "") -> Claim:
    """Return the claim that something has no exception, from the exceptions by seed and the number of all cases."""
    return Claim(text, place, "always", cases, (Part(what, tuple(map(int, exceptions))),), why)


def all_of(text: str, place: str, claims: Sequence[Claim], *, why: str = "") -> Claim:
    """Return the claim that several claims of one kind and bound all hold."""
    first = claims[0]
    if any((claim.kind, claim.bound) != (first.kind, first.bound) for claim in claims):
        raise DataError(f"claims of different kinds or bounds cannot be taken together: {text}")
    return Claim(text, place, first.kind, first.bound, tuple(part for claim in claims for part in claim.parts), why)


def _difference(first: Arm, second: Arm, measure: str) -> Part:
    """Return first minus second by seed; raise if they were measured on different queries."""
    name = f"{measure} of {first.name} − {second.name}"
    firsts, seconds = first.of_queries(measure), second.of_queries(measure)
    if [set(one) for one in firsts] != [set(one) for one in seconds]:
        raise DataError(f"{first.name!r} and {second.name!r} were not measured on the same queries and seeds")
    differences = [{query: a[query] - b[query] for query in sorted(a)} for a, b in zip(firsts, seconds, strict=True)]
    if not all(differences):
        raise DataError(f"{first.name!r} against {second.name!r}: no query of some seed has {measure}")
    shared: dict[str, list[float]] = {}
    for of_seed in differences:
        for query, value in of_seed.items():
            shared.setdefault(query, []).append(value)
    error = 0.0
    if len(shared) < sum(map(len, differences)):
        means = np.array([np.mean(values) for values in shared.values()])
        error = float(means.std(ddof=1)) / math.sqrt(len(means))
    return Part(name, tuple(float(np.mean(list(of_seed.values()))) for of_seed in differences), error)


def decide(claims: Sequence[Claim]) -> list[Decided]:
    """Return the claims with their verdicts, with p corrected by Holm for all claims of the same paper.

    Each direction is corrected separately: the probability that any false claim gets the verdict "holds" is at most
    the level, and so is the probability that any true claim gets "does not hold". `always` claims are counted, not
    tested.
    """
    decided: dict[int, Decided] = {}
    for paper in PAPERS:
        places = [k for k, claim in enumerate(claims) if claim.paper == paper]
        tested = [k for k in places if claims[k].kind != "always"]
        corrected = (holm([claims[k].p for k in tested]), holm([claims[k].p_against for k in tested]))
        for k, p, against in zip(tested, *corrected, strict=True):
            verdict = HOLDS if p < LEVEL else DOES_NOT_HOLD if against < LEVEL else NOT_DECIDED
            decided[k] = Decided(claims[k], verdict, p, against, _reason(claims[k], verdict, len(tested)))
        for k in set(places) - set(tested):
            verdict = DOES_NOT_HOLD if claims[k].exceptions else HOLDS
            decided[k] = Decided(claims[k], verdict, math.nan, math.nan, _reason(claims[k], verdict, 1))
    return [decided[k] for k in range(len(claims))]


def _reason(claim: Claim, verdict: str, n_claims: int) -> str:
    """Return why a claim does not hold or is not decided, in sentences built from its numbers."""
    if verdict == HOLDS:
        return ""
    if claim.kind == "always":
        return claim.why
    part = claim.weakest
    seeds = len(part.by_seed)
    edge = claim.bound * math.copysign(1.0, part.estimate) if claim.kind == "within" else claim.bound
    is_beyond = [value > edge for value in part.by_seed]
    larger = max(sum(is_beyond), seeds - sum(is_beyond))
    if larger < seeds:
        text = f"The seeds disagree: {sum(is_beyond)} of {seeds} are above {edge:g}."
    elif verdict == DOES_NOT_HOLD:
        text = f"All {seeds} seeds are {'above' if is_beyond[0] else 'below'} {edge:g}."
    else:
        side = "above" if is_beyond[0] else "below"
        text = f"All {seeds} seeds are {side} {edge:g}, but too few to decide it among {n_claims} claims."
    if verdict == NOT_DECIDED and (needed := _seeds_needed(part, edge, LEVEL / n_claims)):
        text += f" With this mean and this spread it would take {needed} seeds."
    return f"{text} {claim.why}".strip()


def _seeds_needed(part: Part, edge: float, level: float, most: int = 100) -> int | None:
    """Return how many seeds with this mean and spread would decide the claim, or None for more than `most`."""
    spread, apart = float(np.std(part.by_seed, ddof=1)), abs(part.estimate - edge)
    for k in range(len(part.by_seed) + 1, most + 1):
        if spread and stats.t.sf(apart / math.hypot(spread / math.sqrt(k), part.query_error), k - 1) < level:
            return k
    return None
