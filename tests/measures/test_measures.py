"""Measures: contracts, golden values worked by hand, and agreement with other libraries."""

import math
import shutil

import ir_measures
import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.metrics import dcg_score, label_ranking_average_precision_score, ndcg_score

import podium
from podium import AP, ERR, NDCG, DataError, RankingData
from podium.measures import (  # fmt: skip
    CNDCG,
    DCG,
    F1,
    RBP,
    RR,
    BoundMeasures,
    Bpref,
    Gain,
    Graded,
    InferredAP,
    InterpolatedPrecision,
    KendallTau,
    Measure,
    PairwiseAccuracy,
    PFound,
    Precision,
    Ranking,
    Recall,
    RPrecision,
    Success,
    as_selection,
    letor,
    parse,
    register,
    registered,
)
from podium.measures.registry import unregister
from podium.testing.measures import brute_force_swaps, check_measure

# Tested elsewhere: preferences in tests/estimators/test_preferences.py, positions in test_discounted.py, and documents
# without a label in test_other_tools.py.
NAMES = sorted(set(registered()) - {"preferences", "propensity_ndcg", "judged"})
WITH_CUTOFF = [name for name in NAMES if registered()[name].has_cutoff]
WITH_TIES = [name for name in WITH_CUTOFF if registered()[name].knows_expected_ties]


def one_list(labels, source="relevance"):
    """Return a single query whose documents are ranked in the given order."""
    n = len(labels)
    return Ranking(RankingData(np.empty((n, 0)), qid=np.zeros(n, int), labels={source: labels}), -np.arange(n))


def value(measure, labels):
    measure = parse(measure) if isinstance(measure, str) else measure
    return measure.values(one_list(labels, measure.labels))[0]


# --- contracts


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_keeps_the_contract(name):
    check_measure(parse(name), highest=1 if name == "cndcg" else 4)


@pytest.mark.parametrize("name", WITH_CUTOFF)
@pytest.mark.parametrize("cutoff", [1, 3, 20])
def test_cutoffs_keep_the_contract(name, cutoff):
    check_measure(parse(f"{name}@{cutoff}"), cases=40, highest=1 if name == "cndcg" else 4)


@pytest.mark.parametrize("name", WITH_TIES)
@pytest.mark.parametrize("cutoff", ["", "@1", "@2", "@4"])
def test_expected_ties_are_the_mean_over_permutations(name, cutoff):
    check_measure(parse(f"{name}(ties=expected){cutoff}"), cases=30, highest=1 if name == "cndcg" else 3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("empty", "expected"), [("zero", 0), ("one", 1), ("skip", math.nan)])
def test_queries_without_relevant_documents(name, empty, expected):
    assert np.array_equal(value(parse(name).replace(empty=empty), [0, 0, 0]), expected, equal_nan=True)
    check_measure(parse(name).replace(empty=empty), cases=10, highest=1)


@pytest.mark.parametrize(
    "measure",
    [NDCG(gain="linear"), NDCG(3, gain="table:0/1/5/6/20"), NDCG(2, discount="letor"), NDCG(3, short="zero"),
     ERR(max_label=6), AP(threshold=2), AP(2, norm="reachable"), NDCG(3, discount="table:1/0.5/0.2"),
     PFound(3, p_break=0.4), RBP(p=0.5, gain="table:0/0.1/0.2/0.5/1"), InterpolatedPrecision(recall=1, threshold=2),
     Success(2, threshold=3), F1(2, threshold=2), RPrecision(threshold=3), InferredAP(threshold=2), Bpref(threshold=2),
     RR(2, threshold=3), RBP(p=0.5), Precision(2, threshold=2), DCG(2)],
    ids=str,
)  # fmt: skip
def test_parameters_keep_the_contract(measure):
    check_measure(measure)


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=7))
def test_cascade_deltas_if_a_user_is_sure_to_stop(labels):
    measure = RR(threshold=1)
    assert np.allclose(measure.swaps(np.array(labels)), brute_force_swaps(measure, np.array(labels)), atol=1e-12)


def test_a_long_query_is_differenced_in_blocks():
    labels = np.random.default_rng(0).integers(0, 5, 20_000).astype(np.float32)
    for measure in (NDCG(), ERR(), AP(), RR()):
        rows = measure.swaps(labels, 10_000, 10_004)
        assert rows.shape == (4, 20_000)
        swapped = labels.copy()
        swapped[[10_001, 15_000]] = swapped[[15_000, 10_001]]
        assert rows[1, 15_000] == pytest.approx(measure.value(swapped) - measure.value(labels), abs=1e-12)


def test_a_tie_of_20000_documents_is_measured():
    data = RankingData(np.empty((20_000, 0)), np.arange(20_000) % 3, qid=np.zeros(20_000, int))
    ranking = Ranking(data, np.zeros(20_000))
    assert 0 < NDCG(10, ties="expected").values(ranking)[0] < 1
    assert 0 < AP(ties="expected").values(ranking)[0] < 1
    assert 0 < ERR(10, ties="expected").values(ranking)[0] < 1


# --- worked by hand

P, G, B = 2, 1, 0  # perfect, good, bad


def test_the_example_of_the_slides():
    """Ideal p g g b b b b: g p g b b b b is worse than p g b g b b b, though each has one wrong pair."""
    first, second = [G, P, G, B, B, B, B], [P, G, B, G, B, B, B]
    assert value("ndcg", [P, G, G, B, B, B, B]) == 1
    assert value("ndcg", first) < value("ndcg", second)
    assert value("accuracy", first) == value("accuracy", second) == pytest.approx(13 / 14)
    ideal = 3 / 1 + 1 / math.log2(3) + 1 / 2
    assert value("ndcg", first) == pytest.approx((1 + 3 / math.log2(3) + 1 / 2) / ideal)
    assert value("ndcg", second) == pytest.approx((3 + 1 / math.log2(3) + 1 / math.log2(5)) / ideal)


EXAMPLES = [example for name in registered() for example in registered()[name].examples]


def test_every_measure_has_reference_values():
    assert {parse(example.measure).name for example in EXAMPLES} == {*NAMES, "judged"}
    assert len(EXAMPLES) >= 30


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.measure}-{example.labels}")
def test_reference_values(example):
    measure = parse(example.measure)
    n = len(example.labels)
    data = RankingData(np.empty((n, 0)), qid=np.zeros(n, int), labels={measure.labels: example.labels})
    scores = -np.arange(n) if example.scores is None else example.scores
    assert measure.values(Ranking(data, scores))[0] == pytest.approx(example.value, abs=1e-15)


def test_deltas_worked_by_hand():
    assert NDCG().swaps([1, 0])[0, 1] == pytest.approx(1 / math.log2(3) - 1)
    assert AP().swaps([0, 1, 0])[0].tolist() == pytest.approx([0, 1 / 2, 0])
    assert RR().swaps([0, 1, 1])[0].tolist() == pytest.approx([0, 1 / 2, 1 / 2])
    assert ERR(max_label=1).swaps([1, 0])[0, 1] == pytest.approx(1 / 4 - 1 / 2)


def test_the_order_of_rows_decides_ties_and_nothing_else():
    labels, scores = np.array([0, 1, 0, 1.0]), np.array([1, 1, 2, 2.0])
    data = RankingData(np.empty((4, 0)), labels, qid=[0] * 4)
    assert Ranking(data, scores).order.tolist() == [2, 3, 0, 1]
    assert Ranking(data, scores, base=np.array([3, 2, 1, 0])).order.tolist() == [3, 2, 1, 0]
    assert Ranking(data, [0.0, -0.0, np.inf, -np.inf]).order.tolist() == [2, 0, 1, 3]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=200), st.integers(1, 5))
def test_ranking_is_a_stable_sort(scores, queries):
    qid = np.arange(len(scores)) % queries
    data = RankingData(np.empty((len(scores), 0)), qid=qid)
    order = Ranking(data, scores).order
    for k in range(data.n_queries):
        rows = data.rows(k)
        expected = rows[np.argsort(-np.array(scores)[rows], kind="stable")]
        assert order[data.offsets[k] : data.offsets[k + 1]].tolist() == expected.tolist()


# --- names


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("ndcg@10", NDCG(10)),
        (" NDCG@10 ", NDCG(10)),
        ("err@10", ERR(10)),
        ("map", AP()),
        ("mrr@5", RR(5)),
        ("p@5", Precision(5)),
        ("cndcg@3", CNDCG(3)),
        ("recall@7", Recall(7)),
        ("accuracy", PairwiseAccuracy()),
        ("tau(labels=clicks)", KendallTau(labels="clicks")),
        (
            "ndcg(labels=clicks,gain=linear,empty=skip,ties=expected)@10",
            NDCG(10, labels="clicks", gain="linear", empty="skip", ties="expected"),
        ),
        ("ndcg(gain=table:0/1/3)", NDCG(gain=Gain("table", table=(0, 1, 3)))),
        ("ndcg(gain=exponential:4)", NDCG(gain=Gain(scale=4))),
        ("rbp(p=0.95)", RBP(p=0.95)),
        ("ndcg(gain=table:0/1234567/2.5)@10", NDCG(np.int64(10), gain="table:0/1234567/2.5")),
        ("ndcg(gain=exponential:0.123456789)", NDCG(gain=Gain(scale=0.123456789))),
        ("err(max_label=4)@3", ERR(3, max_label=4)),
    ],
)
def test_names_parse_and_round_trip(text, measure):
    assert parse(text) == measure
    assert parse(str(measure)) == measure
    assert hash(parse(text)) == hash(measure)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ndgc@10", r"there is no measure 'ndgc' \(did you mean 'ndcg'\?\); choose from accuracy, alpha_ndcg, ap"),
        ("ndcg@", "is not a measure"),
        ("ndcg@0", "the cutoff of ndcg must be a whole number from 1, but is 0"),
        ("ndcg(colour=red)", "ndcg has parameters discount, empty, gain, labels, short, ties, but got 'colour=red'"),
        ("ndcg(gain=cubic)", "a gain must be .*, but got 'cubic'"),
        ("ndcg(gain=table:)", "a gain must be"),
        ("ndcg(ties=random)", "ties must be"),
        ("ndcg(empty=half)", "empty must be"),
        ("ndcg(discount=none)", "discount must be"),
        ("ndcg(short=long)", "short must be"),
        ("tau(ties=expected)", "tau does not support ties='expected'"),
        ("accuracy@10", "does not support a cutoff"),
        ("rbp(p=1)", "p must be between"),
        ("rbp(p=abc)", "p must be a number"),
        ("ap(threshold=high)", "threshold must be a number"),
        ("ap(threshold=nan)", "threshold must be finite"),
        ("err(max_label=none)", "max_label must be a number"),
        ("err(max_label=2000)", "max_label must be a number"),
        ("ndcg(gain=3)", "a gain must be .*, but got 3"),
        ("ndcg(gain=exponential:-1)", "a gain must be"),
        ("ndcg(gain=table:nan/1)", "a gain must be"),
        ("ndcg(labels=3)", "must be the name of a label source"),
        ("ap@99999999999999999999", "cutoff of ap"),
    ],
)
def test_invalid_names(text, words):
    with pytest.raises(DataError, match=words):
        parse(text)


def test_invalid_labels():
    with pytest.raises(DataError, match=r"overflows for the label 2000: use gain=linear, or gain=table"):
        value("ndcg", [2000, 0])
    assert value("ndcg(gain=linear)", [1e6, 0]) == 1
    with pytest.raises(DataError, match="non-negative"):
        value("ndcg", [-1, 0])
    with pytest.raises(DataError, match=r"labels 0 to 1, but got the label 2"):
        value("ndcg(gain=table:0/1)", [2, 0])
    with pytest.raises(DataError, match=r"label 0\.5"):
        value("ndcg(gain=table:0/1)", [0.5, 0])
    with pytest.raises(DataError, match="labels must not exceed max_label = 2"):
        value("err(max_label=2)", [3])
    with pytest.raises(DataError, match="no labels 'clicks'; it has 'relevance'"):
        CNDCG().values(one_list([1]))
    with pytest.raises(DataError, match="tau cannot be trained on"):
        KendallTau().swaps([1, 0])


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([1, 2], "one number for each of the 3 rows"),
        ([1, np.nan, 2], "must not be NaN, but row 1 is"),
        (list("abc"), "must be numbers"),
        (np.zeros((3, 2)), "have shape"),
    ],
)
def test_invalid_scores(scores, words):
    with pytest.raises(DataError, match=words):
        Ranking(RankingData(np.empty((3, 0)), qid=[1, 1, 1]), scores)


def test_a_series_in_another_order_is_refused():
    import pandas as pd

    data = RankingData(np.empty((3, 0)), qid=[1, 1, 1])
    assert Ranking(data, pd.Series([1.0, 2, 3])).order.tolist() == [2, 1, 0]
    with pytest.raises(DataError, match="index differs from that of the data's rows"):
        Ranking(data, pd.Series([1.0, 2, 3], index=[2, 0, 1]))


def test_measures_are_values():
    assert NDCG(10) == NDCG(10) != NDCG(5)
    assert len({NDCG(10), NDCG(10), AP()}) == 2
    with pytest.raises(AttributeError):
        NDCG(10).cutoff = 3
    assert str(CNDCG(3)) == "cndcg@3"
    assert ERR().fixed(podium.artificial(5)).max_label == 4


def test_a_custom_measure_trains_at_once():
    class TopLabel(Measure):
        def value(self, labels):
            return float(labels[0])

    assert str(TopLabel()) == "toplabel"
    assert value(TopLabel(), [3, 1]) == 3
    assert TopLabel().swaps([3, 1, 4])[0].tolist() == [0, -2, 1]
    register(TopLabel)
    try:
        check_measure(TopLabel(empty="zero"))
    finally:
        unregister("toplabel")


# --- graded


def test_graded_picks_within_the_tolerance():
    graded = Graded(["ndcg@3", CNDCG(3)], tolerance=0.002)
    means = np.array([[0.500, 0.30], [0.501, 0.20], [0.4995, 0.40], [0.4985, 0.90]])
    assert graded.pick(means) == 2
    assert Graded(["ndcg@3", "cndcg@3"]).pick(means) == 1
    assert NDCG().pick(means[:, 0]) == 1
    assert Graded(["ndcg", "ap", "rr"], [0.1, 0.0]).pick(np.array([[1, 0.5, 0.1], [0.95, 0.6, 0.0]])) == 1
    assert Graded(["ndcg", "ap"]).pick(np.array([[1, 0.5], [1, 0.5]])) == 0


def test_graded_names_round_trip():
    graded = Graded(["ndcg@3", "cndcg@3", "ap"], [0.002, 0.01])
    assert as_selection(str(graded)) == graded
    assert str(Graded(["ndcg@3", "ap"], 0.1)) == "ndcg@3>ap~0.1"
    assert as_selection("ndcg@3>ap") == Graded(["ndcg@3", "ap"])
    assert as_selection("ndcg@3") == NDCG(3)
    for wrong in (["ndcg"], ["ndcg", "nope"]):
        with pytest.raises(DataError):
            Graded(wrong)
    with pytest.raises(DataError, match="tolerance"):
        Graded(["ndcg", "ap"], -1)
    with pytest.raises(DataError, match="tolerances"):
        as_selection("ndcg>ap~x")
    with pytest.raises(DataError, match="row of 2 for each candidate"):
        Graded(["ndcg", "ap"]).pick(np.zeros((3, 3)))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8), st.floats(0, 0.3))
def test_graded_choice_by_definition(rows, tolerance):
    means = np.array(rows)
    picked = Graded(["ndcg", "ap"], tolerance).pick(means)
    allowed = [k for k in range(len(rows)) if rows[k][0] >= max(r[0] for r in rows) - tolerance]
    assert picked in allowed
    assert rows[picked][1] == max(rows[k][1] for k in allowed)


# --- other libraries


@pytest.fixture(scope="module")
def web():
    data = podium.artificial(150, documents=(1, 25), features=3, seed=4)
    return data, np.random.default_rng(1).normal(size=data.n_documents)


def test_agrees_with_scikit_learn(web):
    data, scores = web
    ranking = Ranking(data, scores)
    for k in range(data.n_queries):
        rows = data.rows(k)
        if len(rows) < 2:
            continue
        gains = 2 ** data.relevance[rows] - 1
        assert DCG(5).values(ranking)[k] == pytest.approx(dcg_score([gains], [scores[rows]], k=5))
        assert NDCG(5).values(ranking)[k] == pytest.approx(ndcg_score([gains], [scores[rows]], k=5))
        coarse = np.round(scores[rows])  # ties: scikit-learn averages over them too
        tied = Ranking(data, np.round(scores))
        assert NDCG(ties="expected").values(tied)[k] == pytest.approx(ndcg_score([gains], [coarse]))
        relevant = data.relevance[rows] >= 1
        if relevant.any():
            lrap = label_ranking_average_precision_score([relevant], [scores[rows]])
            assert AP().values(ranking)[k] == pytest.approx(lrap)


def test_agrees_with_ir_measures(web):
    data, scores = web
    qrels = [ir_measures.Qrel(str(q), f"d{row}", int(label))
             for row, (q, label) in enumerate(zip(data.qid, data.relevance, strict=True))]  # fmt: skip
    run = [ir_measures.ScoredDoc(str(q), f"d{row}", float(s))
           for row, (q, s) in enumerate(zip(data.qid, scores, strict=True))]  # fmt: skip
    pairs = {
        "nDCG@10": "ndcg(gain=linear)@10", "nDCG": "ndcg(gain=linear)",
        "AP": "ap", "AP(rel=2)@10": "ap(threshold=2)@10", "RR": "rr", "RR(rel=3)": "rr(threshold=3)",
        "P@5": "precision@5", "R@5": "recall@5", "P(rel=2)@3": "precision(threshold=2)@3",
    }  # fmt: skip
    if shutil.which("perl"):  # gdeval, which rounds to five digits
        pairs |= {"nDCG(dcg='exp-log2')@10": "ndcg@10", "ERR@10": "err(max_label=4)@10"}
    theirs = {ir_measures.parse_measure(name): ours for name, ours in pairs.items()}
    ranking = Ranking(data, scores)
    place = {str(q): k for k, q in enumerate(data.query_ids)}
    seen = 0
    for metric in ir_measures.iter_calc(list(theirs), qrels, run):
        ours = parse(theirs[metric.measure]).values(ranking)[place[metric.query_id]]
        assert metric.value == pytest.approx(ours, abs=1e-5), metric
        seen += 1
    assert seen == len(pairs) * data.n_queries


def test_agrees_with_lightgbm(web):
    data, scores = web
    train = lightgbm.Dataset(
        data.features, data.relevance, group=data.query_sizes, init_score=scores, params={"verbose": -1}
    )
    recorded = {}
    lightgbm.train(
        {"objective": "lambdarank", "metric": "ndcg", "eval_at": [1, 5, 10], "learning_rate": 1e-12, "verbose": -1,
         "min_data_in_leaf": 1},
        train, 1, valid_sets=[train], callbacks=[lightgbm.record_evaluation(recorded)],
    )  # fmt: skip
    ranking = Ranking(data, scores)
    for k in (1, 5, 10):  # LightGBM counts a query without relevant documents as 1
        ours = NDCG(k, empty="one").values(ranking).mean()
        assert recorded["training"][f"ndcg@{k}"][0] == pytest.approx(ours, abs=1e-9)


def test_agrees_with_scipy_on_kendalls_tau(web):
    data, scores = web
    coarse = np.round(scores * 2)
    values = KendallTau(empty="skip").values(Ranking(data, coarse))
    for k in range(data.n_queries):
        rows = data.rows(k)
        expected = kendalltau(data.relevance[rows], coarse[rows]).statistic if len(rows) > 1 else np.nan
        assert np.isclose(values[k], expected, equal_nan=True)


# --- LETOR's conventions


def letor_slowly(labels, k, version):
    """NDCG@k and AP as LETOR's evaluation scripts compute them, written again from their description."""

    def dcg(ranked):
        total = 0.0
        for position, label in enumerate(ranked[:k], 1):
            total += (2**label - 1) if position <= 2 else (2**label - 1) * math.log(2) / math.log(position)
        return total  # the second rank is divided by log2(2) = 1

    ideal = dcg(sorted(labels, reverse=True))
    ndcg = dcg(labels) / ideal if ideal > 0 else 0.0
    if version == 4 and len(labels) < k:
        ndcg = 0.0
    hits, total = 0, 0.0
    for position, label in enumerate(labels, 1):
        if label > 0:
            hits += 1
            total += hits / position
    return ndcg, (total / hits if hits else 0.0)


def test_letors_presets_equal_an_independent_computation(real_data):
    for folder, version in (("mq2008", 4), ("ohsumed", 3)):
        data = podium.read(sorted((real_data / folder).glob("S*.txt.gz")))
        scores = data.feature(38 if folder == "mq2008" else 4)
        ranking = Ranking(data, scores, base=data.order)
        for k in (1, 3, 10):
            ndcg, ap = letor([f"ndcg@{k}", "ap"], version)
            values = np.column_stack([ndcg.values(ranking), ap.values(ranking)])
            expected = [
                letor_slowly(data.relevance[ranking.order[data.offsets[q] : data.offsets[q + 1]]].tolist(), k, version)
                for q in range(data.n_queries)
            ]
            assert np.allclose(values, expected, atol=1e-12)
    with pytest.raises(DataError, match="version must be 3 or 4"):
        letor(["ndcg"], 2)
    assert str(letor(["ndcg@5"])[0]) == "ndcg(ties=stable,discount=letor,short=zero)@5"


# --- edge cases


def test_nan_is_never_picked():
    assert NDCG().pick(np.array([0.5, np.nan, 0.6])) == 2
    assert Graded(["ndcg", "ap"]).pick([[0.5, 1], [np.nan, 1]]) == 0
    with pytest.raises(DataError, match="none has a mean"):
        NDCG().pick(np.array([np.nan]))


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=1, max_size=9))
def test_deltas_of_accuracy_ignore_unlabelled_documents(labels):
    labels = np.array(labels)
    measure = PairwiseAccuracy()
    deltas = measure.swaps(labels)
    assert np.allclose(deltas, brute_force_swaps(measure, labels), atol=1e-12)
    for k in range(len(labels)):
        assert np.array_equal(measure.swaps(labels, k, k + 1)[0], deltas[k])


def test_empty_lists_have_no_deltas():
    for name in NAMES:
        if registered()[name].has_swaps:
            assert parse(name).swaps(np.empty(0)).shape == (0, 0)


def test_masked_scores_are_refused():
    with pytest.raises(DataError, match="NaN"):
        Ranking(RankingData(np.empty((2, 0)), qid=[1, 1]), np.ma.masked_array([1.0, 2.0], [True, False]))
    with pytest.raises(DataError, match="cutoff"):
        NDCG(True)
    with pytest.raises(DataError, match="invalid gain"):
        Gain("lineer")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dcg(gain=table:1/4/2)", 2 / math.log2(3) + 1 / 2),
        ("ndcg(gain=table:1/4/2)", (2 / math.log2(3) + 1 / 2) / (2 + 1 / math.log2(3))),
        ("q(gain=table:1/4/2,beta=0)", (1 / 2 + 2 / 3) / 2),
        ("precision(threshold=0)@3", 2 / 3),
        ("ap(threshold=0)", (1 / 2 + 2 / 3) / 2),
        ("rr(threshold=0)", 1 / 2),
    ],
)
def test_a_document_without_a_label_gains_nothing(name, expected):
    measure, labels = parse(name), [math.nan, 2, 0]
    assert value(measure, labels) == pytest.approx(expected)
    assert measure.value(measure.prepared(np.array(labels))) == pytest.approx(expected)
    assert np.allclose(measure.swaps(labels), Measure.swaps(measure, labels))
    data = RankingData(np.eye(3), labels, qid=[0, 0, 0])
    assert BoundMeasures(data, {"m": measure}).means([3.0, 2.0, 1.0])["m"] == pytest.approx(expected)


def test_subtopics_without_a_label_are_not_relevant():
    data = RankingData(np.eye(2), labels={"subtopic_1": [math.nan, 0.0]}, qid=[0, 0])
    ranked = Ranking(data, [2.0, 1.0])
    assert parse("alpha_ndcg(threshold=0)").mean(ranked) == pytest.approx(1 / math.log2(3))


def test_a_perfect_ranking_with_ties_has_exactly_one():
    for gains in ("exponential", "linear", "table:0/0.1/0.3"):
        data = RankingData(np.zeros((9, 1)), [2, 2, 2, 1, 1, 1, 1, 0, 0], qid=[0] * 9)
        assert parse(f"ndcg(gain={gains})").mean(Ranking(data, data.relevance)) == 1.0
