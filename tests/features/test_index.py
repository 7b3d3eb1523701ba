"""An index: the same documents, added in any way, give the same statistics, scores and results."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.errors import DataError, FileFormatError, PodiumWarning
from podium.features import Index, building, index_folder, register_analyzer
from podium.features import field as field_module
from podium.features.field import invert
from podium.features.index_folder import FOLDER, MANIFEST, read_folder, write_folder
from tests.features.collections_ import TEXTS, bm25_scores, built, documents, some_ids

QUERY = "running a b 東京 x1"


def state(index):
    """Everything that must not depend on how an index was built: terms, counts, positions, attributes and text."""
    rows = {}
    for row in np.flatnonzero(index.is_live).tolist():
        entry = {name: float(values[row]) for name, values in index.attributes.items()}
        for name, field in index.fields.items():
            terms = {}
            assert (np.diff(field.terms[field.starts[row] : field.starts[row + 1]]) > 0).all()
            for k in range(field.starts[row], field.starts[row + 1]):
                places = None
                if field.has_positions:
                    places = field.positions[field.position_starts[k] : field.position_starts[k + 1]].tolist()
                terms[field.vocabulary[field.terms[k]]] = (int(field.counts[k]), places)
            entry[name] = (sorted(terms.items()), int(field.lengths[row]))
        rows[index.ids[row]] = repr(entry), index.text(row)
    hits = index.search_many([QUERY, "dd"], 5)
    return rows, index.digest(), [(one.ids, one.scores.tolist()) for one in hits], len(index)


@settings(deadline=None, max_examples=50)
@given(documents(), st.booleans(), st.data())
def test_shards_and_any_order_give_the_same_index(rows, positions, data):
    whole = built(rows, positions=positions)
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    middle = data.draw(st.integers(cut, len(rows)))
    parts = built(shuffled[:cut], positions=positions)
    parts.add(shuffled[cut:middle])
    parts.merge(built(shuffled[middle:], positions=positions))
    assert state(parts) == state(whole)


@settings(deadline=None, max_examples=50)
@given(documents(min_size=1), st.data())
def test_removing_equals_never_having_added(rows, data):
    removed, added_again = data.draw(some_ids(rows)), data.draw(some_ids(rows))
    index = built(rows, positions=True)
    index.search(QUERY)  # postings that hold rows of documents that are removed now
    index.remove(removed)
    remaining = [row for row in rows if row["id"] not in removed]
    assert state(index) == state(built(remaining, positions=True))
    returning = [row for row in rows if row["id"] in removed & added_again]
    index.add(returning)
    assert state(index) == state(built(remaining + returning, positions=True))
    assert index.n_rows == len(index)  # an addition drops the rows of removed documents


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents(), st.booleans(), st.data())
def test_saved_indexes_come_back_the_same(tmp_path, monkeypatch, rows, positions, data):
    monkeypatch.setattr(building, "ENTRIES_AT_ONCE", 5)
    monkeypatch.setattr(building, "BYTES_AT_ONCE", 20)
    folder = tmp_path / f"index{data.draw(st.integers(0, 3))}"  # often there already
    index = built(rows, positions=positions, folder=folder)
    assert state(index) == state(built(rows, positions=positions)) == state(Index.load(folder))
    removed = data.draw(some_ids(rows))
    loaded = Index.load(folder)
    loaded.remove(removed)
    loaded.save(folder)
    remaining = [row for row in rows if row["id"] not in removed]
    assert state(Index.load(folder)) == state(built(remaining, positions=positions)) == state(loaded)
    loaded.add([row for row in rows if row["id"] in removed])
    loaded.save(folder)
    assert state(Index.load(folder)) == state(built(rows, positions=positions))
    assert {path.name for path in folder.iterdir()} == {*FOLDER.read(folder)["files"], MANIFEST, ".lock"}
    assert list(tmp_path.glob(".*")) == []


@settings(deadline=None, max_examples=30)
@given(documents(min_size=1), st.integers(1, 6))
def test_postings_are_the_forward_arrays_sorted_by_term(rows, entries_at_once):
    field = built(rows).fields["body"]
    spools = index_folder.Spool(np.int32), index_folder.Spool(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(field_module, "ENTRIES_AT_ONCE", entries_at_once)
        postings = invert(field.starts, field.terms, field.counts, field.n_terms, *spools)
    for array, expected in zip(postings, field.postings, strict=True):
        assert np.array_equal(array, expected)
    owners = np.repeat(np.arange(len(field.lengths)), np.diff(field.starts))
    order = np.argsort(field.terms, kind="stable")
    assert np.array_equal(postings.rows, owners[order])
    assert np.array_equal(postings.counts, field.counts[order])


ROWS = [
    {"id": "a", "title": "Red shoes", "body": "for running", "votes": 3},
    {"id": "b", "title": "Blue hat", "body": "", "votes": None},
    {"id": "c", "title": "", "body": "a red hat, a red scarf", "votes": 1.5},
]


def test_statistics_by_hand():
    index = built(ROWS, positions=True)
    field = index.fields["body"]
    ids = field.term_ids(["red", "a", "hat", "nothing"])
    assert field.document_frequency[ids[:3]].tolist() == [1, 1, 1]
    assert field.occurrences[ids[:3]].tolist() == [2, 2, 1]
    assert ids[3] == -1
    assert (field.n_documents, field.n_words, field.mean_length) == (3, 8, 8 / 3)
    assert field.lengths.tolist() == [2, 0, 6]
    k = int(np.flatnonzero(field.terms == ids[0])[0])
    assert field.positions[field.position_starts[k] : field.position_starts[k + 1]].tolist() == [1, 4]
    assert index.attributes["votes"].tolist()[::2] == [3, 1.5]
    assert np.isnan(index.attributes["votes"][1])
    assert index.rows(["c", "x", "a"]).tolist() == [2, -1, 0]
    assert index.text(2) == {"title": "", "body": "a red hat, a red scarf"}
    facts = index.describe()
    assert facts["fields"]["body"] | {"empty_documents": 1, "words": 8, "terms": 6} == facts["fields"]["body"]
    assert facts["attributes"] == {"votes": {"missing": 1}}


def test_attributes_can_be_set_later(tmp_path):
    index = built(ROWS)
    index.set_attributes({"pagerank": [0.5, 0.25, np.nan]})
    index.save(tmp_path / "index")
    index = Index.load(tmp_path / "index")
    index.add([{"id": "d", "title": "new", "body": ""}])
    assert np.array_equal(index.attributes["pagerank"], [0.5, 0.25, np.nan, np.nan], equal_nan=True)
    with pytest.raises(DataError, match="attribute 'x': expected one number for each of 4 rows"):
        index.set_attributes({"x": [1.0]})
    with pytest.raises(DataError, match="the index already has a text field of this name"):
        index.set_attributes({"title": [1.0] * 4})


def test_attributes_are_all_columns_of_numbers_by_default():
    rows = [
        {"id": 1, "t": "x", "n": 1, "s": "word", "mixed": 2, "flag": True},
        {"id": 2, "t": "y", "late": 4, "mixed": "two", "big": 10**400},
    ]
    index = Index.build(rows, {"t": "standard"})
    assert list(index.attributes) == ["big", "flag", "late", "n"]
    assert index.attributes["late"][1] == 4
    assert np.isnan(index.attributes["late"][0])
    assert index.attributes["big"][1] == np.inf
    index.add([{"id": 3, "t": "", "new": 7}])
    assert index.attributes["new"].tolist()[2] == 7
    with pytest.raises(DataError, match="document 1: the attribute 'n' must be a number, but got 'many'"):
        index.add([{"id": 4, "t": "", "n": "many"}])
    assert len(index) == 3
    assert list(Index.build(rows, {"t": "standard"}, attributes=[]).attributes) == []
    with pytest.raises(DataError, match="document 2: the attribute 'mixed' must be a number"):
        Index.build(rows, {"t": "standard"}, attributes=["mixed"])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda index: index.add([{"id": "a", "title": "new"}]), "'a' is already in the index: remove it first"),
        (lambda index: index.add([{"id": "new"}, {"id": "new"}]), "document 2: the document id 'new' occurs twice"),
        (lambda index: index.remove(["b", "x"]), "'x' is not in the index"),
        (lambda index: index.remove(["b", "b"]), "'b' occurs twice"),
        (lambda index: index.merge(built(ROWS[1:])), "'b' is in both indexes"),
        (
            lambda index: index.merge(built([], store_text=False)),
            "the same store_text can be merged, but got True",
        ),
        (lambda index: index.merge(Index.build([], {"title": "english"})), "the same fields can be merged"),
        (lambda index: index.add([{"id": "new"}, {"title": "no id"}]), "document 2: the id 'id' is missing"),
    ],
)
def test_mistakes_leave_the_index_as_it_was(change, problem):
    index = built(ROWS)
    before = state(index)
    with pytest.raises(DataError, match=problem):
        change(index)
    assert state(index) == before


def test_mistakes_in_building():
    with pytest.raises(DataError, match=r"no document has a field 'titel' \(did you mean 'title'\?\)"):
        Index.build(ROWS, {"titel": "english"})
    with pytest.raises(DataError, match="fields must map fields to analyzers"):
        Index.build(ROWS, "title")
    with pytest.raises(DataError, match="'id' is the column of document ids"):
        Index.build(ROWS, {"id": "english"})
    with pytest.raises(DataError, match="does not store text"):
        built(ROWS, store_text=False).text(0)


def test_unchanged_files_are_kept(tmp_path):
    index = built(ROWS, folder=tmp_path / "index")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "index").glob("*.npy")}
    index.remove(["b"])
    index.save(tmp_path / "index")
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "index").glob("*.npy")}
    new = {name.partition("-")[0] for name in set(after.items()) - set(before.items()) for name in [name[0]]}
    assert new == {"is_live", "field0.document_frequency", "field0.occurrences"}  # the body of b is empty


def test_other_folders_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    index = built(ROWS)
    with pytest.raises(FileFormatError, match="is not an index"):
        index.save(tmp_path)
    with pytest.raises(FileFormatError, match="is not an index"):
        Index.load(tmp_path)
    with pytest.raises(FileFormatError, match="is not an index"):
        built(ROWS, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_unregistered_analyzer_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("podium.features.analyzer._functions", {})
    register_analyzer("blanks", str.split)
    Index.build([{"id": 1, "t": "A b"}], {"t": "blanks"}, folder=tmp_path / "index")
    assert Index.load(tmp_path / "index").search("A").ids == ["1"]
    monkeypatch.setattr("podium.features.analyzer._functions", {})
    with pytest.raises(FileFormatError, match=r"no analyzer 'blanks'.*register_analyzer first"):
        Index.load(tmp_path / "index")


def test_another_stemmer_warns(tmp_path, monkeypatch):
    built(ROWS, folder=tmp_path / "index")
    monkeypatch.setattr(index_folder, "stemmer_version", lambda: "1.0")
    with pytest.warns(PodiumWarning, match="miss words whose stems differ"):
        Index.load(tmp_path / "index")


WRITER = """
import sys, json
from podium.features import Index
index = Index.load(sys.argv[1])
print("ready", flush=True)
k = 0
while True:
    index.add([{"id": f"{k}-{n}", "title": "red " * n, "body": "x y"} for n in range(50)])
    index.save(sys.argv[1])
    index.remove([f"{k}-{n}" for n in range(50)])
    index.save(sys.argv[1])
    k += 1
"""


def test_a_killed_writer_leaves_a_whole_index(tmp_path):
    folder = tmp_path / "index"
    base = built(ROWS, folder=folder)
    for delay in (0.0, 0.023):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1 + delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        index = Index.load(folder)
        assert len(index) - len(base) in (0, 50)
        index.remove([key for row, key in enumerate(index.ids) if index.is_live[row] and "-" in key])
        assert index.digest() == base.digest()
        index.save(folder)
    built(ROWS, folder=folder)
    assert {path.name for path in folder.iterdir()} == {*FOLDER.read(folder)["files"], MANIFEST, ".lock"}
    assert list(tmp_path.glob(".*")) == []


def test_damage_is_found(tmp_path):
    folder = tmp_path / "index"
    built(ROWS, positions=True, folder=folder)
    for path in sorted(folder.iterdir()):
        if path.name == ".lock":
            continue
        content = path.read_bytes()
        for changed in (content[:-1], content[:-1] + bytes([content[-1] ^ 1]), None):
            path.unlink() if changed is None else path.write_bytes(changed)
            with pytest.raises(FileFormatError):
                Index.load(folder)
        path.write_bytes(content)
    assert len(Index.load(folder)) == 3


def test_crafted_arrays_are_refused(tmp_path):
    """Arrays with any one number changed, and right checksums, are refused or harmless."""
    folder, random = tmp_path / "index", np.random.default_rng(3)
    built(ROWS, positions=True, folder=folder)
    manifest = {key: value for key, value in FOLDER.read(folder).items() if key != "format"}
    must = ("starts", "terms", "posting_rows", "counts", "positions", "lengths", "document_frequency", "occurrences")
    refused = 0
    for label, name in manifest["arrays"].items():
        original = np.load(folder / name)
        for value in (-1, 1 << 20, 1):
            if not len(original):
                continue
            changed = original.copy()
            changed[random.integers(len(changed))] = np.array(value).astype(changed.dtype)
            craft(folder, manifest, label, changed)
            has_refused = refused
            try:
                index = Index.load(folder)
                index.search(QUERY)
                index.search("red hat", by="bm25(body)")
                index.digest()
            except DataError:
                refused += 1
            if label.endswith(must) and not label.endswith("posting_counts") and value != 1:
                assert refused > has_refused, f"{label} with {value} is not refused"
        craft(folder, manifest, label, original)
    assert len(Index.load(folder)) == 3
    for other in (np.zeros((2, 2)), np.zeros(3, np.float32), np.zeros(0, np.int64)):
        for label in manifest["arrays"]:
            original = np.load(folder / manifest["arrays"][label])
            if original.dtype != other.dtype or original.shape != other.shape:
                craft(folder, manifest, label, other)
                with pytest.raises(DataError):
                    Index.load(folder)
                craft(folder, manifest, label, original)


def craft(folder, manifest, label, array):
    path = folder / manifest["arrays"][label]
    np.save(path, array)
    content = {key: value for key, value in manifest.items() if key != "files"}
    paths = [folder / name for name in manifest["files"]]
    (folder / MANIFEST).write_text(FOLDER.manifest_text(content, paths))


def test_a_slice_of_a_mapped_array_is_written_to_its_own_file(tmp_path):
    whole = write_folder(tmp_path, {}, {"x": np.arange(1 << 15)})["x"]
    assert index_folder.file_of(whole).parent == tmp_path
    write_folder(tmp_path, {}, {"x": whole[1:]})
    assert read_folder(tmp_path, True)[1]["x"].tolist() == list(range(1, 1 << 15))


def test_saving_mends_a_damaged_folder(tmp_path):
    index = built(ROWS)
    index.save(tmp_path / "index")
    for path in (tmp_path / "index").glob("*.npy"):
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    built(ROWS).save(tmp_path / "index")
    assert state(Index.load(tmp_path / "index")) == state(index)


def test_two_writers_do_not_mix(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    index = built(ROWS, folder=tmp_path / "index")
    with (tmp_path / "index" / ".lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(FileFormatError, match="being written by another process"):
            index.save(tmp_path / "index")
    index.save(tmp_path / "index")


@settings(deadline=None, max_examples=10)
@given(documents(min_size=1), TEXTS)
def test_scores_after_changes_are_those_of_the_definition(rows, query):
    index = built(rows[:1])
    index.merge(built(rows[1:]))
    expected = bm25_scores(index, {row["id"]: row for row in rows}, query, ["title", "body"])
    hits = index.search(query, len(rows))
    assert dict(zip(hits.ids, hits.scores.tolist(), strict=True)) == expected


def test_the_manifest_is_json(tmp_path):
    built(ROWS, folder=tmp_path / "index")
    manifest = json.loads((tmp_path / "index" / MANIFEST).read_text())
    assert [field["analyzer"] for field in manifest["fields"]] == ["english", "english"]
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
