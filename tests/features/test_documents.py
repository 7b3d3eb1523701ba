"""Documents, queries and judgements from every kind of source, and bad input."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import DataError, FileFormatError
from podium.evaluation import Qrels
from podium.features import Index, read_judgements, read_queries
from podium.features.documents import kind_of, read_records

ROWS = [
    {"id": "1", "title": 'Red, "shoes"\nnew', "votes": 3.0},
    {"id": "2", "title": "東京 é", "votes": None},
    {"id": "x 3", "title": "", "votes": 1.5},
]


def as_files(folder):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
    frame = pd.DataFrame(ROWS)
    (folder / "a.jsonl").write_text(text, encoding="utf-8")
    (folder / "bom.ndjson").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n\r\n").encode())
    for suffix, module in ((".gz", gzip), (".bz2", bz2), (".xz", lzma)):
        (folder / f"a.jsonl{suffix}").write_bytes(module.compress(text.encode()))
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_csv(folder / "a.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "a.parquet")
    return sorted(folder.iterdir())


def test_every_source_gives_the_same_index(tmp_path):
    expected = Index.build(ROWS, {"title": "english"})
    files = as_files(tmp_path)
    assert len(files) == 8
    for source in [*files, *map(str, files), pd.DataFrame(ROWS), pl.DataFrame(ROWS), pl.LazyFrame(ROWS), iter(ROWS)]:
        index = Index.build(source, {"title": "english"})
        assert index.digest() == expected.digest(), source
        assert list(index.ids) == ["1", "2", "x 3"]
        assert np.array_equal(index.attributes["votes"], [3, np.nan, 1.5], equal_nan=True)
        assert [index.text(row) for row in range(3)] == [{"title": row["title"]} for row in ROWS]


def test_several_files(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "t": "a"}\n')
    (tmp_path / "b.csv").write_text("id,t\n2,b")
    assert list(Index.build([tmp_path / "a.jsonl", str(tmp_path / "b.csv")], {"t": "standard"}).ids) == ["1", "2"]


JSON_MISTAKES = [
    ('{"id": 1, "t": "a"}\n{"id": 1, "t": "b"}', "line 2: the document id '1' occurs twice"),
    ('{"id": 1, "t": "a"}\n\n{"t": "b"}', "line 3: the id 'id' is missing"),
    ('{"Id": 1, "t": "a"}', "the id 'id' is missing; the columns are Id, t"),
    ('{"id": null, "t": "a"}', "line 1: the id 'id' is missing"),
    ('{"id": 1.5, "t": "a"}', "must be text or a whole number"),
    ('{"id": 1, "t": 7}', "line 1: the field 't' must be text or a list of texts, but got 7"),
    ('{"id": 1, "t": ["a", 7]}', "must be text or a list of texts"),
    ('{"id": 1, "t": "a"', "line 1, column 19: is not valid JSON"),
    ('{"id": 1}\n["a"]', "line 2: expected a JSON object"),
    ("[" * 100_000, "line 1"),
    ('{"id": 1, "t": "\\ud800"}', "lone surrogate"),
    ('{"id": "\\ud800", "t": ""}', "lone surrogate"),
]


@pytest.mark.parametrize(("text", "problem"), JSON_MISTAKES)
def test_mistakes_name_file_and_line(tmp_path, text, problem):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"bad\.jsonl") as caught:
        Index.build(path, {"t": "standard"}, folder=tmp_path / "index")
    assert problem in str(caught.value)
    assert [one.name for one in tmp_path.iterdir()] == ["bad.jsonl"]


def test_invalid_utf8(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes('{"id": 1, "t": "é"}\n{"id": 2, "t": "é'.encode() + b'\xff"}\n')
    with pytest.raises(FileFormatError, match=r"bad.jsonl, line 2, column 18: is not valid UTF-8: byte 0xff"):
        Index.build(path, {"t": "standard"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id,t\n1,a\n2,b,c\n", "line 3: expected 2 fields, but found 3"),
        ('id,t\n1,"a\nb"\n,c\n', "line 4: the id 'id' is missing"),
        ("id,id\n", "two columns of the same name"),
        ("", "is empty"),
        ('id,t\n1,"a', "is not valid CSV"),
    ],
)
def test_mistakes_in_csv(tmp_path, text, problem):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(FileFormatError, match=r"bad\.csv") as caught:
        Index.build(tmp_path / "bad.csv", {"t": "standard"})
    assert problem in str(caught.value)


def test_other_mistakes(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(FileFormatError, match=r"bad\.parquet: cannot be read"):
        Index.build(tmp_path / "bad.parquet", {"t": "standard"})
    with pytest.raises(FileFormatError, match="unknown suffix"):
        Index.build("documents.docx", {"t": "standard"})
    for source in ({"id": 1}, 7, None):
        with pytest.raises(DataError, match="expected a path, a data frame or an iterable"):
            Index.build(source, {"t": "standard"})
    with pytest.raises(DataError, match="document 2: expected a dictionary"):
        Index.build([{"id": 1}, 7], {"t": "standard"})


def test_lists_and_missing_texts():
    texts = [["a b", None, "c"], np.array(["d"]), float("nan")]
    rows = [{"id": k, "t": text} for k, text in enumerate(texts)]
    index = Index.build([*rows, {"id": 4}], {"t": "standard"})
    assert [index.text(row)["t"] for row in range(4)] == ["a b\nc", "d", "", ""]
    assert index.fields["t"].lengths.tolist() == [3, 1, 0, 0]


def test_a_document_of_10_megabytes(tmp_path):
    words = " ".join(f"w{k % 5000}" for k in range(1_700_000))
    rows = [{"id": 1, "t": words}, {"id": 2, "t": "x" * 10_000_000}, {"id": 3, "t": "\x00\x01 y\u0007z"}]
    path = tmp_path / "large.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    index = Index.build(path, {"t": "english"}, positions=True, folder=tmp_path / "index")
    assert index.fields["t"].lengths.tolist() == [1_700_000, 1, 2]
    assert index.fields["t"].n_terms == 5003
    assert sorted(index.search("w7 z").ids) == ["1", "3"]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(), max_size=6))
def test_any_text_can_be_indexed(texts):
    rows = [{"id": k, "t": text} for k, text in enumerate(texts)]
    index = Index.build(rows, {"t": "english"}, positions=True)
    analyzer = index.fields["t"].analyzer
    for row, text in enumerate(texts):
        assert index.text(row)["t"] == text
        assert index.fields["t"].lengths[row] == len(analyzer.terms(text))
        if analyzer.terms(text):
            assert str(row) in index.search(text, len(texts)).ids


def test_queries(tmp_path):
    expected = {"7": "red shoes", "b": "東京"}
    (tmp_path / "q.jsonl").write_text('{"id": 7, "text": "red shoes"}\n{"id": "b", "text": "東京", "more": 1}\n')
    (tmp_path / "q.tsv").write_text("7\tred shoes\nb\t東京\n")
    (tmp_path / "named.tsv").write_text("qid\tquery\r\n7\tred shoes\r\nb\t東京\r\n")
    (tmp_path / "q.csv").write_text("query_id,query\n7,red shoes\nb,東京\n")
    frame = {"qid": ["7", "b"], "text": ["red shoes", "東京"]}
    for source in [*sorted(tmp_path.iterdir()), expected, {7: "red shoes", "b": "東京"}, pd.DataFrame(frame),
                   pl.DataFrame(frame), [{"id": 7, "query": "red shoes"}, {"id": "b", "query": "東京"}]]:  # fmt: skip
        assert read_queries(source) == expected


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ([{"id": 1, "text": "a"}, {"id": 1, "text": "b"}], "document 2: the query id '1' occurs twice"),
        ([{"id": 1, "txt": "a"}], "expected a query text"),
        ([{"number": 1, "text": "a"}], "expected a query id"),
        ({"1": 5}, "must be text"),
    ],
)
def test_mistakes_in_queries(source, problem):
    with pytest.raises(DataError, match=problem):
        read_queries(source)


def test_judgements(tmp_path):
    expected = {"7": {"a": 2.0, "b": 0.0}, "8": {"a": 1.0}}
    rows = [("7", "a", 2), ("7", "b", 0), ("8", "a", 1)]
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows))
    (tmp_path / "qrels.gz").write_bytes(gzip.compress((tmp_path / "qrels.txt").read_bytes()))
    (tmp_path / "j.jsonl").write_text(
        "".join(json.dumps({"query_id": q, "docid": d, "grade": g}) + "\n" for q, d, g in rows)
    )
    (tmp_path / "j.json").write_bytes((tmp_path / "j.jsonl").read_bytes())
    (tmp_path / "j.csv").write_text("qid,document_id,label\n" + "".join(f"{q},{d},{g}\n" for q, d, g in rows))
    frame = pd.DataFrame(rows, columns=["qid", "document_id", "relevance"])
    for source in [*sorted(tmp_path.iterdir()), expected, Qrels(expected), {7: {"a": 2, "b": 0}, 8: {"a": 1}}, frame,
                   pl.from_pandas(frame)]:  # fmt: skip
        assert read_judgements(source) == expected


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ([{"qid": 1, "document_id": 2, "label": 1}] * 2, "judged twice"),
        ([{"qid": 1, "document_id": 2, "label": "good"}], "finite number"),
        ({"1": {"2": None}}, "finite number"),
        ([{"qid": 1, "label": 1}], "expected a document id"),
    ],
)
def test_mistakes_in_judgements(source, problem):
    with pytest.raises(DataError, match=problem):
        read_judgements(source)


def test_suffixes():
    assert [kind_of(name) for name in ("a.JSONL.GZ", "b.csv", "c", "d.xz")] == [".jsonl", ".csv", "", ""]
    assert list(read_records([])) == []
