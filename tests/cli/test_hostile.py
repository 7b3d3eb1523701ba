"""Invalid arguments, files and streams give one line of error and an exit code, never a traceback."""

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import podium
from podium.cli import main

PODIUM = str(Path(sys.executable).parent / "podium")
HUGE = "9" * 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    data = podium.artificial(10, documents=10, features=3)
    data.write(folder / "a.txt")
    podium.LambdaMART(2).fit(data).save(folder / "m.podium")
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Return a function that runs a command in this process, because a hundred processes would take minutes."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def called(*arguments):
        monkeypatch.setattr(sys, "argv", ["podium", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert "unexpected" not in err
        return ended.value.code or 0, out, err

    yield called
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    "option",
    ["n-trees", "n-leaves", "max-depth", "min-documents-in-leaf", "truncation", "max-bins", "patience", "n-threads",
     "checkpoint-every", "verbose", "first-index"],
)  # fmt: skip
def test_huge_numbers_are_refused(run, option, tmp_path):
    code, _, err = run("train", "lambdamart", "a.txt", "--valid", "a.txt", f"--{option}", HUGE, "-o", tmp_path / "r")
    assert code == 1
    assert err.startswith("podium: error: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "r" / "model.podium").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "a.txt", "--l2", "nan"], ["train", "a.txt", "--learning-rate", "1e308", "--n-trees", "3"],
        ["train", "lambdamart", "a.txt", "--objective", "(" * 5000],
        ["train", "lambdamart", "a.txt", "--objective", "anneal(" * 5000],
        ["train", "lambdamart", "a.txt", "--objective", f"lambda(truncation={HUGE})"],
        ["train", "a.txt", "--measure", f"ndcg@{HUGE}"],
        ["train", "a.txt", "--metrics", "nonsense"], ["train", "lambdamart", "a.txt", "--submodel", "."],
        ["train", ".", "--format", "letor"], ["train", "a.txt", "-o", "a.txt"], ["train", "a.txt", "-o", "a.txt/x"],
        ["train", "a.txt", "-o", "/proc/nowhere"], ["train", "--config", "."], ["train", "--config", "none"],
        ["score", ".", "a.txt"], ["score", "m.podium", "a.txt", "--n-trees", HUGE],
        ["score", "m.podium", "a.txt", "-o", "/"],
        ["score", "m.podium", "a.txt", "-o", "/dev/full"], ["score", "m.podium", "a.txt", "-o", "none/x"],
        ["inspect", "."], ["inspect", "/dev/null"], ["inspect", "\udcff"], ["describe", ""], ["describe", "\udcff"],
        ["evaluate", "a.txt", f"feature:{HUGE}"], ["evaluate", "a.txt", "."], ["evaluate", "a.txt", "/dev/null"],
        ["compare", "a.txt", "a=feature:1", "b=feature:2", "--margin", "nan"],
        ["combine", "m.podium", "m.podium", "a.txt", "--lower", "nan"],
        ["adapt", "m.podium", "a.txt", "--n-trees", HUGE],
        ["convert", "a.txt", "."], ["committee", "a.txt", "--time-budget", "nan"],
        ["generate", "b.txt", "--queries", HUGE], ["generate", "none/b.txt"],
        ["generate", "b.txt", "--label-noise", "nan"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)  # fmt: skip
def test_invalid_arguments(run, arguments, tmp_path):
    if arguments[0] == "train" and "-o" not in arguments:
        arguments = [*arguments, "-o", tmp_path / "r"]
    code, out, err = run(*arguments)
    assert code == 1
    assert out == ""
    assert err.splitlines()[-1].startswith("podium: error: ")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "is nested too deeply"),
        ("a = " + "{b=" * 3000 + "1" + "}" * 3000, "is nested too deeply"),
        ('data = ["a\\u0000b.txt"]', "NUL"),
        ('data = ["a.txt"]\nsubmodel = "a\\u0000b"', ""),
        ("n_trees = " + "9" * 5000, "is not a TOML file"),
        ("n_trees = " + HUGE, "n_trees must be at most 2_147_483_647"),
        ("num_leaves = 3", "lambdamart has no parameter 'num_leaves': use n_leaves"),
        ("n_leafs = 3", "did you mean 'n_leaves'"),
        ('model = "lambda-mart"', "did you mean 'lambdamart'"),
        ("reading = 3", "[reading] must be a table"),
        ("[reading]\nlabels = 3", "labels must be a list"),
        ("categorical = 3", "categorical must be a list of features"),
        ("objective = 3", "objective must be"),
        ("metrics = 2020-01-01", "metrics must be a list"),
        ("n_threads = 2.0", "n_threads must be a whole number"),
        ('verbose = "x"', "verbose must be a whole number"),
        ('step = "newtn"', "did you mean 'newton'"),
    ],
    ids=lambda text: text[:30],
)
def test_invalid_configs(run, tmp_path, config, words):
    path = tmp_path / "c.toml"
    path.write_text(config if "data" in config or "[reading]" in config else f'data = ["a.txt"]\n{config}')
    model = [] if "model" in config else ["lambdamart"]
    files = ["a.txt"] if "[reading]" in config else []
    code, _, err = run("train", *model, *files, "--config", path, "-o", tmp_path / "r")
    assert code == 1, err
    assert err.startswith("podium: error: ")
    assert words in err


def test_options_of_other_tools_get_podiums_name(run):
    for option, flag in (("--num-leaves", "--n-leaves"), ("--eta", "--learning-rate"), ("--n-leafs", "--n-leaves")):
        code, _, err = run("train", "a.txt", option, "3")
        assert code == 2
        assert flag in err


def test_several_metrics_and_verbosity(run, tmp_path):
    command = ["train", "a.txt", "--valid", "a.txt", "--n-trees", 4, "--metrics", "ap", "--metric", "err"]
    code, out, err = run(*command, "--verbose", 2, "-o", tmp_path / "r")
    assert code == 0
    assert [line[:12] for line in err.splitlines()] == ["2 of 4 round", "4 of 4 round"]
    assert "valid/err" in out
    assert set(json.loads((tmp_path / "r" / "history.json").read_text())) == {"valid/ndcg@10", "valid/ap", "valid/err"}
    code, _, err = run("train", "--config", tmp_path / "r" / "config.toml", "--verbose", 0, "-o", tmp_path / "again")
    assert (code, err) == (0, "")
    models = [tmp_path / name / "model.podium" for name in ("r", "again")]
    assert models[0].read_bytes() == models[1].read_bytes()


def test_an_unexpected_error_is_also_one_line(run, monkeypatch, capsys):
    import podium.data

    def fails(*_, **__):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(podium.data, "read", fails)
    monkeypatch.setattr(sys, "argv", ["podium", "describe", "a.txt"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("podium: error: unexpected ZeroDivisionError: by zero; please report it")
    monkeypatch.setattr(sys, "argv", ["podium", "--debug", "describe", "a.txt"])
    with pytest.raises(SystemExit):
        main()
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("{podium} describe --format letor - <&-", 1, "standard input is closed"),
        ("{podium} describe a.txt >&-", 1, "standard output is closed"),
        ("{podium} describe a.txt 2>&- >/dev/null", 0, ""),
        ("{podium} score m.podium a.txt > /dev/full", 1, "No space left on device"),
        ("{podium} --help > /dev/full", 1, "No space left on device"),
        ("{podium} score m.podium a.txt | true", 0, ""),
        ("PYTHONIOENCODING=ascii {podium} train --help > /dev/null", 0, ""),
        ("LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {podium} combine --help > /dev/null", 0, ""),
        ("PYTHONIOENCODING=ascii:strict {podium} combine m.podium m.podium a.txt > /dev/null", 0, ""),
        ("ulimit -f 1; {podium} generate big.txt --queries 300", 1, "cannot be written"),
    ],
)  # fmt: skip
def test_streams_that_are_closed_or_full_or_lack_characters(folder, command, code, words):
    done = subprocess.run(
        ["bash", "-c", command.format(podium=PODIUM)], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert words in done.stderr
    assert not list(folder.glob(".big*"))
