"""Training runs that are stopped, killed, resumed and repeated, started as from a shell."""

import os
import random
import signal
import subprocess
import time

import pytest

import podium
from podium.boosting import Checkpoint
from tests.commands import PODIUM, run

pytestmark = pytest.mark.slow  # every call starts a process

TREES = ["--n-trees", 1500, "--n-leaves", 4]


def start(*arguments):
    # A shell's background job ignores SIGINT, and so would its children.
    command = ["env", "--default-signal=INT", PODIUM, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)


def interrupted(number, after, *arguments):
    """Send a signal to a run after some lines; return its exit code and its messages."""
    process = start(*arguments, "--verbose", 1)
    lines = []
    while len(lines) < after:
        lines.append(process.stderr.readline())
        assert lines[-1], "".join(lines)
    time.sleep(random.random() / 50)
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    return process.returncode, "".join(lines) + err


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "data.txt"
    podium.artificial(40, documents=20, features=5).write(path)
    return path


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_a_run_is_stopped_killed_and_resumed_to_the_same_model(sample, tmp_path):
    data, folder = podium.read(sample), tmp_path / "run"
    command = ["train", "lambdamart", sample, "--valid", sample, *TREES, "-o", folder]
    trees = 0
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        # At least 3 lines, because the first one may only name the checkpoint to resume from.
        ended, err = interrupted(number, random.randint(3, 30), *command)
        assert ended == code, err
        assert (
            err.splitlines()[-1]
            == f"podium: stopped; run the same command to resume from {folder / 'checkpoint.podium'}"
        )
        assert "Traceback" not in err
        assert "Error" not in err
        assert names(folder) == {"checkpoint.podium", "config.toml"}
        n_trees = podium.load(folder / "checkpoint.podium").n_trees
        assert n_trees > trees
        trees = n_trees
    (folder / ".checkpoint.podium.abcd1234").write_text("of a killed process")
    ended, err = interrupted(signal.SIGKILL, random.randint(3, 30), *command, "--checkpoint-every", 1)
    assert ended == -signal.SIGKILL
    assert f"resuming from {folder / 'checkpoint.podium'}" in err
    assert podium.load(folder / "checkpoint.podium").n_trees > trees
    assert not (folder / ".checkpoint.podium.abcd1234").exists()
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert names(folder) == {"model.podium", "history.json", "config.toml", "run.json"}
    expected = podium.LambdaMART(1500, 4).fit(data, valid=data)
    assert podium.load(folder / "model.podium").digest() == expected.digest()


def test_a_finished_run_is_not_replaced_by_accident(sample, tmp_path):
    folder = tmp_path / "run"
    command = ["train", "lambdamart", sample, "--n-trees", 3, "-o", folder]
    assert run(*command).returncode == 0
    before = (folder / "model.podium").read_bytes()
    for again in (command, [*command, "--n-leaves", 3]):
        refused = run(*again)
        assert refused.returncode == 1
        assert "so this run has finished" in refused.stderr
        assert "--overwrite" in refused.stderr
        assert (folder / "model.podium").read_bytes() == before
    (folder / "checkpoint.podium").write_bytes(b"of another run")
    done = run(*command, "--n-leaves", 3, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert names(folder) == {"model.podium", "history.json", "config.toml", "run.json"}
    assert (folder / "model.podium").read_bytes() != before
    refused = run("train", "lambdamart", sample, "--submodel", folder / "model.podium", "-o", folder, "--overwrite")
    assert "is the submodel, so it cannot be replaced" in refused.stderr
    assert (folder / "model.podium").exists()


def test_a_checkpoint_of_other_settings_is_refused(sample, tmp_path):
    command = ["train", "lambdamart", sample, *TREES, "-o", tmp_path / "run"]
    assert interrupted(signal.SIGINT, 5, *command)[0] == 130
    refused = run("train", "lambdamart", sample, "--n-trees", 5, "--n-leaves", 5, "-o", tmp_path / "run")
    assert refused.returncode == 1
    assert "--overwrite starts again" in refused.stderr
    done = run("train", "lambdamart", sample, "--n-trees", 5, "--n-leaves", 5, "-o", tmp_path / "run", "--overwrite")
    assert done.returncode == 0, done.stderr


def test_a_net_is_stopped_and_resumed_to_the_same_model(sample, tmp_path):
    pytest.importorskip("torch")
    settings = ["--epochs", 150, "--batch-queries", 5, "--hidden", 4, "--n-threads", 1]
    command = ["train", "lambdarank", sample, *settings, "-o", tmp_path / "run"]
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        ended, err = interrupted(number, random.randint(1, 20), *command)
        assert ended == code, err
        assert names(tmp_path / "run") == {"checkpoint.podium", "config.toml"}
    for folder in ("run", "whole"):
        done = run("train", "lambdarank", sample, *settings, "--patience", 50, "-o", tmp_path / folder)
        assert done.returncode == 0, done.stderr
    assert len({podium.load(tmp_path / name / "model.podium").digest() for name in ("run", "whole")}) == 1
    assert names(tmp_path / "run") == {"model.podium", "history.json", "config.toml", "run.json"}


def test_a_stopped_run_without_a_checkpoint(sample, tmp_path):
    ended, err = interrupted(signal.SIGTERM, 1, "train", "committee", sample, "-o", tmp_path / "run")
    assert ended == 143
    assert "there is no checkpoint yet, so the same command starts over" in err
    assert names(tmp_path / "run") == {"config.toml"}


def test_a_refused_run_leaves_the_config_of_the_run_to_resume(sample, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    checkpoint = Checkpoint(folder / "checkpoint.podium", every=1)
    podium.LambdaMART(4, n_leaves=3).fit(podium.read(sample), checkpoint=checkpoint)
    (folder / "config.toml").write_text("n_trees = 4\n")
    refused = run("train", "lambdamart", sample, "--n-trees", 9, "--n-leaves", 7, "-o", folder)
    assert refused.returncode == 1
    assert "a checkpoint of other data or other settings" in refused.stderr
    assert (folder / "config.toml").read_text() == "n_trees = 4\n"


def test_two_runs_do_not_share_a_folder(sample, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    folder, link = tmp_path / "run", tmp_path / "link"
    folder.mkdir()
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    refused = run("train", "lambdamart", sample, "--n-trees", 2, "-o", folder)
    assert refused.returncode == 1
    assert "is in use by another run" in refused.stderr
    os.close(held)
    assert run("train", "lambdamart", sample, "--n-trees", 2, "-o", folder).returncode == 0
    link.mkdir()
    (link / "model.podium").symlink_to(tmp_path / "nowhere" / "model.podium")
    assert "so this run has finished" in run("train", "lambdamart", sample, "--n-trees", 2, "-o", link).stderr
