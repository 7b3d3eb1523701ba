"""Every example in README and docs runs, in the order of the page."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for language, body in BLOCK.findall(page.read_text()):
        if language == "python":
            exec(compile(body, str(page), "exec"), names)
            continue
        for line in body.splitlines():
            if line.startswith("$ podium"):
                command = shlex.split(line[2:], comments=True)
                command[0] = str(Path(sys.executable).parent / "podium")
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_pages_point_to_pages_that_exist():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_readme_shows_both_ways_and_both_commands():
    text = (ROOT / "README.md").read_text()
    assert {"python", "console"} <= {language for language, _ in BLOCK.findall(text)}
    assert "make demo" in text
    assert "make test" in text
