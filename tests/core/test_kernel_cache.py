"""Cached kernels never come from other sources, settings or machines, and every safe cache is used."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podium.core import kernel_cache
from podium.errors import PodiumWarning
from podium.measures.ranking import rank_queries

SOURCE = kernel_cache.PACKAGE
RANK = (
    "import numpy as np; from podium.measures.ranking import rank_queries; "
    "ranked = np.empty(3, np.int64); "
    "rank_queries(np.array([1.0, 3.0, 2.0]), np.arange(3), np.array([0, 3]), ranked); print(ranked.tolist())"
)
EDIT = ("keys[slot - 1] > key", "keys[slot - 1] < key")  # in a helper of that kernel, in core/sorting.py


def python(code: str, packages: Path, **variables: str) -> str:
    """Run code with a copy of Podium and a separate cache; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment | variables
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def kernels_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.suffix in (".nbi", ".nbc")}


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_an_edit_of_a_helper_in_another_file_takes_effect(tmp_path, variable):
    shutil.copytree(SOURCE, tmp_path / "src" / "podium", ignore=shutil.ignore_patterns("__pycache__"))
    places = {variable: str(tmp_path / "cache")}
    assert python(RANK, tmp_path / "src", **places) == "[1, 2, 0]"
    compiled = kernels_in(tmp_path)
    assert compiled
    assert all(path.is_relative_to(tmp_path / "cache") for path in compiled)  # and none next to the sources
    assert python(RANK, tmp_path / "src", **places) == "[1, 2, 0]"
    assert kernels_in(tmp_path) == compiled
    edit(tmp_path / "src" / "podium" / "core" / "sorting.py", *EDIT)
    assert python(RANK, tmp_path / "src", **places) == "[0, 2, 1]"
    assert kernels_in(tmp_path) > compiled


@pytest.mark.slow
def test_an_upgrade_runs_the_new_code(tmp_path):
    """Two wheels that differ in a helper, installed one after the other into the same folder."""
    root = SOURCE.parents[1]
    tree, installed, printed = tmp_path / "tree", tmp_path / "installed", []
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (tree / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tree / name)
    shutil.copytree(SOURCE, tree / "src" / "podium", ignore=shutil.ignore_patterns("__pycache__"))
    for version in ("7.0", "7.1"):
        text = (tree / "src" / "podium" / "__init__.py").read_text()
        lines = [f'__version__ = "{version}"' if k.startswith("__version__ =") else k for k in text.splitlines()]
        (tree / "src" / "podium" / "__init__.py").write_text("\n".join(lines) + "\n")
        if version == "7.1":
            edit(tree / "src" / "podium" / "core" / "sorting.py", *EDIT)
        subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=tree, check=True)
        (wheel,) = (tree / "dist").glob(f"*{version}*.whl")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--no-index", "--upgrade", "--target", str(installed), str(wheel)], check=True)
        version_and_ranks = f"import podium; print(podium.__version__); {RANK}"
        printed.append(python(version_and_ranks, installed, NUMBA_CACHE_DIR=str(tmp_path / "cache")).split("\n"))
    assert printed == [["7.0", "[1, 2, 0]"], ["7.1", "[0, 2, 1]"]]


def test_plain_and_normal_kernels_have_different_folders(tmp_path):
    code = "from podium.core.compiling import cache_folder; print(cache_folder())"
    variants = ({}, {"PODIUM_PLAIN_KERNELS": "1"}, {"NUMBA_CPU_NAME": "generic"}, {"NUMBA_OPT": "0"})
    folders = {python(code, SOURCE.parent, NUMBA_CACHE_DIR=str(tmp_path), **variables) for variables in variants}
    assert len(folders) == len(variants)
    assert {Path(folder).parent for folder in folders} == {tmp_path}


def test_a_named_processor_has_the_same_folder_on_every_machine(monkeypatch):
    before = kernel_cache._digest(False)
    monkeypatch.setattr(kernel_cache, "_host", lambda: ["another", "+vectors"])
    assert kernel_cache._digest(False) != before
    monkeypatch.setattr("numba.core.config.CPU_NAME", "x86-64-v3")
    named = kernel_cache._digest(False)
    monkeypatch.setattr(kernel_cache, "_host", lambda: ["a third", ""])
    assert kernel_cache._digest(False) == named


def test_old_folders_are_removed_when_a_new_one_is_made(tmp_path):
    days = dict.fromkeys(("a", "b", "c", "d"), 2) | {"recent": 0.5, "more": 3, "forgotten": 40}
    for name, age in days.items():
        (tmp_path / f"kernels-{name}" / "sub").mkdir(parents=True)
        os.utime(tmp_path / f"kernels-{name}", (0, time.time() - age * kernel_cache.DAY))
    (tmp_path / "other").mkdir()
    assert kernel_cache._exists(tmp_path / "kernels-new")
    remaining = {path.name.removeprefix("kernels-") for path in tmp_path.iterdir()}
    assert {"new", "recent", "other"} < remaining
    assert not {"more", "forgotten"} & remaining
    assert len(remaining) == 2 + 1 + 3


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Use a separate temporary directory, and forget earlier folders."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    kernel_cache.cache_folder.cache_clear()
    yield tmp_path / "temporary"
    kernel_cache.cache_folder.cache_clear()


def test_files_of_a_read_only_folder_are_linked(temporary, monkeypatch):
    folder = kernel_cache.cache_folder(False)
    assert folder.parent == temporary.parent / "cache"
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "trees_1").mkdir()
    (folder / "trees_1" / "a.nbi").write_text("index")
    kernel_cache.cache_folder.cache_clear()
    monkeypatch.setattr(kernel_cache, "_is_writable", lambda path: not path.is_relative_to(folder))
    links = kernel_cache.cache_folder(False)
    assert links.is_relative_to(temporary)
    assert (links / "trees_1" / "a.nbi").read_text() == "index"
    kernel_cache.cache_folder.cache_clear()
    (folder / "trees_1" / "b.nbi").write_text("another")
    assert (kernel_cache.cache_folder(False) / "trees_1" / "b.nbi").read_text() == "another"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
@pytest.mark.parametrize("which", ["folder", "file", "link"])
def test_a_folder_that_others_can_write_to_is_not_used(temporary, which):
    folder = kernel_cache.cache_folder(False)
    (folder / "trees_1").mkdir()
    (folder / "trees_1" / "a.nbi").write_text("index")
    folder.chmod(0o755)
    kernel_cache.cache_folder.cache_clear()
    assert kernel_cache.cache_folder(False) == folder
    if which == "link":
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to(folder.with_name("elsewhere"))
    else:
        (folder if which == "folder" else folder / "trees_1" / "a.nbi").chmod(0o777)
    kernel_cache.cache_folder.cache_clear()
    with pytest.warns(PodiumWarning, match="other users can write"):
        folder = kernel_cache.cache_folder(False)
    assert folder.is_relative_to(temporary)
    assert not kernels_in(folder)


def test_podium_warns_if_no_folder_is_writable(temporary, monkeypatch):
    temporary.rmdir()
    monkeypatch.setattr(kernel_cache, "_exists", lambda folder: False)
    with pytest.warns(PodiumWarning, match="set NUMBA_CACHE_DIR"):
        assert kernel_cache.cache_folder(False) is None


def test_a_disabled_compiler_is_an_error_with_a_remedy(tmp_path):
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    completed = subprocess.run(
        [sys.executable, "-c", RANK], capture_output=True, text=True, check=False, env=environment
    )
    assert completed.returncode == 1
    assert "PodiumError: Podium needs Numba's compiler, but NUMBA_DISABLE_JIT is set: unset it" in completed.stderr


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80\x04garbage"], ids=["empty", "garbage"])
def test_damaged_kernels_are_compiled_again(tmp_path, suffix, content):
    places = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONWARNINGS": "error"}
    assert python(RANK, SOURCE.parent, **places) == "[1, 2, 0]"
    compiled = kernels_in(tmp_path)
    damaged = [path for path in compiled if path.suffix == suffix]
    for path in damaged:
        path.write_bytes(content)
    warned = "import warnings; warnings.simplefilter('always'); warnings.showwarning = lambda w, *_: print(w); "
    lines = python(warned + RANK, SOURCE.parent, **places).splitlines()
    assert len(lines) == 2
    assert "are damaged" in lines[0]
    assert lines[1] == "[1, 2, 0]"
    assert all(path.read_bytes() != content for path in damaged)
    assert python(RANK, SOURCE.parent, **places) == "[1, 2, 0]"
    assert kernels_in(tmp_path) == compiled


def test_a_kernel_that_cannot_be_stored_still_runs(tmp_path):
    refused = (
        "import warnings; warnings.simplefilter('always'); warnings.showwarning = lambda w, *_: print(w)\n"
        "from numba.core import caching\n"
        "def full(*_): raise OSError(28, 'No space left on device')\n"
        "caching.IndexDataCacheFile.save = full\n"
    )
    lines = python(refused + RANK, SOURCE.parent, NUMBA_CACHE_DIR=str(tmp_path)).splitlines()
    assert "cannot be stored" in lines[0]
    assert "No space left" in lines[0]
    assert lines[-1] == "[1, 2, 0]"


def test_errors_of_a_kernel_are_not_mistaken_for_errors_of_the_cache(tmp_path):
    with pytest.raises(TypeError) as raised:
        rank_queries("text")
    assert not kernel_cache.repair(raised.value, tmp_path)
