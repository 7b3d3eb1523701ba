"""Objectives as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium import DataError
from podium.measures import AP, CNDCG, DCG, ERR, NDCG, RBP, RR, Gain, PairwiseAccuracy, Precision, Recall, as_measure
from podium.objectives import (
    SVMMAP,
    XENDCG,
    Anneal,
    ApproxNDCG,
    Constant,
    CrossEntropy,
    Cumulative,
    Debiased,
    ExponentialGrowth,
    ExponentialShare,
    Fidelity,
    GBRank,
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
    Ordinal,
    Pairwise,
    Preferences,
    QueryRegression,
    QuerySoftMax,
    RankCosine,
    Regression,
    SoftRank,
    SquaredHinge,
    Sum,
    Tiers,
    TopListNet,
    describe,
    parse,
)  # fmt: skip
from podium.objectives.parsing import OF_OTHER_TOOLS


def any_lambda(measure, truncation, sigma, normalize):
    """λ with one cutoff: that of the measure, or a truncation."""
    has_cutoff = as_measure(measure).cutoff is not None
    return Lambda(measure, None if has_cutoff else truncation, sigma, normalize)


links = st.sampled_from([CrossEntropy(), CrossEntropy(2.0), Hinge(), SquaredHinge(0.5), Fidelity(), LocalSigmoid(0.1)])
measures = st.sampled_from(["ndcg", "ndcg@10", "err@5", "ap", "precision@3", "cndcg@3", "rr"])
terms = st.one_of(
    st.builds(any_lambda, measures, st.sampled_from([None, 3]), st.sampled_from([1.0, 0.5]), st.booleans()),
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
        SoftRank(), SoftRank("ndcg@3", 0.5), SoftRank("precision@4", exact_limit=3, samples=4, seed=2), Ordinal(),
        Debiased(Lambda(), (1.0, 0.5)), Debiased(ListNet(), rate=0.2, l2=1.0), ApproxNDCG(sigma=2.0), GBRank(0.5),
        QuerySoftMax(beta=0.5), SVMMAP(), SVMMAP(2.0), TopListNet(2), TopListNet(3, "clicks", 2, 5),
    ]),
)  # fmt: skip
objectives = st.one_of(
    simple, st.builds(Anneal, simple, simple, schedules), st.builds(Sum, simple, simple),
    st.builds(lambda a, b, w: Sum(a, b, weights=(w, 1 - w)), simple, simple, st.sampled_from([0.9, 0.25, 1.0])),
    st.builds(lambda a, b, c: Tiers(a, b, c, weights=(0.5, 0.25, 0.25), nonzero=(False, True, False)), *[terms] * 3),
)  # fmt: skip


@given(objectives)
def test_described_objectives_parse_back(objective):
    assert parse(describe(objective)) == objective


positive = st.floats(1e-300, 1e300)
any_number = st.floats(-1e300, 1e300)
sources = st.text(min_size=1, max_size=8)
gains = st.one_of(
    st.builds(Gain, st.just("exponential"), positive), st.just(Gain("linear")),
    st.builds(Gain, st.just("table"), st.just(1.0), st.lists(st.floats(0, 1e9), min_size=1, max_size=4).map(tuple)),
)  # fmt: skip
empties, ties = st.sampled_from(["zero", "one", "skip"]), st.sampled_from(["stable", "expected"])
cutoffs = st.one_of(st.none(), st.integers(1, 2**31 - 1))
shared = {"labels": sources, "empty": empties, "ties": ties}
any_measure = st.one_of(
    *(st.builds(cls, cutoffs, gain=gains, **shared) for cls in (NDCG, DCG, CNDCG)),
    *(st.builds(cls, cutoffs, threshold=positive, **shared) for cls in (AP, RR)),
    *(st.builds(cls, st.integers(1, 99), **shared) for cls in (Precision, Recall)),
    st.builds(ERR, cutoffs, max_label=st.one_of(st.none(), st.floats(1, 30)), **shared),
    st.builds(RBP, cutoffs, p=st.floats(0.01, 0.99), **shared),
)
any_link = st.one_of(
    st.builds(CrossEntropy, positive), st.builds(Fidelity, positive), st.builds(LocalSigmoid, any_number),
    st.builds(Hinge, positive), st.builds(SquaredHinge, positive),
)  # fmt: skip
any_term = st.one_of(
    st.builds(Lambda, st.builds(PairwiseAccuracy, labels=sources, empty=empties), st.none(), positive),
    st.builds(any_lambda, any_measure, cutoffs, positive, st.booleans()),
    st.builds(Local, any_measure, any_number, st.booleans()),
    st.builds(Pairwise, any_link, sources, st.booleans()),
    st.builds(LambdaLoss, st.builds(NDCG, st.none(), gain=gains), st.floats(0, 1e300), positive, st.booleans()),
)
any_tiers = st.lists(st.tuples(any_term, st.integers(1, 9), st.booleans()), min_size=1, max_size=4).map(
    lambda parts: Tiers(
        *(term for term, _, _ in parts), weights=[w / sum(w for _, w, _ in parts) for _, w, _ in parts],
        nonzero=[left_out for *_, left_out in parts],
    )
)  # fmt: skip
any_schedule = st.one_of(
    st.builds(LinearGrowth, any_number, any_number), st.builds(ExponentialGrowth, any_number, positive),
    st.builds(ExponentialShare, positive), st.builds(Constant, st.floats(allow_nan=False)),
)  # fmt: skip
any_simple = st.one_of(
    any_term, any_tiers, st.builds(Preferences, any_link), st.builds(XENDCG, sources, st.integers(0, 2**31)),
    *(st.builds(cls, sources) for cls in (ListNet, ListMLE, RankCosine, QueryRegression, Regression, Ordinal)),
    st.builds(SoftRank, st.builds(NDCG, cutoffs, gain=gains, **shared), positive, st.integers(0, 2**31 - 1),
              st.integers(1, 99).map(lambda half: 2 * half), st.integers(0, 2**31)),
    st.builds(QuerySoftMax, sources, positive, st.floats(0, 1e300)), st.builds(GBRank, positive, sources),
    st.builds(TopListNet, st.integers(1, 99), sources, st.integers(1, 99), st.integers(0, 2**31)),
    st.builds(SVMMAP, any_number, sources),
    st.builds(ApproxNDCG, st.builds(NDCG, st.none(), gain=gains, **shared), positive),
    st.builds(Logistic, positive, st.booleans(), any_number, sources),
    *(st.builds(kind, st.sampled_from(["relevance", "gain"]), sources) for kind in (Multiclass, Cumulative)),
    st.builds(Debiased, any_term.filter(lambda term: term.has_hessian),
              st.one_of(st.none(), st.lists(st.floats(0.001, 1), min_size=1, max_size=3)), positive, positive),
)  # fmt: skip
any_objective = st.recursive(
    any_simple,
    lambda inner: st.one_of(
        st.builds(Anneal, inner, inner, any_schedule),
        st.builds(lambda a, b: Sum(a, b, weights=(0.3, 0.7)), inner, inner),
        st.builds(Sum, inner),
    ),
    max_leaves=4,
)  # fmt: skip


@given(any_objective)
def test_repr_can_be_parsed(objective):
    assert parse(repr(objective)) == objective
    assert parse(str(objective)) == objective
    assert parse(describe(objective)) == objective


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lambda(ndcg)", Lambda("ndcg")),
        ("Lambda(err, truncation=7, sigma=.5)", Lambda("err", 7, 0.5)),
        ("listnet", ListNet()),
        ("list_net()", ListNet()),
        ("pairwise(squared-hinge(2))", Pairwise(SquaredHinge(2))),
        ("pairwise(hinge)", Pairwise(Hinge())),
        ("tiers(lambda(ndcg), lambda(cndcg), weights=[0.9, 0.1])",
         Tiers(Lambda(), Lambda("cndcg"), weights=(0.9, 0.1))),
        ("anneal(lambda(ndcg), local(ndcg@3), linear_growth(0.1, 0.01))",
         Anneal(Lambda(), Local("ndcg@3"), LinearGrowth(0.1, 0.01))),
        ("softrank(ndcg@10, sigma=0.5)", SoftRank("ndcg@10", 0.5)),
        ("ordinal", Ordinal()),
        ("svm_map(threshold=2)", SVMMAP(2)),
        ("SVMMAP", SVMMAP()),
        ("gbrank(0.5)", GBRank(0.5)),
        ("QuerySoftMax(beta=2)", QuerySoftMax(beta=2)),
        ("top_listnet(5)", TopListNet(5)),
        ("approx_ndcg", ApproxNDCG()),
        ("logistic(balanced=true)", Logistic(balanced=True)),
        ("debiased(lambda('ndcg'), none, 0.2)", Debiased(Lambda(), None, 0.2)),
        ("Tiers(Lambda(NDCG()), Lambda(CNDCG()), weights=(0.8, 0.2))",
         Tiers(Lambda(), Lambda("cndcg"), weights=(0.8, 0.2))),
        ("Debiased(Lambda(NDCG(10)), propensities=(1.0,), rate=1e-1)", Debiased(Lambda("ndcg@10"), (1.0,))),
        ("Local(centre=-1.5e-3, normalize=True)", Local(centre=-1.5e-3, normalize=True)),
        ("sum(lambda(ndcg), query_regression, weights=[.9, .1])", Sum(Lambda(), QueryRegression(), weights=(0.9, 0.1))),
        ("Sum(lambda, listnet)", Sum(Lambda(), ListNet())),
        ("(lambda(ndcg))", Lambda()),
        ("lambda(ndcg(gain=linear)@10)", Lambda("ndcg(gain=linear)@10")),
        ("Lambda(NDCG(10, gain=Gain('table', table=(0, 1, 3))), None)", Lambda("ndcg(gain=table:0/1/3)@10")),
        ("Lambda(sigma=np.float32(2.0), normalize=np.True_)", Lambda(sigma=2.0, normalize=True)),
        ("anneal(lambda, local, constant(-inf))", Anneal(Lambda(), Local(), Constant(-np.inf))),
    ],
)  # fmt: skip
def test_common_spellings(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lambada(ndcg)", "column 1: there is no 'lambada' .*; objectives are anneal, approxndcg, average"),
        ("ndcg@5", r"is not an objective but a measure: use lambda\(ndcg@5\); objectives are anneal"),
        ("rank:ndcg", r"objective of another tool: use objective='lambda\(ndcg\)'"),
        ("YetiRank", r"use objective='lambda\(ndcg\)'"),
        ("rank_xendcg", "use objective='xendcg'"),
        ("lambda(ndcg", "column .*: cannot be read"),
        ("lambda(ndcg))", r"column 13: cannot be read, unmatched '\)'"),
        ("lambda(sigma=2, ndcg)", "cannot be read, positional argument follows keyword argument"),
        ("lambda(slope=2)", "column 1: Lambda has no 'slope': it takes measure, truncation, sigma, normalize"),
        ("lambda(normalise=true)", r"Lambda has no 'normalise' \(did you mean 'normalize'\?\)"),
        ("lamda(ndcg)", r"there is no 'lamda' \(did you mean 'lambda'\?\)"),
        ("listnett", r"not an objective \(did you mean 'listnet'\?\)"),
        ("pairwise(square_hinge())", r"there is no 'square_hinge' \(did you mean 'squaredhinge'\?\)"),
        ("anneal(lambda, local, linear_grow(1))", r"no 'linear_grow' \(did you mean 'lineargrowth'\?\)"),
        ("lambda(ndgc@5)", r"there is no measure 'ndgc' \(did you mean 'ndcg'\?\)"),
        ("lambda('ndcg(gian=linear)')", r"but got 'gian=linear' \(did you mean 'gain'\?\)"),
        ("lambda(" + "9" * 5000 + ")", "cannot be read"),
        ("lambda(ndcg()@" + "9" * 5000 + ")", "cannot be read"),
        ("lambda('ndcg@" + "9" * 5000 + "')", "must be a whole number from 1"),
        ("lambda('\\N{x}')", "cannot be read"),
        ("(" * 5000 + "lambda" + ")" * 5000, "cannot be read, too many nested"),
        ("anneal(" * 5000, "cannot be read, too many nested"),
        ("lambda(;)", "column 8: cannot be read"),
        ("lambda(sigma=)", "cannot be read"),
        ("lambda(sigma=0)", "sigma must be positive"),
        ("lambda(nonsense)", "nonsense"),
        ("hinge()", "is not an objective"),
        ("", "column 1: expected a value"),
        ("anneal", "Anneal does not take these arguments"),
        ("sum", "Sum takes objectives"),
        ("sum(lambda, weights=[0.5])", "sum to 1"),
        ("sum(lambda, 3)", "Sum takes objectives"),
        ("sum(lambda, parts=[listnet])", "Sum does not take these arguments"),
        ("anneal(lambda, local, constant)", "Constant does not take these arguments"),
        ("debiased(3)", "takes an objective"),
        ("debiased(lambda, [a])", "propensities must be a list of numbers"),
        ("lambda(sigma=1, sigma=2)", "lambda has the same argument twice"),
        ("debiased(lambda, [a=0.5])", "cannot be read"),
        ("pairwise(labels=3)", "labels must name a label source"),
        ("logistic(above=a)", "above must be a number"),
        ("lambda(normalize=yes)", "normalize must be True or False"),
        ("lambda(sigma=true)", "sigma must be a number"),
        ("softrank(err)", "measures that sum gain times discount, such as ndcg or ndcg@10, not err"),
        ("softrank(precision)", "add a cutoff"),
        ("softrank(sigma=0)", "sigma must be positive"),
        ("softrank(samples=3)", "samples must be even"),
        ("softrank(samples=0)", "samples must be a whole number from 2"),
        ("softrank(exact_limit=-1)", "exact_limit must be a whole number from 0"),
        ("softrank(seed=abc)", "seed must be a whole number"),
        ("ordinal(labels=3)", "labels must name a label source"),
        ("xendcg(seed=abc)", "seed must be a whole number"),
        ("lambda(" + "[" * 3000, "cannot be read, too many nested"),
        ("lambda(*[ndcg])", "cannot be read"),
        ("lambda(**{})", "cannot be read"),
        ("lambda(2 + 3)", "'2 . 3' cannot be read"),
        ("lambda('ndcg\0')", "cannot be read|not a measure"),
        ("lambda(ndcg(gain=table:0/1)@10)", "in quotes"),
    ],
)
def test_invalid_arguments(text, message):
    with pytest.raises(DataError, match=message):
        parse(text)


def test_numbers_of_numpy_are_numbers():
    for objective in (Lambda(sigma=np.float32(2)), LambdaLoss(mu=np.int64(3)), Lambda(truncation=np.int64(3))):
        assert parse(describe(objective)) == objective
    mixed = Tiers(Lambda(), Lambda("cndcg"), weights=np.array([0.5, 0.5]))
    assert parse(describe(mixed)) == mixed
    assert Anneal(Lambda(), Local(), lambda m: np.float32(0.5))


def test_a_custom_objective_has_no_text():
    class Mine(Objective):
        def bind(self, data):
            raise NotImplementedError

    with pytest.raises(DataError, match="cannot be written as text"):
        describe(Mine())
    with pytest.raises(DataError, match="cannot be written as text"):
        describe(Anneal(Lambda(), Local(), lambda m: 0.5))


def test_objectives_of_other_tools_have_an_equivalent():
    for meant in OF_OTHER_TOOLS.values():
        assert parse(meant)
