"""`podium index` and `podium search`."""

import json

import pytest

from podium.features import Index
from tests.commands import run

ROWS = [{"id": "a", "title": "Red shoes", "votes": 3}, {"id": "b", "title": "A red\x1b[31m hat", "votes": 1}]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "one.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "two.csv").write_text("id,title,votes\nc,Blue shoes,7\n")
    return tmp_path


def done(*words, cwd):
    result = run(*map(str, words), cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_an_index_from_the_command_line(files):
    build = ("index", "build", "one.jsonl", "docs", "--field", "title")
    assert "docs: 2 documents" in done(*build, cwd=files)
    assert "is already an index" in run(*build, cwd=files).stderr
    assert "3 in all" in done("index", "add", "docs", "two.csv", cwd=files)
    assert Index.load(files / "docs").attributes["votes"].tolist() == [3, 1, 7]
    shown = done("search", "docs", "red shoe", "-k", "2", cwd=files).splitlines()
    assert [line.split()[2] for line in shown] == ["a", "c"]
    assert "\x1b" not in done("search", "docs", "hat", cwd=files)
    hits = json.loads(done("search", "docs", "hat", "--by", "bm25(title, b=0)", "--json", cwd=files))
    assert hits[0]["id"] == "b"
    (files / "ids.txt").write_text("a\n")
    assert "2 documents removed, 1 left" in done("index", "remove", "docs", "c", "--from", "ids.txt", cwd=files)
    assert "1 documents" in done("index", "describe", "docs", cwd=files)
    facts = json.loads(done("index", "describe", "docs", "--json", cwd=files))
    assert facts["fields"]["title"]["analyzer"] == "english"
    assert facts["documents"] == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["search", "nothing", "x"], "is not an index"),
        (["index", "build", "one.jsonl", "docs", "--field", "titel"], "did you mean 'title'"),
        (["index", "build", "one.jsonl", "docs", "--field", "title=englisch"], "did you mean 'english'"),
        (["index", "build", "absent.jsonl", "docs", "--field", "title"], "cannot be opened"),
        (["index", "build", "absent.docx", "docs", "--field", "title"], "unknown suffix"),
    ],
)
def test_mistakes(files, words, problem):
    result = run(*words, cwd=files)
    assert result.returncode == 1
    assert problem in result.stderr
    assert not (files / "docs").exists()
