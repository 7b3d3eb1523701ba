"""`podium plot` and `podium train --watch`."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import podium
from podium.cli.app import load_command
from podium.errors import DataError, MissingExtraError

PODIUM = str(Path(sys.executable).parent / "podium")


def run(name, *arguments):
    """Run a command in this process."""
    load_command(name).main([str(argument) for argument in arguments], standalone_mode=False)


def in_terminal(*arguments, interrupt_at=None):
    """Run a command in a terminal, and press Ctrl-C after some text; return the exit code and the output."""
    pty, termios = (pytest.importorskip(name) for name in ("pty", "termios"))
    master, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    process = subprocess.Popen(
        ["env", "--default-signal=INT", PODIUM, *map(str, arguments)], stdin=terminal, stdout=terminal, stderr=terminal,
        env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(terminal)
    shown = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:  # the other end is closed
            part = b""
        if not part:
            break
        shown += part
        if interrupt_at and interrupt_at.encode() in shown:
            process.send_signal(signal.SIGINT)
            interrupt_at = None
    os.close(master)
    return process.wait(timeout=60), shown.decode()


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("plots") / "data.txt"
    podium.artificial(30, documents=10, features=4).write(path)
    return path


@pytest.fixture(scope="module")
def finished(sample):
    folder = sample.parent / "run"
    run("train", sample, "--valid", sample, "--n-trees", 30, "-o", folder)
    return folder


def values_in(chart):
    return [layer["data"]["values"] for layer in json.loads(chart.read_text())["layer"]]


def history_of(folder):
    return json.loads((folder / "history.json").read_text())


def test_a_run_is_plotted(finished, tmp_path, capsys):
    run("plot", finished)
    history = history_of(finished)["valid/ndcg@10"]
    best = podium.models.load_model(finished / "model.podium").info["best_iteration"]
    expected = f"{finished}/history.svg: valid/ndcg@10 {history[best]:.4f} after round {best + 1} of 30\n"
    assert capsys.readouterr().out == expected
    assert (finished / "history.svg").read_text().startswith("<svg")
    run("plot", finished, "-o", tmp_path / "a.png", "--dark")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    run("plot", finished, "-o", tmp_path / "a.json")
    rule, line, point = values_in(tmp_path / "a.json")
    assert [row["value"] for row in line] == history
    assert rule == point == [line[best]]


def test_every_model_file_stores_its_best_round():
    data = podium.artificial(20, features=4)
    rankers = [podium.LambdaMART(3), podium.McRank(3), podium.LinearRanker(n_iterations=3)]
    rankers.append(podium.LambdaMART(3, submodel=podium.LinearRanker(n_iterations=2).fit(data)))
    for ranker in rankers:
        model = ranker.fit(data, valid=data)
        assert model.model_.info["best_iteration"] == model.best_iteration_
    assert model.model_.info["submodel_means"] == model.submodel_means_
    pytest.importorskip("torch")
    net = podium.LambdaRank(epochs=3, n_threads=1).fit(data)
    assert net.model_.info["best_iteration"] == net.best_iteration_


def test_runs_that_cannot_be_plotted(sample, finished, tmp_path, monkeypatch):
    for name, content in {"blind": "{}", "odd": "[1]", "texts": '{"a": ["a"]}', "torn": '{"a": [', "empty": ""}.items():
        (tmp_path / name).mkdir()
        if content:
            (tmp_path / name / "history.json").write_text(content)
    for name, expected in {
        "nowhere": "does not exist: pass the output folder of podium train",
        sample: "is a file: pass the output folder of podium train",
        "empty": "podium train writes it when a run finishes",
        "blind": "nothing was measured because the run had no validation data; train with --valid",
        "odd": "expected lists of numbers",
        "texts": "expected lists of numbers",
        "torn": "history.json: cannot be read",
    }.items():
        with pytest.raises(DataError, match=expected):
            run("plot", tmp_path / name)
    (tmp_path / "empty" / "checkpoint.podium").touch()
    with pytest.raises(DataError, match="run the same podium train command to resume it"):
        run("plot", tmp_path / "empty")
    with pytest.raises(DataError, match=r"end in one of \.svg, \.png, \.html, \.json, but got '\.pdf'"):
        run("plot", finished, "-o", tmp_path / "a.pdf")
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"a chart needs altair.*pip install '\.\[report\]'"):
        run("plot", finished)


@pytest.mark.slow
def test_watch_plots_in_a_terminal(sample, tmp_path, capsys):
    command = ["train", sample, "--valid", sample, "--n-trees", 20, "--metrics", "ap"]
    code, shown = in_terminal(*command, "--watch", "-o", tmp_path / "run")
    assert code == 0, shown
    picture, after = shown.rsplit("\x1b[?25h", 1)  # the cursor comes back behind the last picture
    last = picture.rpartition("valid/ndcg@10")[2]
    history = history_of(tmp_path / "run")
    best = max(history["valid/ndcg@10"])
    assert re.search(rf"round 20 of 20, now {history['valid/ndcg@10'][-1]:.4f}, best {best:.4f} in round \d+", last)
    assert f"valid/ap {history['valid/ap'][-1]:.4f}" in last
    assert any(0x2800 < ord(character) < 0x2900 for character in last)
    assert f"{tmp_path}/run/model.podium: " in after.replace("\r\n", "")
    outputs = []
    for name, options in (("piped", ["--watch"]), ("plain", [])):  # here nothing is a terminal
        run(*command, *options, "-o", tmp_path / name)
        outputs.append([text.replace(name, "") for text in capsys.readouterr()])
    assert outputs[0] == outputs[1]
    assert "20 of 20 rounds" in outputs[0][1]
    models = {podium.load(tmp_path / name / "model.podium").digest() for name in ("run", "piped", "plain")}
    assert len(models) == 1


@pytest.mark.slow
def test_ctrl_c_during_watch_stops_the_run(sample, tmp_path):
    command = ["train", sample, "--valid", sample, "--n-trees", 1_000_000, "--n-leaves", 3, "--watch"]
    code, shown = in_terminal(*command, "-o", tmp_path / "run", interrupt_at="now 0.")
    assert code == 130, shown
    after = shown.rsplit("\x1b[?25h", 1)[1]
    assert after.replace("\r\n", "").startswith("podium: stopped; run the same command to resume from")
    assert "Traceback" not in shown
    assert (tmp_path / "run" / "checkpoint.podium").exists()


def test_watch_needs_validation_data_or_training_measures(sample, tmp_path, capsys):
    with pytest.raises(DataError, match="--watch needs validation data: add --valid"):
        run("train", sample, "--watch", "-o", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(Exception, match="No such option: --watch"):
        run("train", "committee", sample, "--watch")
    run("train", "linear", sample, "--method", "ascent", "--n-iterations", 2, "--watch", "-o", tmp_path / "run")
    last = history_of(tmp_path / "run")["train/ndcg@10"][-1]
    assert f"train/ndcg@10 {last:.4f}" in capsys.readouterr().out  # the model is that of the last cycle
