"""Observers of training agree with slow references, and do not affect training."""

import numpy as np
import pytest

import podium
from podium import MART, DataError, LambdaMART, LinearRanker, McRank, RankNetTrees
from podium.boosting import Checkpoint
from podium.diagnostics import (
    WatchAgreement,
    WatchLambdaShares,
    WatchLineSearch,
    WatchMeasures,
    WatchRankChanges,
    WatchTopLabels,
    lambda_shares,
)
from podium.measures import Ranking
from podium.objectives import Debiased, Lambda, PairFilter, Pairwise
from tests.references.objectives import slow_pairs, slow_single_pairs

LAMBDA = "lambda(ndcg)"
TRAINED = Lambda("ndcg", normalize=True)  # what LambdaMART trains on


@pytest.fixture(scope="module")
def data():
    return podium.data.datasets.simulate_clicks(podium.artificial(15, documents=12, features=4, seed=3))


@pytest.fixture(scope="module")
def valid():
    return podium.artificial(8, features=4, part="valid")


def watches(objective=None, every=1):
    return [
        WatchTopLabels(3, every=every), WatchRankChanges(3, every=every), WatchMeasures("ap", every=every),
        WatchLambdaShares(objective, every=every), WatchAgreement(objective=objective, every=every),
    ]  # fmt: skip


def rankers():
    trees = {"n_leaves": 4, "min_documents_in_leaf": 2}
    yield LambdaMART(5, **trees), None
    yield RankNetTrees(5, **trees), None
    yield MART(5, **trees, measure="ndcg@10"), LAMBDA
    yield McRank(5, **trees), LAMBDA
    yield LinearRanker(n_iterations=5), None
    yield LinearRanker(n_iterations=3, method="ascent"), LAMBDA
    pytest.importorskip("torch")
    yield podium.LambdaRank(epochs=5, n_threads=1), None
    yield podium.RankNet(epochs=5, n_threads=1, batch_queries=4), LAMBDA


@pytest.mark.parametrize("number", range(8))
def test_observers_work_with_every_trainer_and_do_not_affect_it(number, data, valid):
    ranker, objective = list(rankers())[number]
    sets = {} if getattr(ranker, "method", None) == "ascent" else {"valid": valid}
    plain = ranker.fit(data, **sets)
    digest, history = plain.digest(), dict(plain.history_)
    observers, scores_by_round = watches(objective), []

    def record_scores(round_):
        scores_by_round.append(round_.document_scores.copy())

    model = ranker.fit(data, **sets, observers=[*observers, record_scores])
    assert model.digest() == digest
    assert {name: model.history_[name] for name in history} == history
    n_rounds = len(scores_by_round)
    assert {len(values) for values in model.history_.values()} == {n_rounds}
    assert len(model.history_) > len(history) + 10
    for watch in observers:
        result, again = watch.result(), watch.result(model.history_)
        assert result.iterations[-1] == n_rounds - 1
        assert str(result.table()) == str(again.table()) or isinstance(watch, WatchRankChanges | WatchMeasures)
        assert len(str(result).splitlines()) == n_rounds + 1
    best = scores_by_round[-1 if model.best_iteration_ is None else model.best_iteration_]
    order = [Ranking(data, scores, base=data.canonical_order).order for scores in (best, model.predict(data))]
    assert np.array_equal(*order)


@pytest.fixture(scope="module")
def watched(data, valid):
    """Return a model that was trained with all observers, their results, and the scores of each round."""
    observers, scores = watches(), []
    model = LambdaMART(7, 5, min_documents_in_leaf=2)
    model.fit(data, valid=valid, observers=[*observers, lambda r: scores.append(r.scores)])
    return model, [watch.result() for watch in observers], scores


def test_labels_at_the_top(data, watched):
    _, (top, *_), scores = watched
    for k, row in enumerate(scores):
        order = Ranking(data, row, base=data.canonical_order).order
        first = np.concatenate([order[start : start + 3] for start in data.offsets[:-1]])
        for label, share in zip(top.labels, top.shares[k], strict=True):
            assert share == pytest.approx((data.relevance[first] == label).mean())
    assert top.shares.sum(axis=1) == pytest.approx(np.ones(7))


def test_changes_of_ranks(data, watched):
    _, (_, changes, *_), scores = watched
    orders = [Ranking(data, row, base=data.canonical_order).order.reshape(15, 12) for row in scores]
    assert np.isnan([changes.everywhere[0], changes.top[0]]).all()
    for k in range(1, 7):
        differs = orders[k] != orders[k - 1]
        assert changes.everywhere[k] == pytest.approx(differs.mean(axis=1).mean())
        assert changes.top[k] == pytest.approx(differs[:, :3].mean(axis=1).mean())


def test_measures_of_the_training_data(data, watched):
    model, (_, _, curves, *_), scores = watched
    for k, row in enumerate(scores):
        assert curves.means["train/ap"][k] == podium.measures.AP().mean(Ranking(data, row, base=data.canonical_order))
    assert curves.means["valid/ndcg@10"].tolist() == model.history_["valid/ndcg@10"]
    assert model.history_["train/ap"] == curves.means["train/ap"].tolist()


def slow_shares(data, lambdas, of_labels):
    """Compute [S] eq. 11 literally, and with |λ_jk|."""
    labels, examined = data.relevance, np.flatnonzero(np.isin(data.relevance, of_labels))
    kinds = np.unique(labels)
    shares = []
    for matrix in (lambdas, np.abs(lambdas)):
        nonzero = [j for j in examined if matrix[j].sum() != 0]
        shares.append([np.mean([matrix[j, labels == v].sum() / matrix[j].sum() for j in nonzero]) for v in kinds])
    return shares


def test_shares_of_lambda(data, watched):
    model, (_, _, _, shares, _), scores = watched
    for k in (0, 3, 6):
        lambdas = slow_single_pairs(data, scores[k], TRAINED)[0]
        net, absolute = slow_shares(data, lambdas, (3, 4))
        assert shares.net[k] == pytest.approx(net, rel=1e-4)
        assert shares.absolute[k] == pytest.approx(absolute, rel=1e-5)
    assert shares.net.sum(axis=1) == pytest.approx(np.ones(7))
    assert shares.absolute.sum(axis=1) == pytest.approx(np.ones(7))
    n_rounds = model.n_trees_
    function = lambda_shares(model, data, TRAINED, iterations=range(n_rounds))
    assert function.net == pytest.approx(shares.net[:n_rounds], rel=1e-6)
    assert lambda_shares(model, data, TRAINED).absolute[0] == pytest.approx(function.absolute[-1])
    others = lambda_shares(model, data, Pairwise(), of_labels=[0])
    expected = slow_shares(data, slow_single_pairs(data, model.predict(data), Pairwise())[0], [0])
    assert others.net[0] == pytest.approx(expected[0], rel=1e-4)
    assert others.absolute[0] == pytest.approx(expected[1], rel=1e-5)


def test_agreement_of_two_objectives(data, watched):
    _, (*_, agreement), scores = watched
    click = Lambda("cndcg")
    restricted = PairFilter(data.relevance[data.canonical_order], nonzero=True)
    for k in (0, 6):
        first = slow_pairs(data, scores[k], TRAINED)[0]
        for share, among in ((agreement.all_pairs[k], None), (agreement.restricted[k], restricted)):
            second = slow_pairs(data, scores[k], click, among)[0]
            agrees = (np.sign(first) == np.sign(second)) | (second == 0)
            assert share == pytest.approx(agrees.mean(), abs=1.5 / len(data))  # rounding may turn 0 into a sign


def test_weights_of_a_line_search(data):
    watch, weights = WatchLineSearch(), []
    model = LambdaMART(4, 4, step="line-search").fit(data, observers=[watch, lambda r: weights.append(r.weights[0])])
    assert watch.result().weights.tolist() == weights == model.history_["alpha"]
    assert len(set(weights)) > 1
    with pytest.raises(DataError, match="one tree per round"):
        LinearRanker(n_iterations=1).fit(data, observers=[WatchLineSearch()])


def test_the_order_of_rows_and_the_threads_do_not_matter(data):
    rows = np.random.default_rng(0).permutation(len(data))
    histories = [
        LambdaMART(4, 4, n_threads=threads).fit(documents, observers=watches()).history_
        for documents, threads in ((data, 1), (data.take(rows), 2))
    ]
    assert repr(histories[0]) == repr(histories[1])


def test_every_nth_round_is_observed(data):
    usual = [WatchTopLabels(), WatchRankChanges(), WatchLambdaShares(), WatchAgreement()]
    for ranker, expected in ((LambdaMART(51, 4), [51, 6, 2, 2]), (LinearRanker(n_iterations=21), [3, 3, 2, 1])):
        ranker.fit(data, observers=usual)
        assert [len(watch.result().iterations) for watch in usual] == expected
    observers = watches(every=3)
    model = LambdaMART(8, 4).fit(data, observers=observers)
    for watch in observers:
        assert watch.result().iterations.tolist() == [0, 3, 6]
    column = np.array(model.history_["top_labels@3: 0"])
    assert np.flatnonzero(~np.isnan(column)).tolist() == [0, 3, 6]
    assert observers[0].result(model.history_).shares.tolist() == observers[0].result().shares.tolist()
    LambdaMART(2, 4).fit(data, observers=observers)  # another run, so observers start again
    assert observers[0].result().iterations.tolist() == [0]


@pytest.mark.parametrize("ranker", ["LambdaMART", "LambdaRank"])
def test_a_resumed_run_keeps_earlier_records(data, tmp_path, ranker):
    def make(n):
        if ranker == "LambdaMART":
            return LambdaMART(n, 4)
        pytest.importorskip("torch")
        return podium.LambdaRank(epochs=n, n_threads=1)

    checkpoint = Checkpoint(tmp_path / "run", every=2)
    whole = make(6).fit(data, observers=[WatchTopLabels(every=1)])
    make(4).fit(data, observers=[WatchTopLabels(every=1)], checkpoint=checkpoint)
    watch = WatchTopLabels(every=1)
    resumed = make(6).fit(data, observers=[watch], checkpoint=checkpoint)
    assert resumed.history_ == whole.history_
    assert watch.result().iterations.tolist() == [4, 5]
    assert watch.result(resumed.history_).iterations.tolist() == list(range(6))


def test_custom_observers(data):
    model = LambdaMART(3, 4).fit(data, observers=[lambda r: {"spread": np.ptp(r.scores)} if r.iteration else None])
    spread = model.history_["spread"]
    assert np.isnan(spread[0])
    assert 0 < spread[1] < spread[2]
    for wrong, problem in (
        ({"a": "b"}, "numbers by name, but returned 'a': 'b'"), ({3: 1.0}, "numbers by name"),
        ({"a": True}, "numbers by name"),
        ({"valid/ndcg@10": 1.0}, "already in the history"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=problem):
            LambdaMART(1).fit(data, valid=data, observers=[lambda r, wrong=wrong: wrong])
    with pytest.raises(DataError, match="already in the history"):
        LambdaMART(1).fit(data, observers=[lambda r: {"a": 1}, lambda r: {"a": 1}])


def test_invalid_arguments_are_refused(data):
    for make, problem in (
        (lambda: WatchTopLabels(0), "k must be"), (lambda: WatchRankChanges(every=0), "every must be"),
        (lambda: WatchMeasures(()), "at least one measure"), (lambda: WatchMeasures("nonsense"), "measure"),
        (lambda: WatchLambdaShares(3), "objective must be"), (lambda: WatchAgreement(other=3), "other must be"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=problem):
            make()
    debiased = Debiased(Lambda("ndcg"))
    for observer, problem, ranker in (
        (WatchTopLabels(labels="stars"), "the data has no labels 'stars'; it has 'relevance'", LambdaMART(1)),
        (
            WatchLambdaShares(of_labels=[9]),
            "of_labels: no document has a label 9.0; the labels are 0, 1",
            LambdaMART(1),
        ),
        (WatchLambdaShares(), "not a sum over pairs", MART(1)),
        (WatchAgreement("pairwise"), "both objectives have the labels 'relevance'", LambdaMART(1)),
        (WatchLambdaShares(), "learns during training", LambdaMART(1, objective=debiased)),
        (WatchLambdaShares(), "has no objective: pass one", LinearRanker(method="ascent", n_iterations=1)),
    ):
        train = data.replace(positions=np.ones(len(data))) if "learns" in problem else data
        with pytest.raises(DataError, match=problem):
            ranker.fit(train, observers=[observer])
    with pytest.raises(DataError, match="WatchTopLabels has not observed training"):
        WatchTopLabels().result()
    with pytest.raises(DataError, match="history has no records of WatchTopLabels"):
        WatchTopLabels().result({"valid/ndcg@10": [0.5]})
    many = data.replace(relevance=np.arange(len(data)) / 90)
    with pytest.raises(DataError, match="180 distinct values"):
        LambdaMART(1).fit(many, observers=[WatchTopLabels()])


def test_scores_of_an_epoch_must_be_read_before_the_next(data):
    pytest.importorskip("torch")
    epochs = []
    podium.LambdaRank(epochs=2, n_threads=1).fit(data, observers=[epochs.append])
    assert epochs[-1].document_scores.shape == (len(data),)
    with pytest.raises(DataError, match="before the next epoch"):
        _ = epochs[0].document_scores
