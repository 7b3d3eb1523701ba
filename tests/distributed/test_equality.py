"""Training on any parts of the data gives the model of local training, to the bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium.boosting import (
    Boosting,
    Checkpoint,
    Gradient,
    LeafLineSearch,
    LineSearch,
    Newton,
    RankBoostStep,
    Sampling,
)
from podium.boosting.rankboost import STUMPS
from podium.boosting.training import run_training
from podium.distributed import DaskOrdinalMART
from podium.distributed.documents import ClusterDocuments
from podium.distributed.holder import TRAIN, goes_left_of
from podium.distributed.sources import DerivedSource, pieces_of
from podium.distributed.training import ClusterTrainer
from podium.errors import DataError, PodiumWarning
from podium.measures.losses import RMSE, LogLoss
from podium.objectives import (
    SVMMAP,
    XENDCG,
    Anneal,
    ApproxNDCG,
    BoundObjective,
    Cumulative,
    Debiased,
    Exponential,
    GBRank,
    Lambda,
    ListNet,
    Local,
    Logistic,
    Multiclass,
    Objective,
    Ordinal,
    Pairwise,
    QuerySoftMax,
    Regression,
    SoftRank,
    Sum,
    Tiers,
    TopListNet,
)
from podium.trees import GrowthParameters
from tests.distributed.in_process import InProcess

SMALL = GrowthParameters(n_leaves=8, min_documents_in_leaf=5, l2=0.0)
LEAST_SQUARES = GrowthParameters(n_leaves=8, min_documents_in_leaf=1, split="least-squares")
OPTIONS = GrowthParameters(
    min_documents_in_leaf=9, min_hessian_in_leaf=4.0, min_gain_to_split=3.0, l1=0.5, feature_fraction_per_node=0.6,
    interaction_constraints=((0, 1, 2), (2, 3, 4, 5)),
)  # fmt: skip
SYMMETRIC = GrowthParameters(symmetric=True, n_leaves=17, min_documents_in_leaf=13)
SAMPLING = Sampling(document_fraction=0.7, query_fraction=0.8, feature_fraction=0.6, seed=3, split_fraction=0.4)
BY_LEAF = LeafLineSearch("ap", ties=1, values=Newton(l2=0.0))
CASES = {
    "defaults": Boosting(n_trees=3),
    "least squares": Boosting(n_trees=3, growth=LEAST_SQUARES),
    "few documents": Boosting(n_trees=3, growth=GrowthParameters(n_leaves=31, min_documents_in_leaf=13, l2=0.0)),
    "depth": Boosting(n_trees=2, growth=GrowthParameters(n_leaves=31, max_depth=3, min_documents_in_leaf=1, l2=0.0)),
    "samples": Boosting(n_trees=3, growth=SMALL, sampling=SAMPLING),
    "gradient-based sampling": Boosting(n_trees=3, growth=SMALL, sampling=Sampling(split_fraction=0.3)),
    "gradient": Boosting(n_trees=3, growth=SMALL, objective=Local("ndcg@3"), step=Gradient()),
    "line search": Boosting(n_trees=2, growth=SMALL, step=LineSearch("ndcg@5")),
    "line search on valid": Boosting(n_trees=2, growth=SMALL, step=LineSearch("ndcg@5", on="valid", ties="jitter")),
    "line search of leaves": Boosting(n_trees=2, growth=SMALL, step=BY_LEAF),
    "err": Boosting(n_trees=2, growth=SMALL, objective=Lambda("err", pair_truncation=4), selection="err"),
    "tiers": Boosting(n_trees=2, growth=SMALL, objective=Tiers(Lambda("ndcg"), Lambda("ndcg(labels=clicks)"))),
    "anneal": Boosting(n_trees=3, growth=SMALL, objective=Anneal(Regression(), Lambda("ndcg"))),
    "sum": Boosting(n_trees=2, growth=SMALL, objective=Sum(Lambda("ndcg"), Regression())),
    "debiased": Boosting(n_trees=3, growth=SMALL, objective=Debiased(Lambda("ndcg", normalize=False), l2=0.5)),
    "propensities": Boosting(n_trees=2, growth=SMALL, objective=Debiased(Lambda("ndcg"), propensities=(1, 0.5))),
    "regression": Boosting(n_trees=2, growth=SMALL, objective=Regression(), watched=(RMSE(),)),
    "weighted least squares": Boosting(
        n_trees=2, objective=Regression(), growth=replace(LEAST_SQUARES, n_leaves=31),
        sampling=Sampling(split_fraction=0.4),
    ),
    "logistic": Boosting(
        n_trees=2, growth=SMALL, objective=Logistic(balanced=True, above=1), watched=(LogLoss(balanced=True),)
    ),
    "multiclass": Boosting(n_trees=2, growth=SMALL, objective=Multiclass()),
    "boundaries": Boosting(n_trees=2, growth=SMALL, objective=Cumulative()),
    "ordinal": Boosting(n_trees=2, growth=SMALL, objective=Ordinal()),
    "random lists": Boosting(n_trees=2, growth=SMALL, objective=XENDCG()),
    "lists": Boosting(n_trees=2, growth=SMALL, objective=ListNet()),
    "soft ranks": Boosting(n_trees=2, growth=SMALL, objective=SoftRank(), step=Gradient()),
    "pairs": Boosting(n_trees=2, growth=SMALL, objective=Pairwise()),
    "approximate ranks": Boosting(n_trees=2, growth=SMALL, objective=ApproxNDCG(), step=Gradient()),
    "structured": Boosting(n_trees=2, growth=SMALL, objective=SVMMAP(), step=Gradient()),
    "gbrank": Boosting(n_trees=3, growth=SMALL, objective=GBRank()),
    "drawn lists": Boosting(n_trees=2, growth=SMALL, objective=TopListNet()),
    "query softmax": Boosting(n_trees=2, growth=SMALL, objective=QuerySoftMax()),
    "rankboost": Boosting(
        n_trees=3, growth=STUMPS, objective=Pairwise(Exponential()), step=RankBoostStep(), learning_rate=1.0,
        sampling=Sampling(split_fraction=1.0),
    ),
    "categories": Boosting(n_trees=3, growth=SMALL, categorical=(5,), max_bins=16),
    "few bins": Boosting(n_trees=2, growth=SMALL, max_bins=7),
    "monotone": Boosting(n_trees=2, growth=replace(LEAST_SQUARES, monotone=(1, -1, 0, 1, 0, 0))),
    "patience": Boosting(n_trees=20, growth=SMALL, patience=2, min_delta=0.002, learning_rate=(0.5, 0.4, 0.1)),
    "tree options": Boosting(n_trees=3, growth=OPTIONS, step=Newton(l1=OPTIONS.l1, l2=OPTIONS.l2)),
    "symmetric": Boosting(n_trees=3, growth=SYMMETRIC, sampling=Sampling(split_fraction=0.3)),
    "symmetric least squares": Boosting(n_trees=2, growth=replace(SYMMETRIC, split="least-squares", max_depth=2)),
}  # fmt: skip


EVERYWHERE = ("defaults", "gradient-based sampling", "debiased", "symmetric")  # with several numbers of workers


def train_on_cluster(settings, documents, observers=(), checkpoint=None):
    return run_training(ClusterTrainer(settings, documents), observers, checkpoint)


def on_parts(settings, train, valid, n_workers, partitions, **options):
    engine = InProcess(n_workers)
    sources = {TRAIN: partitions(train)} | {name: partitions(data) for name, data in valid.items()}
    return train_on_cluster(settings, ClusterDocuments(engine, sources), **options), engine


def require_equal(result, other):
    assert result.ensemble.digest() == other.ensemble.digest()
    assert result.ensemble.info == other.ensemble.info
    assert result.history == other.history
    assert result.best_iteration == other.best_iteration
    assert result.objective.state() == other.objective.state()


@pytest.mark.parametrize("case", CASES)
def test_a_model_is_that_of_local_training(case, train, valid):
    sets, run = {"valid": valid, "same": valid}, replace(CASES[case], watches_loss=True)
    local = run.fit(train, sets)
    assert local.n_splits > 0
    assert list(local.history)[-3:] == ["train/loss", "valid/loss", "same/loss"]
    for n_workers, n_parts in ((2, 5), (4, 9)) if case in EVERYWHERE else ((3, 4),):
        result, _ = on_parts(run, train, sets, n_workers, lambda data, n=n_parts: pieces_of(data, n))
        require_equal(local, result)


@given(st.data())
@settings(max_examples=8)
def test_any_partition_of_the_queries_gives_the_same_model(train, valid, data):
    run = CASES["samples"]
    local = run.fit(train, {"valid": valid})
    n_parts, n_workers = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 4))
    seed = data.draw(st.integers(0, 1000))

    def partitions(documents):
        home = np.random.default_rng(seed).integers(0, n_parts, documents.n_queries)
        shuffled = np.random.default_rng(seed).permutation(len(documents))
        return [documents.take(shuffled[home[documents.query_of_row[shuffled]] == k]) for k in range(n_parts)]

    result, _ = on_parts(run, train, {"valid": valid}, n_workers, partitions)
    require_equal(local, result)


def test_queries_in_several_partitions_are_collected(train, valid):
    run = CASES["defaults"]

    def rows(documents):
        return [documents.take(np.arange(k, len(documents), 4)) for k in range(4)]

    with pytest.warns(PodiumWarning, match="60 of 60 queries are spread over several partitions, so .* MB"):
        result, engine = on_parts(run, train, {}, 2, rows)
    require_equal(run.fit(train), result)
    sizes = [sum(len(data) for data in holder.data.values()) for holder in engine.holders.values()]
    assert min(sizes) > 0.6 * max(sizes)


def test_one_long_query_and_workers_without_validation_data(train, valid):
    n = 2000
    random = np.random.default_rng(5)
    long = podium.RankingData(random.random((n, 3)), random.integers(0, 3, n), qid=np.zeros(n, int))
    short = podium.RankingData(random.random((40, 3)), random.integers(0, 3, 40), qid=1 + np.arange(40) // 10)
    both = podium.RankingData.concatenate([long, short])
    run = Boosting(n_trees=2, growth=SMALL)
    local = run.fit(both, {"valid": short.select([0])})
    result, _ = on_parts(run, both, {"valid": short.select([0])}, 4, lambda data: pieces_of(data, 8))
    require_equal(local, result)


def test_round_trips_grow_with_the_depth_not_with_the_leaves(train):
    def per_tree(n_leaves):
        run = Boosting(
            n_trees=4, growth=GrowthParameters(n_leaves=n_leaves, min_documents_in_leaf=1, l2=0.0), learning_rate=0.3
        )
        more = Boosting(n_trees=8, growth=run.growth, learning_rate=0.3)
        short, long = (on_parts(r, train, {}, 2, lambda data: pieces_of(data, 2))[1] for r in (run, more))
        return (long.n_round_trips - short.n_round_trips) / 4

    assert per_tree(64) < 3 * per_tree(8)


def lose_at(engine, call, worker):
    """Let a worker leave before the call of this number."""
    ask, count = engine.ask, iter(range(10**9))

    def losing(calls):
        if next(count) == call:
            engine.lose(worker)
        return ask(calls)

    engine.ask = losing


@pytest.mark.parametrize("case", ["debiased", "multiclass", "line search"])
@pytest.mark.parametrize("call", [25, 36, 47])
def test_a_lost_worker_changes_nothing(case, call, train, valid):
    run, engine = CASES[case], InProcess(3)
    documents = ClusterDocuments(engine, {TRAIN: pieces_of(train, 7), "valid": pieces_of(valid, 4)})
    trainer = ClusterTrainer(run, documents)
    lose_at(engine, call - engine.n_round_trips, "worker 1")
    with pytest.warns(PodiumWarning, match="worker 1 has left: its documents go to other workers"):
        result = run_training(trainer, (), None)
    require_equal(run.fit(train, {"valid": valid}), result)
    assert set(documents.assignment) == {"worker 0", "worker 2"}


@pytest.mark.parametrize("call", [2, 9, 15])
@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 1), (1, 2)])
def test_a_worker_lost_while_documents_are_placed_changes_nothing(call, first, second, train, valid):
    """Workers whose partitions have changed must be prepared, although the first attempt failed."""
    run, engine = CASES["debiased"], InProcess(4)
    documents = ClusterDocuments(engine, {TRAIN: pieces_of(train, 9), "valid": pieces_of(valid, 4)})
    trainer = ClusterTrainer(run, documents)
    lose_at(engine, call + 1, f"worker {second}")
    lose_at(engine, call, f"worker {first}")
    with pytest.warns(PodiumWarning, match=f"worker {first} has left"):
        result = run_training(trainer, (), None)
    require_equal(run.fit(train, {"valid": valid}), result)
    assert len(documents.assignment) == 2


@pytest.mark.parametrize("call", [0, 1])
def test_a_worker_lost_at_the_beginning_changes_nothing(call, train, tmp_path):
    """The other workers may not have received the calls before the first tree; the fingerprint is the first call."""
    run, engine = CASES["logistic"], InProcess(3)
    trainer = ClusterTrainer(run, ClusterDocuments(engine, {TRAIN: pieces_of(train, 3)}))
    lose_at(engine, call, "worker 0")
    with pytest.warns(PodiumWarning, match="worker 0 has left"):
        result = run_training(trainer, (), Checkpoint(tmp_path / "run"))
    require_equal(run.fit(train), result)


@pytest.mark.parametrize("case", ["debiased", "multiclass"])
def test_arrays_of_a_round_survive_a_lost_worker(case, train):
    run, engine, seen, local = CASES[case], InProcess(3), [], []

    def look(round_):
        if round_.iteration == 1:
            engine.lose("worker 1")
        seen.append((round_.scores, round_.gradients, round_.hessians))

    trainer = ClusterTrainer(run, ClusterDocuments(engine, {TRAIN: pieces_of(train, 7)}))
    with pytest.warns(PodiumWarning, match="worker 1 has left"):
        result = run_training(trainer, [look], None)
    expected = run.fit(train, observers=[lambda r: local.append((r.scores, r.gradients, r.hessians))])
    require_equal(expected, result)
    for distributed, other in zip(seen, local, strict=True):
        for array, expected_array in zip(distributed, other, strict=True):
            assert np.array_equal(np.sort(array, axis=-1), np.sort(expected_array, axis=-1))


def test_the_last_thresholds_survive_a_lost_worker(train, monkeypatch):
    engine, fit = InProcess(3), DaskOrdinalMART._fit_thresholds

    def lose_first(self, bound, data):
        engine.lose("worker 2")
        fit(self, bound, data)

    monkeypatch.setattr(DaskOrdinalMART, "_fit_thresholds", lose_first)
    with pytest.warns(PodiumWarning, match="worker 2 has left"):
        model = DaskOrdinalMART(n_trees=2, n_leaves=6)._fit_on(engine, {TRAIN: pieces_of(train, 5)})
    assert model.model_.info == podium.OrdinalMART(n_trees=2, n_leaves=6).fit(train).model_.info


def test_a_worker_that_joins_is_used(train, valid, monkeypatch):
    monkeypatch.setattr("podium.distributed.training.SECONDS_BETWEEN_CHECKS", 0.0)
    run, engine = CASES["defaults"], InProcess(1)
    documents = ClusterDocuments(engine, {TRAIN: pieces_of(train, 6), "valid": pieces_of(valid, 6)})

    def join(round_):
        if round_.iteration == 0:
            engine.join("worker 1")

    result = train_on_cluster(run, documents, [join])
    require_equal(run.fit(train, {"valid": valid}), result)
    assert all(len(held[TRAIN]) == 3 for held in documents.assignment.values())


def test_a_stopped_run_resumes_from_its_checkpoint(train, valid, tmp_path):
    run, checkpoint = CASES["debiased"], Checkpoint(tmp_path / "run", every=1)

    def stop(round_):
        if round_.iteration == 1:
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        on_parts(run, train, {"valid": valid}, 2, lambda d: pieces_of(d, 3), observers=[stop], checkpoint=checkpoint)
    rounds = []
    result, _ = on_parts(
        run, train, {"valid": valid}, 3, lambda d: pieces_of(d, 5), observers=[rounds.append], checkpoint=checkpoint
    )
    assert [r.iteration for r in rounds] == [1, 2]
    require_equal(run.fit(train, {"valid": valid}), result)
    with pytest.raises(DataError, match="checkpoint of other data"):
        on_parts(run, train.select(range(30)), {"valid": valid}, 2, lambda d: pieces_of(d, 2), checkpoint=checkpoint)


def test_observers_see_rounds_and_fetch_arrays(train):
    seen, rounds = [], []

    def unseen(round_):
        other = object.__new__(type(round_))
        other.__dict__.update({name: value for name, value in round_.__dict__.items() if name != "_parts"})
        return other

    def look(round_):
        seen.append((round_.scores, round_.gradients, round_.weights))
        if rounds:
            with pytest.raises(DataError, match="read them in the observer"):
                _ = rounds.pop().scores
        rounds.append(unseen(round_))
        with pytest.raises(DataError, match="documents stay on the workers"):
            _ = round_.data
        return {"sum": float(np.sort(round_.scores).sum())}

    local = []
    run = CASES["defaults"]
    result, _ = on_parts(run, train, {}, 2, lambda d: pieces_of(d, 2), observers=[look])
    run.fit(train, observers=[lambda r: local.append((r.scores, r.gradients, r.weights))])
    for distributed, other in zip(seen, local, strict=True):
        assert np.array_equal(np.sort(distributed[0]), np.sort(other[0]))
        assert np.array_equal(np.sort(distributed[1]), np.sort(other[1]))
        assert distributed[2] == other[2]
    assert len(result.history["sum"]) == 3


def test_bins_of_a_tree_follow_from_its_thresholds(train):
    run = CASES["categories"]
    data = podium.boosting.BinnedData.of(train, {}, run)
    ensemble = run.fit(train, data=data).ensemble
    for k in range(ensemble.n_trees):
        tree = ensemble.tree(k)
        from podium.core.team import Team
        from podium.distributed.parts import by_bins

        leaves = by_bins(tree, goes_left_of(tree, data.bins)).leaf_of_rows(data.binned, Team(1))
        assert np.array_equal(leaves, ensemble.leaves(train)[:, k])


class Own(Objective):
    def bind(self, data):
        return OwnBound()


class OwnBound(BoundObjective):
    def gradients(self, scores, iteration=0):
        return 1.0 - scores, np.ones(len(scores))


def test_unsupported_settings_and_data_are_refused(train):
    def fit(**settings):
        on_parts(Boosting(n_trees=1, **settings), train, {}, 2, lambda d: pieces_of(d, 2))

    with pytest.raises(DataError, match="Own cannot be distributed"):
        fit(objective=Own())
    with pytest.raises(DataError, match="submodel is not supported on a cluster"):
        fit(submodel=lambda data: np.zeros(len(data)))
    with pytest.raises(DataError, match="needs validation data"):
        fit(step=LineSearch(on="valid"))
    with pytest.raises(DataError, match="partitions differ in their columns"):
        on_parts(
            Boosting(), train, {}, 2, lambda d: [d.select(range(9)), d.select(range(9, 20)).replace(positions=None)]
        )
    with pytest.raises(DataError, match="no documents"):
        on_parts(Boosting(), train, {}, 2, lambda d: [d.take(np.arange(0))])
    times = 1.7e9 + np.arange(200.0)[:, None]
    stamps = podium.RankingData(times, np.arange(200) % 3, qid=np.arange(200) // 10)
    with pytest.raises(DataError, match="float32 cannot distinguish the values of feature 0"):
        on_parts(Boosting(), stamps, {}, 2, lambda d: pieces_of(d, 2))


def test_sources_are_computed_where_they_are_needed(train):
    calls = []

    def make(k):
        calls.append(k)
        return pieces_of(train, 3)[k]

    engine = InProcess(2)
    documents = ClusterDocuments(engine, {TRAIN: [DerivedSource(make, (k,)) for k in range(3)]})
    assert sorted(calls) == [0, 0, 1, 1, 2, 2]  # described, then placed
    assert documents.n_documents == len(train)
