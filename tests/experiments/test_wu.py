"""What the experiments of [W] are made of."""

import numpy as np
import pytest

import podium
from podium.reproduce.arms import Arm, trees_needed
from podium.reproduce.claims import DOES_NOT_HOLD, HOLDS, NOT_DECIDED, all_of, better, decide
from podium.reproduce.experiments import accuracy


def arm(name, values):
    return Arm(name, [{"query": [str(k) for k in range(len(values))], "ndcg": list(values)}])


NOISE = np.random.default_rng(0).normal(size=200)
BASE = arm("base", np.zeros(200))


def against(shift):
    return better("", "[W] table 4", arm(f"{shift:+}", NOISE + shift), BASE, "ndcg")


@pytest.mark.parametrize(
    ("shifts", "verdict"),
    [
        ((1.0, 0.5), HOLDS),
        ((1.0, 0.05), NOT_DECIDED),
        ((1.0, -0.5), DOES_NOT_HOLD),
    ],
)
def test_several_claims_as_one(shifts, verdict):
    parts = [against(shift) for shift in shifts]
    [claim] = decide([all_of("all", "[W] table 4", parts, finding="found")])
    weakest = min(parts, key=lambda part: part.estimate)
    assert claim.verdict == verdict
    assert claim.p == max(part.p for part in parts)
    assert claim.p_against == min(1.0, 2 * min(part.p_against for part in parts))
    assert (claim.estimate, claim.interval) == (weakest.estimate, weakest.interval)
    assert (claim.text, claim.place, claim.finding) == ("all", "[W] table 4", "found")


def test_parts_that_all_lack_decide_nothing_at_a_third_of_the_level():
    """Bonferroni: one part of three with p = .02 against it is not enough."""
    parts = [against(1.0), against(1.0), against(-0.17)]
    assert 0.05 / 3 < parts[2].p_against < 0.05
    assert decide([all_of("", "[W]", parts)])[0].verdict == NOT_DECIDED


def test_trees_needed_for_a_target_that_only_later_trees_reach():
    means = {40: 0.62, 10: 0.5, 30: 0.7}
    assert trees_needed(means, 0.6) == 30
    assert trees_needed(means, 0.71) is None


def test_the_single_feature_is_the_one_that_ranks_best_whatever_its_sign():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, 300)
    noise, constant = rng.normal(size=300), np.ones(300)
    features = np.column_stack([noise, -labels + 0.1 * noise, labels + 5 * noise, constant])
    data = podium.RankingData(features, labels, qid=np.arange(300) // 10)
    scores = accuracy._best_feature(data, data)
    assert np.array_equal(scores, -data.feature(1))
