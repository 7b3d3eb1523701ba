"""All examples run: those of README and docs in the order of the page, and those of docstrings."""

import doctest
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import tables
from podium.errors import MissingExtraError
from tests.commands import run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


CLUSTER_PAGES = ("dask.md", "ray.md", "spark.md")  # `tests/distributed` covers what they show


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.thorough] if page.name in CLUSTER_PAGES else []) for page in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    blocks = BLOCK.findall(page.read_text())
    if any("pyspark" in body for _, body in blocks) and not shutil.which("java") and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    if any("ray.init(" in body for _, body in blocks):  # a process starts Ray once, and other tests may have done so
        code = "\n".join(body for language, body in blocks if language == "python")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return
    for language, body in blocks:
        if language == "python":
            try:
                exec(compile(body, str(page), "exec"), names)
            except MissingExtraError as error:
                if error.extra != "mlflow":
                    raise
                pytest.skip(str(error))
            continue
        for line in body.splitlines():
            if line.startswith("$ podium"):
                done = run(*shlex.split(line[2:], comments=True)[1:])
                assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_pages_point_to_pages_that_exist():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_readme_has_python_and_console_examples():
    text = (ROOT / "README.md").read_text()
    assert {"python", "console"} <= {language for language, _ in BLOCK.findall(text)}
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("page", tables.PAGES)
def test_tables_of_results_are_up_to_date(page):
    text = (ROOT / page).read_text()
    assert tables.with_tables(text) == text, "run: python -m bench.tables"


# Modules whose docstrings have examples; each module is one test.
MODULES = sorted(
    ".".join(path.relative_to(root).with_suffix("").parts)
    for root, folder in ((ROOT / "src", "podium"), (ROOT, "tests/references"))
    for path in (root / folder).rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name.removesuffix(".__init__"))
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.attempted
    assert not result.failed


def public_names():
    """Yield the functions and classes of the reference, named by the module that users import them from."""
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    for package in ("podium", *re.findall(r"^```\{public-names\} (\S+)", pages, re.MULTILINE)):
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if callable(value) and not (isinstance(value, type) and issubclass(value, Exception)):
                yield f"{package}.{name}", value


def test_public_names_have_an_example():
    missing = {name for name, value in public_names() if ">>> " not in (value.__doc__ or "")}
    assert not missing, "public functions and classes have a runnable example in their docstring"
