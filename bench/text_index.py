"""Building an index, searching its top 10 and adding documents, compared with bm25s and tantivy.

Each tool runs in a separate process. `python -m bench.text_index tiny` checks in a minute that everything works; its
figures mean nothing. `python -m bench.text_index SIZE` measures the generated collection with that number of documents.
Neither stores its figures.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import DATA, Report, in_child, measured_memory, timed

DOCUMENTS, WORDS, VOCABULARY, QUERIES, K = 1_000_000, 100, 200_000, 500, 10
ADDED = 0.01  # of the documents
RUNS = 3  # of all queries; and of a whole process for msrd, which takes little time
MSRD = DATA / "text" / "msrd"
TOOLS = ("podium", "podium in a folder", "bm25s", "bm25s with Numba", "tantivy")


def run(documents: int = DOCUMENTS, has_msrd: bool = True) -> Report:
    """Measure seconds to build, memory, milliseconds for the top 10 of a query on one thread, and seconds to add 1%."""
    table = []
    collections = ["msrd"] if has_msrd and MSRD.is_dir() else []
    for collection in [*collections, str(documents)]:
        results = {tool: _best(collection, tool) for tool in TOOLS}
        for tool, result in results.items():
            podium = results["podium"]
            table.append({
                "collection": result["collection"], "tool": tool, "build, s": round(result["build"], 2),
                "memory, MB": round(result["memory"] / 1e6), "top 10, ms": round(1e3 * result["search"], 4),
                "add 1%, s": round(result["add"], 2),
                "podium searches": "" if "podium" in tool else f"{result['search'] / podium['search']:.1f} × as fast",
            })  # fmt: skip
    notes = [
        "One text field with English stems; the text is not stored. Memory is the peak while the index is built, "
        "above the texts themselves. Podium in a folder reads JSONL and streams to disk, and its build time includes "
        "that; the other tools get texts one by one or as a list. Queries have two to five words (msrd: its own "
        f"queries). tantivy answers one query after another, the others a batch, on one thread; best of {RUNS} runs. "
        f"On msrd all figures are the best of {RUNS} processes. bm25s adds documents by building the index again.",
    ]
    return Report("text_index", "Index and search", table, notes)


def _best(collection: str, tool: str) -> dict[str, Any]:
    """Return the smallest figures of several processes; of one if the collection is large."""
    n_runs = RUNS if collection == "msrd" else 1
    results = [in_child("bench.text_index", "measure", collection, tool) for _ in range(n_runs)]
    return {key: min(result[key] for result in results) for key in results[0]}


def _collection(name: str) -> tuple[str, list[str], list[str]]:
    """Return a description, the texts and the queries."""
    if name == "msrd":
        with lzma.open(MSRD / "documents.jsonl.xz", "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        queries = [json.loads(line)["text"] for line in (MSRD / "queries.jsonl").open(encoding="utf-8")]
        texts = [f"{row['title']} {row.get('overview') or ''} {' '.join(row.get('actors') or [])}" for row in rows]
        return f"msrd, {len(texts):,} films", texts, queries[:2000]
    random = np.random.default_rng(0)
    weights = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    words = np.array([f"w{k:x}" for k in range(VOCABULARY)], object)

    def text(n: int) -> str:
        return " ".join(words[np.searchsorted(weights, random.random(n) * weights[-1])])

    texts = [text(int(n)) for n in random.integers(WORDS // 2, WORDS * 3 // 2 + 1, int(name))]
    return f"{len(texts):,} documents of {WORDS} words", texts, [text(int(n)) for n in random.integers(2, 6, QUERIES)]


def measure(collection: str, tool: str) -> dict[str, Any]:
    """Measure one tool on one collection."""
    described, texts, queries = _collection(collection)
    n_old = len(texts) - max(1, int(ADDED * len(texts)))
    build, search, add = WAYS[tool]()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # an index in a folder is written there
        search(build(texts[:50]), queries[:3])  # compiles
        with measured_memory() as memory:
            start = time.perf_counter()
            index = build(texts[:n_old])
            seconds = time.perf_counter() - start
        search(index, queries[:1])
        per_query = min(timed(lambda: search(index, queries)) for _ in range(RUNS)) / len(queries)
        adding = timed(lambda: add(index, texts, n_old))
    return {"collection": described, "build": seconds, "memory": memory.peak, "search": per_query, "add": adding}


Build = Callable[[Sequence[str]], Any]
Search = Callable[[Any, Sequence[str]], Any]
Add = Callable[[Any, Sequence[str], int], Any]  # index, all texts, how many are in the index


def _rows(texts: Sequence[str], first: int = 0) -> Iterator[dict[str, Any]]:
    return ({"id": first + k, "text": text} for k, text in enumerate(texts))


def _podium(folder: str | None = None) -> tuple[Build, Search, Add]:
    from podium.features import Index

    def build(texts: Sequence[str]) -> Any:
        documents: Any = _rows(texts)
        if folder is not None:
            with Path("documents.jsonl").open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in documents)
            documents = "documents.jsonl"
        index = Index.build(documents, {"text": "english"}, attributes=[], store_text=False, folder=folder)
        _ = index.fields["text"].postings, index.id_ranks  # otherwise computed by the first search
        return index

    def add(index: Any, texts: Sequence[str], n_old: int) -> None:
        index.add(_rows(texts[n_old:], n_old))
        if folder is not None:
            index.save(folder)
        _ = index.fields["text"].postings, index.id_ranks

    return build, lambda index, queries: index.search_many(queries, K, n_threads=1), add


def _bm25s(backend: str = "numpy") -> tuple[Build, Search, Add]:
    import bm25s
    import Stemmer

    def tokens(texts: Sequence[str]) -> Any:
        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(list(texts), stopwords=None, stemmer=stemmer, show_progress=False)

    def build(texts: Sequence[str]) -> Any:
        index = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend=backend)
        index.index(tokens(texts), show_progress=False)
        return index

    def search(index: Any, queries: Sequence[str]) -> Any:
        return index.retrieve(tokens(queries), k=K, show_progress=False, n_threads=0 if backend == "numpy" else 1)

    return build, search, lambda index, texts, n_old: build(texts)


def _tantivy() -> tuple[Build, Search, Add]:
    import tantivy

    def write(index: Any, texts: Sequence[str]) -> None:
        writer = index.writer(heap_size=256_000_000, num_threads=1)
        for text in texts:
            document = tantivy.Document()
            document.add_text("text", text)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()

    def build(texts: Sequence[str]) -> Any:
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", stored=False, tokenizer_name="en_stem", index_option="freq")
        index = tantivy.Index(schema.build())
        write(index, texts)
        return index

    def search(index: Any, queries: Sequence[str]) -> Any:
        searcher = index.searcher()
        parsed = (index.parse_query_lenient(query, ["text"])[0] for query in queries)
        return [searcher.search(query, K) for query in parsed]

    return build, search, lambda index, texts, n_old: write(index, texts[n_old:])


WAYS: dict[str, Callable[[], tuple[Build, Search, Add]]] = {
    "podium": _podium,
    "podium in a folder": lambda: _podium("index"),
    "bm25s": _bm25s,
    "bm25s with Numba": lambda: _bm25s("numba"),
    "tantivy": _tantivy,
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        is_tiny = sys.argv[1:] == ["tiny"]
        for row in run(2_000 if is_tiny else int(sys.argv[1]) if sys.argv[1:] else DOCUMENTS, not is_tiny).rows:
            print(row)
