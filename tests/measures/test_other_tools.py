"""Measures and names of trec_eval, ir_measures, CatBoost and LightGBM: the same values."""

import math

import catboost.utils
import ir_measures
import lightgbm
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium import DataError, RankingData
from podium.evaluation import Qrels, Run
from podium.measures import NDCG, InterpolatedPrecision, Judged, Ranking, parse, register_discount
from podium.measures.discounted import DISCOUNTS

# A run of trec_eval: documents without a judgement, documents that were not returned, negative judgements, ties.
JUDGEMENTS = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(-1, 3), min_size=1)
RETURNED = st.dictionaries(st.sampled_from("abcdefghijklmno"), st.integers(0, 12).map(float), min_size=1)
QUERIES = st.lists(st.tuples(JUDGEMENTS, RETURNED), min_size=1, max_size=3)

TREC = {
    "map": "map", "map_cut.3": "map_cut_3", "bpref": "bpref", "infAP": "infAP", "Rprec": "Rprec", "P.5": "P_5",
    "recall.5": "recall_5", "success.1": "success_1", "success.5": "success_5", "ndcg_cut.5": "ndcg_cut_5",
    "recip_rank": "recip_rank", "set_F": "set_F", "iprec_at_recall.0.00": "iprec_at_recall_0.00",
    "iprec_at_recall.0.30": "iprec_at_recall_0.30", "iprec_at_recall.1.00": "iprec_at_recall_1.00",
}  # fmt: skip


def by_trec_eval(queries, **how):
    qrels = {str(k): judged for k, (judged, _) in enumerate(queries)}
    run = {str(k): returned for k, (_, returned) in enumerate(queries)}
    return pytrec_eval.RelevanceEvaluator(qrels, set(TREC), **how).evaluate(run)


def by_podium(queries, **how):
    qrels = Qrels({str(k): {d: float(v) for d, v in judged.items()} for k, (judged, _) in enumerate(queries)})
    run = Run("ours", {str(k): returned for k, (_, returned) in enumerate(queries)})
    names = {name: str(parse(name).replace(ties="stable")) for name in TREC.values()}
    evaluation = podium.evaluate(qrels, run, list(names.values()), **how)
    return {
        q: {name: evaluation.values[ours][k] for name, ours in names.items()}
        for k, q in enumerate(evaluation.query_ids)
    }


@pytest.mark.filterwarnings("ignore::podium.errors.PodiumWarning")
@pytest.mark.parametrize("judged_only", [False, True])
def test_agrees_with_trec_eval(judged_only):
    @settings(max_examples=150, deadline=None)
    @given(QUERIES)
    def agree(queries):
        theirs = by_trec_eval(queries, judged_docs_only_flag=judged_only)
        ours = by_podium(queries, judged_only=judged_only)
        for query in theirs:
            for name in TREC.values():
                value = np.nan_to_num(theirs[query][name])  # trec_eval divides 0 by 0 if nothing is ranked
                assert ours[query][name] == pytest.approx(value, abs=1e-9), (query, name)

    agree()


def test_measures_named_as_in_ir_measures_agree_with_it():
    rng = np.random.default_rng(3)
    qrels = {str(q): {f"d{k}": int(rng.integers(0, 4)) for k in range(12)} for q in range(20)}
    run = {str(q): {f"d{k}": float(rng.normal()) for k in range(3, 5 + q)} for q in range(20)}  # some are short
    names = ["P@5", "R@5", "AP", "AP@5", "AP(rel=2)", "RR", "RR@2", "Rprec", "Rprec(rel=3)", "Success@1", "Bpref",
             "Bpref(rel=2)", "infAP", "IPrec@0.5", "IPrec@0.1", "Judged@10", "nDCG(dcg='log2')@10"]  # fmt: skip
    theirs = {ir_measures.parse_measure(name): name for name in names}
    scored = [ir_measures.ScoredDoc(q, d, s) for q, documents in run.items() for d, s in documents.items()]
    judged = [ir_measures.Qrel(q, d, label) for q, documents in qrels.items() for d, label in documents.items()]
    ours = podium.evaluate(
        Qrels({q: {d: float(v) for d, v in of_query.items()} for q, of_query in qrels.items()}), Run("x", run), names
    )
    place = {q: k for k, q in enumerate(ours.query_ids.tolist())}
    values = list(ir_measures.iter_calc(list(theirs), judged, scored))
    assert len(values) == len(names) * 20
    for metric in values:
        value = ours.values[theirs[metric.measure]][place[metric.query_id]]
        assert value == pytest.approx(metric.value, abs=1e-9), metric


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("nDCG@10", "ndcg@10"),
        ("ndcg_cut_10", "ndcg(gain=linear)@10"),
        ("ndcg_cut.10", "ndcg(gain=linear)@10"),
        ("nDCG(dcg='exp-log2')@10", "ndcg@10"),
        ("AP(rel=2)", "ap(threshold=2)"),
        ("RBP(p=0.8)", "rbp"),
        ("RBP(p=0.95,rel=2)", "rbp(threshold=2,p=0.95)"),
        ("hit_rate@5", "success@5"),
        ("rprec", "r_precision"),
        ("iprec_at_recall_0.20", "iprec(recall=0.2)"),
        ("IPrec@0.2", "iprec(recall=0.2)"),
        ("P_5", "precision@5"),
        ("recip_rank", "rr"),
        ("set_F", "f1"),
    ],
)
def test_names_of_other_tools_parse(text, ours):
    assert str(parse(text)) == ours
    assert parse(ours) == parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("iprec@10", "recall must be"),
        ("bpref@10", "bpref measures the whole list: it does not support a cutoff"),
        ("foo_5", "there is no measure 'foo_5'"),
        ("ndcg@1.5", "the cutoff of ndcg must be a whole number from 1, but is 1.5"),
        ("ap(norm=half)", "norm must be 'all' or 'reachable'"),
        ("pfound(p_break=1)", "p_break must be between 0 and 1, but is 1"),
        ("rbp(gain=linear,threshold=2)", "pass either gain or threshold"),
        ("ndcg(discount=cubic)", "discount must be 'log2', 'letor'"),
        ("ndcg(discount=table:)", "discount must be"),
        ("ndcg(discount=table:1/-1)", "discount must be"),
    ],
)
def test_invalid_names(text, words):
    with pytest.raises(DataError, match=words):
        parse(text)


def test_gains_above_one_are_refused():
    for name in ("pfound(gain=linear)", "rbp(gain=linear)"):
        with pytest.raises(DataError, match=r"must be at most 1, but one is 3: set one for each label"):
            parse(name).value(np.array([3.0, 0.0]))


def test_pfound_agrees_with_catboost():
    rng = np.random.default_rng(0)
    qid, labels = np.repeat(np.arange(8), 9), rng.integers(0, 5, 72) / 4
    scores = rng.permutation(72).astype(float)
    data = RankingData(np.empty((72, 0)), labels, qid=qid)
    for top, ours in (("", "pfound(gain=linear,empty=zero)"), (";top=3", "pfound(gain=linear)@3")):
        theirs = catboost.utils.eval_metric(labels, scores, f"PFound:decay=0.85{top}", group_id=qid)
        assert podium.evaluate(data, scores, ours).means[ours] == pytest.approx(theirs[0], abs=1e-6)


def test_ap_over_min_r_k_agrees_with_lightgbms_map():
    data = podium.artificial(40, documents=(5, 25), features=3, seed=4).replace(document_ids=None)
    binary, scores = (data.relevance > 1).astype(float), np.random.default_rng(1).normal(size=data.n_documents)
    train = lightgbm.Dataset(data.features, binary, group=data.query_sizes, init_score=scores, params={"verbose": -1})
    recorded = {}
    lightgbm.train(
        {"objective": "lambdarank", "metric": "map", "eval_at": [3, 10], "learning_rate": 1e-12, "verbose": -1,
         "min_data_in_leaf": 1},
        train, 1, valid_sets=[train], callbacks=[lightgbm.record_evaluation(recorded)],
    )  # fmt: skip
    ranking = Ranking(data.replace(labels={"relevance": binary}), scores)
    for k in (3, 10):
        ours = parse(f"ap(norm=reachable,empty=one)@{k}").mean(ranking)
        assert recorded["training"][f"map@{k}"][0] == pytest.approx(ours, abs=1e-9)


@pytest.mark.parametrize("name", ["success@3", "pfound", "r_precision", "f1@3", "bpref", "infap", "iprec@0.2",
                                  "ap(norm=reachable)@3", "rbp(gain=table:0/0.1/0.2/0.5/1)",
                                  "ndcg(discount=table:1/0.5/0.1)"])  # fmt: skip
@pytest.mark.filterwarnings("ignore:ties between documents")
def test_new_measures_train(name):
    data = podium.artificial(40, documents=(4, 8), features=5)
    before = podium.evaluate(data, np.random.default_rng(0).random(len(data)), name).means[name]
    model = podium.LambdaMART(n_trees=3, n_leaves=4, measure=name).fit(data)
    assert podium.evaluate(data, model, name).means[name] > before


def test_judged_is_not_trained_on():
    assert Judged(2).value(np.array([1, math.nan, 0])) == 0.5
    with pytest.raises(DataError, match="judged cannot be trained on"):
        podium.LambdaMART(n_trees=1, measure="judged@3").fit(podium.artificial(10, features=3))


def test_custom_discounts():
    register_discount("steep", lambda ranks: ranks**-2.0)
    register_discount("wrong", lambda ranks: -ranks)
    try:
        assert parse("ndcg(discount=steep)@5") == NDCG(5, discount="steep")
        assert str(NDCG(5, discount="steep")) == "ndcg(discount=steep)@5"
        assert parse("dcg(discount=steep)").value(np.array([0, 1.0])) == 0.25
        with pytest.raises(DataError, match="the discount 'wrong' must return a finite, non-negative number"):
            parse("dcg(discount=wrong)").value(np.array([0, 1.0]))
    finally:
        DISCOUNTS.pop("steep"), DISCOUNTS.pop("wrong")
    for name, words in (("log2", "built in"), ("Two words", "a lower-case word"), ("table", "a lower-case word")):
        with pytest.raises(DataError, match=words):
            register_discount(name, np.sqrt)
    assert str(NDCG(discount="table:1.0/0.50")) == "ndcg(discount=table:1/0.5)"


def test_judged_only_drops_documents_without_a_label():
    labels = np.array([math.nan, 1, math.nan, 0, 2, math.nan])
    data = RankingData(np.empty((6, 0)), labels, qid=[1, 1, 1, 1, 1, 2])
    scores = [6.0, 5, 4, 3, 2, 1]
    names = ["ndcg@2", "precision@2", "rr", "iprec@1", "accuracy", "r_precision"]
    evaluation = podium.evaluate(data, scores, names, judged_only=True)
    judged = data.take(np.flatnonzero(~np.isnan(labels)))
    expected = podium.evaluate(judged, [5.0, 3, 2], names)
    for name in names:
        assert evaluation.values[name].tolist() == [expected.values[name][0], 0.0]
    assert podium.evaluate(data, scores, "rr").means["rr"] == 0.25


def test_the_number_after_iprec_at_is_recall():
    assert parse("iprec@0.25") == InterpolatedPrecision(recall=0.25)
    assert parse(str(parse("iprec@0.25"))) == parse("iprec@0.25")
