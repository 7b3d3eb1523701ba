"""Several measures in the history, and what training shows while it runs."""

import re

import pytest
from sklearn.base import clone

import podium
from podium import MART, Committee, DataError, LambdaMART, LinearRanker, McRank, Ranker, RankNetTrees
from podium.boosting import Checkpoint
from podium.measures import AP, NDCG

WATCHED = ["err", AP(), "ndcg@3", "ndcg@10"]
NAMES = {"ndcg@10", "err", "ap", "ndcg@3"}


@pytest.fixture(scope="module")
def data():
    return podium.artificial(30, features=5)


def rankers():
    yield from (LambdaMART(4), RankNetTrees(4), MART(4, measure="ndcg@10"), McRank(4), LinearRanker(n_iterations=4))
    pytest.importorskip("torch")
    yield from (podium.RankNet(epochs=4, n_threads=1), podium.LambdaRank(epochs=4, n_threads=1))


def test_every_watched_measure_is_in_the_history_of_every_set(data):
    other = podium.artificial(10, features=5, part="valid")
    for ranker in rankers():
        plain = clone(ranker).fit(data, valid={"a": data, "b": other})
        watching = clone(ranker.set_params(metrics=WATCHED)).fit(data, valid={"a": data, "b": other})
        assert set(watching.history_) == {f"{name}/{measure}" for name in "ab" for measure in NAMES}, ranker
        assert all(len(values) == 4 for values in watching.history_.values())
        assert watching.digest() == plain.digest()  # only `measure` decides
        assert watching.best_iteration_ == plain.best_iteration_
        assert watching.history_["b/ndcg@10"] == plain.history_["b/ndcg@10"]
        measured = clone(ranker).set_params(measure="err", metrics=()).fit(data, valid={"a": data, "b": other})
        if isinstance(ranker, MART | McRank | RankNetTrees):  # trains alike whatever the measure
            assert watching.history_["b/err"] == measured.history_["b/err"]


def test_the_measure_stops_and_the_others_do_not(data):
    model = LambdaMART(20, measure="ndcg@3", metrics=["ap"], patience=3).fit(data, valid=data)
    best = model.history_["valid/ndcg@3"].index(max(model.history_["valid/ndcg@3"]))
    assert model.best_iteration_ == best


def test_coordinate_ascent_watches_the_training_data(data):
    model = LinearRanker("ndcg@5", method="ascent", n_iterations=2, metrics=["ap", "ndcg@5"]).fit(data)
    assert set(model.history_) == {"train/ndcg@5", "train/ap"}
    expected = podium.evaluate(data, model.predict(data), "ap").means["ap"]
    assert model.history_["train/ap"][-1] == pytest.approx(expected)


def test_a_single_metric_and_invalid_ones(data):
    assert set(LambdaMART(2, metrics="ap").fit(data, valid=data).history_) == {"valid/ndcg@10", "valid/ap"}
    assert set(LambdaMART(2, metrics=NDCG(3)).fit(data, valid=data).history_) == {"valid/ndcg@10", "valid/ndcg@3"}
    for wrong in (3, {"ap": 1}, [3], ["nonsense"], None):
        with pytest.raises(DataError, match=r"metrics|measure"):
            LambdaMART(2, metrics=wrong).fit(data)
    for wrong in (-1, 1.5, "yes", True):
        with pytest.raises(DataError, match="verbose must be a whole number from 0 or None"):
            LambdaMART(2, verbose=wrong).fit(data)


def test_lines_of_training(data, capsys):
    for ranker in rankers():
        unit = {LinearRanker: "steps", LambdaMART: "trees", RankNetTrees: "trees", MART: "trees", McRank: "rounds"}
        for every, shown in ((None, []), (0, []), (1, [1, 2, 3, 4]), (3, [3, 4])):
            clone(ranker).set_params(verbose=every, metrics=["ap"]).fit(data, valid=data)
            out, err = capsys.readouterr()
            assert out == ""
            lines = err.splitlines()
            assert [int(line.split()[0]) for line in lines] == shown
            assert all(f" of 4 {unit.get(type(ranker), 'epochs')}, valid/ndcg@10 0." in line for line in lines)
            assert all("valid/ap 0." in line for line in lines)
    LambdaMART(4, verbose=2).fit(data)
    assert capsys.readouterr().err == "2 of 4 trees\n4 of 4 trees\n"
    Ranker(n_trees=30, patience=30, feature_fraction=0.5, verbose=10).fit(data)
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()][:2] == [
        "20 of 30 rounds", "30 of 30 rounds",
    ]  # fmt: skip
    Committee(n_trees=2, members=[("lambda", 1), ("listnet", 1)], verbose=1).fit(data, valid=data)
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "1 of 2 members", "2 of 2 members",
    ]  # fmt: skip
    Ranker(5, verbose=1).fit(data)
    assert capsys.readouterr().err.startswith("5 of 5 rounds, folds/ndcg@10 0.")


def test_what_is_shown_changes_neither_the_file_nor_the_checkpoint(data, tmp_path, capsys):
    loud, still = (LambdaMART(4, verbose=every).fit(data) for every in (1, 0))
    loud.save(tmp_path / "loud")
    still.save(tmp_path / "still")
    assert (tmp_path / "loud").read_bytes() == (tmp_path / "still").read_bytes()
    LambdaMART(2, verbose=1).fit(data, checkpoint=Checkpoint(tmp_path / "c", 1))
    assert LambdaMART(4, verbose=0).fit(data, checkpoint=Checkpoint(tmp_path / "c", 1)).digest() == still.digest()
    capsys.readouterr()


def test_lines_count_what_verbose_counts(data, capfd):
    podium.LinearRanker(n_iterations=2, method="ascent", verbose=1).fit(data)
    assert re.match(r"1 of 2 cycles, train/ndcg@10 0\.\d+\n", capfd.readouterr().err)
    podium.AdditiveGroves(2, 2, 0.1, verbose=1).fit(data)
    assert re.match(r"1 of 2 groves, 2 trees, α = 0\.1\n2 of 2 groves", capfd.readouterr().err)
