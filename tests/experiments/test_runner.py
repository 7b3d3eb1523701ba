"""Runs of small experiments: what is kept, what is done again, what is refused, and the page."""

import json
import math
import os
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import podium
from experiments import runner
from experiments.claims import HOLDS, Arm, always, better, compared
from experiments.page import decided_results, write_page
from experiments.runner import EXPERIMENTS, Experiment, Figure, Outcome, experiment, reproduce
from experiments.work import Work, files_state, folder_sources, plain
from podium.errors import DataError, FileFormatError, MissingExtraError
from podium.evaluation.tables import Table

done = []  # the steps that were done, in order


def small(work, fail_at=None, shift=0.0):
    """A step for each seed; three claims, of which one holds, one does not, one is not decided."""

    def step(seed):
        if fail_at == seed:
            raise RuntimeError("stopped")
        done.append(seed)
        random = np.random.default_rng(seed)
        return {"query": [f"{seed}/{k}" for k in range(9)], "ndcg": 0.5 + 0.1 * random.random(9)}

    values = work.steps("values", step)
    first = Arm("a", values)
    second = Arm("b", [{"query": v["query"], "ndcg": [x - 0.1 + shift for x in v["ndcg"]]} for v in values])
    claims = [
        better("a is better than b", "[W] table 1", first, second, "ndcg"),
        always("it is always so", "beyond the papers", "cases in which it is not", [1, 0, 2], 9, why="It was 2."),
        compared("it is so", "[W] table 1", "above", "a number", [1.0, -1.0, 0.5], 0.0, why="It was 1."),
    ]
    table = Table(["name", "value"], [["a", np.float32(0.5)], ["b", math.nan], ["c", np.int64(3)]])
    rows = [{"series": "a", "x": k, "y": y} for k, y in enumerate([0.1, math.nan, np.float64(0.3)])]
    figure = Figure("by tree / small", "A figure", "trees", "NDCG", rows)
    return Outcome(claims, {"A table": table}, [figure], {"sizes": (1, 2)}, ["made"])


@pytest.fixture
def inject(monkeypatch):
    """Put an experiment of a test in the place of all others."""
    monkeypatch.setattr(runner, "FIRST_SEED", 0)
    monkeypatch.setattr(runner, "SEEDS", 3)
    monkeypatch.setattr(runner, "_sources", lambda name: [name])
    names = []
    monkeypatch.setattr(runner, "EXPERIMENTS", names)
    done.clear()

    def put(run, name="small"):
        module = types.ModuleType(name)
        module.EXPERIMENT = Experiment("A small one", "[W] table 1", "It says so.", "Small.", run)
        monkeypatch.setitem(sys.modules, f"experiments.papers.{name}", module)
        if name not in names:
            names.append(name)

    return put


@pytest.fixture
def lines():
    return []


def verdicts(folder):
    return {result.name: [one.verdict for one in claims] for result, claims in decided_results(folder)}


def test_a_stopped_run_goes_on_and_gives_the_same(inject, tmp_path, lines):
    inject(lambda work: small(work, fail_at=2))
    with pytest.raises(RuntimeError, match="stopped"):
        reproduce(["small"], tmp_path / "a", report=lines.append)
    assert done == [0, 1]
    assert not (tmp_path / "a" / "results").exists()
    inject(small)
    (again,) = reproduce(["small"], tmp_path / "a", report=lines.append)
    assert done == [0, 1, 2]
    (whole,) = reproduce(["small"], tmp_path / "b", report=lines.append)
    assert again.outcome == whole.outcome
    reproduce(["small"], tmp_path / "a", report=lines.append)
    assert lines[-1] == "small: done before"
    assert done == [0, 1, 2, 0, 1, 2]


def test_other_settings_and_other_code_are_done_again(inject, tmp_path, monkeypatch, lines):
    inject(small)
    reproduce(["small"], tmp_path, report=lines.append)
    reproduce(["small"], tmp_path, seeds=4, report=lines.append)
    assert done == [0, 1, 2, 3]  # one more
    reproduce(["small"], tmp_path, seeds=4, report=lines.append)
    assert lines[-1] == "small: done before"
    monkeypatch.setattr(runner, "_sources", lambda name: [name, "changed"])
    reproduce(["small"], tmp_path, seeds=4, report=lines.append)
    assert done[4:] == [0, 1, 2, 3]


def test_a_result_depends_on_the_sources_it_may_use():
    runner._sources.cache_clear()
    names = {name for name, _ in runner._sources("accuracy")}
    assert {"accuracy.py", "claims.py", "work.py", "common.py", "training.py"} <= names
    assert "leaf_search.py" not in names


def test_results_hold_numbers_and_the_page_decides_them(inject, tmp_path, lines):
    inject(small)
    reproduce(["small"], tmp_path, report=lines.append)
    text = (tmp_path / "results" / "small.json").read_text()
    assert "NaN" not in text
    assert "verdict" not in text
    stored = json.loads(text)
    assert stored["claims"][0]["parts"][0]["by_seed"] == pytest.approx([0.1, 0.1, 0.1])
    assert stored["tables"]["A table"]["rows"] == [["a", 0.5], ["b", None], ["c", 3]]
    assert verdicts(tmp_path) == {"small": ["holds", "does not hold", "not decided"]}


def test_results_come_in_the_order_of_the_names(inject, tmp_path, lines):
    inject(small)
    inject(small, "other")
    found = reproduce(["other", "small", "other"], tmp_path, report=lines.append)
    assert [result.name for result in found] == ["other", "small"]


def test_quick_and_full_results_do_not_mix(inject, tmp_path, lines):
    inject(small)
    inject(small, "other")
    reproduce(["small"], tmp_path, quick=True, report=lines.append)
    done.clear()
    with pytest.raises(DataError, match="results of quick or of full runs: use a separate folder"):
        reproduce(["other"], tmp_path, report=lines.append)
    assert done == []


def test_what_cannot_work_is_refused_before_the_work(inject, tmp_path, lines):
    inject(small)
    for arguments, message in (
        ({"names": ["smal"]}, "no experiment 'smal'.*did you mean 'small'"),
        ({"names": ["small"], "seeds": 2}, "seeds must be a whole number from 3"),
        ({"names": ["small"], "data": [tmp_path / "nowhere"]}, "is not a folder"),
    ):
        with pytest.raises(DataError, match=message):
            reproduce(**arguments, folder=tmp_path, report=lines.append)
    assert done == []
    (tmp_path / "file").write_text("")
    with pytest.raises(FileFormatError, match="cannot hold results"):
        reproduce(["small"], tmp_path / "file", report=lines.append)


@pytest.mark.parametrize("content", ["{", "[]", "null", '{"experiment": "small"}', "\udcff", "no parts"])
def test_a_broken_result_is_named(inject, tmp_path, lines, content):
    inject(small)
    reproduce(["small"], tmp_path, report=lines.append)
    file = tmp_path / "results" / "small.json"
    if content == "no parts":
        content = file.read_text().replace('"parts"', '"others"')
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(FileFormatError, match=r"small\.json: is not a result of an experiment .*; remove it to run"):
        reproduce(["small"], tmp_path, report=lines.append)
    file.unlink()
    done.clear()
    reproduce(["small"], tmp_path, report=lines.append)
    assert done == []  # the steps are still there


def test_a_broken_step_is_done_again(tmp_path):
    def work():
        return Work(tmp_path, fingerprint="f")

    assert work().step("one", lambda: [1.0, math.nan, np.array([math.nan, 2])]) == [1.0, None, [None, 2]]
    assert work().step("one", lambda: 2) == [1.0, None, [None, 2]]
    (file,) = tmp_path.iterdir()
    for content in ("{", "[1]", '{"state": "one"}'):
        file.write_text(content)
        assert work().step("one", lambda: 3) == 3
    assert Work(tmp_path, fingerprint="g").step("one", lambda: 4) == 4


def test_a_step_is_asked_for_once_and_gives_plain_values(tmp_path):
    work = Work(tmp_path)
    work.step("one", lambda: 1)
    with pytest.raises(DataError, match="step 'one' was asked for twice"):
        work.step("one", lambda: 2)
    for bad in (math.inf, object()):
        with pytest.raises((ValueError, TypeError), match="JSON"):
            work.step(str(bad), lambda bad=bad: [bad])
    assert len(list(tmp_path.iterdir())) == 1
    assert plain((np.bool_(True), np.float32(0.5))) == [True, 0.5]


def test_what_is_missing_leaves_an_experiment_out_until_it_is_there(inject, tmp_path, lines):
    def needs_torch(work):
        raise MissingExtraError("torch", "neural", "LambdaRank")

    inject(small)
    inject(needs_torch, "neural")
    inject(lambda work: Outcome([], nothing_because="there is no data"), "real")
    found = reproduce([], tmp_path, report=lines.append)
    assert [len(result.outcome.claims) for result in found] == [3, 0, 0]
    assert any(line.startswith("neural: left out, LambdaRank needs torch, which is not installed") for line in lines)
    page = write_page(tmp_path).read_text()
    assert "Left out: LambdaRank needs torch" in page
    assert "Left out: there is no data." in page
    inject(small, "neural")
    assert len(reproduce(["neural"], tmp_path, report=lines.append)[0].outcome.claims) == 3


def test_the_page_is_made_from_results_and_says_why(inject, tmp_path, lines):
    inject(small)
    reproduce([], tmp_path, seeds=4, report=lines.append)
    page = write_page(tmp_path)
    first = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    assert set(first) == {"index.md", "small-by-tree-small.svg"}
    write_page(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == first
    text = page.read_text()
    assert not re.search(r"\bnan\b|\bNone\b|\. \.", text, re.IGNORECASE)
    assert "Cases in which it is not: 3 of 9. It was 2." in text
    assert "The seeds disagree: 2 of 3 are above 0. " in text
    assert "It was 1." in text
    assert "sizes: 1, 2" in text
    assert "![A figure](small-by-tree-small.svg)" in text


def test_the_published_page_says_what_its_results_say():
    folder = Path(__file__).parents[2] / "docs" / "papers"
    text = (folder / "index.md").read_text()
    decided = decided_results(folder)
    assert [result.name for result, _ in decided] == list(EXPERIMENTS)
    for result, claims in decided:
        for one in claims:
            assert f"- **{one.verdict}**: {one.claim.text}. " in text, result.name
            assert one.verdict == HOLDS or re.search(r"\d", one.reason), one.claim.text
            assert one.reason in text


@pytest.fixture(scope="module")
def letor(tmp_path_factory):
    """Write small folds in the layout of MSLR-WEB."""
    root = tmp_path_factory.mktemp("data") / "web"
    for fold in (1, 2):
        (root / f"Fold{fold}").mkdir(parents=True)
        for part, name in (("train", "train"), ("valid", "vali"), ("test", "test")):
            data = podium.artificial(6, documents=5, features=4, seed=fold, part=part)
            data.write(root / f"Fold{fold}" / f"{name}.txt")
    return root


def web(work):
    """Values of a feature as scores, on the test data of the user's folder."""
    (source,) = work.web(features=4)

    def step(seed):
        done.append(seed)
        (_, _, test), *_ = source.parts(seed, (4, 4, 6))
        return work.values(test.feature(0), test, ["ndcg"], source.prefix(seed))

    first = Arm("a", work.steps(source.name, step))
    return Outcome([better("a is better", "[W] table 1", first, first, "ndcg")], data=[source.name])


def test_the_users_data_takes_the_place_of_artificial_data(inject, tmp_path, lines, letor):
    inject(web)
    inject(small, "other")
    found, _ = reproduce([], tmp_path, data=[letor], report=lines.append)
    assert found.outcome.data == ["web"]
    assert found.facts["data_folders"] == ["web"]
    reproduce([], tmp_path, data=[letor], report=lines.append)
    assert done == [0, 1, 2] * 2
    os.utime(letor / "Fold1" / "test.txt", (1, 1))
    reproduce([], tmp_path, data=[letor], report=lines.append)  # only what looks at the data is done again
    assert done == [0, 1, 2] * 3
    assert lines[-1] == "other: done before"
    reproduce([], tmp_path, report=lines.append)
    assert done == [0, 1, 2] * 4


def test_seeds_of_one_fold_share_its_queries(letor):
    (source,) = folder_sources([letor])
    assert source.prefix(0) == source.prefix(2) == "web Fold1"
    assert source.prefix(1) == "web Fold2"
    (_, _, test), *_ = source.parts(0, (4, 4, 3))
    assert test.n_queries == 3
    (_, _, other), *_ = source.parts(2, (4, 4, 3))
    assert set(test.query_ids) != set(other.query_ids)


def test_folders_have_different_names_and_all_parts(letor, tmp_path):
    with pytest.raises(DataError, match="must have different names"):
        folder_sources([letor, letor])
    assert files_state([letor]) != files_state([letor, letor])
    (tmp_path / "train.txt").write_text("0 qid:1 1:1\n")
    with pytest.raises(DataError, match="also needs valid and test data"):
        folder_sources([tmp_path])


def test_real_data_is_found_by_the_variable(tmp_path, monkeypatch):
    (tmp_path / "mq2008").mkdir()
    for k in range(1, 6):
        (tmp_path / "mq2008" / f"S{k}.txt").write_text(f"0 qid:{k} 1:1\n1 qid:{k} 1:2\n")
    monkeypatch.setenv("PODIUM_DATA", str(tmp_path))
    assert Work(tmp_path, quick=True).real() == []
    work = Work(tmp_path)
    (source,) = work.real()
    assert (source.name, len(source.parts(0, (0, 0, 0))), source.prefix(0)) == ("MQ2008", 5, source.prefix(1))
    assert work.inputs["real"]
    monkeypatch.delenv("PODIUM_DATA")
    assert work.state_of("real") == ""
    assert Work(tmp_path).real() == []


@pytest.fixture
def command():
    import typer

    from experiments.__main__ import main

    app = typer.Typer()
    app.command()(main)
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def test_the_command_names_all_and_refuses_what_it_does_not_know(command, tmp_path):
    listed = command("--list")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()] == list(EXPERIMENTS)
    assert all(experiment(name).title in listed.output for name in EXPERIMENTS)
    wrong = command("acuracy", "-o", tmp_path)
    assert wrong.exit_code == 1
    assert "did you mean 'accuracy'" in wrong.output
    assert not list(tmp_path.iterdir())


def test_the_command_says_what_was_left_out_and_fails_where_that_is_all(inject, command, tmp_path):
    inject(small)
    inject(lambda work: Outcome([], nothing_because="there is no data"), "real")
    for names, code in ((["real"], 1), (["small", "real"], 0)):
        shown = command(*names, "--output", tmp_path)
        assert shown.exit_code == code
        assert "real: left out, there is no data" in shown.output
        assert ("small: not decided: it is so ([W] table 1)" in shown.output) == (code == 0)
    (tmp_path / "index.md").unlink()
    assert command("--page", "-o", tmp_path).exit_code == 0
    assert (tmp_path / "index.md").exists()


@pytest.mark.slow
def test_a_quick_run_draws_its_pictures_and_decides_what_it_can(tmp_path, lines):
    reproduce(["arrows", "sigma"], tmp_path, quick=True, report=lines.append)
    found = verdicts(tmp_path)
    assert found["arrows"].count(HOLDS) == 3
    assert found["sigma"] == [HOLDS] * 7
    page = write_page(tmp_path).read_text()
    for link in {part.split(")")[0] for part in page.split("](")[1:] if ".svg" in part.split(")")[0]}:
        assert (tmp_path / link).stat().st_size > 1000
