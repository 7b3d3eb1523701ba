"""Features of (query, document) pairs: pairs per second and core, compared with other tools.

The features are the text features of `mslr()` for judged films of MSRD: 25 for each of four fields and all fields as
one. The NumPy version takes term frequencies from a sparse matrix per field, query by query; searcharray gives term
frequencies of one term at a time. Both then compute the same formulas with NumPy. tantivy's `explain` gives frequencies
and lengths of one document at a time, as text, so only the calls are timed: one for each pair and stream.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from bench.harness import DATA, Report, in_child

FOLDER = DATA / "text" / "msrd"
STREAMS = {"body": "overview", "anchor": "tags", "title": "title", "url": "characters"}  # four text fields of films
QUERIES = {"podium": 16_279, "numpy": 400, "searcharray": 100, "tantivy": 400}  # each takes a few seconds
NAMES = {
    "podium": "Podium, FeatureSet.compute",
    "numpy": "NumPy on scipy's sparse matrices",
    "searcharray": "searcharray, formulas in NumPy",
    "tantivy": "tantivy, explain calls alone",
}


def films(n_queries: int) -> tuple[Any, dict[str, str], dict[str, dict[str, float]]]:
    """Return the index, some queries, and their judgements."""
    from podium.features import Index, read_judgements, read_queries

    index = Index.build(FOLDER / "documents.jsonl.xz", fields=dict.fromkeys(STREAMS.values(), "english"))
    queries = dict(list(read_queries(FOLDER / "queries.jsonl").items())[:n_queries])
    grades = read_judgements(FOLDER / "qrels.txt.xz")
    return index, queries, {query: grades[query] for query in queries}


def features() -> Any:
    """Return the text features of MSLR-WEB."""
    from podium.features import FeatureSet, mslr

    all_features = mslr(**STREAMS)
    return FeatureSet([feature for feature in all_features if feature.name not in ("slashes", "character_length")])


def formulas(tf: Any, n: Any, share: Any, lengths: Any, distinct: Any, mean: float, n_documents: int) -> list[Any]:
    """Return the 25 features of a stream for one query, from frequencies by document and term."""
    columns = []
    n_terms, covered, idf = len(n), (tf > 0).sum(1), np.log((n_documents - n + 0.5) / (n + 0.5))
    long = np.where(lengths > 0, lengths, np.nan)[:, None]
    columns += [covered, covered / n_terms, lengths, np.full(len(tf), idf.sum())]
    for values in (tf, np.nan_to_num(tf / long), tf * idf):
        columns += [values.sum(1), values.min(1), values.max(1), values.mean(1), values.var(1)]
    w = np.log(n_documents / (n + 1))
    norms = np.sqrt(((tf * w) ** 2).sum(1)) * np.sqrt((w**2).sum())
    columns += [covered == n_terms, np.where(covered > 0, (tf * w**2).sum(1) / norms, 0)]
    saturated = 3.5 * tf / (tf + 2.5 * (0.2 + 0.8 * lengths[:, None] / mean))
    columns.append((idf * saturated).sum(1))
    occurs = share > 0
    f, p = tf[:, occurs], share[occurs]
    models = [
        np.log(np.maximum(f - 0.7, 0) / long + 0.7 * distinct[:, None] / long * p),
        np.log((f + 2000 * p) / (lengths[:, None] + 2000)),
        np.log(0.9 * f / long + 0.1 * p),
    ]
    for model in models:
        value = np.where(covered > 0, model.sum(1), np.nan)
        least = np.nanmin(value) if (covered > 0).any() else np.nan
        columns.append(np.where(covered > 0, value, least))
    return columns


def by_stream(blocks: list[list[Any]]) -> Any:
    """Reorder columns of the five streams as in MSLR: a block of five for each formula."""
    return np.column_stack([column for formula in zip(*blocks, strict=True) for column in formula])


class Prototype:
    """Term frequencies from a sparse matrix per field."""

    def __init__(self, index: Any) -> None:
        from scipy import sparse

        self.index = index
        self.analyzer = next(iter(index.fields.values())).analyzer
        words: dict[str, int] = {}
        matrices = []
        for field in index.fields.values():
            numbers = np.array([words.setdefault(word, len(words)) for word in field.vocabulary])
            matrices.append((field.counts.astype(np.float64), numbers[field.terms], field.starts))
        shape = (index.n_rows, len(words))
        by_field = [sparse.csr_matrix(parts, shape) for parts in matrices]
        self.words, self.streams = words, [*by_field, sum(by_field[1:], by_field[0])]
        self.lengths = [np.asarray(one.sum(1)).ravel() for one in self.streams]
        self.n = [np.asarray((one > 0).sum(0)).ravel() for one in self.streams]
        self.totals = [np.asarray(one.sum(0)).ravel() for one in self.streams]
        self.distinct = [np.asarray((one > 0).sum(1)).ravel() for one in self.streams]

    def frequencies(self, stream: int, rows: Any, terms: list[str]) -> tuple[Any, Any, Any]:
        """Return term frequencies by document, and documents and occurrences by term."""
        numbers = [self.words.get(term, -1) for term in terms]
        known = np.array([number for number in numbers if number >= 0], np.int64)
        places = [k for k, number in enumerate(numbers) if number >= 0]
        tf, n, totals = np.zeros((len(rows), len(terms))), np.zeros(len(terms)), np.zeros(len(terms))
        tf[:, places] = self.streams[stream][rows][:, known].toarray()
        n[places], totals[places] = self.n[stream][known], self.totals[stream][known]
        return tf, n, totals

    def rows(self, text: str, documents: Iterable[str]) -> Any:
        """Return the features of one query."""
        terms = list(dict.fromkeys(self.analyzer.terms(text)))
        rows = self.index.rows(documents)
        blocks = []
        for stream in range(len(self.streams)):
            tf, n, totals = self.frequencies(stream, rows, terms)
            lengths = self.lengths[stream]
            blocks.append(
                formulas(tf, n, totals / lengths.sum(), lengths[rows], self.distinct[stream][rows], lengths.mean(),
                         len(self.index))
            )  # fmt: skip
        return by_stream(blocks)


class SearchArrays(Prototype):
    """Term frequencies of one term after the other from searcharray."""

    def __init__(self, index: Any) -> None:
        from searcharray import SearchArray

        super().__init__(index)
        texts = [index.text(row) for row in range(index.n_rows)]
        per_field = [[text[name] for text in texts] for name in index.fields]
        whole = [" ".join(text.values()) for text in texts]
        self.arrays = [SearchArray.index(one, tokenizer=self.analyzer.terms) for one in (*per_field, whole)]

    def frequencies(self, stream: int, rows: Any, terms: list[str]) -> tuple[Any, Any, Any]:
        """Compute the frequencies of all documents, and select those of the candidates."""
        array = self.arrays[stream]
        frequencies = [array.termfreqs(term) for term in terms]
        n = np.array([array.docfreq(term) for term in terms], np.float64)
        return np.column_stack([tf[rows] for tf in frequencies]), n, np.array([tf.sum() for tf in frequencies])


def time_queries(compute: Callable[[str, Any], Any], queries: Any, grades: Any) -> float:
    """Return pairs per second of processor time, query by query."""
    n_pairs = sum(len(grades[query]) for query in queries)
    with np.errstate(all="ignore"):
        started = time.process_time()
        for query, text in queries.items():
            if text:
                compute(text, grades[query])
        return n_pairs / (time.process_time() - started)


def time_tantivy(index: Any, queries: Any, grades: Any) -> float:
    """Return `explain` calls per second: one call for each pair and stream."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("row", stored=True, indexed=True)
    names = [*STREAMS.values(), "whole"]
    for name in names:
        builder.add_text_field(name, tokenizer_name="en_stem")
    peer = tantivy.Index(builder.build())
    writer = peer.writer(num_threads=1)
    for row in range(index.n_rows):
        document = tantivy.Document()
        document.add_unsigned("row", row)
        for name, text in index.text(row).items():
            document.add_text(name, text)
            document.add_text("whole", text)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    peer.reload()
    searcher = peer.searcher()
    found = searcher.search(tantivy.Query.all_query(), index.n_rows).hits
    address = {searcher.doc(one)["row"][0]: one for _, one in found}

    def explain(text: str, documents: Any) -> None:
        words = "".join(c if c.isalnum() else " " for c in text)
        for name in names:
            query = peer.parse_query(words, [name])
            for row in index.rows(documents).tolist():
                with suppress(ValueError):  # the document does not match
                    query.explain(searcher, address[row]).to_json()

    return time_queries(explain, queries, grades)


def child(tool: str, n_queries: int) -> dict[str, Any]:
    """Return pairs per second of one tool."""
    index, queries, grades = films(n_queries)
    if tool == "tantivy":
        return {"pairs": time_tantivy(index, queries, grades)}
    if tool in ("numpy", "searcharray"):
        compute = Prototype(index) if tool == "numpy" else SearchArrays(index)
        check(index, queries, grades, compute)
        return {"pairs": time_queries(compute.rows, queries, grades)}
    chosen = features()
    few = dict(list(queries.items())[:50])
    chosen.compute(index, few, {query: grades[query] for query in few})  # kernels
    best = 0.0
    for _ in range(3):
        started = time.process_time()
        data = chosen.compute(index, queries, grades, n_threads=1)
        best = max(best, len(data) / (time.process_time() - started))
    return {"pairs": best}


def check(index: Any, queries: Any, grades: Any, compute: Any) -> None:
    """Raise if the values of the first queries differ from Podium's; searcharray's lengths of lists may differ."""
    chosen = features()
    for query, text in list(queries.items())[:5]:
        with np.errstate(all="ignore"):
            theirs = compute.rows(text, grades[query])
        ours = chosen.rows(index, text, index.rows(grades[query]))
        if not np.allclose(ours, theirs, rtol=1e-6, atol=1e-9, equal_nan=True):
            columns = np.flatnonzero(~np.isclose(ours, theirs, rtol=1e-6, atol=1e-9, equal_nan=True).all(0))
            raise AssertionError(f"{text!r}: other values of {[chosen.names[k] for k in columns[:5]]}")


def run(queries: dict[str, int] = QUERIES) -> Report:
    """Measure all tools, each in a separate process."""
    rates = {tool: in_child("bench.feature_pairs", tool, n)["pairs"] for tool, n in queries.items()}
    rows = [
        {
            "": NAMES[tool],
            "queries": f"{queries[tool]:,}",
            "pairs a second of one core": f"{rate:,.0f}",
            "Podium's factor": "" if tool == "podium" else f"{rates['podium'] / rate:,.0f} ×",
        }
        for tool, rate in rates.items()
    ]
    notes = [
        "MSRD: 9,750 films, the judged films of each query, and the 125 text features of `mslr()` on four fields and "
        "on all fields as one. NumPy and searcharray give Podium's values (checked). tantivy's explain returns the "
        "inputs of BM25 for the five streams; its answers are not parsed.",
    ]
    return Report("feature_pairs", "Features of pairs: pairs per second", rows, notes)


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], int(sys.argv[2]))))
