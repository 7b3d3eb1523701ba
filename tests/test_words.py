"""Phrases that are almost always wrong in Podium's text do not occur in it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

COVERED = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    "docs/*.md", "docs/methods/*.md", "docs/papers/*.md", "docs/reference/*.md",
    "src/podium/**/*.py", "bench/*.py", "experiments/**/*.py", "tests/**/*.py",
)  # fmt: skip

PHRASES = {
    "is no + noun: write 'is not a'": r"(?<!there )\b(?:is|are|was|were) no (?!(?:longer|more|better|worse|faster)\b)",
    "stand: write 'is' or 'appears'": r"\b(?:stands?|stood|standing)\b",
    "beside: write 'next to' or 'as well as'": r"\bbeside\b",
    "so many: write the number": r"\bso many\b",
    "whoever: name the person": r"\bwhoever\b",
    "as … has it: write 'as in …'": r"\bas [^.,;:]{1,40} (?:has|have|had) (?:it|them)\b",
    "of its own: write 'its own …'": r"\bof (?:its|their|his|her|my|our|your) own"
    r"(?=\W*$|\s*[.,;:()|]| (?:is|are|was|and|or|for|in|on|that|which|to|by|with|from|where|if|as|at)\b)",
}

# (part of the path, the text where a phrase is right)
EXCEPTIONS = (
    ("README.md", "stands for your own documents"),
)  # fmt: skip

# The tables of parameters come from core/hyperparameters.py, which is covered as well.
GENERATED = re.compile(r"^\| parameter \| default \| what it is \|\n(?:\|.*\n)*", re.MULTILINE)


def pages():
    """Return the files that the test covers: all but this one, which quotes the phrases."""
    paths = {path for pattern in COVERED for path in ROOT.glob(pattern)}
    return sorted(paths - {Path(__file__)})


def findings(text, name):
    """Return the phrases of a text with their advice; a phrase may continue on the next line."""
    text = re.sub(r"\s+", " ", GENERATED.sub("", text))
    for part, allowed in EXCEPTIONS:
        if part in name:
            text = text.replace(allowed, "")
    return [
        f"{advice}: … {text[max(0, match.start() - 30) : match.end() + 30]} …"
        for advice, phrase in PHRASES.items()
        for match in re.finditer(phrase, text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_text_is_free_of_phrases_to_avoid(path):
    phrases = findings(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    assert not phrases, "\n".join(phrases)


@pytest.mark.parametrize(
    "text",
    [
        "it is no\nmodel", "labels stand in a file", "beside it", "after so many rounds", "whoever asks",
        "as scikit-learn has it", "a page of its own",
    ],
)  # fmt: skip
def test_each_phrase_is_found(text):
    assert len(findings(text, "page.md")) == 1


def test_words_around_the_phrases_are_free():
    right = "it is no longer used, is no better, there is no page, besides that, understands, files of its own format"
    assert not findings(right, "page.md")
    assert not findings(
        "| parameter | default | what it is |\n|---|---|---|\n| `a` | `1` | after so many rounds |\n", ""
    )
