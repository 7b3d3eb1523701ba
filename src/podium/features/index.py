"""An index of documents: text fields with their statistics, and numeric attributes."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from podium.core.array_types import Floats, Int32s, Ints
from podium.core.files import unfinished_folder
from podium.core.progress import progress
from podium.core.validation import require_whole, to_path
from podium.errors import DataError, FileFormatError
from podium.features.analyzer import Analyzer
from podium.features.building import IndexBuilder
from podium.features.documents import read_records
from podium.features.field import Field, with_postings, without_rows
from podium.features.index_content import IndexContent, check_content, restored
from podium.features.index_folder import (
    FOLDER,
    read_folder,
    require_replaceable,
    stemmer_version,
    warn_of_stemmer,
    write_folder,
)
from podium.features.memo import Memo

if TYPE_CHECKING:
    from podium.features.feature import Feature


@dataclass(frozen=True)
class Hits:
    """The results of a search, best first; documents with equal scores are in ascending order of their ids.

    Attributes:
        ids: the ids of the documents.
        scores: their scores.
        rows: their rows in the index.

    """

    ids: list[str]
    scores: Floats
    rows: Ints


class Index(Memo):
    """Documents with text fields and numeric attributes, ready for features and search.

    Statistics are integers over the live documents, so that any order of additions, removals and merges gives the same
    scores. Use `Index.build` to build an index, and `Index.load` to open a saved one.

    Attributes:
        fields: the text fields in the order of `build`.
        attributes: the numeric attributes of each row, NaN if missing.
        ids: the document id of each row.
        is_live: whether each row's document is still in the index.
        id_column: the column that the ids came from.

    Example:
        >>> from podium.features import Index
        >>> documents = [{"id": "a", "title": "Red shoes", "price": 9.5}, {"id": "b", "title": "Blue hat"}]
        >>> index = Index.build(documents, fields={"title": "english"})
        >>> len(index), index.fields["title"].n_words, index.attributes["price"].tolist()
        (2, 4, [9.5, nan])
        >>> index.search("shoe").ids
        ['a']

    """

    def __init__(self, content: IndexContent, folder: Path | None = None) -> None:
        self._folder = folder  # the folder of the arrays, if they are in files
        self._become(content)

    @classmethod
    def build(
        cls,
        documents: Any,
        fields: Mapping[str, str | Analyzer],
        id: str = "id",  # noqa: A002
        attributes: Sequence[str] | None = None,
        positions: bool = False,
        store_text: bool = True,
        folder: str | os.PathLike[str] | None = None,
    ) -> Index:
        """Index documents.

        Args:
            documents: one or several paths to JSONL, CSV, TSV (compressed or not) or Parquet; a data frame; or an
                iterable of dictionaries.
            fields: the analyzer of each text field: `english`, `standard`, `german(stem=false)`, …
            id: the column of document ids.
            attributes: the numeric columns to keep; by default all columns that contain only numbers.
            positions: whether to store the positions of terms, for proximity and phrase features.
            store_text: whether to store the text of fields, for snippets.
            folder: a folder to save the index to while it is built, for collections larger than memory. Then only
                vocabularies, ids and attributes are in memory.

        """
        analyzers = {name: Analyzer.parse(text) for name, text in _checked_fields(fields, id).items()}
        path = None if folder is None else require_replaceable(FOLDER, folder)
        with _workspace(path) as workspace:
            builder = IndexBuilder(analyzers, id, attributes, positions, store_text, workspace)
            _read_into(builder, documents)
            builder.require_fields()
            index = cls(builder.finish())
            if path is not None:
                index.save(path)
        return index

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, verify: bool = True) -> Index:
        """Open a saved index with memory-mapped arrays.

        Args:
            folder: the folder.
            verify: whether to read everything once, to check checksums and bounds. Turn it off only for folders that
                you trust, because kernels do not check indices.

        Raises:
            FileFormatError: if a file is missing or damaged.

        """
        path = to_path(folder)
        manifest, arrays = read_folder(path, verify)
        with FOLDER.reporting_damage(path):
            names = [str(field["analyzer"]) for field in manifest["fields"]]
        try:
            analyzers = [Analyzer.parse(name) for name in names]
        except DataError as error:
            raise FileFormatError(path, f"cannot be opened: {error}") from None
        with FOLDER.reporting_damage(path):
            content = restored(manifest, arrays, analyzers)
            if verify:
                check_content(content)
        if any(analyzer.stems for analyzer in analyzers):
            warn_of_stemmer(path, manifest.get("snowballstemmer"))
        return cls(content, path.resolve())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the index to a folder, replacing an index that exists there, and map its arrays from the files.

        If the process is killed, the folder contains either the old or the new index. Unchanged files are kept.
        """
        path = require_replaceable(FOLDER, folder)
        with unfinished_folder(path) as workspace:
            fields = {
                name: with_postings(field, workspace, f"field{k}")
                for k, (name, field) in enumerate(self.fields.items())
            }
            content = replace(self.content, fields=fields)
            description = content.description() | {"snowballstemmer": stemmer_version()}
            arrays = write_folder(path, description, content.arrays())
        self._folder = path
        self._become(restored(description, arrays, [field.analyzer for field in fields.values()]))

    def set_attributes(self, columns: Mapping[str, ArrayLike]) -> None:
        """Add or replace numeric attributes of documents: one number for each row, NaN if missing.

        Example:
            >>> from podium.features import Index
            >>> index = Index.build([{"id": "a", "title": "Tea"}], fields={"title": "english"})
            >>> index.set_attributes({"pagerank": [0.5]})
            >>> index.attributes["pagerank"].tolist()
            [0.5]

        """
        arrays = {name: np.array(values, np.float64) for name, values in columns.items()}
        for name, values in arrays.items():
            if values.shape != (self.n_rows,):
                raise DataError(
                    f"attribute {name!r}: expected one number for each of {self.n_rows} rows, but its shape is "
                    f"{values.shape}"
                )
            if name in self.fields:
                raise DataError(f"attribute {name!r}: the index already has a text field of this name")
        names = self.content.attribute_names
        names = None if names is None else tuple(dict.fromkeys([*names, *arrays]))
        attributes = dict(sorted((self.content.attributes | arrays).items()))
        self._become(replace(self.content, attributes=attributes, attribute_names=names))

    @property
    def has_positions(self) -> bool:
        """Whether the positions of terms are stored."""
        return all(field.has_positions for field in self.fields.values())

    @property
    def has_texts(self) -> bool:
        """Whether the text of fields is stored."""
        return self.content.texts is not None

    @property
    def n_rows(self) -> int:
        """The number of rows: live documents, and those removed since the last addition."""
        return len(self.is_live)

    def __len__(self) -> int:
        return next(iter(self.fields.values())).n_documents

    def __repr__(self) -> str:
        fields = ", ".join(f"{name} ({field.analyzer})" for name, field in self.fields.items())
        return f"<Index of {len(self)} documents: {fields}>"

    def add(self, documents: Any) -> None:
        """Add documents in any form that `build` accepts; an error leaves the index unchanged."""
        with self._rebuilt() as builder:
            _read_into(builder, documents)

    def merge(self, other: Index) -> None:
        """Add the documents of another index with the same fields; an error leaves the index unchanged."""
        for argument, name in (("fields", "analyzers"), ("positions", "has_positions"), ("store_text", "has_texts")):
            here, there = getattr(self, name), getattr(other, name)
            if here != there:
                raise DataError(f"only indexes with the same {argument} can be merged, but got {here} and {there}")
        with self._rebuilt() as builder:
            builder.copy(other.content)

    def remove(self, ids: Iterable[Any]) -> None:
        """Remove documents by id; raise if an id is unknown or occurs twice, leaving the index unchanged."""
        keys = [ids] if isinstance(ids, str) else [str(key) for key in ids]
        rows, counts = self.rows(keys), Counter(keys)
        for key, row in zip(keys, rows.tolist(), strict=True):
            if row < 0 or counts[key] > 1:
                problem = "is not in the index" if row < 0 else "occurs twice"
                raise DataError(f"remove: {key!r} {problem}")
        is_live = self.is_live.copy()
        is_live[rows] = False
        fields = {name: without_rows(field, np.sort(rows)) for name, field in self.fields.items()}
        self._become(replace(self.content, fields=fields, is_live=is_live))

    @property
    def analyzers(self) -> dict[str, str]:
        """The analyzer of each field."""
        return {name: str(field.analyzer) for name, field in self.fields.items()}

    @contextmanager
    def _rebuilt(self) -> Iterator[IndexBuilder]:
        """Yield a builder that has the live documents; then replace the content by that of the builder."""
        analyzers = {name: field.analyzer for name, field in self.fields.items()}
        names = self.content.attribute_names
        with _workspace(self._folder) as workspace:
            builder = IndexBuilder(analyzers, self.id_column, names, self.has_positions, self.has_texts, workspace)
            builder.copy(self.content)
            yield builder
            self._become(builder.finish())

    def __reduce__(self) -> Any:
        return Index, (self.content, self._folder)

    def _become(self, content: IndexContent) -> None:
        """Replace the content, and drop everything computed from the old one."""
        folder = self._folder
        vars(self).clear()
        self.content, self._folder = content, folder
        self.fields: Mapping[str, Field] = content.fields
        self.attributes: Mapping[str, Floats] = content.attributes
        self.ids, self.is_live, self.id_column = content.ids, content.is_live, content.id_column

    @cached_property
    def _row_of(self) -> dict[str, int]:
        """The row of each live document."""
        return {key: row for row, (key, live) in enumerate(zip(self.ids, self.is_live.tolist(), strict=True)) if live}

    def rows(self, ids: Iterable[Any]) -> Ints:
        """Return the row of each document, −1 if it is not in the index."""
        row_of = self._row_of
        return np.array([row_of.get(str(key), -1) for key in ids], np.int64)

    def require_rows(self, ids: Sequence[Any]) -> Ints:
        """Return the row of each document; raise if the index lacks one."""
        rows = self.rows(ids)
        if (rows < 0).any():
            raise DataError(f"the index has no document {ids[int(np.argmax(rows < 0))]!r}")
        return rows

    def text(self, row: int) -> dict[str, str]:
        """Return the stored text of a document's fields."""
        if self.content.texts is None:
            raise DataError("the index does not store text: build it with store_text=True")
        return {name: strings[row] for name, strings in self.content.texts.items()}

    def digest(self) -> str:
        """Return a digest of the collection statistics, which does not depend on the order of documents."""
        return self.once("digest", self._digest)

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for name, field in self.fields.items():
            order = field.vocabulary.order()
            order = order[field.document_frequency[order] > 0]
            head = [name, str(field.analyzer), field.n_documents, field.n_words, len(order)]
            digest.update(json.dumps(head).encode())
            vocabulary = list(field.vocabulary)
            digest.update("\0".join(vocabulary[k] for k in order.tolist()).encode())
            digest.update(field.document_frequency[order].astype("<i4").tobytes())
            digest.update(field.occurrences[order].astype("<i8").tobytes())
        return digest.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return statistics of the index: documents, fields with their words and terms, attributes, digest."""
        fields = {
            name: {
                "analyzer": str(field.analyzer),
                "words": field.n_words,
                "mean_length": field.mean_length,
                "terms": int(np.count_nonzero(field.document_frequency)),
                "empty_documents": int(np.count_nonzero(self.is_live & (field.lengths == 0))),
                "positions": field.has_positions,
            }
            for name, field in self.fields.items()
        }
        attributes = {
            name: {"missing": int(np.isnan(values[self.is_live]).sum())} for name, values in self.attributes.items()
        }
        return {
            "documents": len(self),
            "removed_rows": self.n_rows - len(self),
            "fields": fields,
            "attributes": attributes,
            "stores_text": self.has_texts,
            "digest": self.digest(),
        }

    def search(self, text: str, k: int = 10, by: str | Feature = "bm25") -> Hits:
        """Return the best k documents for a query, exactly.

        Args:
            text: the query. A document matches if it contains any of the terms; repeated terms count once.
            k: the maximum number of documents.
            by: the feature to rank by: `bm25` over all fields, `bm25(title, b=0.3)`, `bm25f(title:3, body)`, … BM25
                skips documents that cannot be among the best; other features score every matching document.

        """
        if not isinstance(text, str):
            raise DataError(f"the query must be text, but got {text!r:.40}")
        return self.search_many([text], k, by)[0]

    def search_many(
        self, texts: Sequence[str], k: int = 10, by: str | Feature = "bm25", n_threads: int | None = None
    ) -> list[Hits]:
        """Return the best k documents for each of several queries, using threads."""
        from podium.features.feature import as_feature
        from podium.features.search import search

        require_whole("k", k, 1)
        tops = search(self, list(texts), k, as_feature(by), n_threads)
        return [Hits([self.ids[row] for row in rows.tolist()], scores, rows) for rows, scores in tops]

    @cached_property
    def id_ranks(self) -> Int32s:
        """The rank of each row's id among all ids in ascending order."""
        ranks = np.empty(self.n_rows, np.int32)
        ranks[self.ids.order()] = np.arange(self.n_rows)
        return ranks


def _workspace(folder: Path | None) -> AbstractContextManager[Path | None]:
    """Return a context with a temporary folder next to an index in files, or None for an index in memory.

    Arrays in its files stay mapped, and so readable, after the folder is removed.
    """
    return nullcontext() if folder is None else unfinished_folder(folder)


def _checked_fields(fields: Any, id_column: str) -> Mapping[str, str | Analyzer]:
    """Return the analyzers by field; raise if they are invalid."""
    if not isinstance(fields, Mapping) or not fields:
        raise DataError(f"fields must map fields to analyzers, as in {{'title': 'english'}}, but got {fields!r}")
    for name in fields:
        if not isinstance(name, str) or not name:
            raise DataError(f"fields: expected the name of a column, but got {name!r}")
        if name == id_column:
            raise DataError(f"fields: {name!r} is the column of document ids")
    return fields


def _read_into(builder: IndexBuilder, documents: Any) -> None:
    """Add all documents of a source, with a progress bar on terminals."""
    with progress("indexing", _total(documents)) as advance:
        for record in read_records(documents, [builder.id_column, *builder.fields], advance):
            builder.add(record)
            if record.file is None:
                advance(1)


def _total(documents: Any) -> float | None:
    """Return the size of a file, or the number of documents, if it is known."""
    if isinstance(documents, str | os.PathLike):
        path = Path(documents)
        return path.stat().st_size if path.is_file() else None
    if isinstance(documents, Sequence) and documents and isinstance(documents[0], str | os.PathLike):
        return None
    return len(documents) if hasattr(documents, "__len__") else None
