"""`podium features`."""

import json

import numpy as np
import pytest

import podium
from podium.features import FeatureSet, Index, registered
from tests.commands import run

ROWS = [
    {"id": "a", "title": "Red shoes", "body": "for running", "votes": 3},
    {"id": "b", "title": "Blue hat", "body": "red as well"},
]


@pytest.fixture
def folder(tmp_path):
    Index.build(ROWS, fields={"title": "english", "body": "english"}).save(tmp_path / "docs")
    (tmp_path / "queries.tsv").write_text("1\tred shoes\n2\that\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 b 0\n2 0 b 1\n")
    return tmp_path


def done(*words, cwd):
    result = run(*words, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_compute(folder):
    texts = ("-f", "bm25(title)", "--feature", "attribute(votes)")
    shown = done("features", "compute", "docs", "queries.tsv", "qrels.txt", "-o", "data.parquet", *texts,
                 "--save-set", "set.json", cwd=folder)  # fmt: skip
    assert "data.parquet: RankingData(3 documents in 2 queries, 2 features" in shown
    data = podium.read(folder / "data.parquet")
    expected = FeatureSet(["bm25(title)", "attribute(votes)"]).compute(
        Index.load(folder / "docs"), folder / "queries.tsv", folder / "qrels.txt"
    )
    assert data.feature_names == expected.feature_names
    assert np.array_equal(data.features, expected.features, equal_nan=True)
    assert data.document_ids.tolist() == expected.document_ids.tolist()
    done("features", "compute", "docs", "queries.tsv", "--set", "set.json", "--candidates", "bm25 top 5",
         "-o", "more.parquet", cwd=folder)  # fmt: skip
    assert podium.read(folder / "more.parquet").feature_names == expected.feature_names
    done("features", "compute", "docs", "queries.tsv", "qrels.txt", cwd=folder)
    assert podium.read(folder / "features.parquet").n_features > 10


def test_list_explain_export(folder):
    listed = json.loads(done("features", "list", "--json", cwd=folder))
    # Examples in the docs register their own features in this process; the command runs in another.
    built_in = {name for name, cls in registered().items() if cls.__module__.startswith("podium.")}
    assert {one["feature"].partition("(")[0] for one in listed} == built_in
    assert "bm25(field, …, k1=1.2, b=0.75, idf=lucene, scaled=false)" in done("features", "list", cwd=folder)
    shown = done("features", "explain", "docs", "red shoes", "a", "-f", "bm25(title)", "-f", "attribute(votes)",
                 cwd=folder)  # fmt: skip
    assert "shoe 0." in shown
    records = json.loads(done("features", "explain", "docs", "red", "b", "-f", "lm_jm(title)", "--json", cwd=folder))
    assert records[0]["value"] is None
    shown = done("features", "export", "solr", "store.json", "-f", "bm25(title)", "-f", "lm_jm(title)", cwd=folder)
    assert "store.json: 1 features for solr" in shown
    assert "left out: lm_jm(title): the engine has no such formula" in shown
    assert json.loads((folder / "store.json").read_text())[0]["name"] == "bm25(title)"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("compute", "docs", "queries.tsv", "-f", "bm25(titel)", "--candidates", "bm25 top 5"),
            "no text field 'titel'",
        ),
        (("compute", "docs", "queries.tsv"), "candidates='judged' requires judgements"),
        (("explain", "docs", "red", "z"), "no document 'z'"),
        (("export", "solr", "x.json"), "no features: name them with --feature or --set"),
    ],
)
def test_errors(folder, words, message):
    result = run("features", *words, cwd=folder)
    assert result.returncode == 1
    assert message in result.stderr
