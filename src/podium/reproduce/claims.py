"""Claims, each with the test that decides it: *holds*, *does not hold* or *not decided*."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from podium.core.sums import mean
from podium.errors import DataError
from podium.evaluation.significance import equivalence, holm, paired_t, standard_error, t_interval
from podium.reproduce.arms import Arm
from podium.reproduce.plain import plain

Floats = NDArray[np.float64]
HOLDS, DOES_NOT_HOLD, NOT_DECIDED = "holds", "does not hold", "not decided"
LEVEL = 0.05  # both papers with tests call p < 0.05 significant
BEYOND = "beyond"
PAPERS = {
    "B": "Burges, From RankNet to LambdaRank to LambdaMART, 2010",
    "W": "Wu, Burges, Svore, Gao, Adapting Boosting for Information Retrieval Measures, 2010",
    "S": "Svore, Volkovs, Burges, Learning to Rank with Multiple Objective Functions, 2011",
    BEYOND: "Beyond the papers",
}


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and what a test says of it.

    Attributes:
        text: what is claimed.
        place: where, such as `[W] table 1`, whose letter names the paper, or `beyond the papers …`.
        test: how it was decided.
        estimate, interval: what the test is about (mostly a mean difference), with its 95% interval.
        p: small where the claim holds; NaN where the test could not be computed.
        p_against: small where the opposite does.
        by_seed: the estimate of each seed.
        finding: what an investigation found, where the claim does not hold or is not decided.
        p_holm, p_against_holm: corrected for all claims of the same paper.
        verdict: `holds`, `does not hold` or `not decided`.

    """

    text: str
    place: str
    test: str
    estimate: float
    interval: tuple[float, float]
    p: float
    p_against: float
    by_seed: tuple[float, ...] = ()
    finding: str = ""
    p_holm: float = np.nan
    p_against_holm: float = np.nan
    verdict: str = NOT_DECIDED

    def __post_init__(self) -> None:
        if self.paper not in PAPERS:
            letters = ", ".join(f"[{letter}]" for letter in PAPERS if letter != BEYOND)
            raise DataError(f"the place of a claim begins with {letters} or 'beyond the papers', not {self.place!r}")
        for name in ("p", "p_against"):
            if getattr(self, name) < 0 or getattr(self, name) > 1:
                raise DataError(f"{name} of a claim is between 0 and 1, but is {getattr(self, name)}: {self.text}")

    @property
    def paper(self) -> str:
        """The letter of the paper, or `beyond`."""
        if self.place.startswith("beyond the papers"):
            return BEYOND
        return self.place[1:2] if self.place.startswith("[") and self.place[2:3] == "]" else self.place

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, NaN as None."""
        values: dict[str, Any] = plain(asdict(self) | {"paper": self.paper}, "a claim")
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Claim:
        """Back from JSON."""
        numbers = ("estimate", "p", "p_against", "p_holm", "p_against_holm")
        known = {name: v for name, v in values.items() if name != "paper"}
        known |= {name: _number(values[name]) for name in numbers}
        known |= {name: tuple(map(_number, values[name])) for name in ("interval", "by_seed")}
        return cls(**known)


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def better(
    text: str, place: str, first: Arm, second: Arm, measure: str, *, finding: str = "", lead: float = 0.0
) -> Claim:
    """The first is better: a paired t-test over queries, two-sided; with a `lead`, better by more than that."""
    differences = _differences(first, second, measure)
    p, middle = paired_t(differences - lead), mean(differences)
    by_more = f" by more than {lead:g}" if lead else ""
    return Claim(
        text, place, f"paired t-test of {measure}, {first.name} better than {second.name}{by_more}",
        middle, t_interval(differences), p if middle > lead else 1.0, p if middle < lead else 1.0,
        tuple(first.by_seed(second, measure)), finding,
    )  # fmt: skip


def no_worse(
    text: str, place: str, first: Arm, second: Arm, measure: str, margin: float, *, finding: str = ""
) -> Claim:
    """The first is not worse than the second by the margin: the lower of the two one-sided tests (TOST)."""
    if margin < 0:
        raise DataError(f"the margin of a claim must not be negative, but is {margin}")
    differences = _differences(first, second, measure)
    above, below = one_sided(differences, -margin)
    return Claim(
        text, place, f"lower test of TOST, {measure} of {first.name} no worse than {second.name} by {margin:g}",
        mean(differences), t_interval(differences), above, below, tuple(first.by_seed(second, measure)), finding,
    )  # fmt: skip


def equal(text: str, place: str, first: Arm, second: Arm, measure: str, margin: float, *, finding: str = "") -> Claim:
    """Both are equally good, within the margin: two one-sided t-tests (TOST)."""
    differences = _differences(first, second, measure)
    beyond = min(1.0, 2 * min(one_sided(differences, margin)[0], one_sided(differences, -margin)[1]))
    return Claim(
        text, place, f"TOST, {measure} of {first.name} and {second.name} equal within {margin:g}",
        mean(differences), t_interval(differences), equivalence(differences, margin), beyond,
        tuple(first.by_seed(second, measure)), finding,
    )  # fmt: skip


def decided_by(
    text: str, place: str, test: str, estimate: float, p: float, p_against: float, *,
    interval: tuple[float, float] = (np.nan, np.nan), by_seed: Sequence[float] = (), finding: str = "",
) -> Claim:  # fmt: skip
    """A claim with a test of its own."""
    return Claim(text, place, test, estimate, interval, p, p_against, tuple(by_seed), finding)


def _differences(first: Arm, second: Arm, measure: str) -> Floats:
    """What a test is about."""
    differences = first.differences(second, measure)
    if len(differences) < 2:
        raise DataError(f"{first.name!r} against {second.name!r}: a test needs two queries or more with {measure}")
    return differences


def over_seeds(
    text: str, place: str, what: str, values: Sequence[float], bound: float, *, below: bool = False, finding: str = ""
) -> Claim:
    """The mean of a number of each seed is above a bound, or below it: a one-sided t-test over seeds."""
    numbers = np.array(values, np.float64)
    p, p_against = one_sided(numbers, bound)[:: -1 if below else 1]
    test = f"t-test over seeds, {what} {'below' if below else 'above'} {bound:g}"
    return Claim(text, place, test, mean(numbers), t_interval(numbers), p, p_against, tuple(values), finding)


def all_of(text: str, place: str, parts: Sequence[Claim], *, finding: str = "") -> Claim:
    """All parts hold: p is the largest of theirs; against it speaks the smallest, corrected for their number.

    The estimate and its interval are those of the part that is the furthest from holding.
    """
    weakest = max(parts, key=lambda part: part.p)
    against = min(1.0, len(parts) * min(part.p_against for part in parts))
    test = f"all of {len(parts)} tests, the weakest: {weakest.test}" if len(parts) > 1 else weakest.test
    return replace(weakest, text=text, place=place, test=test, p_against=against, finding=finding)


def share_above(text: str, place: str, what: str, hits: int, cases: int, bound: float, **options: Any) -> Claim:
    """Something is so in more than a share of all cases: an exact binomial test, with its exact interval."""
    above, below = binomial(hits, cases, bound)
    return _share(
        text, place, f"{what}: {hits} of {cases}, above a share of {bound:g}", hits, cases, above, below, options
    )


def share_below(text: str, place: str, what: str, hits: int, cases: int, bound: float, **options: Any) -> Claim:
    """Something is so in less than a share of all cases; p is (1 − bound)ⁿ where it never is ([B] eq. 9)."""
    above, below = binomial(hits, cases, bound)
    return _share(
        text, place, f"{what}: {hits} of {cases}, below a share of {bound:g}", hits, cases, below, above, options
    )


def _share(
    text: str, place: str, what: str, hits: int, cases: int, p: float, p_against: float, options: dict[str, Any]
) -> Claim:
    """A claim about a share; `options` are those of `decided_by`."""
    test, interval = f"exact binomial test, {what}", share_interval(hits, cases)
    return decided_by(text, place, test, hits / cases, p, p_against, interval=interval, **options)


def binomial(hits: int, cases: int, bound: float) -> tuple[float, float]:
    """P of "the share is above the bound" and of "the share is below it" (small where that is so)."""
    return float(stats.binom.sf(hits - 1, cases, bound)), float(stats.binom.cdf(hits, cases, bound))


def share_interval(hits: int, cases: int, level: float = LEVEL) -> tuple[float, float]:
    """The exact interval of a share (Clopper and Pearson), 95% by default."""
    low = float(stats.beta.ppf(level / 2, hits, cases - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - level / 2, hits + 1, cases - hits)) if hits < cases else 1.0
    return low, high


def one_sided(differences: Floats, bound: float) -> tuple[float, float]:
    """P of "the mean is above the bound" and of "the mean is below it" (small where that is so)."""
    middle = mean(differences)
    error = standard_error(differences, middle)
    if error == 0:
        return float(middle <= bound), float(middle >= bound)
    t, freedom = (middle - bound) / error, len(differences) - 1
    return float(stats.t.sf(t, freedom)), float(stats.t.cdf(t, freedom))


def decide(claims: Sequence[Claim]) -> list[Claim]:
    """The claims with their verdicts, p corrected by Holm for all claims of the same paper.

    Each direction is corrected by itself: the chance that any false claim is said to hold is at most the level, and so
    is the chance that any true one is said not to. A claim whose p could not be computed (NaN) is not decided.
    """
    decided = list(claims)
    for paper in {claim.paper for claim in claims}:
        places = [k for k, claim in enumerate(claims) if claim.paper == paper]
        corrected = holm([claims[k].p for k in places])
        against = holm([claims[k].p_against for k in places])
        for k, p, p_against in zip(places, corrected, against, strict=True):
            verdict = HOLDS if p < LEVEL else DOES_NOT_HOLD if p_against < LEVEL else NOT_DECIDED
            decided[k] = replace(claims[k], p_holm=p, p_against_holm=p_against, verdict=verdict)
    return decided
