"""Help ends with examples that run, and shells complete commands and options."""

import json
import os
import shlex
import subprocess

import pytest

from podium.cli.app import COMMANDS, load_command
from podium.cli.examples import EXAMPLES, examples_of_model
from podium.cli.train import command_for
from podium.estimators.parameters import MODELS
from tests.commands import PODIUM, run

ALL = [line for lines in EXAMPLES.values() for line in lines]
ALL += [line for name in MODELS for line in examples_of_model(name)]
# These take too long or never end. The pages of the documentation run them on smaller data.
LONG = ("tune", "adapt", "committee", "serve", "warmup", "report")


def test_every_command_has_examples():
    assert set(EXAMPLES) == set(COMMANDS)
    for name, lines in EXAMPLES.items():
        assert 1 <= len(lines) <= 2
        assert all(line.startswith(f"podium {name}") and len(line) < 80 for line in lines)


@pytest.mark.parametrize(("words", "lines"), [(["evaluate"], EXAMPLES["evaluate"]), (["train"], EXAMPLES["train"]),
                                              (["train", "mart"], examples_of_model("mart"))])  # fmt: skip
def test_help_ends_with_the_examples(words, lines):
    shown = [line.strip() for line in run(*words, "--help").stdout.splitlines() if line.strip()]
    assert shown[-len(lines) :] == list(lines)


@pytest.mark.parametrize("line", ALL)
def test_every_example_parses(line):
    name, *words = shlex.split(line)[1:]
    if name == "train":
        name, words = (words[0], words[1:]) if words[0] in MODELS else ("ranker", words)
        command = command_for(name)
    else:
        command = load_command(name)
        if hasattr(command, "commands"):  # a group, such as podium index
            command, words = command.commands[words[0]], words[1:]
    assert command.make_context(name, words).args == []  # all arguments are parsed


@pytest.mark.slow
def test_examples_run_one_after_the_other(tmp_path):
    colours = ("red", "blue", "green", "white", "black", "yellow")
    titles = [f"{colour} {thing}" for colour in colours for thing in ("shoes", "hat", "shoe laces")]
    rows = [json.dumps({"id": k, "title": title}) for k, title in enumerate(titles)]
    (tmp_path / "documents.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "queries.tsv").write_text("".join(f"{colour}\t{colour} shoes\n" for colour in colours))
    (tmp_path / "qrels.txt").write_text("".join(f"{colour} 0 {3 * k} 1\n" for k, colour in enumerate(colours)))
    for line in (line for lines in EXAMPLES.values() for line in lines):
        if not line.removeprefix("podium ").startswith(LONG):
            done = run(*shlex.split(line)[1:], cwd=tmp_path)
            assert done.returncode == 0, f"{line}\n{done.stderr}"


COMPLETED = [
    ("podium eval", "evaluate"), ("podium train lin", "linear"), ("podium evaluate --per", "--per-query"),
    ("podium train mart --n-l", "--n-leaves"), ("podium generate x --part v", "valid"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "completed"), COMPLETED)
def test_bash_completes(typed, completed):
    words = typed.split()
    variables = {"_PODIUM_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([PODIUM], capture_output=True, text=True, check=False, env={**os.environ, **variables})
    assert completed in done.stdout.split(), done.stderr


def test_help_takes_under_half_a_second():
    def seconds():
        before = sum(os.times()[2:4])  # of children; the machine may do other work meanwhile
        subprocess.run([PODIUM, "--help"], capture_output=True, check=True)
        return sum(os.times()[2:4]) - before

    assert min(seconds() for _ in range(3)) < 0.5
