"""Objectives as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium import DataError
from podium.objectives import (
    XENDCG,
    Anneal,
    Constant,
    CrossEntropy,
    Debiased,
    ExponentialGrowth,
    ExponentialShare,
    Fidelity,
    Hinge,
    Lambda,
    LambdaLoss,
    LinearGrowth,
    ListMLE,
    ListNet,
    Local,
    LocalSigmoid,
    Logistic,
    Multiclass,
    Objective,
    Pairwise,
    Preferences,
    QueryRegression,
    RankCosine,
    Regression,
    SquaredHinge,
    Tiers,
    describe,
    parse,
)  # fmt: skip

links = st.sampled_from([CrossEntropy(), CrossEntropy(2.0), Hinge(), SquaredHinge(0.5), Fidelity(), LocalSigmoid(0.1)])
measures = st.sampled_from(["ndcg", "ndcg@10", "err@5", "ap", "precision@3", "cndcg@3", "rr"])
terms = st.one_of(
    st.builds(Lambda, measures, st.sampled_from([None, 3]), st.sampled_from([1.0, 0.5]), st.booleans()),
    st.builds(Local, measures, st.sampled_from([0.0, -0.5])),
    st.builds(Pairwise, links, st.sampled_from(["relevance", "clicks"])),
    st.builds(LambdaLoss, st.just("ndcg"), st.sampled_from([10.0, 2.5])),
)
schedules = st.sampled_from([
    LinearGrowth(), LinearGrowth(0.25, 0.001), ExponentialGrowth(0.5, 250.0), ExponentialShare(), Constant(0.3),
])  # fmt: skip
simple = st.one_of(
    terms, st.builds(Preferences, links),
    st.sampled_from([
        ListNet(), ListMLE("clicks"), RankCosine(), XENDCG(seed=4), QueryRegression(), Regression(),
        Logistic(0.5, True), Multiclass("gain"), Tiers(Lambda(), Lambda("cndcg"), weights=(0.8, 0.2)),
        Debiased(Lambda(), (1.0, 0.5)), Debiased(ListNet(), rate=0.2, l2=1.0),
    ]),
)  # fmt: skip
objectives = st.one_of(
    simple, st.builds(Anneal, simple, simple, schedules),
    st.builds(lambda a, b, c: Tiers(a, b, c, weights=(0.5, 0.25, 0.25), nonzero=(False, True, False)), *[terms] * 3),
)  # fmt: skip


@given(objectives)
def test_text_comes_back(objective):
    assert parse(describe(objective)) == objective


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lambda(ndcg)", Lambda("ndcg")),
        ("Lambda(err@5, truncation=7, sigma=.5)", Lambda("err@5", 7, 0.5)),
        ("listnet", ListNet()),
        ("list_net()", ListNet()),
        ("pairwise(squared-hinge(2))", Pairwise(SquaredHinge(2))),
        ("pairwise(hinge)", Pairwise(Hinge())),
        ("tiers(lambda(ndcg), lambda(cndcg), weights=[0.9, 0.1])",
         Tiers(Lambda(), Lambda("cndcg"), weights=(0.9, 0.1))),
        ("anneal(lambda(ndcg), local(ndcg@3), linear_growth(0.1, 0.01))",
         Anneal(Lambda(), Local("ndcg@3"), LinearGrowth(0.1, 0.01))),
        ("logistic(balanced=true)", Logistic(balanced=True)),
        ("debiased(lambda('ndcg'), none, 0.2)", Debiased(Lambda(), None, 0.2)),
    ],
)  # fmt: skip
def test_what_people_write(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lambada(ndcg)", "column 1: there is no 'lambada'; objectives are anneal, debiased"),
        ("ndcg", "is no objective; there are anneal"),
        ("lambda(ndcg", r"column 12: '\)' is expected here"),
        ("lambda(ndcg))", r"column 13: '\)' is not expected"),
        ("lambda(sigma=2, ndcg)", "column 17: values without a key"),
        ("lambda(slope=2)", "column 1: Lambda does not take these arguments"),
        ("lambda(;)", "column 8: cannot be read"),
        ("lambda(sigma=)", "column 14: a value is expected"),
        ("lambda(sigma=0)", "sigma must be positive"),
        ("lambda(nonsense)", "nonsense"),
        ("hinge()", "is no objective"),
        ("", "column 1: a value is expected"),
        ("anneal", "Anneal does not take these arguments"),
        ("anneal(lambda, local, constant)", "Constant does not take these arguments"),
        ("debiased(3)", "takes an objective"),
        ("debiased(lambda, [a])", "propensities must be a list of numbers"),
        ("lambda(sigma=1, sigma=2)", "'sigma' is not expected"),
        ("debiased(lambda, [a=0.5])", "'a' is not expected"),
        ("pairwise(labels=3)", "labels must name a label source"),
        ("logistic(above=a)", "above must be a number"),
        ("lambda(normalize=yes)", "normalize must be True or False"),
        ("lambda(sigma=true)", "sigma must be a number"),
        ("xendcg(seed=abc)", "seed must be a whole number"),
        ("lambda(" + "[" * 3000, "too many brackets"),
        ("lambda(ndcg(gain=linear)@10)", "stand in quotes|there is no 'ndcg'"),
    ],
)
def test_what_makes_no_sense(text, message):
    with pytest.raises(DataError, match=message):
        parse(text)


def test_numbers_of_numpy_are_numbers():
    for objective in (Lambda(sigma=np.float32(2)), LambdaLoss(mu=np.int64(3)), Lambda(truncation=np.int64(3))):
        assert parse(describe(objective)) == objective
    mixed = Tiers(Lambda(), Lambda("cndcg"), weights=np.array([0.5, 0.5]))
    assert parse(describe(mixed)) == mixed
    assert Anneal(Lambda(), Local(), lambda m: np.float32(0.5))


def test_ones_own_objective_has_no_text():
    class Mine(Objective):
        def bind(self, data):
            raise NotImplementedError

    with pytest.raises(DataError, match="cannot be written as text"):
        describe(Mine())
    with pytest.raises(DataError, match="cannot be written as text"):
        describe(Anneal(Lambda(), Local(), lambda m: 0.5))
