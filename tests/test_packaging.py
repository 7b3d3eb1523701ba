"""Wheel and sdist contain the whole package. `make release-check` also installs them."""

import importlib.util
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import podium

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "podium"
needs_hatchling = pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling builds wheels")


def build(source, folder, *targets):
    """Build targets from a source tree without a network; return the files by suffix."""
    options = [word for target in targets for word in ("--target", target)]
    command = [sys.executable, "-m", "hatchling", "build", "--directory", folder, *options]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.suffix: path for path in folder.iterdir()}


def package_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("podium/")}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("dist"), "wheel", "sdist")


@needs_hatchling
def test_the_wheel_contains_the_whole_package(built, tmp_path):
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert package_files(built[".whl"]) == {str(path.relative_to(PACKAGE.parent)) for path in files}
    assert {path.suffix for path in files} >= {".py", ".html", ".css", ".js", ".typed"}
    with zipfile.ZipFile(built[".whl"]) as archive:  # no benchmarks, no experiments
        assert {name.split("/")[0].split("-")[0] for name in archive.namelist()} == {"podium"}

    with zipfile.ZipFile(built[".whl"]) as archive:
        archive.extractall(tmp_path)
    code = "import podium, podium.core.pages as pages; print(podium.__file__); assert pages.base_style()"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.startswith(str(tmp_path)), done.stderr


@needs_hatchling
def test_a_wheel_built_from_the_sdist_is_the_same(built, tmp_path):
    with tarfile.open(built[".gz"]) as archive:
        archive.extractall(tmp_path, filter="data")
    tree = tmp_path / f"podium-{podium.__version__}"
    assert {"tests", "docs", "bench", "experiments", "deploy", "Makefile", "LICENSE"} <= {
        path.name for path in tree.iterdir()
    }
    again = build(tree, tmp_path / "dist", "wheel")
    assert again[".whl"].read_bytes() == built[".whl"].read_bytes()
