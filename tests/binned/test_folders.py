"""Folders of bins: complete or absent, damage is detected, wrong use is rejected."""

import errno
import io
import json
import mmap
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import podium
from podium import DataError, FileFormatError
from podium.binned import binning_files, is_binned
from podium.binned.collecting import RowFiles, reorder_rows
from podium.binned.folder import MANIFEST, write_manifest
from podium.cli.app import app
from podium.core.files import replacing_folder
from podium.trees import Bins, bin_features, find_bins
from tests.binned.conftest import SMALL


@pytest.fixture(scope="module")
def bins(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bins")
    podium.bin_files(files / "train.txt", folder / "train", keep_values=True)
    return folder / "train"


@pytest.fixture
def copy(bins, tmp_path):
    (tmp_path / "copy").mkdir()
    for path in bins.iterdir():
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    return tmp_path / "copy"


@given(n=st.integers(1, 200), n_columns=st.integers(1, 5), seed=st.integers(0, 99), room=st.integers(1, 2000))
def test_rows_move_to_their_places(tmp_path_factory, n, n_columns, seed, room):
    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("rows") / "rows"
    rows, places = rng.normal(size=(n, n_columns)).astype(np.float32), rng.permutation(n)
    rows.tofile(path)
    reorder_rows(path, n_columns, places, room)
    expected = np.empty_like(rows)
    expected[places] = rows
    assert np.array_equal(np.fromfile(path, np.float32).reshape(n, n_columns), expected)
    assert [file.name for file in path.parent.iterdir()] == ["rows"]


def test_many_features_make_files_wider_rather_than_more_numerous(tmp_path):
    assert [RowFiles(tmp_path, "a", n).width for n in (1, 16, 136, 2048, 2049, 10_000)] == [16, 16, 16, 16, 32, 80]


def test_bins_of_some_features_join_again():
    x = np.random.default_rng(0).integers(0, 9, (50, 7)).astype(np.float32)
    bins = find_bins(x, 5, [1, 4, 5])
    parts = [bins.of_features(first, min(first + 3, 7)) for first in (0, 3, 6)]
    assert Bins.joined(parts).equal(bins)
    assert not parts[0].equal(parts[1])
    assert not bins.equal(find_bins(x, 4, [1, 4, 5]))
    for first, part in zip((0, 3, 6), parts, strict=True):
        binned = bin_features(x[:, first : first + 3], part)
        assert np.array_equal(binned.columns, bin_features(x, bins).columns[first * 50 :][: binned.columns.size])


def test_a_value_represents_each_bin():
    x = np.random.default_rng(0).integers(-4, 9, (80, 3)).astype(np.float32)
    x[::7, 1] = np.nan
    binned = bin_features(x, find_bins(x, 5, [2]))
    again = bin_features(binned.representatives(0, 80), binned.bins)
    assert np.array_equal(again.columns, binned.columns)


def test_bins_are_mapped_not_copied(bins):
    """Arrays of the size of the data are parts of files, in a form that kernels accept."""
    data = podium.open_binned(bins)
    for array in (data.binned.columns, *(getattr(data.binned.matrix, name) for name in ("rows", "entries", "starts"))):
        assert array.flags.writeable
        owner = array
        while not isinstance(owner, mmap.mmap):
            owner = owner.array if hasattr(owner, "array") else owner.base
        assert owner


def test_damage_is_found_in_every_file(copy):
    for path in sorted(copy.iterdir()):
        content = path.read_bytes()
        for changed in (content[:-1], content[: len(content) // 2] + b"\x07" + content[len(content) // 2 + 1 :]):
            assert changed != content
            path.write_bytes(changed)
            with pytest.raises(FileFormatError, match=f"{path.name}.*damaged"):
                podium.open_binned(copy)
        path.unlink()
        with pytest.raises(FileFormatError, match=path.name):
            podium.open_binned(copy, verify=False)
        path.write_bytes(content)
    assert podium.open_binned(copy).n_queries == 40


KILLED = """
import os, signal, sys
from podium.binned import binning_files
import podium
steps = []
def step(self, name, timed=binning_files._Binning._timed):
    if name == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
    return timed(self, name)
binning_files._Binning._timed = step
podium.bin_files(sys.argv[2], "bins", keep_values=True, overwrite=True)
"""


@pytest.mark.parametrize("step", ["binning", "checksums"])
def test_what_a_killed_run_leaves_is_removed_by_the_next(files, tmp_path, step):
    (tmp_path / ".bins.original").mkdir()  # not Podium's
    command = [sys.executable, "-c", KILLED, step, str(files / "train.txt")]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == -signal.SIGKILL
    (leftover,) = [path for path in tmp_path.iterdir() if path.name != ".bins.original"]
    assert leftover.name.startswith(".bins.")
    with replacing_folder(tmp_path / "bins", overwrite=False) as unfinished:
        assert not leftover.exists()
        podium.bin_files(files / "train.txt", tmp_path / "bins")  # does not remove the folder of a concurrent run
        assert unfinished.exists()
        shutil.rmtree(tmp_path / "bins")
        (unfinished / "file").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".bins.original", "bins"]
    assert [path.name for path in (tmp_path / "bins").iterdir()] == ["file"]


CRAFTED = """
import json, shutil, sys, warnings
from pathlib import Path
import numpy as np
import podium
from podium.binned.folder import MANIFEST, write_manifest
warnings.simplefilter("ignore")
source, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)
ODD = [-1, 0, 1, 2, 255, 256, 2**31 - 1, 2**31, 2**62, -(2**62)]

def other(array):
    kind, array = rng.integers(7), array.copy()
    if kind <= 2 and array.size and array.dtype.kind in "iuf":
        for _ in range(1 + rng.integers(3)):
            with np.errstate(all="ignore"):
                value = np.array([ODD[rng.integers(len(ODD))]]).astype(array.dtype)[0]
            array.reshape(-1)[rng.integers(array.size)] = value
    elif kind == 3 and array.size:
        array = array[: rng.integers(array.size)]
    elif kind == 4:
        array = np.concatenate([array, array])
    elif kind == 5:
        array = array.astype([np.int32, np.float64, ">i8", np.uint8, bool][rng.integers(5)])
    elif array.size:
        rng.shuffle(array.reshape(-1))
    return array

def change(folder, manifest):
    paths = sorted(folder.iterdir())
    path = paths[rng.integers(len(paths))]
    if path.suffix == ".npy":
        np.save(path, other(np.load(path)))
    elif path.suffix == ".npz":
        arrays = dict(np.load(path))
        for name in rng.choice(list(arrays), 1 + rng.integers(2)):
            arrays[name] = other(arrays[name])
        (np.savez if rng.integers(8) else np.savez_compressed)(path, **arrays)
    elif path.suffix == ".json":
        path.write_text(["[]", "[1]", '["a"]', "{}", "null", "[1.5]", "[1e999]"][rng.integers(7)])
    elif path.name == "values":
        path.write_bytes(path.read_bytes()[: 4 * rng.integers(99)])
    else:
        name = list(manifest)[rng.integers(len(manifest))]
        manifest[name] = [0, -1, 1, 2**40, None, [], {}, "x", [1], ["a"], 2.5][rng.integers(11)]

for k in range(count):
    folder = Path(f"crafted{seed}-{k}")
    shutil.copytree(source, folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).rename(folder / "manifest")  # one of the files that may be changed
    manifest = {name: value for name, value in manifest.items() if name not in ("files", "sha256")}
    change(folder, manifest)
    (folder / "manifest").unlink()
    write_manifest(folder, manifest)
    print(k, end=" ", flush=True)
    try:
        data = podium.open_binned(folder)
        podium.LambdaMART(n_trees=2, n_leaves=4, max_bins=data.max_bins).fit(data)
        data.summary()
        print("read")
    except podium.PodiumError as error:
        print("refused", str(error)[-120:].replace(chr(10), " "))
    shutil.rmtree(folder)
"""


def crafted(folder, tmp_path, seed, count):
    """Change folders at random, with right checksums, open them and train; return the outcome for each."""
    command = [sys.executable, "-c", CRAFTED, str(folder), str(seed), str(count)]
    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not completed.returncode, (completed.returncode, completed.stdout[-300:], completed.stderr[-2000:])
    return [line.split()[1] for line in completed.stdout.splitlines()]


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.thorough])])
def test_crafted_folders_are_read_or_refused(bins, tmp_path, count):
    outcomes = crafted(bins, tmp_path, seed=count, count=count)
    assert len(outcomes) == count
    assert outcomes.count("refused") > count // 2


def test_other_folders_and_versions_are_refused(copy, tmp_path):
    with pytest.raises(FileFormatError, match="is not a folder of binned data"):
        podium.open_binned(tmp_path)
    manifest = json.loads((copy / MANIFEST).read_text())
    (copy / MANIFEST).unlink()
    assert not is_binned(copy)
    write_manifest(copy, {k: v for k, v in manifest.items() if k not in ("files", "sha256")} | {"format": 99})
    with pytest.raises(FileFormatError, match="version 99"):
        podium.open_binned(copy)


def test_mistakes_leave_nothing_behind(files, tmp_path, monkeypatch):
    monkeypatch.setattr(binning_files, "ROWS", 37)

    def refused(match, source, name="new", kind=DataError, **options):
        with pytest.raises(kind, match=match):
            podium.bin_files(source, tmp_path / name, **options)
        assert [path.name for path in tmp_path.iterdir() if path.suffix != ".txt"] == []

    (tmp_path / "bad.txt").write_text("1 qid:1 1:2\n0 qid:1 1:x\n")
    (tmp_path / "infinite.txt").write_text("1 qid:1 1:2\n0 qid:1 1:inf\n")
    (tmp_path / "none.txt").write_text("")
    (tmp_path / "empty.txt").write_text("1 qid:1\n0 qid:1\n")
    refused(r"bad.txt, line 2, column 11", tmp_path / "bad.txt", kind=FileFormatError)
    refused(r"infinite.txt.*feature 0, which is infinite in row 1", tmp_path / "infinite.txt", normalize="sum")
    refused("no documents", tmp_path / "none.txt")
    refused("no features", tmp_path / "empty.txt")
    refused("absent.txt", tmp_path / "absent.txt")
    refused("cannot be read twice", io.BytesIO(b"1 qid:1 1:2\n"), format="letor")
    refused("omit sparse", files / "train.txt", sparse=True)
    refused("max_bins", files / "train.txt", max_bins=256)
    refused("feature 20 does not exist", files / "train.txt", categorical=[20])
    refused("no feature named 'x'", files / "train.txt", categorical=["x"])
    refused("like must be", files / "train.txt", like=podium.artificial(2))
    refused("normalize must be", files / "train.txt", normalize="nonsense")
    refused("odd.txt: query_weights .* differ in 'q0'", _with_odd_weight(files, tmp_path), kind=DataError, format="csv")

    def fail(*_, **__):
        raise KeyboardInterrupt

    def be_full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr("os.posix_fallocate", be_full)
        refused("new.*cannot be written: No space left", files / "train.txt", kind=FileFormatError)
    monkeypatch.setattr(binning_files, "bin_features", fail)
    refused(None, files / "train.txt", kind=KeyboardInterrupt)


def _with_odd_weight(files, folder):
    import pandas as pd

    table = pd.read_csv(files / "train.csv")[["qid", "label", "x", "query_weight"]]
    table = pd.concat([table, table[:1].assign(query_weight=7)])  # in another block
    table.to_csv(folder / "odd.txt", index=False)
    return folder / "odd.txt"


def test_a_folder_is_replaced_only_with_overwrite(files, copy, tmp_path):
    with pytest.raises(FileFormatError, match="already exists"):
        podium.bin_files(files / "train.txt", copy)
    (tmp_path / "other").mkdir()
    with pytest.raises(FileFormatError, match="not overwritten"):
        podium.bin_files(files / "train.txt", tmp_path / "other", overwrite=True)
    assert podium.bin_files(files / "valid.txt", copy, overwrite=True).labels
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "other"]


def test_what_bins_cannot_do_is_refused(files, tmp_path):
    binned = podium.bin_files(files / "train.txt", tmp_path / "bins", max_bins=16)
    other = podium.bin_files(files / "valid.txt", tmp_path / "other")
    data = podium.read(files / "train.txt")
    model = podium.LambdaMART(**SMALL).fit(data)
    for action in (
        lambda: podium.LinearRanker().fit(binned), lambda: model.predict(binned), lambda: binned.features,
        lambda: podium.LambdaMART(**SMALL, max_bins=16, submodel=model).fit(binned),
        lambda: podium.LambdaMART(**SMALL, max_bins=16).fit(binned, valid=other),
        lambda: podium.LambdaMART(**SMALL).fit(data, valid=binned),
    ):  # fmt: skip
        with pytest.raises(DataError, match="contains only bins, but this needs the values"):
            action()
    with pytest.raises(DataError, match="max_bins=16, but got 255"):
        podium.LambdaMART(**SMALL).fit(binned)
    with pytest.raises(DataError, match="feature 2 was binned as a number"):
        podium.LambdaMART(**SMALL, max_bins=16, categorical=[2]).fit(binned)
    with pytest.raises(DataError, match="qid of binned data cannot be changed"):
        binned.replace(qid=np.arange(len(binned)))
    with pytest.raises(DataError, match="max_bins is 32, but the data passed as like has 16"):
        podium.bin_files(files / "valid.txt", tmp_path / "more", like=binned, max_bins=32)


def test_constant_features_are_detected_from_bins(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{k % 2} qid:{k // 4} 1:3 2:1\n" for k in range(40)))
    binned = podium.bin_files(tmp_path / "a.txt", tmp_path / "bins")
    with pytest.warns(podium.PodiumWarning) as warned:
        podium.LambdaMART(2).fit(binned)
    with pytest.warns(podium.PodiumWarning) as in_memory:
        podium.LambdaMART(2).fit(podium.read(tmp_path / "a.txt"))
    assert [str(warning.message) for warning in warned] == [str(warning.message) for warning in in_memory]


@pytest.mark.filterwarnings("ignore::podium.PodiumWarning")  # of queries that come back
def test_commands_accept_binned_folders(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def podium_(*words, fails=False):
        result = CliRunner().invoke(app, list(map(str, words)))
        assert (result.exit_code != 0) == fails, result.output + repr(result.exception)
        return result.output if not fails else str(result.exception)

    named = ("--categorical", "brand", "--qid", "qid")
    shown = podium_("bin", files / "mixed-train.csv", files / "train.csv", "bins", *named)
    assert "documents in 40 queries, 4 features" in shown
    assert "grouping" in shown
    podium_("bin", files / "valid.csv", "valid", "--like", "bins", *named)
    described = podium_("describe", "bins")
    in_memory = podium_("describe", files / "mixed-train.csv", files / "train.csv", "--categorical", "brand")
    assert described == in_memory.replace("\n\n", "\n")
    podium_("train", "bins", "--valid", "valid", "--n-trees", 3, "-o", "run")
    podium_(
        "train", files / "mixed-train.csv", files / "train.csv", "--valid", files / "valid.csv", "--n-trees", 3,
        *named, "-o", "plain",
    )  # fmt: skip
    models = [podium.load(f"{folder}/model.podium") for folder in ("run", "plain")]
    assert models[0].digest() == models[1].digest()
    assert models[0].model_.reading == models[1].model_.reading
    assert "bins was not binned with --normalize sum" in podium_("describe", "bins", "--normalize", "sum", fails=True)
    assert "must be the only input" in podium_("describe", "bins", "valid", fails=True)
    assert "already exists" in podium_("bin", files / "train.txt", "bins", fails=True)
