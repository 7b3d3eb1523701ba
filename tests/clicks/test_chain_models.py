"""Cascade, dependent clicks and DBN against enumeration and plain Python."""

import math
import warnings
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from podium.clicks import DBN, Cascade, DependentClicks
from podium.errors import DataError, PodiumWarning
from tests.clicks.sessions import (
    Chain,
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


def last_clicks(sample):
    return Counter(session.pairs[session.last] for session in sample if session.last >= 0)


def satisfaction_mean(sample):
    return (1 + sum(last_clicks(sample).values())) / (2 + sum(sum(session.clicks) for session in sample))


def reference(kind, sample):
    """A model with the published closed forms."""
    attraction = attraction_of(sample, SMOOTHING, first_only=kind == "cascade")
    if kind == "cascade":
        return Chain(attraction, lambda session, place: 1.0, 1.0)
    if kind == "dependent clicks":
        clicks = Counter(place for session in sample for place, click in enumerate(session.clicks) if click)
        ends = Counter(session.last for session in sample)
        return Chain(attraction, lambda session, place: (1 + ends[place]) / (2 + clicks[place]), 1.0)
    satisfaction = satisfaction_of(sample)
    return Chain(attraction, lambda session, place: satisfaction[session.pairs[place]], 1.0)


def satisfaction_of(sample):
    """The closed form of the simplified DBN."""
    clicks, ends, mean = all_clicks(sample), last_clicks(sample), satisfaction_mean(sample)
    return {
        pair: (SMOOTHING * mean + ends[pair]) / (SMOOTHING + clicks[pair]) for s in sample for pair in s.pairs
    }  # fmt: skip


def all_clicks(sample):
    return Counter(pair for s in sample for pair, click in zip(s.pairs, s.clicks, strict=True) if click)


MODELS = {
    "cascade": Cascade(SMOOTHING),
    "dependent clicks": DependentClicks(SMOOTHING),
    "dbn": DBN(SMOOTHING, simplified=True),
}


@pytest.mark.parametrize("kind", MODELS)
@given(sample=sessions())
def test_closed_forms_agree_with_enumeration(kind, sample):
    log = log_of(sample)
    model, slow = MODELS[kind].fit(log), reference(kind, sample)
    table = model.attractiveness
    assert dict(zip(zip(table.query, table.document, strict=True), table.value, strict=True)) == pytest.approx(
        slow.attraction, rel=1e-12
    )
    marginal = np.concatenate([examination(slow, session, given_clicks=False) for session in sample])
    np.testing.assert_allclose(model.examination(log), marginal, rtol=1e-9, atol=1e-12)
    chances = [likelihood(slow, session) for session in sample]
    if kind == "cascade" and min(chances) == 0:
        with pytest.warns(PodiumWarning, match="use a model that allows several clicks"):
            assert model.log_likelihood(log) == -np.inf
    else:
        assert model.log_likelihood(log) == pytest.approx(sum(map(math.log, chances)), rel=1e-9)
        given_clicks = np.concatenate([examination(slow, session, given_clicks=True) for session in sample])
        np.testing.assert_allclose(model.examination(log, given_clicks=True), given_clicks, rtol=1e-9, atol=1e-12)


def em_step(sample, attraction, satisfaction, gamma):
    """One step of EM with expectations by enumeration."""
    model = Chain(attraction, lambda session, place: satisfaction[session.pairs[place]], gamma)
    examined, satisfied, judged, trials, successes = Counter(), Counter(), Counter(), 0.0, 0.0
    for session in sample:
        end = len(session.documents) - 1
        for place, pair in enumerate(session.pairs):
            examined[pair] += expectation(model, session, lambda rows, k=place: rows[k][0])
            if place == end:
                continue
            if session.clicks[place]:
                judged[pair] += 1
                satisfied[pair] += expectation(model, session, lambda rows, k=place: rows[k][2])
            trials += expectation(model, session, lambda rows, k=place: rows[k][0] * (1 - rows[k][2]))
            successes += expectation(model, session, lambda rows, k=place: rows[k + 1][0])
    clicks, mean, mean_s = all_clicks(sample), counts(sample)[2], satisfaction_mean(sample)
    return (
        {pair: (SMOOTHING * mean + clicks[pair]) / (SMOOTHING + examined[pair]) for pair in attraction},
        {pair: (SMOOTHING * mean_s + satisfied[pair]) / (SMOOTHING + judged[pair]) for pair in attraction},
        (1 + successes) / (2 + trials),
    )


def fit_steps(model, log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)  # EM is to stop early
        return model.fit(log)


@given(sample=sessions(most=5))
def test_dbn_steps_agree_with_enumeration(sample):
    parameters = attraction_of(sample, SMOOTHING), satisfaction_of(sample), 0.9
    for _ in range(3):
        parameters = em_step(sample, *parameters)
    model = fit_steps(DBN(SMOOTHING, max_steps=3, tolerance=0), log_of(sample))
    pairs = sorted(parameters[0])
    np.testing.assert_allclose(model.attractiveness.value, [parameters[0][pair] for pair in pairs], rtol=1e-9)
    np.testing.assert_allclose(model.satisfaction.value, [parameters[1][pair] for pair in pairs], rtol=1e-9)
    assert model.parameters["continuation"][0] == pytest.approx(parameters[2], rel=1e-9)


@given(sample=sessions(longest=4, most=12))
def test_dbn_steps_never_lower_the_posterior(sample):
    log, mean, mean_s = log_of(sample), counts(sample)[2], satisfaction_mean(sample)

    def posterior(model):
        value = model.log_likelihood(log) + beta_log((1, 1), model.parameters["continuation"][0])
        value += sum(beta_log((SMOOTHING * mean, SMOOTHING * (1 - mean)), v) for v in model.attractiveness.value)
        return value + sum(
            beta_log((SMOOTHING * mean_s, SMOOTHING * (1 - mean_s)), v) for v in model.satisfaction.value
        )

    values = [posterior(fit_steps(DBN(SMOOTHING, max_steps=n, tolerance=0), log)) for n in range(1, 7)]
    assert all(after >= before - 1e-9 for before, after in pairwise(values))


def simulated(n, attraction, satisfaction, gamma, seed=0):
    rng = np.random.default_rng(seed)
    names, result = sorted(attraction), []
    for _ in range(n):
        documents, clicks, examined = rng.permutation(names).tolist(), [], True
        for document in documents:
            click = examined and rng.random() < attraction[document]
            clicks.append(bool(click))
            examined = examined and not (click and rng.random() < satisfaction[document]) and rng.random() < gamma
        result.append(Session("q", tuple(documents), tuple(clicks)))
    return result


def test_dbn_recovers_its_parameters():
    attraction = dict(zip("abcdef", (0.1, 0.2, 0.35, 0.5, 0.65, 0.8), strict=True))
    satisfaction = dict(zip("abcdef", (0.7, 0.2, 0.5, 0.3, 0.8, 0.4), strict=True))
    model = DBN(tolerance=1e-6, max_steps=2000).fit(log_of(simulated(20_000, attraction, satisfaction, 0.8)))
    np.testing.assert_allclose(model.attractiveness.value, list(attraction.values()), atol=0.03)
    np.testing.assert_allclose(model.satisfaction.value, list(satisfaction.values()), atol=0.06)
    assert model.parameters["continuation"][0] == pytest.approx(0.8, abs=0.02)


def test_a_fixed_continuation_is_not_estimated():
    model = DBN(continuation=0.7).fit(log_of(random_sessions(50)))
    assert model.parameters["continuation"].tolist() == [0.7]


def test_long_lists_without_clicks_do_not_underflow():
    session = Session("q", tuple(f"d{k}" for k in range(3000)), (True, *[False] * 2999))
    model = DBN(continuation=1.0).fit(log_of([session] * 3))
    assert np.isfinite(model.attractiveness.value).all()
    assert np.isfinite(model.satisfaction.value).all()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"smoothing": 0}, "smoothing must be positive"),
        ({"continuation": 1.5}, "continuation must be above 0 and at most 1"),
        ({"continuation": 0.5, "simplified": True}, "continuation must be 1"),
        ({"max_steps": 0}, "max_steps"),
        ({"tolerance": -1}, "tolerance"),
    ],
)
def test_bad_settings_are_refused(settings, problem):
    with pytest.raises(DataError, match=problem):
        DBN(**settings)


def test_em_that_does_not_converge_warns():
    with pytest.warns(PodiumWarning, match="max_steps=1 although a parameter still changed"):
        DBN(max_steps=1).fit(log_of(random_sessions(20)))
