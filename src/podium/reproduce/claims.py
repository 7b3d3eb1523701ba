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

Floats = NDArray[np.float64]
HOLDS, DOES_NOT_HOLD, NOT_DECIDED = "holds", "does not hold", "not decided"
LEVEL = 0.05  # both papers with tests call p < 0.05 significant


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and what a test says of it.

    Attributes:
        text: what is claimed.
        place: where, such as `[W] table 1`; the letter names the paper.
        test: how it was decided.
        estimate, interval: what the test is about (mostly a mean difference), with its 95% interval.
        p: small where the claim holds.
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

    @property
    def paper(self) -> str:
        """The letter of the paper, or `beyond`."""
        return self.place[1] if self.place.startswith("[") else "beyond"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        values = asdict(self) | {"paper": self.paper, "interval": list(self.interval), "by_seed": list(self.by_seed)}
        return {name: None if isinstance(v, float) and np.isnan(v) else v for name, v in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Claim:
        """Back from JSON."""
        numbers = {name: np.nan for name in ("p", "p_against", "p_holm", "p_against_holm") if values[name] is None}
        values = {name: v for name, v in values.items() if name != "paper"} | numbers
        return cls(**values | {"interval": tuple(values["interval"]), "by_seed": tuple(values["by_seed"])})


def better(
    text: str, place: str, first: Arm, second: Arm, measure: str, *, finding: str = "", lead: float = 0.0
) -> Claim:
    """The first is better: a paired t-test over queries, two-sided; with a `lead`, better by more than that."""
    differences = first.differences(second, measure)
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
    differences = first.differences(second, measure)
    above, below = one_sided(differences, -margin)
    return Claim(
        text, place, f"lower test of TOST, {measure} of {first.name} no worse than {second.name} by {margin:g}",
        mean(differences), t_interval(differences), above, below, tuple(first.by_seed(second, measure)), finding,
    )  # fmt: skip


def equal(text: str, place: str, first: Arm, second: Arm, measure: str, margin: float, *, finding: str = "") -> Claim:
    """Both are equally good, within the margin: two one-sided t-tests (TOST)."""
    differences = first.differences(second, measure)
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


def all_of(text: str, place: str, parts: Sequence[Claim], *, finding: str = "") -> Claim:
    """Several claims as one: it holds where each part does, and does not where one part does not.

    The largest p is that of all (an intersection-union test); against it speaks the smallest, by Bonferroni.
    """
    weakest = max(parts, key=lambda part: part.p)
    against = min(1.0, len(parts) * min(part.p_against for part in parts))
    test = f"all {len(parts)} of: {'; '.join(part.test for part in parts)}; the estimate is that with the largest p"
    return replace(weakest, text=text, place=place, test=test, p_against=against, finding=finding)


def one_sided(differences: Floats, bound: float) -> tuple[float, float]:
    """P of "the mean is above the bound" and of "the mean is below it" (small where that is so)."""
    if len(differences) < 2:
        raise DataError("a test needs the values of two queries or more")
    middle = mean(differences)
    error = standard_error(differences, middle)
    if error == 0:
        return float(middle <= bound), float(middle >= bound)
    t, freedom = (middle - bound) / error, len(differences) - 1
    return float(stats.t.sf(t, freedom)), float(stats.t.cdf(t, freedom))


def decide(claims: Sequence[Claim]) -> list[Claim]:
    """The claims with their verdicts, p corrected by Holm for all claims of the same paper."""
    decided = list(claims)
    for paper in {claim.paper for claim in claims}:
        places = [k for k, claim in enumerate(claims) if claim.paper == paper]
        corrected = holm([claims[k].p for k in places])
        against = holm([claims[k].p_against for k in places])
        for k, p, p_against in zip(places, corrected, against, strict=True):
            verdict = HOLDS if p < LEVEL else DOES_NOT_HOLD if p_against < LEVEL else NOT_DECIDED
            decided[k] = replace(claims[k], p_holm=p, p_against_holm=p_against, verdict=verdict)
    return decided
