"""The tests behind claims, against SciPy and by hand; verdicts in both directions."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from podium.errors import DataError
from podium.reproduce import Arm, better, decided_by, equal, no_worse
from podium.reproduce.claims import DOES_NOT_HOLD, HOLDS, NOT_DECIDED, Claim, decide

PLACE = "[W] table 1"


def arm(name, *of_seeds, queries=None):
    return Arm(name, [
        {"query": queries or [f"q{k}" for k in range(len(values))], "ndcg": list(values)} for values in of_seeds
    ])  # fmt: skip


@pytest.fixture(scope="module")
def pair():
    random = np.random.default_rng(5)
    first = random.random(40)
    return first, first - random.normal(0.02, 0.05, 40)


def claim(p, p_against=1.0, place=PLACE):
    return decided_by("it is so", place, "a test", 0.1, p, p_against)


def test_better_is_scipys_paired_t_test(pair):
    first, second = pair
    found = better("a is better", PLACE, arm("a", first), arm("b", second), "ndcg")
    known = stats.ttest_rel(first, second)
    assert found.p == pytest.approx(known.pvalue, rel=1e-9)
    assert found.p_against == 1
    assert found.estimate == pytest.approx((first - second).mean())
    assert found.interval == pytest.approx(tuple(known.confidence_interval(0.95)))
    opposite = better("b is better", PLACE, arm("b", second), arm("a", first), "ndcg")
    assert (opposite.p, opposite.p_against) == (1, pytest.approx(known.pvalue, rel=1e-9))


def test_better_by_a_lead(pair):
    first, second = pair
    found = better("a is far ahead", PLACE, arm("a", first), arm("b", second), "ndcg", lead=0.1)
    assert found.p == 1
    assert found.p_against == pytest.approx(stats.ttest_1samp(first - second, 0.1).pvalue, rel=1e-9)
    assert "by more than 0.1" in found.test


def test_no_worse_is_a_one_sided_test(pair):
    first, second = pair
    found = no_worse("a is no worse", PLACE, arm("a", first), arm("b", second), "ndcg", 0.01)
    for p, side in ((found.p, "greater"), (found.p_against, "less")):
        assert p == pytest.approx(stats.ttest_1samp(first - second, -0.01, alternative=side).pvalue, rel=1e-9)
    assert found.p + found.p_against == pytest.approx(1)


def test_equal_is_two_one_sided_tests(pair):
    first, second = pair
    for margin in (0.001, 0.1):
        found = equal("they are equal", PLACE, arm("a", first), arm("b", second), "ndcg", margin)
        above, below = (
            stats.ttest_1samp(first - second, bound, alternative=side).pvalue
            for bound, side in ((-margin, "greater"), (margin, "less"))
        )
        assert found.p == pytest.approx(max(above, below), rel=1e-9)
        assert found.p_against == pytest.approx(min(1, 2 * min(1 - above, 1 - below)), rel=1e-6)


def test_differences_without_spread():
    same, ahead = arm("a", [0.5, 0.25, 1.0]), arm("b", [0.75, 0.5, 1.25])
    assert better("", PLACE, same, same, "ndcg").p == 1
    assert better("", PLACE, ahead, same, "ndcg").p == 0
    assert no_worse("", PLACE, same, same, "ndcg", 0.01).p == 0
    assert no_worse("", PLACE, same, ahead, "ndcg", 0.01).p_against == 0
    assert equal("", PLACE, same, same, "ndcg", 0.01).p == 0
    assert equal("", PLACE, same, ahead, "ndcg", 0.01).p_against == 0


@given(st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=12), st.floats(0.001, 0.2))
def test_a_claim_and_its_opposite_are_never_both_likely(differences, margin):
    base, other = arm("a", differences), arm("b", [0.0] * len(differences))
    claims = (
        better("", PLACE, base, other, "ndcg"), no_worse("", PLACE, base, other, "ndcg", margin),
        equal("", PLACE, base, other, "ndcg", margin),
    )  # fmt: skip
    for one in claims:
        assert 0 <= one.p <= 1
        assert 0 <= one.p_against <= 1
        assert max(one.p, one.p_against) >= 0.5
    assert claims[2].p >= claims[1].p - 1e-12  # equal is more than no worse


def test_holm_by_hand_for_each_paper():
    found = decide([claim(0.01), claim(0.02), claim(0.03), claim(0.02, place="[S] table 2"), claim(0.04)])
    assert [one.p_holm for one in found] == pytest.approx([0.04, 0.06, 0.06, 0.02, 0.06])
    assert [one.verdict for one in found] == [HOLDS, NOT_DECIDED, NOT_DECIDED, HOLDS, NOT_DECIDED]


def test_verdicts_in_both_directions_and_without_p():
    found = decide([claim(1.0, 0.001), claim(0.001), claim(0.5, 0.5), claim(math.nan, math.nan)])
    assert [one.verdict for one in found] == [DOES_NOT_HOLD, HOLDS, NOT_DECIDED, NOT_DECIDED]
    assert found[0].p_against_holm == pytest.approx(0.003)  # the claim without p does not count
    assert math.isnan(found[3].p_holm)


def test_a_query_of_several_seeds_counts_once_with_its_mean():
    first, second = arm("a", [0.2, 0.6, 1.0], [0.4, 0.8, 1.0]), arm("b", [0.1, 0.1, 0.5], [0.1, 0.1, 0.1])
    assert first.of_queries("ndcg") == pytest.approx({"q0": 0.3, "q1": 0.7, "q2": 1.0})
    found = better("", PLACE, first, second, "ndcg")
    assert found.p == pytest.approx(stats.ttest_rel([0.3, 0.7, 1.0], [0.1, 0.1, 0.3]).pvalue)
    assert found.by_seed == pytest.approx((0.6 - 0.7 / 3, 2.2 / 3 - 0.1))


def test_queries_without_a_value_are_left_out():
    one = arm("a", [0.5, None, math.nan, 1.0])
    assert one.n_queries("ndcg") == 2
    assert one.mean("ndcg") == 0.75


def test_arms_that_do_not_match_are_refused():
    two = arm("a", [0.1, 0.2], [0.3, 0.4])
    for other, message in (
        (arm("b", [0.1, 0.2]), "'a' has 2 seeds, 'b' has 1"),
        (arm("b", [0.1, 0.2], [0.3, None]), "not measured on the same queries"),
        (arm("b", [0.1, 0.2], [0.3, 0.4], queries=["q0", "x"]), "not measured on the same queries"),
    ):
        with pytest.raises(DataError, match=message):
            better("", PLACE, two, other, "ndcg")
    with pytest.raises(DataError, match="'a' was not measured by ap, but by ndcg, query"):
        two.mean("ap")
    with pytest.raises(DataError, match="needs two queries or more"):
        no_worse("", PLACE, arm("a", [0.1]), arm("b", [0.2]), "ndcg", 0.1)


def test_claims_that_cannot_be_right_are_refused():
    with pytest.raises(DataError, match=r"begins with \[B\], \[W\], \[S\] or 'beyond the papers'"):
        claim(0.1, place="table 1")
    with pytest.raises(DataError, match=r"p_against of a claim is between 0 and 1, but is 1\.5"):
        claim(0.1, 1.5)
    with pytest.raises(DataError, match="margin of a claim must not be negative"):
        no_worse("", PLACE, arm("a", [0.1, 0.2]), arm("b", [0.1, 0.2]), "ndcg", -0.1)
    with pytest.raises(DataError, match="margin"):
        equal("", PLACE, arm("a", [0.1, 0.2]), arm("b", [0.1, 0.2]), "ndcg", 0.0)


def test_claims_go_to_json_and_back():
    for one in decide([claim(0.01), claim(math.nan, math.nan, place="beyond the papers ([W] §6)")]):
        text = json.dumps(one.to_dict(), allow_nan=False)
        again = Claim.from_dict(json.loads(text))
        assert json.dumps(again.to_dict()) == text
        assert math.isnan(again.interval[0])
        assert math.isnan(again.p) == math.isnan(one.p)
        assert again.verdict == one.verdict
    assert again.paper == "beyond"
