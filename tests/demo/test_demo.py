"""The demo: from documentation to a report and a pipeline."""

import sys
from collections import Counter

import pytest

from podium.demo import main
from podium.demo.standard_library import LEAST_WORDS, PARTS, Library, known_items, read_library, words_of
from podium.features import SearchPipeline
from tests.reports.pages import Page


@pytest.fixture(scope="module")
def library():
    return read_library()


def test_the_standard_library_is_read(library):
    ids = [document["id"] for document in library.documents]
    assert {"json.loads", "os.path.join", "builtins.sorted", "asyncio", "pathlib.Path.glob", "topic for"} <= set(ids)
    assert len(set(ids)) == len(ids) > 3000
    assert "tkinter" not in sys.modules or "tkinter" not in ids
    assert all(document["text"] or document["id"] in library.queries for document in library.documents)
    assert not any(document["module"].startswith(("test.", "idlelib")) for document in library.documents)


def test_every_process_reads_the_same_documents_without_the_environment(library, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "xyzzy")
    again = read_library()
    assert again == library
    assert "xyzzy" not in str(again.documents)
    assert " at 0x" not in str([one["signature"] for one in again.documents])


def test_queries_are_summaries_that_the_documents_lack(library):
    texts = {document["id"]: document["text"] for document in library.documents}
    queries = {document: text for part in library.queries.values() for document, text in part.items()}
    assert len(queries) > 1000
    assert sum(map(len, library.queries.values())) == len(queries)
    for document, query in queries.items():
        assert len(words_of(query)) >= LEAST_WORDS
        assert not " ".join(texts[document].split()).startswith(query)
    assert max(Counter(map(str.lower, queries.values())).values()) == 1


def test_no_module_is_in_two_parts(library):
    module_of = {document["id"]: document["module"].partition(".")[0] for document in library.documents}
    modules = [{module_of[document] for document in library.queries[part]} for part in PARTS]
    assert all(modules)
    assert sum(map(len, modules)) == len(set.union(*modules))


def test_summaries_that_are_code_repeated_or_alone_stay_in_the_text():
    rest = "More words, so that there is enough left to find it by."
    docs = {
        "good": f"Return the floor of x. {rest}", "code": f"sum(a, b) -> the sum of it. {rest}",
        "alone": "Return the ceiling of x.", "one": f"Do it all again. {rest}", "two": f"Do it all again. {rest}",
    }  # fmt: skip
    entries = [
        {"kind": "function", "id": f"m.{k}", "name": k, "module": "m", "signature": "", "doc": doc}
        for k, doc in docs.items()
    ]
    result = known_items(entries)
    assert {document for part in result.queries.values() for document in part} == {"m.good"}
    assert {one["name"]: one["text"] for one in result.documents} == docs | {"good": rest}


@pytest.mark.filterwarnings("ignore::podium.errors.PodiumWarning")  # ties, in so little data
def test_the_demo_ends_with_a_report_and_a_pipeline(library, tmp_path, capsys):
    few = {part: dict(list(queries.items())[:40]) for part, queries in library.queries.items()}
    relevant = {document for queries in few.values() for document in queries}
    documents = [one for k, one in enumerate(library.documents) if one["id"] in relevant or k % 10 == 0]
    main(tmp_path / "demo", Library(documents, few), trees=5)
    output = capsys.readouterr().out
    assert f"{len(documents):,} documents" in output
    page = Page((tmp_path / "demo" / "report.html").read_text())
    shown = next(row for row in page.table("Means of each system") if row["system"] == "Ranker")
    assert shown["ndcg@10"] in output
    pipeline = SearchPipeline.load(tmp_path / "demo" / "standard-library")
    assert ", ".join(pipeline.search("read rows of a csv file", 5).ids) in output
    assert f"podium serve {tmp_path / 'demo' / 'standard-library'}" in output
