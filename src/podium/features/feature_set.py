"""The class `FeatureSet`, which computes ranking data from queries and judgements, or the features of one query."""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.files import write_text
from podium.core.progress import progress
from podium.core.threads import map_threads
from podium.data.encoding import precision
from podium.errors import DataError, FileFormatError, PodiumWarning
from podium.features.attributes import Attribute
from podium.features.documents import read_judgements, read_queries
from podium.features.feature import Feature, TermSum, as_feature
from podium.features.matches import PairBlock

if TYPE_CHECKING:
    from podium.data import RankingData
    from podium.features.index import Index

PAIRS_AT_ONCE = 8192  # for queries with few words
FEW_WORDS = 16  # longer queries count as more pairs, so that blocks of long queries fit into memory
SAMPLE = 1024  # pairs to determine which features need float64
FORMAT, VERSION = "podium features", 1
_TOP = re.compile(r"\s*(?P<by>.+?)\s+top\s+(?P<k>\d+)\s*", re.DOTALL)


class FeatureValue(NamedTuple):
    """The value of a feature for one query and document.

    Attributes:
        feature: the text of the feature.
        value: the value, NaN if it is undefined.
        terms: the contribution of each query term if the feature is a sum over terms; else empty.

    """

    feature: str
    value: float
    terms: dict[str, float]


class FeatureSet(Sequence[Feature]):
    """An ordered set of features; `compute` returns ranking data.

    Args:
        features: texts such as `"bm25(title)"`, or `Feature` values; duplicates are dropped.
        left_out: the features of a preset that cannot be computed, with the reasons.

    Attributes:
        names: the texts of the features, which are also the feature names of the data.

    Example:
        >>> from podium.features import FeatureSet, Index
        >>> documents = [{"id": "a", "title": "Red shoes"}, {"id": "b", "title": "Blue hat"}]
        >>> index = Index.build(documents, fields={"title": "english"})
        >>> features = FeatureSet(["covered(title)", "bm25(title)"])
        >>> data = features.compute(index, {"q": "red hat"}, {"q": {"a": 1, "b": 0}})
        >>> data
        RankingData(2 documents in 1 queries, 2 features, labels: relevance, document_ids)
        >>> data.feature("covered(title)").tolist()
        [1.0, 1.0]

    """

    def __init__(self, features: Iterable[Feature | str], left_out: Iterable[str] = ()) -> None:
        self.features = tuple(dict.fromkeys(as_feature(feature) for feature in features))
        self.left_out = tuple(left_out)
        self.names = tuple(map(str, self.features))
        if not self.features:
            raise DataError("a feature set needs at least one feature, for example 'bm25(title)'")

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, number: Any) -> Any:
        return self.features[number]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureSet) and self.features == other.features

    def __hash__(self) -> int:
        return hash(self.features)

    def __repr__(self) -> str:
        return f"FeatureSet({list(self.names)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the set in JSON types."""
        left_out = {"left_out": list(self.left_out)} if self.left_out else {}
        return {"format": FORMAT, "version": VERSION, "features": list(self.names), **left_out}

    @classmethod
    def from_dict(cls, content: Any, name: str = "feature set") -> FeatureSet:
        """Return the set that `to_dict` described; errors refer to it as `name`."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileFormatError(name, "is not a Podium feature set")
        if content.get("version") != VERSION:
            raise FileFormatError(
                name, f"has version {content.get('version')!r}, but this version of Podium reads {VERSION}"
            )
        for key in ("features", "left_out"):
            texts = content.get(key, [])
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise FileFormatError(name, f"{key!r} must be a list of texts")
        try:
            return cls(content.get("features", []), content.get("left_out", []))
        except DataError as error:
            raise FileFormatError(name, str(error)) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the set as JSON."""
        write_text(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FeatureSet:
        """Read a set that `save` wrote."""
        try:
            content = json.loads(Path(path).read_bytes())
        except ValueError as error:
            raise FileFormatError(os.fspath(path), f"is not valid JSON: {error}") from None
        return cls.from_dict(content, os.fspath(path))

    def check(self, index: Index) -> None:
        """Raise a `DataError` if the index lacks something that a feature requires."""
        for feature in self.features:
            feature.check(index)

    def compute(
        self,
        index: Index,
        queries: Any,
        judgements: Any = None,
        candidates: str | Mapping[Any, Iterable[Any]] | None = None,
        *,
        unjudged: float = 0.0,
        n_threads: int | None = None,
    ) -> RankingData:
        """Return ranking data with a row for each candidate of each query.

        Args:
            index: the documents.
            queries: the text of each query, in any form that `read_queries` accepts.
            judgements: the grades, in any form that `read_judgements` accepts. Queries without judgements are dropped
                with a warning. Without `judgements`, the data has no labels.
            candidates: `"judged"` for the judged documents (the default with judgements), a text such as
                `"bm25 top 100"` for the top documents by a feature that `Index.search` accepts, or the document ids
                of each query.
            unjudged: the label of candidates without a judgement; NaN leaves them unlabelled.
            n_threads: the number of threads; all cores by default. The values do not depend on it.

        """
        from podium.data import RankingData

        self.check(index)
        pairs = _Pairs.of(index, read_queries(queries), judgements, candidates, unjudged, n_threads)
        matrix = self._matrix(index, pairs, n_threads)
        return RankingData(
            matrix, pairs.labels, qid=np.repeat(np.array(pairs.ids, object), np.diff(pairs.starts)),
            document_ids=pairs.documents, feature_names=list(self.names),
        )  # fmt: skip

    def rows(self, index: Index, text: str, rows: Any) -> Floats:
        """Return a row of features for each of the documents in these rows of the index, for one query.

        `compute` returns the same values, rounded to the precision of ranking data.
        """
        self.check(index)
        if not isinstance(text, str):
            raise DataError(f"the query must be text, but got {text!r:.60}")
        rows = np.asarray(rows, np.int64)
        if rows.ndim != 1 or (len(rows) and not (0 <= rows.min() and rows.max() < index.n_rows)):
            raise DataError(f"rows must be a list of row numbers of the index, from 0 to {index.n_rows - 1}")
        block = PairBlock.of_query(index, text, rows)
        values: Floats = self._values(block, np.empty((len(rows), len(self))))
        return values

    def explain(self, index: Index, text: str, document: Any) -> list[FeatureValue]:
        """Return the value of each feature for a query and a document, with the contributions of terms."""
        rows = index.require_rows([document])
        self.check(index)
        block = PairBlock.of_query(index, text, rows)
        return [
            FeatureValue(str(feature), float(feature.column(block)[0]), _terms(feature, block))
            for feature in self.features
        ]

    def _values(self, block: PairBlock, out: Any, wide: Collection[int] = ()) -> Any:
        """Write the features of a block; if some are `wide`, round all others to float32 first."""
        columns = np.empty(out.shape[::-1], out.dtype)  # to transpose once; writing each column into rows is slower
        with np.errstate(all="ignore"):
            for number, feature in enumerate(self.features):
                column = feature.column(block)
                columns[number] = column.astype(np.float32) if wide and number not in wide else column
        out[:] = columns.T
        return out

    def _matrix(self, index: Index, pairs: _Pairs, n_threads: int | None) -> Floats | Float32s:
        """Compute all pairs in float32, or in float64 if there are columns such as timestamps.

        `RankingData` then shifts large values that differ by less than float32 can represent.
        """
        wide = self._wide(index, pairs)
        matrix = np.empty((len(pairs.rows), len(self)), np.float64 if wide else np.float32)

        def fill(span: tuple[int, int]) -> int:
            rows = matrix[pairs.starts[span[0]] : pairs.starts[span[1]]]
            self._values(pairs.block(index, span), rows, wide)
            return len(rows)

        with progress("features", len(pairs.rows)) as advance:
            for done in map_threads(fill, list(pairs.blocks(PAIRS_AT_ONCE)), n_threads):
                advance(done)
        return matrix

    def _wide(self, index: Index, pairs: _Pairs) -> set[int]:
        """Return the numbers of the features whose values are so large that they may become equal in float32."""
        span = next(pairs.blocks(SAMPLE))
        sample = self._values(pairs.block(index, span), np.empty((pairs.starts[span[1]], len(self))))
        columns = dict(enumerate(sample.T))
        columns |= {
            k: np.asarray(index.attributes[feature.fields[0]], np.float64)
            for k, feature in enumerate(self.features) if isinstance(feature, Attribute)
        }  # fmt: skip
        with np.errstate(over="ignore"):
            return {k for k, values in columns.items() if precision(values, values.astype(np.float32)).is_large}


def _terms(feature: Feature, block: PairBlock) -> dict[str, float]:
    """Return the contribution of each term of the block's only pair to a feature."""
    if not isinstance(feature, TermSum):
        return {}
    forms = block.matches(feature.fields).layout.forms
    names = ["/".join(dict.fromkeys(filter(None, term))) for term in zip(*forms, strict=True)]
    with np.errstate(all="ignore"):
        return dict(zip(names, feature.term_values(block).tolist(), strict=True))


class _Pairs(NamedTuple):
    """The candidates of all queries, query by query."""

    ids: list[str]
    texts: list[str]
    starts: Ints
    rows: Ints
    documents: NDArray[np.object_]
    labels: Floats | None

    @classmethod
    def of(
        cls, index: Index, queries: dict[str, str], judgements: Any, candidates: Any, unjudged: float,
        n_threads: int | None,
    ) -> _Pairs:  # fmt: skip
        """Return the candidates and labels of the queries; see `FeatureSet.compute`."""
        if not queries:
            raise DataError("pass at least one query")
        grades = None if judgements is None else read_judgements(judgements)
        if grades is not None:
            queries = _judged(queries, grades)
        ids, texts = list(queries), list(queries.values())
        if candidates in (None, "judged"):
            if grades is None:
                raise DataError("candidates='judged' requires judgements: pass them, or use candidates='bm25 top 100'")
            rows_by_query = _rows_in_index(index, ids, [list(grades[query]) for query in ids], "judged documents")
        elif isinstance(candidates, Mapping):
            by_query = {str(query): list(documents) for query, documents in candidates.items()}
            rows_by_query = _rows_in_index(index, ids, [by_query.get(query, []) for query in ids], "candidates")
        else:
            rows_by_query = _top(index, texts, candidates, n_threads)
        nonempty = [k for k, rows in enumerate(rows_by_query) if len(rows)]
        if not nonempty:
            raise DataError("no query has a candidate in the index")
        if len(nonempty) < len(ids):
            _warn(f"{len(ids) - len(nonempty)} of {len(ids)} queries have no candidate in the index and are dropped")
            ids, texts = [ids[k] for k in nonempty], [texts[k] for k in nonempty]
            rows_by_query = [rows_by_query[k] for k in nonempty]
        rows, starts = np.concatenate(rows_by_query), np.cumsum([0, *map(len, rows_by_query)])
        distinct, place = np.unique(rows, return_inverse=True)
        documents = np.array([index.ids[int(row)] for row in distinct], object)[place]
        labels = None if grades is None else _labels(ids, starts, documents, grades, unjudged)
        return cls(ids, texts, starts, rows, documents, labels)

    def block(self, index: Index, span: tuple[int, int]) -> PairBlock:
        """Return the pairs of some queries."""
        starts = self.starts[span[0] : span[1] + 1]
        return PairBlock(index, self.texts[slice(*span)], self.rows[starts[0] : starts[-1]], starts - starts[0])

    def blocks(self, size: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of queries with about `size` pairs; a query is never divided."""
        n_words = np.array([text.count(" ") + 1 for text in self.texts])
        ends = np.cumsum(np.diff(self.starts) * np.maximum(n_words // FEW_WORDS, 1))
        first = n_pairs = 0
        while first < len(self.ids):
            last = max(int(np.searchsorted(ends, n_pairs + size, "right")), first + 1)
            yield first, last
            first, n_pairs = last, int(ends[last - 1])


def _warn(message: str) -> None:
    warnings.warn(message, PodiumWarning, stacklevel=5)


def _judged(queries: dict[str, str], grades: Mapping[str, Any]) -> dict[str, str]:
    """Return the queries that have judgements."""
    judged = {query: text for query, text in queries.items() if grades.get(query)}
    if not judged:
        raise DataError(
            f"no query has a judgement: the query ids are {', '.join(map(repr, list(queries)[:3]))}, …, but the "
            f"judgements are for {', '.join(map(repr, list(grades)[:3])) or 'none'}"
        )
    if len(judged) < len(queries):
        _warn(f"{len(queries) - len(judged)} of {len(queries)} queries have no judgement and are dropped")
    return judged


def _rows_in_index(index: Index, queries: list[str], documents: list[list[Any]], what: str) -> list[Ints]:
    """Return the rows of each query's documents; warn if the index lacks some."""
    all_documents = list(chain.from_iterable(documents))
    rows = index.rows(all_documents)
    is_known = rows >= 0
    if not is_known.all():
        n_unknown, first = int((~is_known).sum()), all_documents[int(np.argmin(is_known))]
        _warn(f"{n_unknown} of {len(rows)} {what} are not in the index and are dropped, for example {first!r}")
    query_of_row = np.repeat(np.arange(len(queries)), list(map(len, documents)))[is_known]
    rows = rows[is_known]
    pairs, counts = np.unique(query_of_row * index.n_rows + rows, return_counts=True)
    if len(pairs) < len(rows):
        raise DataError(f"query {queries[pairs[counts.argmax()] // index.n_rows]!r} has the same candidate twice")
    return np.split(rows, np.searchsorted(query_of_row, np.arange(1, len(queries))))


def _top(index: Index, texts: list[str], candidates: Any, n_threads: int | None) -> list[Ints]:
    """Return the rows of the top documents by a feature."""
    match = _TOP.fullmatch(candidates) if isinstance(candidates, str) else None
    if match is None or int(match["k"]) == 0:
        raise DataError(
            f"candidates must be 'judged', text such as 'bm25 top 100', or document ids by query, but got "
            f"{candidates!r}"
        )
    return [hits.rows for hits in index.search_many(texts, int(match["k"]), match["by"], n_threads=n_threads)]


def _labels(
    ids: list[str], starts: Ints, documents: NDArray[np.object_], grades: Mapping[str, Mapping[str, float]],
    unjudged: float,
) -> Floats:  # fmt: skip
    """Return the grade of each candidate."""
    if isinstance(unjudged, bool) or not isinstance(unjudged, int | float) or math.isinf(unjudged):
        raise DataError(f"unjudged must be a number or NaN, but got {unjudged!r}")
    by_query = zip(ids, starts[:-1], starts[1:], strict=True)
    labels = [grades[query].get(name, unjudged) for query, first, last in by_query for name in documents[first:last]]
    return np.array(labels, np.float64)
