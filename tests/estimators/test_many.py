"""Many fits in parallel; each gives the model of a separate fit."""

import os
import signal
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import podium
from podium import (
    MART,
    Committee,
    DataError,
    LambdaMART,
    LinearRanker,
    MARTClassifier,
    McRank,
    OrdinalMART,
    PodiumWarning,
)
from podium.boosting import binned_data
from podium.boosting.training import Trainer

FEW = {"n_trees": 6, "n_leaves": 5, "min_documents_in_leaf": 3}


@pytest.fixture(scope="module")
def parts():
    return podium.artificial(60, documents=12, features=5).split(0.5, 0.25, 0.25)


def rankers():
    return [
        LambdaMART(**FEW), LambdaMART(**FEW, document_fraction=0.6, random_state=4), LambdaMART(**FEW, max_bins=9),
        MART(**FEW), McRank(**FEW | {"n_trees": 2}), LambdaMART(**FEW, n_threads=2, patience=3), OrdinalMART(**FEW),
        LambdaMART(**FEW, submodel={0: 1.0}), Committee(members=[("xendcg", 1), ("lambda(ndcg)", 1)], n_trees=4),
        LinearRanker(n_iterations=3),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def alone(parts):
    train, valid, _ = parts
    return [ranker.fit(train, valid=valid) for ranker in rankers()]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_each_model_equals_that_of_a_separate_fit(parts, alone, n_threads):
    train, valid, test = parts
    estimators = rankers()
    fitted = podium.fit_many(estimators, train, valid=valid, n_threads=n_threads)
    for model, other, before in zip(fitted, alone, estimators, strict=True):
        assert model.digest() == other.digest()
        assert model.history_ == other.history_
        assert model.model_.info == other.model_.info
        assert model.get_params(deep=False) == before.get_params(deep=False)
        assert not hasattr(before, "model_")
        assert np.array_equal(model.predict(test), other.predict(test))


def test_the_order_of_rows_does_not_matter(parts, alone):
    train, valid, _ = parts
    shuffled = train.take(np.random.default_rng(0).permutation(len(train)))
    fitted = podium.fit_many(rankers()[:7], shuffled, valid=valid, n_threads=2)
    assert [one.digest() for one in fitted] == [other.digest() for other in alone[:7]]


def test_nets_equal_those_of_separate_fits(parts):
    torch = pytest.importorskip("torch")
    train = parts[0]

    def slowly(n_features):  # another net that began in between would change the random numbers
        first = torch.nn.Linear(n_features, 3)
        time.sleep(0.05)
        return torch.nn.Sequential(first, torch.nn.Tanh(), torch.nn.Linear(3, 1))

    nets = [podium.RankNet(epochs=2, random_state=seed, net=slowly) for seed in range(3)]
    state = torch.random.get_rng_state()
    fitted = podium.fit_many([*nets, LambdaMART(**FEW)], train, n_threads=3)
    assert [net.digest() for net in fitted[:3]] == [net.fit(train).digest() for net in nets]
    assert torch.equal(torch.random.get_rng_state(), state)


def test_data_for_each(parts):
    train, valid, test = parts
    model = LambdaMART(**FEW)
    fitted = podium.fit_many([model] * 3, [train, valid, train], valid=[valid, None, {"a": valid, "b": test}])
    assert fitted[0].digest() == model.fit(train, valid=valid).digest()
    assert fitted[1].digest() == model.fit(valid).digest()
    assert fitted[2].history_ == model.fit(train, valid={"a": valid, "b": test}).history_
    assert podium.fit_many([], train) == []


def test_bins_are_computed_once(parts, monkeypatch):
    train, valid, _ = parts
    calls, find, bin_features = [], binned_data.find_bins, binned_data.bin_features
    monkeypatch.setattr(binned_data, "find_bins", lambda *args: calls.append("find") or find(*args))
    monkeypatch.setattr(binned_data, "bin_features", lambda *args: calls.append("bin") or bin_features(*args))
    settings = [LambdaMART(**FEW), MART(**FEW), LambdaMART(**FEW, learning_rate=0.3), McRank(**FEW)]
    podium.fit_many(settings * 2, train, valid=valid, n_threads=3)
    assert (calls.count("find"), calls.count("bin")) == (1, 2)
    calls.clear()
    podium.fit_many([LambdaMART(**FEW), LambdaMART(**FEW, max_bins=7), LambdaMART(**FEW, categorical=[1])], train)
    assert (calls.count("find"), calls.count("bin")) == (3, 3)
    calls.clear()
    labels = MARTClassifier(**FEW), LambdaMART(**FEW)
    podium.fit_many(labels, train.replace(relevance=train.relevance > 1))
    assert (calls.count("find"), calls.count("bin")) == (1, 1)


def test_bins_are_dropped_after_the_last_fit(parts, monkeypatch):
    """Few are in memory at a time, even if the caller passes all folds for one setting after the other."""
    references, alive, bin_features = [], [], binned_data.bin_features

    def noting(*args):
        binned = bin_features(*args)
        references.append(weakref.ref(binned))
        alive.append(sum(reference() is not None for reference in references))
        return binned

    monkeypatch.setattr(binned_data, "bin_features", noting)
    folds = [parts[0].select(np.arange(parts[0].n_queries) % 6 != k) for k in range(6)]
    podium.fit_many([LambdaMART(**FEW)] * 12, folds * 2, n_threads=1)
    assert len(references) == 6
    assert max(alive) <= 2


def test_an_error_names_the_fit(parts):
    train, valid, _ = parts
    wrong = [LambdaMART(**FEW), LambdaMART(n_trees=3, learning_rate=-1)]
    with pytest.raises(DataError, match=r"estimators\[1\], LambdaMART\(learning_rate=-1, n_trees=3\): learning_rate"):
        podium.fit_many(wrong, train)
    many = {
        "n_trees": 3,
        "n_leaves": 4,
        "min_documents_in_leaf": 3,
        "document_fraction": 0.5,
        "l2": 3.0,
        "max_bins": -9,
    }
    with pytest.raises(DataError, match=r"^estimators\[0\], LambdaMART\([^\n]*\): max_bins"):
        podium.fit_many([LambdaMART(**many)], train)
    with pytest.raises(DataError, match=r"estimators\[0\], LambdaMART\(patience=3\): patience needs validation data"):
        podium.fit_many([LambdaMART(patience=3)], train)
    with pytest.raises(DataError, match=r"estimators\[1\].*does not fit the training data"):
        podium.fit_many([LambdaMART(**FEW)] * 2, train, valid=[valid, podium.artificial(3, features=2)])

    def broken(data):
        raise ZeroDivisionError("in code of the caller's")

    with pytest.raises(ZeroDivisionError) as caught:
        podium.fit_many([LambdaMART(**FEW), LambdaMART(submodel=broken)], train)
    assert "in estimators[1], LambdaMART(submodel=" in caught.value.__notes__[0]


def test_invalid_arguments_are_refused(parts):
    train = parts[0]
    for estimators, data, words in (
        ([object()], train, "takes Podium estimators"), ([LambdaMART], train, "takes Podium estimators"),
        ([LambdaMART()] * 2, [train] * 3, "one value for all estimators or a list of 2, but got 3"),
        ([LambdaMART()], 5, "RankingData"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words):
            podium.fit_many(estimators, data)
    with pytest.raises(DataError, match="n_threads"):
        podium.fit_many([LambdaMART()], train, n_threads=0)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_all_fits(parts, monkeypatch, n_threads):
    rounds, add = [], Trainer.add_round

    def adding(trainer):
        rounds.append(1)
        if len(rounds) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.005)
        return add(trainer)

    monkeypatch.setattr(Trainer, "add_round", adding)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(KeyboardInterrupt):
                podium.fit_many([LambdaMART(n_trees=2000, n_leaves=2)] * 3, parts[0], n_threads=n_threads)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(rounds) < 200
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("podium-job")]


def test_a_warning_comes_once(parts):
    train = parts[0].replace(relevance=40 * parts[0].relevance)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        podium.fit_many([LambdaMART(**FEW)] * 4, train, n_threads=2)
    assert [str(w.message).startswith("the highest label has the gain") for w in caught] == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("error", PodiumWarning)
        with pytest.raises(PodiumWarning, match="highest label"):
            podium.fit_many([LambdaMART(**FEW)] * 4, train, n_threads=2)


def test_each_fit_prints_one_line(parts, capsys):
    podium.fit_many([LambdaMART(**FEW, verbose=1)] * 2, parts[0], verbose=1)
    assert capsys.readouterr().err == "1 of 2 fits\n2 of 2 fits\n"


def test_fit_many_on_several_threads_of_the_caller(parts):
    train, valid, _ = parts
    digests, expected = {}, LambdaMART(**FEW).fit(train, valid=valid).digest()

    def fit(k):
        (model,) = podium.fit_many([LambdaMART(**FEW)], train, valid=valid, n_threads=2)
        digests[k] = model.digest()

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert digests == dict.fromkeys(range(3), expected)
