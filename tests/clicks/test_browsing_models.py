"""The position-based and the user browsing model against enumeration and plain Python."""

import math
import warnings
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from podium.clicks import ClickLog, PositionBased, UserBrowsing
from podium.errors import DataError, PodiumWarning
from tests.clicks.sessions import (
    Browsing,
    Session,
    attraction_of,
    beta_log,
    counts,
    examination,
    expectation,
    likelihood,
    log_of,
    random_sessions,
    sessions,
)

SMOOTHING = 1.5
MODELS = {"position": PositionBased, "browsing": UserBrowsing}


def slot(kind, position, last):
    return (position, 0 if kind == "position" else last)


def slots_of(kind, session):
    last = 0
    for position, click in enumerate(session.clicks, 1):
        yield slot(kind, position, last)
        last = position if click else last


def em_step(kind, sample, attraction, gamma):
    model = Browsing(attraction, lambda position, last: gamma[slot(kind, position, last)])
    of_pairs, of_slots, shown, clicks = Counter(), Counter(), Counter(), Counter()
    for session in sample:
        for place, (pair, where) in enumerate(zip(session.pairs, slots_of(kind, session), strict=True)):
            examined = expectation(model, session, lambda rows, k=place: rows[k][0])
            of_pairs[pair] += examined
            of_slots[where] += examined
            shown[where] += 1
            clicks[pair] += session.clicks[place]
    mean = counts(sample)[2]
    return (
        {pair: (SMOOTHING * mean + clicks[pair]) / (SMOOTHING + of_pairs[pair]) for pair in attraction},
        {where: 1.0 if where == (1, 0) else (1 + of_slots[where]) / (2 + shown[where]) for where in gamma},
    )


def fit_steps(model, log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)  # EM is to stop early
        return model.fit(log)


@pytest.mark.parametrize("kind", MODELS)
@given(sample=sessions(most=5))
def test_steps_agree_with_enumeration(kind, sample):
    deepest = max(len(session.documents) for session in sample)
    slots = [(p, last) for p in range(1, deepest + 1) for last in range(p) if kind == "browsing" or last == 0]
    parameters = attraction_of(sample, SMOOTHING), {where: 1.0 if where == (1, 0) else 0.5 for where in slots}
    for _ in range(3):
        parameters = em_step(kind, sample, *parameters)
    log = log_of(sample)
    model = fit_steps(MODELS[kind](SMOOTHING, max_steps=3, tolerance=0), log)
    attraction, gamma = parameters
    np.testing.assert_allclose(model.attractiveness.value, [attraction[pair] for pair in sorted(attraction)], rtol=1e-9)
    np.testing.assert_allclose(model.parameters["examination"], [gamma[where] for where in slots], rtol=1e-9)

    slow = Browsing(attraction, lambda position, last: gamma[slot(kind, position, last)])
    for given_clicks in (False, True):
        expected = np.concatenate([examination(slow, session, given_clicks) for session in sample])
        np.testing.assert_allclose(model.examination(log, given_clicks), expected, rtol=1e-9)
    chances = [likelihood(slow, session) for session in sample]
    assert model.log_likelihood(log) == pytest.approx(sum(map(math.log, chances)), rel=1e-9)


@pytest.mark.parametrize("kind", MODELS)
@given(sample=sessions(longest=4, most=12))
def test_steps_never_lower_the_posterior(kind, sample):
    log, mean = log_of(sample), counts(sample)[2]

    def posterior(model):
        gamma = model.parameters["examination"][1:]
        prior = sum(beta_log((SMOOTHING * mean, SMOOTHING * (1 - mean)), v) for v in model.attractiveness.value)
        return model.log_likelihood(log) + prior + sum(beta_log((1, 1), value) for value in gamma)

    values = [posterior(fit_steps(MODELS[kind](SMOOTHING, n, 0), log)) for n in range(1, 7)]
    assert all(after >= before - 1e-9 for before, after in pairwise(values))


def simulated(n, attraction, gamma, seed=0):
    rng = np.random.default_rng(seed)
    names, result = sorted(attraction), []
    for _ in range(n):
        documents, clicks, last = rng.permutation(names).tolist(), [], 0
        for position, document in enumerate(documents, 1):
            clicks.append(bool(rng.random() < attraction[document] * gamma(position, last)))
            last = position if clicks[-1] else last
        result.append(Session("q", tuple(documents), tuple(clicks)))
    return result


ATTRACTION = dict(zip("abcde", (0.15, 0.3, 0.5, 0.65, 0.8), strict=True))


@pytest.mark.parametrize("by", ["em", "intervention"])
def test_position_based_recovers_its_parameters(by):
    log = log_of(simulated(20_000, ATTRACTION, lambda position, last: 1 / position))
    model = PositionBased(by=by, tolerance=1e-6, max_steps=2000).fit(log)
    np.testing.assert_allclose(model.parameters["examination"], 1 / np.arange(1, 6), atol=0.02)
    np.testing.assert_allclose(model.attractiveness.value, list(ATTRACTION.values()), atol=0.02)
    np.testing.assert_allclose(model.propensities(log), 1 / np.arange(1, 6), atol=0.02)


def test_user_browsing_recovers_its_parameters():
    def gamma(position, last):
        return 1.0 if position == 1 else 0.9 / (position - last)

    log = log_of(simulated(30_000, ATTRACTION, gamma))
    model = UserBrowsing(tolerance=1e-6, max_steps=2000).fit(log)
    table = model.examination_by_last_click
    expected = [[gamma(p, last) if last < p else np.nan for last in range(5)] for p in range(1, 6)]
    np.testing.assert_allclose(table, expected, atol=0.05)
    np.testing.assert_allclose(model.attractiveness.value, list(ATTRACTION.values()), atol=0.03)


def test_interventions_are_not_misled_by_an_informed_ranker():
    """The good document is first in most impressions; its few swaps show the effect of the position."""
    rng = np.random.default_rng(1)
    log_sessions = []
    for k in range(40_000):
        documents = ("good", "bad") if k % 10 else ("bad", "good")
        chances = [(0.6 if d == "good" else 0.2) * g for d, g in zip(documents, (1.0, 0.4), strict=True)]
        log_sessions.append(Session("q", documents, tuple((rng.random(2) < chances).tolist())))
    model = PositionBased(by="intervention", tolerance=1e-7, max_steps=5000).fit(log_of(log_sessions))
    assert model.parameters["examination"][1] == pytest.approx(0.4, abs=0.02)
    assert model.attractiveness.value == pytest.approx([0.2, 0.6], abs=0.02)


def test_two_swapped_positions_have_the_ratio_of_weighted_rates():
    """The weights are those of Mantel and Haenszel."""
    shown, clicks = {"a": (30, 50), "b": (20, 10)}, {"a": (15, 10), "b": (4, 1)}
    log_sessions = []
    for pair in shown:
        for place in (0, 1):
            for k in range(shown[pair][place]):
                click = k < clicks[pair][place]
                other = f"other {len(log_sessions)}"
                log_sessions.append(
                    Session("q", (pair, other)[:: 1 if place == 0 else -1], (click, False)[:: 1 if place == 0 else -1])
                )
    weights = {pair: math.prod(n) / sum(n) for pair, n in shown.items()}
    rates = [sum(w * clicks[p][k] / shown[p][k] for p, w in weights.items()) for k in (0, 1)]
    model = PositionBased(1e-9, by="intervention", tolerance=1e-12, max_steps=100_000).fit(log_of(log_sessions))
    total = sum(weights.values())
    # The prior of γ is one success in two trials: the mode of
    # r^c (1 - r)^(n - c) (γ r)^c' (1 - γ r)^(n - c') γ (1 - γ), c and c' the weighted clicks
    grid = np.linspace(0.01, 0.99, 981)
    r = np.linspace(0.01, 0.99, 981)[:, None]
    logs = (
        rates[0] * np.log(r) + (total - rates[0]) * np.log(1 - r) + rates[1] * np.log(grid * r)
        + (total - rates[1]) * np.log(1 - grid * r) + np.log(grid) + np.log(1 - grid)
    )  # fmt: skip
    best = grid[np.unravel_index(np.argmax(logs), logs.shape)[1]]
    assert model.parameters["examination"][1] == pytest.approx(best, abs=2e-3)


def test_a_single_position_is_always_examined():
    log = log_of([Session("q", ("a",), (True,)), Session("q", ("b",), (False,))])
    models = [PositionBased(by=by).fit(log) for by in ("em", "intervention")]
    assert [model.parameters["examination"].tolist() for model in models] == [[1.0], [1.0]]
    assert models[0].labels(log).tolist() == models[1].labels(log).tolist()


def test_positions_without_swaps_are_refused():
    with pytest.raises(DataError, match=r"position 2 .*use by='em'"):
        PositionBased(by="intervention").fit(log_of([Session("q", ("a", "b"), (True, False))]))


def test_a_log_without_position_1_is_refused():
    log = ClickLog.from_arrays(query=["q"], document=["a"], position=[2], clicked=[True])
    for model in (PositionBased(), UserBrowsing()):
        with pytest.raises(DataError, match="no row at position 1"):
            model.fit(log)


def test_unknown_estimation_methods_are_refused():
    with pytest.raises(DataError, match="by must be 'em' or 'intervention', but got 'swaps'"):
        PositionBased(by="swaps")


def test_very_long_lists_are_refused_by_user_browsing():
    log = ClickLog.from_arrays(query=["q", "q"], document=["a", "b"], position=[1, 2001], clicked=[True, False])
    with pytest.raises(DataError, match="at most 2000 positions, but the log has position 2001"):
        UserBrowsing().fit(log)


def test_positions_beyond_the_log_have_the_last_examination():
    sample = random_sessions(100, longest=3)
    longer = log_of([Session("q0", tuple("abcdef"), (True, False, False, True, False, False))])
    model = PositionBased().fit(log_of(sample))
    assert model.examination(longer)[2:].tolist() == [model.parameters["examination"][2]] * 4
    browsing = UserBrowsing().fit(log_of(sample))
    table = browsing.examination_by_last_click
    expected = [table[0, 0], table[1, 1], table[2, 1], table[2, 1], table[2, 2], table[2, 2]]
    assert browsing.examination(longer, given_clicks=True).tolist() == expected
