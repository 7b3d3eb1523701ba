"""Runs of small experiments: what is kept, what is done again, what is refused, and the page."""

import json
import math
import os
import re
import sys
import types

import numpy as np
import pytest

import podium
from podium.cli import main
from podium.errors import DataError, FileFormatError, MissingExtraError
from podium.evaluation.tables import Table
from podium.reproduce import Arm, Experiment, Figure, Outcome, Work, better, decided_by, reproduce
from podium.reproduce import experiments as named
from podium.reproduce.fingerprints import _digests, code_hash, fingerprint
from podium.reproduce.page import write_page
from podium.reproduce.plain import plain
from podium.reproduce.sources import files_state, folder_source, folder_sources

done = []  # the steps that were done, in order


def small(work, fail_at=None, p=0.01):
    """Three steps, and two claims: one with a test, one without a p."""
    values = []
    for seed in work.seeds:

        def step(seed=seed):
            if fail_at == seed:
                raise RuntimeError("stopped")
            done.append(seed)
            random = np.random.default_rng(seed)
            return {"query": [f"{seed}/{k}" for k in range(9)], "ndcg": 0.5 + 0.1 * random.random(9)}

        values.append(work.step(f"seed {seed}", step))
    first = Arm("a", values)
    second = Arm("b", [{"query": v["query"], "ndcg": [x - 0.1 + 0.01 * k for k, x in enumerate(v["ndcg"])]}
                       for v in values])  # fmt: skip
    claims = [
        better("a is better than b", "[W] table 1", first, second, "ndcg"),
        decided_by("nobody knows", "beyond the papers", "no test", math.nan, math.nan, math.nan, by_seed=[math.nan]),
        decided_by("it is so", "[W] table 1", "a test", 0.1, p, 1.0),
    ]
    table = Table(["name", "value"], [["a", np.float32(0.5)], ["b", math.nan], ["c", np.int64(3)]])
    rows = [{"series": "a", "x": k, "y": y} for k, y in enumerate([0.1, math.nan, np.float64(0.3)])]
    figure = Figure("by tree / small", "A figure", "trees", "NDCG", rows)
    return Outcome(claims, {"A table": table}, [figure], {"sizes": (1, 2)}, ["made"])


@pytest.fixture
def inject(monkeypatch):
    """Put an experiment of a test in the place of all others."""
    monkeypatch.setattr(podium, "__version__", "test")
    monkeypatch.setattr("podium.reproduce.runner.FIRST_SEED", 0)
    names = {}
    for module in ("fingerprints", "runner", "page", "experiments"):
        monkeypatch.setattr(f"podium.reproduce.{module}.EXPERIMENTS", names)
    done.clear()

    def put(run, name="small", **about):
        text = {"title": "A small one", "place": "[W] table 1", "says": "It says so.", "cuts": "Small."} | about
        module = types.ModuleType(name)
        module.EXPERIMENT = Experiment(**text, run=run)
        monkeypatch.setitem(sys.modules, f"podium.reproduce.experiments.{name}", module)
        names[name] = "[W] table 1: a small one"

    return put


@pytest.fixture
def lines():
    return []


def results_of(folder):
    return {file.stem: json.loads(file.read_text()) for file in (folder / "results").iterdir()}


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
    assert again.outcome.to_dict() == whole.outcome.to_dict()
    reproduce("small", tmp_path / "a", report=lines.append)
    assert lines[-1] == "small: done before"
    assert done == [0, 1, 2, 0, 1, 2]


def test_other_settings_and_other_code_are_done_again(inject, tmp_path, monkeypatch, lines):
    inject(small)
    reproduce(["small"], tmp_path, report=lines.append)
    reproduce(["small"], tmp_path, seeds=4, report=lines.append)
    assert done == [0, 1, 2, 0, 1, 2, 3]
    changed = dict(_digests()) | {"trees/growing.py": "another"}
    monkeypatch.setattr("podium.reproduce.fingerprints._digests", lambda: changed)
    reproduce(["small"], tmp_path, seeds=4, report=lines.append)
    assert done[7:] == [0, 1, 2, 3]


def test_what_the_fingerprint_sees(monkeypatch):
    settings = {"quick": True}
    digests = dict(_digests())
    monkeypatch.setattr("podium.reproduce.fingerprints._digests", lambda: digests)
    before = fingerprint("accuracy", settings)
    assert not any(path.startswith(("cli/", "reports/")) for path in digests)
    digests["reproduce/experiments/leaf_search.py"] = "another"
    assert fingerprint("accuracy", settings) == before  # another experiment
    for path in ("reproduce/experiments/accuracy.py", "reproduce/claims.py", "boosting/training.py"):
        assert path in digests
        monkeypatch.setitem(digests, path, "another")
        assert fingerprint("accuracy", settings) != before
        before = fingerprint("accuracy", settings)
    assert fingerprint("accuracy", {"quick": False}) != before
    plain_code = b"def f(x):\n    return x + 1\n"
    assert code_hash(b'"""Doc."""\n\ndef f( x ):\n    """Doc."""\n    # why\n    return x+1') == code_hash(plain_code)
    assert code_hash(b"def f(x):\n    return x + 2\n") != code_hash(plain_code)


def test_results_are_whole_json_with_verdicts(inject, tmp_path, lines):
    inject(small)
    inject(lambda work: small(work, p=0.03), "other")
    reproduce(["small"], tmp_path, report=lines.append)
    first = results_of(tmp_path)["small"]
    text = (tmp_path / "results" / "small.json").read_text()
    assert "NaN" not in text
    assert [claim["verdict"] for claim in first["claims"]] == ["holds", "not decided", "holds"]
    assert first["claims"][2]["p_holm"] == pytest.approx(0.01)
    assert first["claims"][1]["interval"] == [None, None]
    assert first["tables"]["A table"]["rows"] == [["a", 0.5], ["b", None], ["c", 3]]
    reproduce(["other"], tmp_path, report=lines.append)
    both = results_of(tmp_path)  # all claims of a paper are corrected together
    assert both["small"]["claims"][2]["p_holm"] == pytest.approx(0.02)
    assert [claim["verdict"] for claim in both["small"]["claims"]] == ["holds", "not decided", "holds"]
    assert both["other"]["claims"][2]["p_holm"] == pytest.approx(0.03)


def test_results_stand_in_the_order_of_the_names(inject, tmp_path, lines):
    inject(small)
    inject(small, "other")
    found = reproduce(["other", "small", "other"], tmp_path, report=lines.append)
    assert [result.name for result in found] == ["other", "small"]


def test_quick_and_full_results_do_not_mix(inject, tmp_path, lines):
    inject(small)
    inject(small, "other")
    reproduce(["small"], tmp_path, quick=True, report=lines.append)
    done.clear()
    with pytest.raises(DataError, match="results of quick and of full runs: give each kind a folder"):
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
    with pytest.raises(FileFormatError, match="cannot hold steps"):
        reproduce(["small"], tmp_path / "file", report=lines.append)


@pytest.mark.parametrize(
    "content", ["{", "[]", "null", '{"experiment": "small"}', "\udcff", "other name", "no verdict"]
)
def test_a_broken_result_is_named(inject, tmp_path, lines, content):
    inject(small)
    reproduce(["small"], tmp_path, report=lines.append)
    file = tmp_path / "results" / "small.json"
    if content == "other name":
        content = file.read_text().replace('"experiment": "small"', '"experiment": "large"')
    if content == "no verdict":
        content = file.read_text().replace('"p_holm"', '"p_other"')
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(FileFormatError, match=r"small\.json: is no result of podium reproduce .*; remove it to run"):
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
    for content in ("{", "[1]", '{"step": "one"}'):
        file.write_text(content)
        assert work().step("one", lambda: 3) == 3
    assert Work(tmp_path, fingerprint="g").step("one", lambda: 4) == 4


def test_a_step_is_asked_for_once_and_gives_plain_values(tmp_path):
    work = Work(tmp_path)
    work.step("one", lambda: 1)
    with pytest.raises(DataError, match="step 'one' was asked for twice"):
        work.step("one", lambda: 2)
    for bad, message in ((math.inf, "is inf, which JSON"), ({1: 2}, "has the key 1"), (object(), "is object, which")):
        with pytest.raises(DataError, match=message):
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
    with pytest.raises(DataError, match="without claims must say why"):
        Outcome([])


def test_the_command_says_what_was_left_out_and_fails_where_that_is_all(inject, tmp_path, capsys, monkeypatch):
    inject(small)
    inject(lambda work: Outcome([], nothing_because="there is no data"), "real")
    for names, code in ((["real"], 1), (["small", "real"], 0)):
        monkeypatch.setattr(sys, "argv", ["podium", "reproduce", *names, "--output", str(tmp_path)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == code
        shown = capsys.readouterr().out
        assert "real: left out, there is no data" in shown
        assert ("nobody knows" in shown) == (code == 0)


def test_the_page_is_made_from_results_alone(inject, tmp_path, lines, monkeypatch):
    inject(small)
    reproduce([], tmp_path, seeds=4, report=lines.append)
    page = write_page(tmp_path)
    first = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    assert set(first) == {"index.md", "small-by-tree-small.svg"}
    monkeypatch.setattr("podium.reproduce.experiments.experiment", None)  # the page does not ask for it
    write_page(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == first
    text = page.read_text()
    assert not re.search(r"\bnan\b|\bNone\b|\. \.", text, re.IGNORECASE)
    assert "$ podium reproduce --seeds 4\n" in text
    assert "nobody knows. *beyond the papers.* no test: –, p was not computed" in text
    assert "sizes: 1, 2" in text
    assert "![A figure](small-by-tree-small.svg)" in text


def test_two_figures_of_one_name_are_refused():
    claims = [decided_by("", "[B] §2", "", 0.0, 1.0, 1.0)]
    with pytest.raises(DataError, match="two figures of an experiment have the same name"):
        Outcome(claims, figures=[Figure("a", "", "", "", []), Figure("a", "", "", "", [])])


@pytest.fixture(scope="module")
def letor(tmp_path_factory):
    """Folds as MSLR-WEB has them, small."""
    root = tmp_path_factory.mktemp("data") / "web"
    for fold in (1, 2):
        (root / f"Fold{fold}").mkdir(parents=True)
        for part, name in (("train", "train"), ("valid", "vali"), ("test", "test")):
            data = podium.artificial(6, documents=5, features=4, seed=fold, part=part)
            data.write(root / f"Fold{fold}" / f"{name}.txt")
    return root


def web(work):
    """Values of a feature as scores, on the test data of the user's folder."""
    values = []
    (source,) = work.web(features=4)
    for seed in work.seeds:
        (_, _, test), *_ = source.parts(seed, (4, 4, 6))
        values.append(work.step(f"{source.name}, {seed}", lambda test=test, seed=seed: (
            done.append(seed) or work.values(test.feature(0), test, ["ndcg"], source.prefix(seed)))))  # fmt: skip
    first = Arm("a", values)
    return Outcome([better("a is better", "[W] table 1", first, first, "ndcg")], data=[source.name])


def test_the_users_data_takes_the_place_of_artificial_data(inject, tmp_path, lines, letor):
    inject(web)
    inject(small, "other")
    found, _ = reproduce([], tmp_path, data=[letor], report=lines.append)
    assert found.outcome.data == ["web"]
    assert found.facts["data_folders"] == ["web"]
    assert "$ podium reproduce --data web\n" in write_page(tmp_path).read_text()
    assert len(found.outcome.claims) == 1
    reproduce([], tmp_path, data=[letor], report=lines.append)
    assert done == [0, 1, 2] * 2
    os.utime(letor / "Fold1" / "test.txt", (1, 1))
    reproduce([], tmp_path, data=[letor], report=lines.append)  # only what looks at the data is done again
    assert done == [0, 1, 2] * 3
    assert lines[-1] == "other: done before"
    reproduce([], tmp_path, report=lines.append)
    assert done == [0, 1, 2] * 4


def test_queries_that_several_seeds_measure_count_once(letor):
    source = folder_source(letor)
    assert source.prefix(0) == source.prefix(2) == "web Fold1"
    assert source.prefix(1) == "web Fold2"
    (_, _, test), *_ = source.parts(0, (4, 4, 3))
    assert test.n_queries == 3
    (_, _, other), *_ = source.parts(2, (4, 4, 3))
    assert set(test.query_ids) != set(other.query_ids)


def test_folders_of_one_name_are_told_apart_and_must_be_whole(letor, tmp_path):
    assert [source.name for source in folder_sources([letor, letor])] == ["web (1)", "web (2)"]
    assert files_state([letor]) != files_state([letor, letor])
    (tmp_path / "train.txt").write_text("0 qid:1 1:1\n")
    with pytest.raises(DataError, match="needs valid and test data, too"):
        folder_source(tmp_path)


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


def test_the_command(capsys, tmp_path, monkeypatch):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["podium", "reproduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, *capsys.readouterr()

    code, out, err = run("--list")
    assert code in (0, None)
    assert [line.split()[0] for line in out.splitlines()] == list(named.EXPERIMENTS)
    code, out, err = run("acuracy", "-o", tmp_path)
    assert code not in (0, None)
    assert "did you mean 'accuracy'" in err
    assert "Traceback" not in err
    code, out, err = run("--help")
    assert code == 0
    assert all(option in out for option in ("--quick", "--seeds", "--data", "--list", "--output"))
    assert not list(tmp_path.iterdir())
