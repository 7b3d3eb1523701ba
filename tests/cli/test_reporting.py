"""`podium report` and `podium compare --html`."""

import json

import pytest

import podium
from podium.cli.app import load_command
from podium.errors import DataError, FileFormatError, PodiumWarning
from tests.reports.pages import Page

AP = "ap"


def run(name, *arguments):
    """Run a command in this process."""
    load_command(name).main([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    for part in ("train", "valid", "test"):
        podium.artificial(12, documents=8, features=4, part=part).write(folder / f"{part}.txt")
    run("train", folder / "train.txt", "--valid", folder / "valid.txt", "--n-trees", 5, "-o", folder / "run")
    run("train", "linear", folder / "train.txt", "--n-iterations", 2, "-o", folder / "linear")
    return folder


def test_a_report_on_a_run(files, capsys):
    folder = files / "run"
    run("report", folder, "--test", files / "test.txt", "--other", f"linear={files}/linear/model.podium",
        "--other", "one=feature:1", "-m", AP, "--queries", 1)  # fmt: skip
    assert capsys.readouterr().out.startswith(f"{folder}/report.html: ")
    page = Page((folder / "report.html").read_text())
    model = podium.load(folder / "model.podium")
    for name in ("train", "valid", "test"):
        data = podium.read(files / f"{name}.txt")
        shown = next(row["mean"] for row in page.table("Means over") if row["data"] == name)
        assert shown == f"{podium.evaluate(data, model, AP).means[AP]:.4f}"
    assert "valid/ndcg@10" in page.words("learning")
    facts = {row["fact"]: row["value"] for row in page.table("Model, data and versions")}
    assert facts["digest of the model"] == model.digest()
    assert facts["Podium (run)"] == podium.__version__
    assert facts["command"] == f"podium train --config {folder}/config.toml --output FOLDER"
    assert {row["a"] for row in page.table("Pairs of systems")} == {"linear", "one"}


def test_other_systems_and_missing_data_have_readable_names(files, tmp_path):
    words = ("train", files / "train.txt", "--normalize", "minmax", "--n-trees", 2, "-o", tmp_path / "scaled")
    run(*words)
    run("report", files / "linear", "--test", files / "test.txt", "--other", f"b={tmp_path}/scaled/model.podium",
        "--timing", "-o", tmp_path / "a.html")  # fmt: skip
    text = (tmp_path / "a.html").read_text()
    assert "_Scored" not in text
    system = next(row for row in Page(text).table("Systems") if row["system"] == "b")
    assert system["what it is"] == "scores"
    assert "There is no validation data: use report(…, valid=…), or podium train … --valid FILE." in text


def test_the_command_in_a_report_repeats_the_run(files, tmp_path):
    run("train", "--config", files / "run" / "config.toml", "--output", tmp_path / "again")
    models = {podium.load(folder / "model.podium").digest() for folder in (files / "run", tmp_path / "again")}
    assert len(models) == 1


def test_deleted_data_and_runs_without_test_data(files, tmp_path):
    (tmp_path / "run").mkdir()
    for file in (files / "run").iterdir():
        if file.name != "report.html":
            (tmp_path / "run" / file.name).write_bytes(file.read_bytes())
    run("report", tmp_path / "run", "--queries", 1)
    page = Page((tmp_path / "run" / "report.html").read_text())
    assert {row["data"] for row in page.table("Means over")} == {"valid", "train"}
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("train.txt", "gone.txt"))
    with pytest.warns(PodiumWarning, match=r"does not cover the train data: .*gone\.txt, which .*no longer exists"):
        run("report", tmp_path / "run", "--queries", 1)
    (tmp_path / "run" / "run.json").write_text("[1]")
    with pytest.raises(FileFormatError, match="expected strings by name"), pytest.warns(PodiumWarning):
        run("report", tmp_path / "run")
    with pytest.raises(DataError, match="does not exist: pass the output folder of podium train"):
        run("report", tmp_path / "nowhere")


def test_a_run_records_facts(files):
    facts = json.loads((files / "run" / "run.json").read_text())
    assert {"started", "seconds", "Podium", "Numba"} <= set(facts)


@pytest.mark.parametrize("trec", [False, True])
def test_a_comparison_as_a_page(files, tmp_path, trec, capsys):
    if trec:
        data = tmp_path / "qrels.txt"
        data.write_text("\n".join(f"{q} 0 d{d} {(q + d) % 3}" for q in range(4) for d in range(5)) + "\n")
        for name, sign in (("a", 1), ("b", -1)):
            lines = [f"{q} Q0 d{d} {d} {sign * d} {name}" for q in range(4) for d in range(4)]
            (tmp_path / name).write_text("\n".join(lines) + "\n")
        systems, options = [f"a={tmp_path}/a", f"b={tmp_path}/b"], ["--qrels"]
    else:
        data, systems, options = files / "test.txt", ["a=feature:1", "b=feature:2"], ["--baseline", "a"]
    run("compare", data, *systems, *options, "--html", tmp_path / "page.html", "--as", "json")
    page, printed = Page((tmp_path / "page.html").read_text()), json.loads(capsys.readouterr().out)
    (pair,) = page.table("Pairs of systems")
    assert pair["b - a"] == f"{printed['pairs'][0]['b - a']:.4f}"
    assert [name for name in page.ids if name in ("comparison", "queries", "data", "learning")] == [
        "comparison", "queries", "data",
    ]  # fmt: skip
    assert ("not ranked" in page.words("queries")) == trec
