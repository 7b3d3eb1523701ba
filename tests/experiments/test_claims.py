"""The tests behind claims, against SciPy and by hand; verdicts in both directions, and reasons made from numbers."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from experiments.claims import (
    DOES_NOT_HOLD,
    HOLDS,
    NOT_DECIDED,
    Arm,
    Claim,
    Part,
    all_of,
    always,
    better,
    compared,
    decide,
    equal,
    no_worse,
)
from podium.errors import DataError

PLACE = "[W] table 1"


def arm(name, *of_seeds, shared=False):
    """Values of queries by seed; each seed has queries of its own unless they are shared."""
    return Arm(name, [
        {"query": [f"{0 if shared else seed}/{k}" for k in range(len(values))], "ndcg": list(values)}
        for seed, values in enumerate(of_seeds)
    ])  # fmt: skip


@pytest.fixture(scope="module")
def pair():
    random = np.random.default_rng(5)
    first = random.random((6, 40))
    return first, first - random.normal(0.02, 0.05, (6, 40)) - random.normal(0, 0.02, (6, 1))


def seeds(p, place=PLACE):
    """A claim with about that p: numbers of three seeds that a t-test gives it."""
    t = stats.t.isf(p, 2)
    return compared("it is so", place, "above", "a number", np.array([-1.0, 0.0, 1.0]) + t / math.sqrt(3), 0.0)


def test_tests_are_t_tests_over_the_means_of_seeds(pair):
    first, second = pair
    differences = (first - second).mean(axis=1)
    arms = arm("a", *first), arm("b", *second)
    for claim, bound in (
        (better("", PLACE, *arms, "ndcg"), 0.0), (better("", PLACE, *arms, "ndcg", lead=0.01), 0.01),
        (no_worse("", PLACE, *arms, "ndcg", 0.01), -0.01),
    ):  # fmt: skip
        known = [stats.ttest_1samp(differences, bound, alternative=side).pvalue for side in ("greater", "less")]
        assert (claim.p, claim.p_against) == pytest.approx(tuple(known), rel=1e-9)
        assert claim.weakest.by_seed == pytest.approx(tuple(differences))
        interval = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
        assert claim.weakest.interval == pytest.approx(tuple(interval))


def test_equal_is_two_one_sided_tests(pair):
    first, second = pair
    differences = (first - second).mean(axis=1)
    for margin in (0.001, 0.1):
        found = equal("they are equal", PLACE, arm("a", *first), arm("b", *second), "ndcg", margin)
        above, below = (
            stats.ttest_1samp(differences, bound, alternative=side).pvalue
            for bound, side in ((-margin, "greater"), (margin, "less"))
        )
        assert found.p == pytest.approx(max(above, below), rel=1e-9)
        assert found.p_against == pytest.approx(min(1, 2 * min(1 - above, 1 - below)), rel=1e-6)


def test_more_queries_do_not_make_up_for_seeds_that_disagree():
    """A test over queries would be sure of both; over seeds, only agreement counts."""
    few = [np.full(3000, value) + np.linspace(-0.1, 0.1, 3000) for value in (-0.023, 0.033, 0.008)]
    agree = [np.full(3000, value) + np.linspace(-0.1, 0.1, 3000) for value in (0.0229, 0.0231, 0.023)]
    zero = arm("b", *np.zeros((3, 3000)))
    assert stats.ttest_1samp(np.concatenate(few), 0).pvalue < 1e-5
    assert better("", PLACE, arm("a", *few), zero, "ndcg").p > 0.3
    assert better("", PLACE, arm("a", *agree), zero, "ndcg").p < 1e-4


def test_false_claims_are_rarely_said_to_hold():
    """Where seeds differ by chance alone, at most 2.5% of claims hold: a test over queries says so of most."""
    random = np.random.default_rng(0)
    n = 400
    held = sum(
        decide([better("", PLACE, arm("a", *(random.normal(size=(4, 30)) + random.normal(0, 3, (4, 1)))),
                       arm("b", *np.zeros((4, 30))), "ndcg")])[0].verdict == HOLDS
        for _ in range(n)
    )  # fmt: skip
    assert held <= stats.binom.isf(1e-3, n, 0.025)


def test_shared_queries_add_their_variance():
    random = np.random.default_rng(1)
    of_queries = random.normal(0.05, 0.3, 50)
    values = [of_queries + random.normal(0, 0.01, 50) for _ in range(3)]
    zero = np.zeros((3, 50))
    own, shared = (
        better("", PLACE, arm("a", *values, shared=one), arm("b", *zero, shared=one), "ndcg") for one in (False, True)
    )
    assert own.weakest.query_error == 0
    assert shared.weakest.query_error == pytest.approx(stats.sem(np.mean(values, axis=0)))
    error, freedom = shared.weakest.error
    assert error > shared.weakest.query_error
    assert freedom > 50  # seeds add next to nothing: the test is one over queries
    assert own.p < 1e-3 < shared.p


def test_differences_without_spread():
    same, ahead = arm("a", *[[0.5, 0.25]] * 3), arm("b", *[[0.75, 0.5]] * 3)
    assert better("", PLACE, same, same, "ndcg").p == 1
    assert better("", PLACE, ahead, same, "ndcg").p == 0
    assert no_worse("", PLACE, same, ahead, "ndcg", 0.01).p_against == 0
    assert equal("", PLACE, same, same, "ndcg", 0.01).p == 0
    assert equal("", PLACE, same, ahead, "ndcg", 0.01).p_against == 0


@given(st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=12), st.floats(0.001, 0.2))
def test_a_claim_and_its_opposite_are_never_both_likely(by_seed, margin):
    for kind, bound in (("above", 0.0), ("below", margin), ("within", margin)):
        claim = compared("", PLACE, kind, "", by_seed, bound)
        assert min(claim.p, claim.p_against) >= 0
        assert 0.5 <= max(claim.p, claim.p_against) <= 1


def test_an_identity_is_decided_by_its_exceptions():
    for exceptions, verdict in (((0, 0, 0), HOLDS), ((0, 1, 0), DOES_NOT_HOLD)):
        (one,) = decide([always("no query changes", PLACE, "queries that change", exceptions, 1200, why="So it is.")])
        assert (one.verdict, one.claim.exceptions) == (verdict, sum(exceptions))
        assert one.reason == ("" if verdict == HOLDS else "So it is.")
    found = decide([seeds(0.01), always("", PLACE, "", [0], 9)])
    assert found[0].p == pytest.approx(0.01)  # counted claims are not among those that Holm corrects for


def test_holm_by_hand_for_each_paper():
    found = decide([seeds(0.005), seeds(0.01), seeds(0.015), seeds(0.02, place="[S] table 2"), seeds(0.02)])
    assert [one.p for one in found] == pytest.approx([0.02, 0.03, 0.03, 0.02, 0.03])
    assert [one.verdict for one in found] == [HOLDS, NOT_DECIDED, NOT_DECIDED, HOLDS, NOT_DECIDED]
    assert [one.verdict for one in decide([seeds(0.999), seeds(0.5)])] == [DOES_NOT_HOLD, NOT_DECIDED]


def test_reasons_are_made_from_the_numbers():
    def reason(by_seed, kind="above", bound=0.0):
        (one,) = decide([compared("", PLACE, kind, "", by_seed, bound, why="Means: 1.")])
        return one.verdict, one.reason

    assert reason([1.0, 1.1, 1.05]) == (HOLDS, "")
    assert reason([-1.0, -1.1, -1.05]) == (DOES_NOT_HOLD, "All 3 seeds are below 0. Means: 1.")
    verdict, text = reason([1.0, -1.0, 0.5])
    assert verdict == NOT_DECIDED
    assert text.startswith("The seeds disagree: 2 of 3 are above 0.")
    verdict, text = reason([0.5, 1.0, 2.0])
    assert text.startswith("All 3 seeds are above 0, but too few to decide it among 1 claims. With this mean and this")
    needed = int(text.split("would take ")[1].split()[0])
    spread = np.std([0.5, 1.0, 2.0], ddof=1)
    p = [stats.t.sf(7 / 6 / (spread / math.sqrt(k)), k - 1) for k in (needed - 1, needed)]
    assert p[0] >= 0.025 > p[1]
    assert reason([0.2, 0.21, 0.2], "within", 0.1)[1].startswith("All 3 seeds are above 0.1.")


def test_all_parts_must_hold():
    good, weak, bad = (compared("", PLACE, "above", name, values, 0.0) for name, values in (
        ("good", [1.0, 1.1, 0.9]), ("weak", [0.1, -0.1, 0.2]), ("bad", [-1.0, -1.1, -0.9]),
    ))  # fmt: skip
    both = all_of("both", PLACE, [good, weak])
    assert (both.weakest.name, both.p) == ("weak", weak.p)
    assert both.p_against == min(1.0, 2 * weak.p_against)
    verdicts = [decide([all_of("", PLACE, parts)])[0].verdict for parts in ([good, good], [good, weak], [good, bad])]
    assert verdicts == [HOLDS, NOT_DECIDED, DOES_NOT_HOLD]
    with pytest.raises(DataError, match="different kinds or bounds"):
        all_of("", PLACE, [good, compared("", PLACE, "below", "", [1.0, 2.0], 0.0)])


def test_queries_without_a_value_are_left_out():
    one = arm("a", [0.5, None, 1.0], [1.0, 1.0, None])
    assert one.by_seed("ndcg") == [0.75, 1.0]
    assert one.mean("ndcg") == 0.875


def test_arms_that_do_not_match_are_refused():
    two = arm("a", [0.1, 0.2], [0.3, 0.4])
    for other in (arm("b", [0.1, 0.2]), arm("b", [0.1, 0.2], [0.3, None]), arm("b", [0.1, 0.2], [0.3])):
        with pytest.raises(DataError, match="'a' and 'b' were not measured on the same queries and seeds"):
            better("", PLACE, two, other, "ndcg")
    with pytest.raises(DataError, match="'a' was not measured by ap, but by ndcg, query"):
        two.mean("ap")
    with pytest.raises(DataError, match="no query of some seed has ndcg"):
        better("", PLACE, arm("a", [None]), arm("b", [None]), "ndcg")


def test_claims_that_cannot_be_right_are_refused():
    with pytest.raises(DataError, match=r"begins with \[B\], \[W\], \[S\] or 'beyond the papers'"):
        seeds(0.1, place="table 1")
    with pytest.raises(DataError, match="margin of a claim must be positive"):
        compared("", PLACE, "within", "", [0.1, 0.2], 0.0)


def test_claims_go_to_json_and_back():
    claim = Claim(
        "a", "beyond the papers ([W] §6)", "within", 0.1, (Part("x", (0.1, 0.2), 0.5), Part("y", (1.0,))), "w"
    )
    text = json.dumps(claim.to_dict(), allow_nan=False)
    assert Claim.from_dict(json.loads(text)) == claim
    assert claim.paper == "beyond"
