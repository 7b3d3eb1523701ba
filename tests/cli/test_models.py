"""A model on the command line reads data as its training data was read."""

import json

import numpy as np
import pandas as pd
import pytest

import podium
from podium import RankingData
from tests import commands

pytestmark = pytest.mark.slow  # every call starts a process


def run(*arguments, **options):
    done = commands.run(*arguments, **options)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def succeed(*arguments):
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def train(folder, data, *options):
    small = ("--n-trees", 5, "--n-leaves", 4, "--min-documents-in-leaf", 3)
    succeed("train", data, "-o", folder, *small, *options)
    return folder / "model.podium"


def scores(model, data, *options):
    return np.array([float(line) for line in succeed("score", model, data, *options).splitlines()])


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Write LETOR text that counts from 0, omits features, and has a different scale in each query."""
    rng = np.random.default_rng(0)
    lines = []
    for query in range(30):
        scale = 10.0 ** rng.integers(-2, 3)
        for _ in range(8):
            x = rng.random(4)
            pairs = " ".join(f"{k}:{v * scale:.5g}" for k, v in enumerate(x) if rng.random() < 0.8 or k == 3)
            lines.append(f"{int(3 * x[0] + x[1])} qid:{query} {pairs}")
    path = tmp_path_factory.mktemp("text") / "data.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (("--normalize", "zscore", "--first-index", 0), {"normalize": "zscore", "first_index": 0}),
        (("--absent", "missing", "--first-index", 0), {"absent": "missing", "first_index": 0}),
    ],
)
def test_a_model_stores_how_its_training_data_was_read(text, tmp_path, flags, options):
    model = train(tmp_path / "run", text, *flags)
    expected = podium.load(model).predict(podium.read(text, **options))
    assert len(set(expected)) > 5
    for repeated in ((), flags):
        np.testing.assert_array_equal(scores(model, text, *repeated), expected)
    wrong = {"--normalize": "minmax", "--absent": "zero", "--first-index": "1"}
    for flag, value in wrong.items():
        if flag in flags or flag == "--normalize":
            refused = run("score", model, text, flag, value)
            assert refused.returncode == 1
            assert f"{flag} {value} contradicts the model" in refused.stderr
    measured = json.loads(succeed("evaluate", text, model, "-m", "ndcg@5", "--as", "json", *flags[2:]))
    data = podium.read(text, **options)
    by_hand = podium.evaluate(data, expected, "ndcg@5").table()
    assert measured == json.loads(by_hand.render("json"))


def test_each_model_in_a_comparison_reads_data_in_its_way(text, tmp_path):
    first = train(tmp_path / "a", text, "--first-index", 0)
    second = train(tmp_path / "b", text, "--first-index", 0, "--normalize", "zscore")
    shown = succeed("compare", text, f"a={first}", f"b={second}", "-m", "ndcg@5")
    assert "mean  95%" in succeed("evaluate", text, second)
    for path, normalize in ((first, None), (second, "zscore")):
        data = podium.read(text, first_index=0, normalize=normalize)
        mean = podium.evaluate(data, podium.load(path), "ndcg@5").means["ndcg@5"]
        assert f"{mean:.4f}" in shown
    for words in (("combine", first, second, text), ("adapt", first, text, "--other", second)):
        done = run(*words)
        assert done.returncode == 1
        assert "were trained on data read differently (normalize None and zscore)" in done.stderr


def test_features_have_the_numbers_of_the_text(text, tmp_path):
    model = train(tmp_path / "run", text, "--first-index", 0)
    shown = succeed("inspect", model)
    assert "feature 0" in shown
    assert "feature 4" not in shown
    assert "feature 0 <=" in succeed("inspect", model, "--trees")
    assert podium.models.load_model(model).feature_names == ("0", "1", "2", "3")
    by_name = succeed("evaluate", text, "feature:0", "-m", "rr", "--first-index", 0)
    data = podium.read(text, first_index=0)
    assert f"{podium.evaluate(data, data.feature('0'), 'rr').means['rr']:.4f}" in by_name


def test_a_narrower_file_is_refused(text, tmp_path):
    model = train(tmp_path / "run", text, "--first-index", 0)
    (tmp_path / "narrow.txt").write_text("1 qid:1 0:2 1:1\n0 qid:1 0:1 1:1\n")
    refused = run("score", model, tmp_path / "narrow.txt")
    assert refused.returncode == 1
    assert "the data lacks the feature '2' of the model (2 missing in all)" in refused.stderr
    (tmp_path / "sparse.txt").write_text("1 qid:1 0:2 1:1\n0 qid:1 1:1\n")
    accepted = run("score", model, tmp_path / "sparse.txt")
    assert accepted.returncode == 0
    assert accepted.stderr.count("its text is sparse") == 1


def test_columns_and_categories_are_read_as_in_training(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.arange(400) // 10, "brand": rng.choice(list("abcde"), 400), "x": rng.random(400)})
    frame["grade"] = (frame["brand"].isin(["b", "d"]) * 2 + (frame["x"] > 0.5)).astype(int)
    frame.to_csv(tmp_path / "data.csv", index=False)
    model = train(
        tmp_path / "run", tmp_path / "data.csv", "--qid", "query", "--label", "grade", "--categorical", "brand"
    )
    loaded = podium.models.load_model(model)
    assert loaded.encoding.categories == {0: tuple("abcde")}
    expected = loaded.predict(frame)
    np.testing.assert_array_equal(scores(model, tmp_path / "data.csv"), expected)
    frame[frame["brand"] == "d"][["x", "grade", "brand", "query"]].to_csv(tmp_path / "part.csv", index=False)
    np.testing.assert_array_equal(scores(model, tmp_path / "part.csv"), expected[frame["brand"] == "d"])
    shown = succeed("evaluate", tmp_path / "data.csv", model, "-m", "ndcg@5")
    data = RankingData(frame, "grade", qid="query", categorical=["brand"])
    assert f"{podium.evaluate(data, loaded, 'ndcg@5').means['ndcg@5']:.4f}" in shown
    assert "feature" not in succeed("compare", tmp_path / "data.csv", f"a={model}", "b=feature:x")
    assert "brand in ['b', 'd']" in succeed("inspect", model, "--trees")
    checked = succeed("export", model, tmp_path / "model.txt", "--format", "lightgbm", "--check", tmp_path / "data.csv")
    assert "scores differ by at most 0, no ranking changes" in checked


def test_err_uses_the_highest_label_of_the_training_data(text, tmp_path):
    data = podium.read(text, first_index=0)
    ranker = podium.LambdaMART(3, n_leaves=4, min_documents_in_leaf=2, measure="err")
    ranker.fit(data.replace(relevance=data.relevance + 1))
    ranker.save(tmp_path / "model.podium")
    mean = podium.evaluate(data, ranker, "err").means["err"]
    assert mean == pytest.approx(ranker.score(data), abs=1e-12)
    shown = succeed("evaluate", text, tmp_path / "model.podium", "-m", "err", "--first-index", 0)
    assert f"{mean:.4f}" in shown
    systems = (f"a={tmp_path / 'model.podium'}", "b=feature:0")
    assert f"{mean:.4f}" in succeed("compare", text, *systems, "-m", "err", "--first-index", 0)
