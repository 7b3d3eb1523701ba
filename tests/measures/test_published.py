"""Values that other tools publish in their own tests: trec_eval's example run, and Rax's tables."""

from math import exp, log, log2

import numpy as np
import pytest

import podium
from podium import RankingData
from podium.evaluation import Qrels, Run
from podium.measures import parse
from podium.objectives import ApproxNDCG, CrossEntropy, Hinge, ListMLE, Pairwise, QuerySoftMax, Regression

# --- trec_eval (usnistgov/trec_eval, test/out.test.aq): its example run of 500 documents for each of three topics

# By topic: documents judged relevant and not relevant; then of each relevant document that the run returned its rank,
# and how many of those judged not relevant are above it.
TOPICS = {
    "301": (474, 1234, 188, """
        6:5 7:5 16:11 18:12 20:13 26:18 30:20 32:21 37:25 39:25 43:27 49:31 54:33 56:33 57:33 59:34 63:37 67:38 70:40
        83:47 92:48 96:50 100:50 103:51 112:58 115:60 116:60 122:64 125:66 130:69 131:69 133:69 143:75 144:75 145:75
        158:81 172:88 178:90 184:92 197:98 199:98 200:98 207:100 210:101 212:102 219:104 224:105 229:109 240:114
        249:120 253:121 263:123 267:125 274:125 280:127 290:131 307:136 309:136 315:138 317:138 318:138 320:138 327:142
        342:150 348:151 384:161 394:162 419:170 435:175 491:187 495:187"""),
    "302": (77, 984, 214, """
        1:0 2:0 4:1 5:1 6:1 8:2 9:2 11:3 12:3 13:3 14:3 15:3 16:3 17:3 18:3 19:3 21:4 22:4 24:5 27:7 28:7 30:8 31:8
        34:10 36:11 37:11 39:12 42:14 43:14 44:14 47:16 48:16 49:16 50:16 51:16 53:17 56:19 58:20 72:32 79:38 82:39
        84:40 116:69 154:95 289:159 301:161 331:169 353:175 394:188 458:205"""),
    "303": (10, 902, 205, "19:18 37:35 41:38 43:39 44:39 65:59 67:60 89:81 99:90 107:97"),
}  # fmt: skip
# Of the three topics, then the mean. Version 10 has other values of iprec_at_recall_0.10, see `InterpolatedPrecision`.
BY_TREC_EVAL = {
    "map": (0.0324, 0.4175, 0.0858, 0.1785), "Rprec": (0.1456, 0.5065, 0.0, 0.2174),
    "bpref": (0.1230, 0.4712, 0.0, 0.1981), "infAP": (0.0324, 0.4175, 0.0858, 0.1785),
    "recip_rank": (0.1667, 1.0, 0.0526, 0.4064), "iprec_at_recall_0.00": (0.2857, 1.0, 0.1136, 0.4665),
    "iprec_at_recall_0.10": (0.2096, 0.8421, 0.1136, 0.3884), "iprec_at_recall_0.50": (0.0, 0.5417, 0.1136, 0.2184),
    "P_5": (0.0, 0.8, 0.0, 0.2667), "P_30": (0.2333, 0.7333, 0.0333, 0.3333), "P_1000": (0.0710, 0.05, 0.01, 0.0437),
    "recall_20": (0.0105, 0.2078, 0.1, 0.1061), "recall_1000": (0.1498, 0.6494, 1.0, 0.5997),
    "ndcg": (0.1584, 0.6617, 0.3862, 0.4021), "ndcg_cut_10": (0.1518, 0.7530, 0.0, 0.3016),
    "ndcg_cut_100": (0.2166, 0.6046, 0.3537, 0.3916), "map_cut_20": (0.0023, 0.1695, 0.0053, 0.0591),
    "map_cut_100": (0.0118, 0.3983, 0.0764, 0.1622), "success_1": (0.0, 1.0, 0.0, 0.3333),
    "success_10": (1.0, 1.0, 0.0, 0.6667), "set_F": (0.1458, 0.1733, 0.0392, 0.1194),
}  # fmt: skip


def topic(n_relevant, n_not_relevant, not_relevant_in_run, ranks):
    """Return the judgements and the run of a topic, as documents named after their ranks."""
    judged, before = {}, (0, 0)
    above = [tuple(map(int, pair.split(":"))) for pair in ranks.split()]
    for rank, bad in [*above, (501, not_relevant_in_run)]:
        gap = range(before[0] + 1, rank)
        assert bad - before[1] <= len(gap)
        judged |= {f"d{k}": 0.0 for k in gap[: bad - before[1]]}  # the others of the gap have no judgement
        judged[f"d{rank}"] = 1.0
        before = (rank, bad)
    del judged["d501"]
    judged |= {f"missed {k}": 1.0 for k in range(n_relevant - len(above))}
    judged |= {f"bad {k}": 0.0 for k in range(n_not_relevant - not_relevant_in_run)}
    return judged, {f"d{k}": -float(k) for k in range(1, 501)}


@pytest.mark.parametrize("name", BY_TREC_EVAL)
def test_measures_agree_with_the_example_run_of_trec_eval(name):
    topics = {number: topic(*facts) for number, facts in TOPICS.items()}
    qrels, run = Qrels({n: judged for n, (judged, _) in topics.items()}), {n: run for n, (_, run) in topics.items()}
    evaluation = podium.evaluate(qrels, Run("STANDARD", run), name)
    assert evaluation.query_ids.tolist() == list(TOPICS)
    key = str(parse(name))
    assert [*evaluation.values[key], evaluation.means[key]] == pytest.approx(BY_TREC_EVAL[name], abs=5.001e-5)


# --- Rax (google/rax, rax/_src/metrics_test.py and losses_test.py): two lists of four documents

SCORES = np.array([0.0, 3, 1, 2, 1, 4, 3, 2])
LABELS = np.array([0.0, 0, 1, 1, 2, 0, 0, 1])
BY_RAX = {
    "rr": (1 / 2, 1 / 3), "recall": (1, 1), "recall@3": (1, 1 / 2), "precision": (1 / 2, 1 / 2),
    "precision@3": (2 / 3, 1 / 3), "ap": ((1 / 2 + 2 / 3) / 2, (1 / 3 + 1 / 2) / 2),
    "dcg": (1 / log2(3) + 1 / log2(4), 1 / log2(4) + 3 / log2(5)),
    "ndcg": (
        (1 / log2(3) + 1 / log2(4)) / (1 + 1 / log2(3)), (1 / log2(4) + 3 / log2(5)) / (3 + 1 / log2(3)),
    ),
    "ap@3": (None, (1 / 3) / 2), "dcg@1": (0, 0), "ndcg@1": (0, 0), "rr@1": (0, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_RAX)
def test_measures_agree_with_rax(name):
    data = RankingData(np.empty((8, 0)), LABELS, qid=np.repeat([0, 1], 4))
    values = podium.evaluate(data, SCORES, name).values[str(parse(name))]
    for value, published in zip(values, BY_RAX[name], strict=True):
        assert published is None or value == pytest.approx(published, rel=1e-12)


def test_pairwise_accuracy_is_the_opa_of_rax():
    data = RankingData(np.empty((4, 0)), LABELS[:4], qid=[0] * 4)
    assert podium.evaluate(data, SCORES[:4], "accuracy").means["accuracy"] == 2 / 4


def soft(x):
    return log(1 + exp(-x))


SUM = exp(0) + exp(3) + exp(1) + exp(2)
# The objective and its loss on the first list. Rax sums squares where Podium has half of their mean.
LOSSES = [
    (QuerySoftMax(), -log(exp(2) / SUM) - log(exp(1) / SUM)),
    (Pairwise(Hinge()), (3 - 1 + 1) + (3 - 2 + 1)),
    (Pairwise(CrossEntropy()), soft(1 - 0) + soft(1 - 3) + soft(2 - 3) + soft(2 - 0)),
    (Regression(), (0 + 3**2 + 0 + 1) / 2 / 4),
]


@pytest.mark.parametrize(("objective", "published"), LOSSES, ids=[str(objective) for objective, _ in LOSSES])
def test_losses_agree_with_rax(objective, published):
    data = RankingData(np.empty((4, 0)), LABELS[:4], qid=[0] * 4)
    assert objective.bind(data).loss(SCORES[:4]) == pytest.approx(published, rel=1e-6)


def test_listmle_and_approximate_ranks_agree_with_rax():
    distinct = RankingData(np.empty((4, 0)), [1.0, 0, 3, 2], qid=[0] * 4)  # the order in which Rax breaks its ties
    published = -sum(
        log(exp(s) / sum(exp(t) for t in rest)) for s, rest in ((1, (1, 2, 0, 3)), (2, (2, 0, 3)), (0, (0, 3)))
    )
    assert ListMLE().bind(distinct).loss(SCORES[:4]) == pytest.approx(published, rel=1e-12)
    # approx_t12n of ndcg with temperature 1: ranks 1 + Σ 1 / (1 + e^{s_i − s_j})
    data = RankingData(np.empty((3, 0)), [0.0, 1, 0], qid=[0] * 3)
    rank = 1 + 1 / (1 + exp(1 - 0)) + 1 / (1 + exp(1 - 2))
    assert ApproxNDCG().values(data, np.array([0.0, 1, 2]))[0] == pytest.approx(1 / log2(1 + rank), rel=1e-12)
