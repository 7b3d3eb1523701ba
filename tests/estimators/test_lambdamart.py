"""LambdaMART: reproducible models, the effect of every parameter, and scikit-learn's conventions."""

import copy
import os
import pickle
import subprocess
import sys
import threading

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import podium
from podium import DataError, Graded, LambdaMART, PodiumWarning, QueryKFold, RankingData
from podium.boosting import Checkpoint
from podium.boosting.sampling import BoundSampling, Sampling
from podium.objectives import Lambda

SMALL = {"n_trees": 8, "n_leaves": 6, "min_documents_in_leaf": 5}


@pytest.fixture(scope="module")
def train():
    return podium.artificial(80, documents=(5, 30), features=8)


@pytest.fixture(scope="module")
def valid():
    return podium.artificial(60, documents=(5, 30), features=8, part="valid")


@pytest.fixture(scope="module")
def model(train, valid):
    return LambdaMART(**SMALL).fit(train, valid=valid)


# --- the same model everywhere


@pytest.mark.parametrize("split", ["newton", "least-squares"])
@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"document_fraction": 0.7, "query_fraction": 0.8, "feature_fraction": 0.6, "split_fraction": 0.5},
        {"split_fraction": 0.4},
    ],
)
def test_neither_threads_nor_row_order_change_the_model(train, valid, split, sampling):
    options = SMALL | sampling | {"split": split}
    digest = LambdaMART(**options, n_threads=1).fit(train, valid=valid).digest()
    assert LambdaMART(**options, n_threads=3).fit(train, valid=valid).digest() == digest
    shuffle = np.random.default_rng(0).permutation(len(train))
    shuffled = RankingData(train.features[shuffle], train.relevance[shuffle], qid=train.qid[shuffle])
    assert LambdaMART(**options).fit(shuffled, valid=valid).digest() == digest
    queries = RankingData(train.features, train.relevance, qid=train.qid.astype(str))
    assert LambdaMART(**options).fit(queries, valid=valid).digest() == digest


@pytest.mark.slow
def test_another_number_of_cores_gives_the_same_model():
    code = (
        "import podium; d = podium.artificial(100, features=20); "
        "print(podium.LambdaMART(n_trees=5, n_threads={}).fit(d).digest())"
    )
    digests = set()
    for threads in (1, 2, 4):
        environment = os.environ | {"NUMBA_NUM_THREADS": "4"}
        done = subprocess.run(
            [sys.executable, "-c", code.format(threads)], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert len(digests.pop()) == 64


def test_equal_rows_in_another_order_give_the_same_model():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 3)).astype(np.float32)  # many equal rows, with different labels
    y, qid = rng.integers(0, 3, 200), np.repeat(np.arange(10), 20)
    shuffle = rng.permutation(200)
    a = LambdaMART(**SMALL).fit(X, y, qid=qid)
    b = LambdaMART(**SMALL).fit(X[shuffle], y[shuffle], qid=qid[shuffle])
    assert a.digest() == b.digest()


def test_sparse_and_dense_features_give_the_same_model(train):
    dense = train.features * (train.features > 0)
    a = LambdaMART(**SMALL, document_fraction=0.8).fit(dense, train.relevance, qid=train.qid)
    b = LambdaMART(**SMALL, document_fraction=0.8).fit(sparse.csr_matrix(dense), train.relevance, qid=train.qid)
    assert a.digest() == b.digest()
    assert np.array_equal(a.predict(dense), b.predict(sparse.csr_array(dense)))


# --- learning


def test_it_learns(train, valid):
    test = podium.artificial(200, documents=(5, 30), features=8, part="test")
    fitted = LambdaMART(n_trees=60, n_leaves=8, min_documents_in_leaf=5).fit(train, valid=valid)
    systems = {"best feature": _best_feature(train, test), "model": fitted.predict(test)}
    comparison = podium.compare(test, systems, "ndcg@10").pairs[0]
    assert comparison.difference > 0.1
    assert comparison.p_t < 1e-6


def _best_feature(train, test):
    agreement = np.corrcoef(train.features.T, train.relevance)[-1, :-1]
    k = int(np.argmax(np.abs(agreement)))
    return np.sign(agreement[k]) * test.feature(k)


@pytest.mark.parametrize("measure", ["ndcg@10", "err", "ap", "rr", "precision@5", "rbp", "accuracy"])
def test_every_measure_trains(train, measure):
    fitted = LambdaMART(**SMALL, measure=measure).fit(train)
    before = podium.evaluate(train, np.random.default_rng(0).normal(size=len(train)), measure).means[measure]
    assert fitted.score(train) > before + 0.02


def test_scores_of_training_and_prediction_are_the_same_bits(train):
    seen = []
    fitted = LambdaMART(**SMALL).fit(train, observers=[lambda r: seen.append(r.scores.copy())])
    stages = list(fitted.staged_predict(train))
    assert len(seen) == len(stages) == fitted.n_trees_ == 8
    assert all(np.array_equal(a, b) for a, b in zip(seen, stages, strict=True))
    assert np.array_equal(fitted.predict(train, n_trees=3), stages[2])
    sampled = LambdaMART(**SMALL, document_fraction=0.5).fit(train, observers=[lambda r: seen.append(r.scores.copy())])
    assert np.array_equal(seen[-1], sampled.predict(train))


def test_leaf_values_are_newton_steps(train):
    seen = []
    fitted = LambdaMART(**SMALL, learning_rate=0.5, l2=0.3).fit(train, observers=[seen.append])
    leaves = fitted.apply(train)
    for k, round_ in enumerate(seen):
        for leaf in range(round_.tree.n_leaves):
            rows = leaves[:, k] == leaf
            expected = 0.5 * round_.gradients[rows].sum() / (round_.hessians[rows].sum() + 0.3)
            assert round_.tree.leaf_value[leaf] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_early_stopping_keeps_the_best_trees(train, valid):
    fitted = LambdaMART(n_trees=300, n_leaves=20, learning_rate=0.5, patience=5, min_documents_in_leaf=5).fit(
        train, valid=valid
    )
    history = fitted.history_["valid/ndcg@10"]
    assert len(history) < 300
    assert fitted.best_iteration_ == int(np.argmax(history)) == fitted.n_trees_ - 1
    assert len(history) == fitted.best_iteration_ + 6
    assert fitted.score(valid) == pytest.approx(max(history), abs=1e-12)


def test_graded_measures_pick_the_number_of_trees():
    data = podium.artificial(60, clicks=True, features=8)
    other = podium.artificial(60, clicks=True, features=8, part="valid")
    graded = Graded(["ndcg@3", "cndcg@3"], tolerance=0.02)
    fitted = LambdaMART(**SMALL, measure=graded).fit(data, valid={"v": other})
    table = np.column_stack([fitted.history_["v/ndcg@3"], fitted.history_["v/cndcg@3"]])
    assert fitted.best_iteration_ == graded.pick(table)


def test_several_evaluation_sets(train, valid):
    entry = (valid.features, valid.relevance, valid.qid)
    single = LambdaMART(**SMALL).fit(train.features, train.relevance, qid=train.qid, eval_set=entry)
    several = LambdaMART(**SMALL).fit(train, eval_set=[entry, (train.features, train.relevance, train.qid)])
    assert set(single.history_) == {"eval/ndcg@10"}
    assert set(several.history_) == {"eval0/ndcg@10", "eval1/ndcg@10"}
    with pytest.raises(DataError, match="eval_set takes"):
        LambdaMART(**SMALL).fit(train, eval_set=(1, 2))
    names = [f"f{k}" for k in range(train.n_features)]
    frames = [pd.DataFrame(data.features, columns=names).assign(qid=data.qid) for data in (train, valid)]
    of_frames = LambdaMART(**SMALL).fit(frames[0], train.relevance, eval_set=[(frames[1], valid.relevance)])
    assert of_frames.history_ == single.history_
    with pytest.raises(DataError, match="if X is a frame with a column 'qid'"):
        LambdaMART(**SMALL).fit(train, eval_set=[(frames[1][names], valid.relevance)])


CHANGES = [
    {"n_trees": 5}, {"n_leaves": 3}, {"learning_rate": 0.3}, {"measure": "ap"}, {"min_documents_in_leaf": 60},
    {"max_depth": 2}, {"l2": 5.0}, {"split": "least-squares"}, {"document_fraction": 0.5}, {"query_fraction": 0.5},
    {"feature_fraction": 0.3}, {"split_fraction": 0.6}, {"truncation": 2}, {"normalize": False}, {"max_bins": 4},
    {"monotone": {0: 1, 1: -1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1}}, {"objective": Lambda("err")},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_every_parameter_has_its_effect(train, model, change):
    base = LambdaMART(**SMALL).fit(train)
    assert LambdaMART(**(SMALL | change)).fit(train).digest() != base.digest()


def test_sigma_changes_nothing_without_l2_and_the_seed_nothing_without_sampling(train):
    plain = SMALL | {"l2": 0.0, "normalize": False, "split_fraction": 1.0}
    base = LambdaMART(**plain).fit(train).predict(train)
    other = LambdaMART(**plain, sigma=2.0).fit(train).predict(train)
    assert np.allclose(other * 2, base, rtol=1e-6, atol=1e-9)  # γ scales as 1/σ
    assert not np.allclose(LambdaMART(**SMALL, sigma=2.0, l2=1.0).fit(train).predict(train) * 2,
                           LambdaMART(**SMALL, l2=1.0).fit(train).predict(train))  # fmt: skip
    seeds = [LambdaMART(**plain, random_state=seed).fit(train).digest() for seed in (0, 1)]
    assert seeds[0] == seeds[1]
    for sampling in ({"document_fraction": 0.5}, {"split_fraction": 0.5}):
        seeds = [LambdaMART(**(plain | sampling), random_state=seed).fit(train).digest() for seed in (0, 1)]
        assert seeds[0] != seeds[1]


@pytest.mark.parametrize(
    ("documents", "share"), [(10, 0.5), (300_000, 0.5), (400_000, 0.375), (720_000, 0.3), (2_880_000, 0.15)]
)
def test_of_many_documents_a_smaller_share_is_seen(documents, share):
    data = RankingData(np.zeros((documents, 1), np.float32), np.zeros(documents), qid=np.zeros(documents, int))
    assert BoundSampling(Sampling(split_fraction=None), data).split_fraction == share
    assert BoundSampling(Sampling(split_fraction=0.7), data).split_fraction == 0.7
    assert LambdaMART().split_fraction is None


def test_weights_count(train):
    heavy = LambdaMART(**SMALL).fit(train.features, train.relevance, qid=train.qid, query_weight=np.arange(80) + 1.0)
    weighted = LambdaMART(**SMALL).fit(
        train.features, train.relevance, qid=train.qid, sample_weight=np.linspace(0.1, 2, len(train))
    )
    assert len({heavy.digest(), weighted.digest(), LambdaMART(**SMALL).fit(train).digest()}) == 3


def test_missing_values_and_categories(train):
    X = train.features.copy()
    X[::3, 0] = np.nan
    X[:, 1] = np.round(X[:, 1] * 4)
    fitted = LambdaMART(**SMALL, categorical=[1]).fit(X, train.relevance, qid=train.qid)
    unknown = X.copy()
    unknown[:, 1] = 99
    assert np.isfinite(fitted.predict(unknown)).all()
    named = RankingData(X, train.relevance, qid=train.qid, feature_names=[f"f{k}" for k in range(8)])
    by_name = LambdaMART(**SMALL, categorical=["f1"]).fit(named)
    assert np.array_equal(by_name.predict(X), fitted.predict(X))
    with pytest.raises(DataError, match="no feature named 'x'"):
        LambdaMART(categorical=["x"]).fit(named)


# --- strange data


@pytest.mark.parametrize(
    ("X", "y", "qid"),
    [
        (np.ones((10, 2)), np.arange(10), [0] * 10),
        (np.random.default_rng(0).random((10, 2)), np.ones(10), [0] * 10),
        (np.random.default_rng(0).random((10, 2)), np.arange(10) % 3, np.arange(10)),
        (np.ones((1, 1)), [1], [0]),
        (np.full((4, 1), np.nan), [0, 1, 0, 1], [0] * 4),
        (np.array([[np.inf], [-np.inf], [0], [1]]), [0, 1, 2, 3], [0] * 4),
    ],
)
def test_data_with_nothing_or_little_to_learn(X, y, qid):
    if np.isinf(X).any():
        fitted = LambdaMART(n_trees=3, min_documents_in_leaf=1).fit(X, y, qid=qid)
    else:
        with pytest.warns(podium.PodiumWarning, match="gives all documents the same score"):
            fitted = LambdaMART(n_trees=3, min_documents_in_leaf=1).fit(X, y, qid=qid)
    assert np.isfinite(fitted.predict(X)).all()


def test_large_labels_and_one_large_query():
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    fitted = LambdaMART(**SMALL, measure="ndcg(gain=linear)@10").fit(X, X[:, 0] * 1e6, qid=[0] * 300)
    assert np.corrcoef(fitted.predict(X), X[:, 0])[0, 1] > 0.5
    with pytest.raises(DataError, match="overflows"):
        LambdaMART(**SMALL).fit(X, X[:, 0] * 1e6, qid=[0] * 300)
    big = rng.random((20_000, 2))
    LambdaMART(n_trees=2, truncation=20).fit(big, rng.integers(0, 5, 20_000), qid=np.zeros(20_000))


@pytest.mark.parametrize(
    ("arguments", "fit", "words"),
    [
        ({"n_trees": 0}, {}, "n_trees must be"), ({"learning_rate": 0}, {}, "learning_rate"),
        ({"document_fraction": 0}, {}, "document_fraction"), ({"max_bins": 999}, {}, "max_bins"),
        ({"patience": 3}, {}, "patience needs validation"), ({"measure": "nope"}, {}, "no measure 'nope'"),
        ({"monotone": [1]}, {}, "monotone must have"), ({"monotone": {99: 1}}, {}, "no feature 99"),
        ({"measure": "tau"}, {}, "no swap deltas"), ({}, {"y": [1]}, "has its own labels"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(train, arguments, fit, words):
    with pytest.raises(DataError, match=words):
        LambdaMART(**(SMALL | arguments)).fit(train, **fit)


def test_without_queries_or_labels_or_documents():
    with pytest.raises(DataError, match="needs the query of each row"):
        LambdaMART().fit(np.ones((3, 1)), [1, 0, 1])
    with pytest.raises(DataError, match="requires y to be passed"):
        LambdaMART().fit(np.ones((3, 1)), qid=[1, 1, 1])
    with pytest.raises(DataError, match="0 feature"):
        LambdaMART().fit(np.ones((3, 0)), [1, 0, 1], qid=[1, 1, 1])
    with pytest.raises(DataError, match="no documents"):
        LambdaMART().fit(np.ones((0, 1)), [], qid=[])


# --- interruption


def test_an_interrupted_run_keeps_its_trees(train):
    def stop(round_):
        if round_.iteration == 2:
            raise KeyboardInterrupt

    with pytest.warns(PodiumWarning, match="the 3 trees so far are kept"):
        fitted = LambdaMART(**SMALL).fit(train, observers=[stop])
    assert fitted.digest() == LambdaMART(**(SMALL | {"n_trees": 3})).fit(train).digest()


def test_a_killed_run_resumes_to_the_same_model(train, valid, tmp_path):
    options = SMALL | {"n_trees": 10, "document_fraction": 0.7, "split_fraction": 0.6}
    whole = LambdaMART(**options).fit(train, valid=valid)
    checkpoint = Checkpoint(tmp_path / "run.podium", every=4)

    code = f"""
import os, signal, podium
from podium.boosting import Checkpoint
train = podium.artificial(80, documents=(5, 30), features=8)
valid = podium.artificial(60, documents=(5, 30), features=8, part="valid")
def kill(found):
    if found.iteration == 6:
        os.kill(os.getpid(), signal.SIGKILL)
podium.LambdaMART(**{options!r}).fit(
    train, valid=valid, observers=[kill], checkpoint=Checkpoint({str(tmp_path / "run.podium")!r}, every=4))
"""
    killed = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert killed.returncode == -9, killed.stderr
    assert podium.load(tmp_path / "run.podium").n_trees == 4
    resumed = LambdaMART(**options).fit(train, valid=valid, checkpoint=checkpoint)
    assert resumed.digest() == whole.digest()
    assert resumed.history_ == whole.history_
    with pytest.raises(DataError, match="other data or other settings"):
        LambdaMART(**(options | {"l2": 2.0})).fit(train, valid=valid, checkpoint=checkpoint)
    with pytest.raises(DataError, match="every must be a whole number from 1"):
        Checkpoint("x", 0)


# --- scikit-learn


def test_clone_pickle_copy_and_joblib(model, train, tmp_path):
    assert clone(model).get_params() == model.get_params()
    joblib.dump(model, tmp_path / "m.joblib")
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), joblib.load(tmp_path / "m.joblib")):
        assert np.array_equal(twin.predict(train), model.predict(train))


def test_searches_by_query(train):
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(LambdaMART(**SMALL), {"n_leaves": [2, 6]}, cv=QueryKFold(3))
        search.fit(train.features, train.relevance, qid=train.qid, groups=train.qid)
        assert search.best_params_ == {"n_leaves": 6}
        by_qid = clone(search).fit(train.features, train.relevance, qid=train.qid)
        assert by_qid.cv_results_["mean_test_score"].tolist() == search.cv_results_["mean_test_score"].tolist()
        scores = cross_validate(
            LambdaMART(**SMALL), train.features, train.relevance, cv=QueryKFold(3),
            params={"qid": train.qid, "groups": train.qid},
        )["test_score"]  # fmt: skip
        assert (scores > 0.3).all()
        pipeline = make_pipeline(StandardScaler(), LambdaMART(**SMALL))
        pipeline.fit(train.features, train.relevance, qid=train.qid)
        assert len(pipeline.predict(train.features)) == len(train)
    frame = pd.DataFrame(train.features).add_prefix("f")
    for X in (train.features, frame):  # searches without routing give qid to fit alone, or to nobody
        with pytest.raises(DataError, match=r"enable_metadata_routing=True.*QueryKFold.*cv=5 would split queries"):
            LambdaMART(**SMALL).fit(train).score(X, train.relevance)
        with pytest.raises(DataError, match=r"QueryKFold needs the query of each row.*enable_metadata_routing=True"):
            GridSearchCV(LambdaMART(**SMALL), {"n_leaves": [2, 6]}, cv=QueryKFold(3)).fit(
                X, train.relevance, qid=train.qid
            )
        with pytest.raises(ValueError, match="enable_metadata_routing=True"):
            GridSearchCV(LambdaMART(**SMALL), {"n_leaves": [2, 6]}, cv=2).fit(X, train.relevance)
    without_routing = GridSearchCV(LambdaMART(**SMALL), {"n_leaves": [2, 6]}, cv=QueryKFold(3))
    without_routing.fit(frame.assign(qid=train.qid), train.relevance)
    assert without_routing.cv_results_["mean_test_score"] == pytest.approx(search.cv_results_["mean_test_score"])


def test_frames_are_matched_by_name(train):
    names = [f"f{k}" for k in range(8)]
    frame = pd.DataFrame(train.features, columns=names).assign(qid=train.qid)
    fitted = LambdaMART(**SMALL).fit(frame, train.relevance)
    assert fitted.feature_names_in_.tolist() == names
    expected = LambdaMART(**SMALL).fit(train).predict(train)
    assert np.array_equal(fitted.predict(frame), expected)
    assert np.array_equal(fitted.predict(frame[names[::-1]]), expected)
    assert np.array_equal(fitted.predict(train.features), expected)
    with pytest.raises(DataError, match="the data lacks the feature 'f3' of the model"):
        fitted.predict(frame.drop(columns="f3"))
    assert np.array_equal(fitted.predict(frame.assign(extra=1)), expected)
    with pytest.raises(DataError, match="has no feature for the column 'extra'"):
        fitted.model_.predict(frame.assign(extra=1), extra="refuse")
    reordered = RankingData(frame[[*names[::-1], "qid"]])
    assert np.array_equal(fitted.predict(reordered), expected)
    with pytest.raises(DataError, match="X has 3 features, but Podium is expecting 8"):
        fitted.predict(np.ones((2, 3)))


def test_two_python_threads_at_once(train, valid):
    expected = LambdaMART(**SMALL).fit(train, valid=valid).digest()
    digests = []
    threads = [
        threading.Thread(target=lambda: digests.append(LambdaMART(**SMALL).fit(train, valid=valid).digest()))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert digests == [expected] * 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_fork_and_inside_loky(train, model):
    expected = model.predict(train)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        fitted = LambdaMART(**SMALL).fit(train)
        os.write(writer, fitted.digest().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 64).decode() == LambdaMART(**SMALL).fit(train).digest()
    results = joblib.Parallel(n_jobs=2)(joblib.delayed(model.predict)(train) for _ in range(2))
    assert all(np.array_equal(result, expected) for result in results)


def test_importances(model):
    shares = model.feature_importances_
    assert shares.sum() == pytest.approx(1)
    assert (model.model_.importance("count") >= (shares > 0)).all()


def test_permutation_importance(train, model):
    table = podium.explain.permutation_importance(model, train, "ndcg@10", repeats=2)
    losses = {row[0]: row[1] for row in table.rows}
    assert table.rows[0][1] == max(losses.values()) > 0.01
    unused = np.flatnonzero(model.feature_importances_ == 0)
    assert all(losses[int(k)] == 0 for k in unused)
    assert podium.explain.permutation_importance(model.predict, train, repeats=2).rows == table.rows
    with pytest.raises(DataError, match="repeats"):
        podium.explain.permutation_importance(model, train, repeats=0)


# --- what is easily got wrong


def test_leaf_values_scale_with_the_learning_rate_under_constraints(train):
    values = [
        LambdaMART(n_trees=1, n_leaves=6, learning_rate=rate, monotone={0: 1, 1: -1})
        .fit(train)
        .model_.arrays["leaf_value"]
        for rate in (1.0, 1e-6)
    ]
    assert np.allclose(values[0] * 1e-6, values[1], rtol=1e-12)


@pytest.mark.parametrize("split", ["newton", "least-squares"])
def test_constraints_hold_for_the_whole_model(train, split):
    fitted = LambdaMART(**SMALL, monotone={3: 1}, split=split).fit(train)
    line = np.repeat(train.features[:20], 50, axis=0)
    line[:, 3] = np.tile(np.linspace(-1, 1, 50), 20)
    assert (np.diff(fitted.predict(line).reshape(20, 50), axis=1) >= 0).all()


def test_validation_data_and_scores_are_matched_by_name(train, valid):
    names = [f"f{k}" for k in range(8)]
    frame = pd.DataFrame(train.features, columns=names)
    other = pd.DataFrame(valid.features, columns=names)
    straight = LambdaMART(**SMALL).fit(
        frame, train.relevance, qid=train.qid, eval_set=(other, valid.relevance, valid.qid)
    )
    turned = LambdaMART(**SMALL).fit(
        frame, train.relevance, qid=train.qid, eval_set=(other[names[::-1]], valid.relevance, valid.qid)
    )
    assert turned.history_ == straight.history_
    assert turned.score(other[names[::-1]], valid.relevance, qid=valid.qid) == straight.score(
        other, valid.relevance, qid=valid.qid
    )
    with pytest.raises(DataError, match="lacks the feature 'f0'"):
        LambdaMART(**SMALL).fit(
            frame, train.relevance, qid=train.qid,
            eval_set=(other.rename(columns={"f0": "g"}), valid.relevance, valid.qid),
        )  # fmt: skip


def test_checkpoints_know_weights_and_limits(train, tmp_path):
    checkpoint = Checkpoint(tmp_path / "c", every=2)
    weighted = train.replace(query_weights=np.arange(80) + 1.0)
    LambdaMART(**SMALL).fit(weighted, checkpoint=checkpoint)
    with pytest.raises(DataError, match="other data"):
        LambdaMART(**SMALL).fit(train, checkpoint=checkpoint)
    shorter = LambdaMART(**(SMALL | {"n_trees": 3})).fit(weighted, checkpoint=checkpoint)
    assert shorter.digest() == LambdaMART(**(SMALL | {"n_trees": 3})).fit(weighted).digest()
    barren = train.replace(relevance=np.zeros(len(train)))
    checkpoint = Checkpoint(tmp_path / "d", every=1)
    for _ in range(3):
        with pytest.warns(podium.PodiumWarning, match="all labels 'relevance' are equal"):
            assert LambdaMART(**SMALL).fit(barren, checkpoint=checkpoint).n_trees_ == 1


def test_pipelines_are_scored(train):
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), LambdaMART(**SMALL)).fit(
            train.features, train.relevance, qid=train.qid
        )
        assert pipeline.score(train.features, train.relevance, qid=train.qid) > 0.4


def test_equal_documents_are_sampled_one_by_one():
    data = RankingData(np.ones((400, 1)), np.arange(400) % 2, qid=np.zeros(400, int))
    sizes = [len(BoundSampling(Sampling(document_fraction=0.5), data).rows(k)) for k in range(5)]
    assert all(150 < size < 250 for size in sizes)


@pytest.mark.parametrize(
    "wrong",
    [{"n_trees": "5"}, {"n_trees": 2.5}, {"n_leaves": 3.7}, {"max_bins": 2.5}, {"l2": "x"}, {"learning_rate": "x"},
     {"random_state": np.random.RandomState(0)}, {"patience": 0}, {"max_depth": 1.5}, {"min_documents_in_leaf": True}],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_parameters_of_the_wrong_type(train, valid, wrong):
    with pytest.raises(DataError):
        LambdaMART(**(SMALL | wrong)).fit(train, valid=valid)


def test_validation_sets_that_make_no_sense(train, valid):
    with pytest.raises(DataError, match="'valid' has no documents"):
        LambdaMART(**SMALL).fit(train, valid=valid.select([]))
    with pytest.raises(DataError, match="two evaluation sets named 'eval'"):
        LambdaMART(**SMALL).fit(train, valid={"eval": valid}, eval_set=(valid.features, valid.relevance, valid.qid))
