"""`podium score` reads in blocks, and writes the same scores as for the whole file."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import podium
from podium import DataError, FileFormatError, RankingData
from podium.cli.app import load_command
from podium.core import progress
from podium.data.io import reading
from podium.evaluation import write_run
from podium.neural import ListTransformer

ROWS = (1, 7, 1 << 15)
SMALL = {"n_trees": 5, "n_leaves": 6, "min_documents_in_leaf": 2, "n_threads": 1}
rng = np.random.default_rng(0)


def text(n_features=6, left_out=0.3, n_queries=12):
    lines = []
    for query in range(n_queries):
        for _ in range(rng.integers(1, 9)):
            x = rng.normal(size=n_features) * 10.0 ** (query % 4)
            pairs = " ".join(f"{k}:{value:.5g}" for k, value in enumerate(x, 1) if rng.random() >= left_out)
            lines.append(f"{int(x[0] > 0) + int(x[1] > 0)} qid:{query} {pairs} # docid = d{len(lines)}\n")
    return "".join(lines)


def table(brands, n_queries=12):
    qid = np.repeat(np.arange(n_queries), rng.integers(1, 9, n_queries))
    frame = pd.DataFrame({"qid": qid, "x": rng.normal(size=len(qid)), "brand": rng.choice(brands, len(qid))})
    frame["time"] = 1.7e9 + rng.random(len(qid)) * 1e3
    frame["crowded"] = 1000 + rng.normal(size=len(qid)) * 1e-5
    frame["label"] = (frame["x"] + frame["time"] % 7 / 7 + (frame["brand"] == "a") > 0.5).astype(int)
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data in every format, and models that need it to be read in different ways."""
    folder = tmp_path_factory.mktemp("score")
    for name, content in {"a": text(), "narrow": text(4), "wide": text(9), "dense": text(4, 0.0)}.items():
        (folder / f"{name}.txt").write_text(content)
    lines = (folder / "a.txt").read_text().splitlines(keepends=True)
    (folder / "apart.txt").write_text("".join(lines[k] for k in rng.permutation(len(lines))))
    for suffix, module in {"gz": gzip, "bz2": bz2, "xz": lzma}.items():
        (folder / f"a.txt.{suffix}").write_bytes(module.compress((folder / "a.txt").read_bytes()))
    for name, brands in {"f": ["a", "b", "c"], "g": ["c", "d", "e"]}.items():
        frame = table(brands)
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_csv(folder / f"{name}.tsv", index=False, sep="\t")
        frame["brand"] = frame["brand"].astype("category")
        frame.to_parquet(folder / f"{name}.parquet", index=False, row_group_size=17)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, ranker in models(folder).items():
            ranker.save(folder / f"{name}.podium")
    return folder


def models(folder):
    read, trees = podium.read, podium.LambdaMART(**SMALL)
    data, frame = read(folder / "a.txt"), read(folder / "f.parquet")
    missing = read(folder / "a.txt", absent="missing", normalize="minmax")
    fitted = {
        "trees": trees.fit(data).model_,
        "unnamed": trees.fit(RankingData(data.features, data.relevance, qid=data.qid)).model_,
        "scaled": trees.fit(read(folder / "a.txt", normalize="zscore")).model_,
        "missing": trees.fit(missing).model_,
        "classes": podium.McRank(n_trees=2, n_threads=1).fit(data).model_,
        "linear": podium.LinearRanker(n_iterations=3).fit(data).model_,
        "net": podium.RankNet(epochs=1, n_threads=1).fit(data).model_,
        "lists": podium.LambdaRank(net=lambda n: ListTransformer(n, 8), epochs=1, n_threads=1).fit(data).model_,
        "csv": trees.fit(read(folder / "f.csv", categorical=["brand"])).model_,
        "csv-scaled": trees.fit(read(folder / "f.csv", categorical=["brand"], normalize="zscore")).model_,
        "parquet": trees.fit(frame).model_,
        "parquet-scaled": trees.fit(frame.normalized("zscore")).model_,
    }
    return fitted | {"both": podium.models.Combined((fitted["csv"], fitted["parquet"]), (0.5, 2.0))}


def score(*arguments):
    load_command("score").main([*map(str, arguments)], standalone_mode=False)


def expected(model, files, **options):
    """Return the text of the scores of the whole file."""
    scores = podium.models.load_model(model).predict(podium.read(files, **options))
    return "".join(f"{value!r}\n" for value in scores.tolist())


LETOR = ("a.txt", "narrow.txt", "wide.txt", "apart.txt")
TABLES = ("g.csv", "g.parquet")
OPTIONS = {"scaled": {"normalize": "zscore"}, "missing": {"normalize": "minmax", "absent": "missing"},
           "csv-scaled": {"normalize": "zscore"}, "parquet-scaled": {"normalize": "zscore"}}  # fmt: skip
CASES = [
    *[(model, name) for model in ("trees", "scaled", "missing") for name in LETOR],
    ("unnamed", "a.txt.gz"), ("trees", "a.txt.bz2"), ("scaled", "a.txt.xz"), ("csv", "f.tsv"), ("parquet", "f.parquet"),
    *[(model, "a.txt") for model in ("classes", "linear", "net", "lists")], ("lists", "apart.txt"),
    *[(model, name) for model in ("csv", "csv-scaled", "parquet", "parquet-scaled", "both") for name in TABLES],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "name"), CASES)
def test_scores_are_those_of_the_whole_file(model, name, folder, tmp_path, monkeypatch, capsys):
    options = dict(OPTIONS.get(model, {}))
    if name.endswith(("csv", "tsv")):
        options["categorical"] = ["brand"]
    flags = [part for key, value in options.items() if key == "categorical" for part in ("--categorical", value[0])]
    whole = expected(folder / f"{model}.podium", folder / name, **options)
    for rows in ROWS:
        if model in ("net", "lists") and rows < len(whole):
            continue  # torch rounds small batches differently
        monkeypatch.setattr(reading, "ROWS", rows)
        score(folder / f"{model}.podium", folder / name, *flags)
        assert capsys.readouterr().out == whole
    score(folder / f"{model}.podium", folder / name, *flags, "-o", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == whole


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["net", "lists"])
def test_nets_differ_in_the_last_digit_at_most(model, folder, monkeypatch, capsys):
    whole = np.array(expected(folder / f"{model}.podium", folder / "a.txt").split(), float)
    for rows in (1, 7):
        monkeypatch.setattr(reading, "ROWS", rows)
        score(folder / f"{model}.podium", folder / "a.txt")
        np.testing.assert_allclose(np.array(capsys.readouterr().out.split(), float), whole, rtol=0, atol=3e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("model", ["trees", "scaled", "missing"])
def test_standard_input_several_files_and_runs(model, rows, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reading, "ROWS", rows)
    file, options = folder / f"{model}.podium", OPTIONS.get(model, {})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "a.txt.gz").read_bytes())))
    score(file, "-", "--format", "letor")
    assert capsys.readouterr().out == expected(file, folder / "a.txt", **options)
    files = [folder / "a.txt", folder / "wide.txt"]
    score(file, *files)
    assert capsys.readouterr().out == expected(file, files, **options)
    plain = tmp_path / "plain.txt"  # without document ids: rows name the documents
    plain.write_text("".join(line.partition("#")[0] + "\n" for line in (folder / "a.txt").read_text().splitlines()))
    for source in (folder / "a.txt", plain, folder / "apart.txt"):
        data = podium.read(source, **options)
        write_run(data, podium.models.load_model(file).predict(data), tmp_path / "expected", "mine")
        score(file, source, "--trec", "mine", "-o", tmp_path / "run")
        assert (tmp_path / "run").read_bytes() == (tmp_path / "expected").read_bytes()


def test_only_the_first_trees_score(folder, monkeypatch, capsys):
    monkeypatch.setattr(reading, "ROWS", 7)
    score(folder / "trees.podium", folder / "a.txt", "--n-trees", 2)
    scores = podium.models.load_model(folder / "trees.podium").predict(podium.read(folder / "a.txt"), n_trees=2)
    assert np.array_equal(np.array(capsys.readouterr().out.split(), float), scores)


@pytest.mark.parametrize("old", [None, "earlier scores\n"])
def test_an_error_in_a_later_block_leaves_nothing_behind(old, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reading, "ROWS", 4)
    lines = (folder / "a.txt").read_text().splitlines(keepends=True)
    (tmp_path / "bad.txt").write_text("".join(lines[:10]) + "1 qid:5 1:x\n" + "".join(lines[10:]))
    (tmp_path / "out").mkdir()
    output = tmp_path / "out" / "scores.txt"
    if old:
        output.write_text(old)
    with pytest.raises(FileFormatError, match=r"bad\.txt, line 11, column 11: expected a number, but found 'x'"):
        score(folder / "trees.podium", tmp_path / "bad.txt", "-o", output)
    assert [path.name for path in (tmp_path / "out").iterdir()] == (["scores.txt"] if old else [])
    assert not old or output.read_text() == old
    with pytest.raises(FileFormatError, match="line 11"):
        score(folder / "trees.podium", tmp_path / "bad.txt")
    assert len(capsys.readouterr().out.splitlines()) == 8  # two blocks came before
    with pytest.raises(DataError, match="the data lacks the feature '5' of the model"):
        score(folder / "trees.podium", folder / "dense.txt", "-o", output)
    assert not old or output.read_text() == old


def test_warnings_about_the_whole_file_are_issued_once(folder, monkeypatch):
    monkeypatch.setattr(reading, "ROWS", 7)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score(folder / "trees.podium", folder / "narrow.txt")
        score(folder / "parquet.podium", folder / "g.parquet")  # only some blocks have known categories
    assert ["the data has 4 of the model's 6 features" in str(warning.message) for warning in caught] == [True]


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self):
        return True


def test_a_progress_bar_appears_after_some_time(folder, monkeypatch, capsys):
    for patience, shows in ((3600.0, False), (0.0, True)):
        monkeypatch.setattr(progress, "PATIENCE", patience)
        monkeypatch.setattr(sys, "stderr", Terminal())
        score(folder / "trees.podium", folder / "a.txt")
        assert ("reading" in sys.stderr.getvalue()) == shows
        assert capsys.readouterr().out == expected(folder / "trees.podium", folder / "a.txt")


def test_a_progress_bar_leaves_standard_output_alone(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.progress("reading", 10) as advance:
        advance(5)
        print("0.25")
    assert capsys.readouterr().out == "0.25\n"
    assert "reading" in sys.stderr.getvalue()


MOST_MEGABYTES = 50  # for 16 blocks instead of one; reading all rows first takes at least 97

MEASURE = """
import re, sys
from pathlib import Path
from podium.cli.app import load_command
model, small, large, output = sys.argv[1:]
def score(data):
    load_command("score").main([model, data, "-o", output], standalone_mode=False)
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(-score(small) + score(large))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the peak memory of a process")
@pytest.mark.parametrize("suffix", ["txt", "parquet"])
def test_memory_does_not_grow_with_the_file(suffix, folder, tmp_path):
    """Compare a file of 16 blocks with one of a little more than a block."""
    sizes = {"small": 40 << 10, "large": 1 << 19}
    for name, n_rows in sizes.items():
        if suffix == "txt":
            lines = "".join(f"1 qid:{k // 9} 1:0.5 2:{k}.25 3:1 4:2 5:3 6:4\n" for k in range(1 << 10))
            (tmp_path / f"{name}.txt").write_text(lines * (n_rows >> 10))
        else:
            columns = {str(k): np.arange(n_rows) * k for k in range(1, 7)}
            pd.DataFrame({"qid": np.arange(n_rows) // 9} | columns).to_parquet(tmp_path / f"{name}.parquet")
    files = [tmp_path / f"{name}.{suffix}" for name in sizes]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, folder / "trees.podium", *files, tmp_path / "scores.txt"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < MOST_MEGABYTES
    with (tmp_path / "scores.txt").open() as file:
        assert sum(1 for _ in file) == sizes["large"]
