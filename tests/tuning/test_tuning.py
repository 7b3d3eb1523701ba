"""The search for parameters: never worse than the default, reproducible with any threads, and resumable."""

import json

import numpy as np
import pytest

import podium
from podium import DataError, LambdaMART
from podium.estimators.parameters import MODELS
from podium.tuning import Between
from tests.commands import run

pytest.importorskip("optuna")
SPACE = {"n_leaves": Between(2, 8, log=True), "learning_rate": (0.05, 0.5)}
TREES = {"n_trees": 3}
SMALL = {
    **dict.fromkeys(["lambdamart", "ranknet-trees", "mart", "mcrank", "ordinal-mart"], TREES),
    "ranker": {**TREES, "n_folds": 2},
    "committee": {**TREES, "n_folds": 2, "members": [("lambda(ndcg)", 1)]},
    "additive-groves": {"n_groves": 2, "n_trees_in_grove": 2},
    "linear": {"n_iterations": 2},
    "ranknet": {"epochs": 1},
    "lambdarank": {"epochs": 1},
}


@pytest.fixture(scope="module")
def data():
    return podium.artificial(40, features=5, documents=15)


@pytest.fixture(scope="module")
def valid():
    return podium.artificial(30, features=5, documents=15, part="valid")


def tuned(data, valid=None, **options):
    options = {"space": SPACE, "n_trials": 10} | options
    return podium.tune(LambdaMART(12, 4, min_documents_in_leaf=3), data, valid=valid, verbose=0, **options)


@pytest.fixture(scope="module")
def tuning(data, valid):
    return tuned(data, valid)


def shown(tuning):
    return [(t.number, t.parameters, t.state, t.means, t.rounds) for t in tuning.trials]


def test_the_best_trial_is_what_the_estimator_gives(tuning, data, valid):
    assert len(tuning.trials) == 10
    complete = [t for t in tuning.trials if t.state == "complete"]
    assert tuning.best.means["ndcg@10"] == max(t.means["ndcg@10"] for t in complete)
    assert tuning.trials[0].parameters == {"n_leaves": 4, "learning_rate": 0.1}
    model = LambdaMART(12, 4, min_documents_in_leaf=3, patience=50).fit(data, valid=valid)
    assert tuning.trials[0].means["ndcg@10"] == pytest.approx(max(model.history_["valid/ndcg@10"]), abs=1e-12)
    again = tuning.estimator.fit(data)
    assert again.n_trees_ == tuning.best.rounds
    assert podium.evaluate(valid, again, "ndcg@10").means["ndcg@10"] == pytest.approx(tuning.best.means["ndcg@10"])


def test_the_number_of_threads_and_the_order_of_rows_do_not_matter(tuning, data, valid):
    rows = np.random.default_rng(0).permutation(len(data))
    assert shown(tuned(data.take(rows), valid, n_threads=3)) == shown(tuning)
    assert shown(tuned(data, valid, n_threads=1)) == shown(tuning)
    assert shown(tuned(data, valid, seed=1)) != shown(tuning)


def test_an_interrupted_search_resumes(tuning, data, valid, tmp_path, monkeypatch):
    path = tmp_path / "trials.jsonl"
    seen = []

    def broken_off(self, *arguments, fit=LambdaMART.fit, **options):
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return fit(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LambdaMART, "fit", broken_off)
        with pytest.raises(KeyboardInterrupt):
            tuned(data, valid, path=path)
    assert shown(tuned(data, valid, path=path)) == shown(tuning)
    assert all(json.loads(line) for line in path.read_text().splitlines())
    assert len(tuned(data, valid, path=path, n_trials=12).trials) == 12  # two more
    with pytest.raises(DataError, match=r"trials of another search; data differ"):
        tuned(valid, valid, path=path)
    path.write_text("no trials\n")
    with pytest.raises(DataError, match="is not a file of trials"):
        tuned(data, valid, path=path)


def test_folds_measure_each_query_by_a_model_that_has_not_seen_it(data):
    tuning = tuned(data, folds=2, n_trials=3)
    fold = podium.data.subsets.fold_of_queries(data.query_ids, 2, 0)
    total = 0.0
    for k in range(2):
        model = LambdaMART(12, 4, min_documents_in_leaf=3, patience=50)
        model.fit(data.select(fold != k), valid=data.select(fold == k))
        total += (fold == k).sum() * max(model.history_["valid/ndcg@10"])
    assert tuning.trials[0].means["ndcg@10"] == pytest.approx(total / data.n_queries)


def test_hopeless_trials_are_pruned(data, valid):
    space = {"learning_rate": [0.1, 1e-9], "n_leaves": (2, 8)}
    estimator = LambdaMART(60, 4, min_documents_in_leaf=3, patience=60)
    trials = podium.tune(estimator, data, valid=valid, space=space, n_trials=24, verbose=0).trials
    pruned = [t for t in trials if t.state == "pruned"]
    assert pruned
    assert all(t.rounds is None and t.means["ndcg@10"] <= trials[0].means["ndcg@10"] for t in pruned)


def test_objectives_and_graded_measures(data, valid):
    tuning = tuned(data, valid, space={"objective": [None, "queryregression"]}, measure="ndcg@3>ap~0.5", n_trials=4)
    assert {t.parameters["objective"] for t in tuning.trials} == {None, "queryregression"}
    assert tuning.best.means["ap"] == max(t.means["ap"] for t in tuning.trials)  # all are within the tolerance
    assert str(tuning.estimator.measure) == "ndcg@3>ap~0.5"


def test_nets_and_linear_rankers_are_tuned(data, valid):
    ranker = podium.LinearRanker(n_iterations=5)
    tuning = podium.tune(ranker, data, valid=valid, space={"l2": [0.0, 1.0]}, n_trials=2, verbose=0)
    assert {t.parameters["l2"] for t in tuning.trials} <= {0.0, 1.0}


@pytest.mark.parametrize("word", [*SMALL])
def test_every_model_is_tuned_by_default(data, valid, word):
    if word in ("ranknet", "lambdarank"):
        pytest.importorskip("torch")
    estimator = getattr(podium, MODELS[word].estimator)(**SMALL[word])
    space = {"alpha": [0.1, 0.5]} if word == "additive-groves" else None
    tuning = podium.tune(estimator, data, valid=valid, space=space, n_trials=2, verbose=0)
    assert len(tuning.trials) == 2
    if estimator.get_params().get("feature_fraction", 1.0) is None:  # chosen by the estimator itself
        assert "feature_fraction" not in tuning.best.parameters
        assert tuning.estimator.n_trees == estimator.n_trees
        assert tuning.trials[0].parameters["learning_rate"] == (estimator.learning_rate or 0.05)
    assert tuning.estimator.fit(data).model_ is not None


def test_the_estimator_of_a_search_needs_no_validation_data(data, valid):
    estimator = LambdaMART(12, 4, min_documents_in_leaf=3, patience=2)
    tuning = podium.tune(estimator, data, valid=valid, space=SPACE, n_trials=2, verbose=0)
    assert tuning.estimator.fit(data).n_trees_ == tuning.best.rounds


def test_what_is_shown(tuning, data, valid):
    text = str(tuning)
    assert text.startswith(f"10 trials, {sum(t.state == 'pruned' for t in tuning.trials)} of them pruned; the best is")
    assert tuning.table().rows[0][0] == tuning.best.number
    if tuning.importance:
        assert sum(tuning.importance.values()) == pytest.approx(1)
    assert tuning.plot().to_dict()["title"] == "10 trials"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"space": {}}, "space is empty"), ({"space": {"leaves": (2, 3)}}, "has no parameter 'leaves'"),
        ({"space": {"n_leaves": (0, 3)}}, "space: n_leaves must be"), ({"space": {"n_leaves": 3}}, "must be Between"),
        ({"space": {"objective": [object()]}}, "choices of objective"), ({"n_trials": 0}, "n_trials must be"),
        ({"folds": 2, "valid": 1}, "not both"), ({"folds": 1}, "folds must be"), ({"timeout": 0}, "timeout must be"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(data, options, message):
    with pytest.raises(DataError, match=message):
        tuned(data, **options)
    with pytest.raises(DataError, match="low must be positive"):
        Between(0, 1, log=True)
    with pytest.raises(DataError, match="takes Podium estimators"):
        podium.tune(object(), data)


@pytest.mark.slow
def test_the_command(data, valid, tmp_path):
    for name, part in (("train.txt", data), ("valid.txt", valid)):
        part.write(tmp_path / name)
    words = ("tune", "train.txt", "--valid", "valid.txt", "--trials", 3, "--search", "n_leaves=2..8:log")
    done = run(*words, "--search", "split=newton|least-squares", "--report", "t.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 trials, 0 of them pruned" in done.stdout
    assert {path.name for path in (tmp_path / "tuned").iterdir()} == {"trials.jsonl", "config.toml", "model.podium"}
    model = podium.load(tmp_path / "tuned" / "model.podium")
    again = run("train", "--config", "tuned/config.toml", "-o", "again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert podium.load(tmp_path / "again" / "model.podium").digest() == model.digest()
    wrong = run(*words, "--search", "n_leaves:3", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "--search must be name=low..high" in wrong.stderr


def test_the_command_with_a_ranker_that_chooses_its_own_rounds(data, tmp_path):
    data.write(tmp_path / "train.txt")
    (tmp_path / "few.toml").write_text("n_trees = 4\nn_folds = 2\n")
    words = ("tune", "train.txt", "--model", "ranker", "--config", "few.toml", "--trials", 1, "--folds", 2)
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again = run("train", "--config", "tuned/config.toml", "-o", "again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    models = [podium.load(tmp_path / folder / "model.podium") for folder in ("tuned", "again")]
    assert models[0].digest() == models[1].digest()
