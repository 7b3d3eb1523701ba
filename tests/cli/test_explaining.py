"""`podium explain`."""

import json

import numpy as np
import pytest

import podium
from podium.cli.app import load_command
from podium.errors import DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    data = podium.artificial(20, documents=10, features=4)
    data.write(folder / "data.txt")
    data.take(np.arange(50)).write(folder / "background.txt")
    train = podium.read(folder / "data.txt")
    podium.LambdaMART(n_trees=5, n_leaves=4).fit(train).save(folder / "a.podium")
    podium.LinearRanker().fit(train).save(folder / "b.podium")
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def run(*arguments):
        load_command("explain").main(["a.podium", "data.txt", *map(str, arguments)], standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_each_question_has_a_table(run, folder):
    model, data = podium.load(folder / "a.podium"), podium.read(folder / "data.txt")
    explanation, query = model.explain(data), data.query_ids[2]
    assert run() == f"{explanation.importance()}\n"
    assert run("--query", query) == f"{explanation.query(query)}\n"
    assert run("--document", 7).startswith(f"{explanation.of_document(7)}\n\nbase ")
    first, second = explanation.rows_of(query)[[0, -1]].tolist()
    shown = run("--query", query, "--above", first, second)
    assert shown.startswith(str(explanation.why(first, second)))
    assert shown.endswith(f"row {first} is above row {second}\n")
    assert "… 3 more (--top)" in run("--top", 1)


def test_json_and_background(run, folder):
    model, data = podium.load(folder / "a.podium"), podium.read(folder / "data.txt")
    background = podium.read(folder / "background.txt")
    explanation = json.loads(run("--above", 3, 5, "--background", "background.txt", "--json"))
    assert explanation == model.explain(data, background).why(3, 5).to_dict()
    two = json.loads(run("--query", data.query_ids[0], "--model-b", "b.podium", "--json"))
    assert two["models"] == ["a.podium", "b.podium"]
    assert len(two["documents"]) == 10


def test_each_question_has_a_chart(run, folder):
    query = podium.read(folder / "data.txt").query_ids[0]
    questions = ([], ["--query", query], ["--document", 1], ["--above", 1, 2],
                 ["--query", query, "--model-b", "b.podium"])  # fmt: skip
    for k, question in enumerate(questions):
        run(*question, "-o", f"{k}.json")
        assert json.loads((folder / f"{k}.json").read_text())["config"]["background"]


def test_options_that_exclude_each_other(run):
    with pytest.raises(DataError, match="use only one of --document"):
        run("--document", 1, "--above", 1, 2)
    with pytest.raises(DataError, match="add --query"):
        run("--model-b", "b.podium")
