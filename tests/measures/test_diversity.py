"""α-NDCG and ERR-IA against their definitions, and against ndeval, TREC's program for diversity."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import ERR, DataError, RankingData
from podium.measures import ERRIA, AlphaNDCG, Ranking, parse

lists = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=1, max_size=7)
).filter(lambda rows: any(map(any, rows)))  # fmt: skip


def subtopic_data(judged, qid=None):
    """Return documents with a column of labels for each subtopic, and scores that rank them in the given order."""
    judged = np.asarray(judged, float)
    labels = {f"subtopic_{t + 1}": column for t, column in enumerate(judged.T)}
    qid = np.zeros(len(judged), int) if qid is None else qid
    return RankingData(np.empty((len(judged), 0)), qid=qid, labels=labels)


def alpha_dcg(judged, alpha, cutoff):
    """Sum the gains document by document."""
    total = 0.0
    for rank, document in enumerate(judged[:cutoff], 1):
        for t, is_relevant in enumerate(document):
            if is_relevant:
                seen = sum(above[t] for above in judged[: rank - 1])
                total += (1 - alpha) ** seen / math.log2(1 + rank)
    return total


@given(lists, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([None, 1, 3]))
def test_alpha_ndcg_equals_its_definition(judged, alpha, cutoff):
    measure = AlphaNDCG(cutoff, alpha=alpha)
    data = subtopic_data(judged)
    value = measure.values(Ranking(data, -np.arange(len(judged))))[0]
    assert measure.value(np.array(judged)) == value
    dcg = alpha_dcg(judged, alpha, cutoff)
    ideal = dcg / value if value else 0.0
    best = max(alpha_dcg(order, alpha, cutoff) for order in itertools.permutations(judged))
    assert ideal <= best + 1e-9
    if cutoff == 1 or len(judged[0]) == 1:  # here the greedy order is the best one
        assert value == pytest.approx(dcg / best, abs=1e-12)
    assert ideal >= (1 - 1 / math.e) * best - 1e-9 or value == 0  # a bound of greedy choices


@given(lists, st.integers(0, 99))
def test_diversity_does_not_depend_on_the_order_of_rows(judged, seed):
    scores = np.random.default_rng(seed).permutation(len(judged)).astype(float)
    shuffle = np.random.default_rng(seed + 1).permutation(len(judged))
    first, second = subtopic_data(judged), subtopic_data(np.array(judged)[shuffle])
    for measure in (AlphaNDCG(), AlphaNDCG(2), ERRIA(3)):
        assert measure.values(Ranking(first, scores)) == measure.values(Ranking(second, scores[shuffle]))


def test_alpha_ndcg_worked_by_hand():
    """Repetitions count half: (2 + .5/log2 3 + .5/2) against the order 2, 1 new, .5."""
    judged = [[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    ideal = 2 + 1 / math.log2(3) + 0.5 / 2 + 0.5 / math.log2(5)
    value = 2 + 0.5 / math.log2(3) + 0.5 / 2 + 1 / math.log2(5)
    assert AlphaNDCG().value(np.array(judged)) == pytest.approx(value / ideal)


@given(lists, st.sampled_from([None, 1, 3]))
def test_err_ia_is_the_mean_of_err_over_the_subtopics_of_a_query(judged, cutoff):
    graded = 2 * np.array(judged)
    err = ERR(cutoff, max_label=2)
    expected = np.mean([err.value(column) for column in graded.T if column.any()])
    data = subtopic_data(graded)
    assert ERRIA(cutoff).values(Ranking(data, -np.arange(len(judged))))[0] == pytest.approx(expected)
    assert ERRIA(cutoff).value(graded) == pytest.approx(expected)


def test_each_query_has_its_own_subtopics():
    data = subtopic_data([[1, 0], [0, 0], [0, 1], [0, 1], [0, 0]], qid=[1, 1, 2, 2, 3])
    scores = [2.0, 1.0, 2.0, 1.0, 0.0]
    evaluation = podium.evaluate(data, scores, ["alpha_ndcg@10", "err_ia(empty=skip)@10"])
    assert evaluation.values["alpha_ndcg@10"].tolist() == [1, 1, 0]
    assert np.array_equal(evaluation.values["err_ia(empty=skip)@10"], [0.5, 0.5 + 0.125, np.nan], equal_nan=True)
    dropped = podium.evaluate(data, scores, "alpha_ndcg@10", drop_uniform=True).values["alpha_ndcg@10"]
    assert np.array_equal(dropped, [1, np.nan, np.nan], equal_nan=True)


def test_the_highest_label_is_that_of_all_subtopics_and_is_stored_in_models():
    data = subtopic_data([[1, 0], [0, 3]])
    assert ERRIA().fixed(data).max_label == 3
    assert ERRIA().fixed_like([str(ERRIA(10, max_label=4.0)), "ndcg@10"]).max_label == 4
    assert ERRIA(max_label=2).fixed_like([str(ERRIA(max_label=4.0))]).max_label == 2
    data = data.replace(features=[[0.0], [1.0]], relevance=[0, 1])
    settings = {"min_documents_in_leaf": 1, "measure": "err_ia", "objective": "regression"}
    model = podium.LambdaMART(2, 4, **settings).fit(data, valid=data)
    assert model.model_.info["measures"] == ["err_ia(max_label=3)"]


def test_invalid_arguments():
    plain = podium.artificial(2, features=2)
    with pytest.raises(DataError, match=r"named subtopic_1, subtopic_2, …, but the data has 'relevance'"):
        podium.evaluate(plain, plain.relevance, "alpha_ndcg@10")
    with pytest.raises(DataError, match="alpha must be"):
        AlphaNDCG(alpha=1.5)
    with pytest.raises(DataError, match="max_label must be"):
        ERRIA(max_label=-1)
    with pytest.raises(DataError, match="no swap deltas"):
        podium.LambdaMART(2, 4, measure="alpha_ndcg").fit(plain)
    assert not AlphaNDCG().is_defined_on(plain)
    assert parse("alpha_ndcg(alpha=0.3,labels=intent)@5") == AlphaNDCG(5, alpha=0.3, labels="intent")


def test_agrees_with_ndeval():
    """Among documents that add equally much, ndeval takes the higher id, Podium the first subtopics: here, the same."""
    ir_measures = pytest.importorskip("ir_measures")
    pytest.importorskip("pyndeval", reason="pip install pyndeval compares with TREC's program")
    rng = np.random.default_rng(5)
    judged = (rng.random((30 * 14, 4)) < 0.25).astype(float)
    qid = np.repeat(np.arange(30), 14)
    scores = np.concatenate([rng.permutation(14) for _ in range(30)]).astype(float)
    names = ["".join(str(int(label)) for label in row) + f"-{k}" for k, row in enumerate(judged)]
    qrels = [
        ir_measures.Qrel(str(qid[k]), names[k], int(judged[k, t]), iteration=str(t + 1))
        for k in range(len(qid)) for t in range(4)
    ]  # fmt: skip
    run = [ir_measures.ScoredDoc(str(qid[k]), names[k], scores[k]) for k in range(len(qid))]
    data = subtopic_data(judged, qid)
    for cutoff in (5, 10):
        theirs = {}
        for metric in ir_measures.iter_calc([ir_measures.alpha_nDCG @ cutoff, ir_measures.ERR_IA @ cutoff], qrels, run):
            theirs[metric.measure.NAME, metric.query_id] = metric.value
        ours = podium.evaluate(data, scores, [AlphaNDCG(cutoff), ERRIA(cutoff, max_label=1)])
        whole = sum(0.5**r / r for r in range(1, cutoff + 1))  # ndeval divides by the ERR of relevant documents alone
        for query, alpha, err in zip(data.query_ids, *ours.values.values(), strict=True):
            assert alpha == pytest.approx(theirs["alpha_nDCG", str(query)], abs=1e-6)
            assert err == pytest.approx(theirs["ERR_IA", str(query)] * whole, abs=1e-6)
