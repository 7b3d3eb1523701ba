"""Building the arrays of an index from documents, block by block."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Ints
from podium.core.validation import did_you_mean
from podium.errors import DataError
from podium.features.analyzer import Analyzer
from podium.features.documents import Record, encoded, id_of, number_of, text_of
from podium.features.field import POSITION_ARRAYS, ROW_ARRAYS, Field, count_terms, ragged
from podium.features.index_content import IndexContent
from podium.features.index_folder import Spool
from podium.features.strings import Strings
from podium.features.word_table import SEPARATOR, WordTable

BYTES_AT_ONCE = 1 << 23  # text to collect before its words are sorted
ENTRIES_AT_ONCE = 1 << 22  # entries to copy from another index at a time
STARTS = {"starts", "position_starts"}  # arrays with one more number, which begin with 0

NewSpool = Callable[[str, Any], Spool]


class FieldBuilder:
    """Collects the terms of one field.

    A block of text is collected before its words are numbered and sorted, which is faster than document by document.
    """

    def __init__(self, name: str, analyzer: Analyzer, has_positions: bool, new_spool: NewSpool) -> None:
        self.name, self.analyzer = name, analyzer
        types = ROW_ARRAYS | (POSITION_ARRAYS if has_positions else {})
        self.arrays = {label: new_spool(f"{name}.{label}", dtype) for label, dtype in types.items()}
        for start in STARTS & self.arrays.keys():
            self.arrays[start].append(np.zeros(1, np.int64))
        self.numbers: dict[str, int] = {}  # the number of each term
        self.words = WordTable()
        self.term_of_word = np.empty(0, np.int64)  # the number of each word's term, −1 for stop words
        self.block, self.is_split, self.n_bytes = list[bytes](), list[bool](), 0

    def add(self, text: str) -> None:
        """Add the text of the next document."""
        plain = self.analyzer.ascii_text(text)
        document = (SEPARATOR.join(self.analyzer.words(text)) if plain is None else plain).encode()
        self.block.append(document)
        self.is_split.append(plain is None)
        self.n_bytes += len(document)
        if self.n_bytes >= BYTES_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Sort the words of the block by document and term, and append them to the arrays."""
        if not self.block:
            return
        words, ends = self.words.number(self.block, self.is_split)
        self.block, self.is_split, self.n_bytes = [], [], 0
        new_words = map(self.words.word, range(len(self.term_of_word), self.words.size))
        new_terms = [self._number(self.analyzer.term(word)) for word in new_words]
        self.term_of_word = np.append(self.term_of_word, np.array(new_terms, np.int64))
        terms, ends = self.term_of_word[words], np.append(0, ends)
        is_term = terms >= 0
        if not is_term.all():  # some are stop words
            ends = np.append(0, np.cumsum(is_term))[ends]
            terms = terms[is_term]
        lengths = np.diff(ends)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        positions = np.arange(len(terms)) - np.repeat(ends[:-1], lengths)
        self._append_block(rows, terms, positions, lengths)

    def _number(self, term: str) -> int:
        """Return the number of a term, which may be new; −1 for an empty term."""
        return self.numbers.setdefault(term, len(self.numbers)) if term else -1

    def _append_block(self, rows: Ints, terms: Ints, positions: Ints, lengths: Ints) -> None:
        """Sort the words of some documents by row, term and position, and append them."""
        position_bits, term_bits = int(lengths.max()).bit_length(), len(self.numbers).bit_length()
        if position_bits + term_bits + len(lengths).bit_length() > 63:  # a key would not fit into int64
            middle = len(lengths) // 2
            cut = int(lengths[:middle].sum())
            self._append_block(rows[:cut], terms[:cut], positions[:cut], lengths[:middle])
            self._append_block(rows[cut:] - middle, terms[cut:], positions[cut:], lengths[middle:])
            return
        keys = (((rows << term_bits) | terms) << position_bits) | positions
        keys.sort()
        pairs = keys >> position_bits
        is_first = np.ones(len(pairs), bool)
        is_first[1:] = pairs[1:] != pairs[:-1]
        firsts = np.flatnonzero(is_first)
        counts = np.diff(np.append(firsts, len(pairs)))
        terms, rows = pairs[firsts] & ((1 << term_bits) - 1), pairs[firsts] >> term_bits
        positions = keys & ((1 << position_bits) - 1)
        self._append(terms, counts, np.bincount(rows, minlength=len(lengths)), lengths, positions)

    def _append(
        self, terms: Ints, counts: NDArray[Any], sizes: Ints, lengths: NDArray[Any], positions: NDArray[Any]
    ) -> None:
        """Append the entries of documents, sorted by document and term; `sizes` is their number for each document."""
        arrays = self.arrays
        arrays["starts"].append(arrays["terms"].size + np.cumsum(sizes))
        arrays["terms"].append(terms)
        arrays["counts"].append(counts)
        arrays["lengths"].append(lengths)
        if "positions" in arrays:
            arrays["position_starts"].append(arrays["positions"].size + np.cumsum(counts))
            arrays["positions"].append(positions)

    def copy(self, field: Field, rows: Ints) -> None:
        """Append ascending rows of another field with the same analyzer."""
        self.flush()
        is_empty = not self.arrays["lengths"].size
        numbers = np.array(list(map(self._number, field.vocabulary)), np.int64)
        if is_empty and len(rows) == len(field.lengths):  # terms keep their numbers
            for name, spool in self.arrays.items():
                values = getattr(field, name)
                spool.append(values[1:] if name in STARTS else values)
            return
        sizes = np.diff(field.starts)[rows]
        cuts = np.searchsorted(np.cumsum(sizes), np.arange(ENTRIES_AT_ONCE, sizes.sum(), ENTRIES_AT_ONCE)) + 1
        for block in np.split(rows, np.unique(cuts)):
            self._copy_block(field, block, numbers)

    def _copy_block(self, field: Field, rows: Ints, numbers: Ints) -> None:
        sizes = field.starts[rows + 1] - field.starts[rows]
        entries = ragged(field.starts, rows)
        terms = numbers[field.terms[entries]]
        if (np.diff(numbers) < 0).any():  # the terms have another order in this field
            order = np.argsort((np.repeat(np.arange(len(rows)), sizes) << 32) | terms)
            entries, terms = entries[order], terms[order]
        positions: NDArray[Any] = np.empty(0, np.int32)
        if field.positions is not None and field.position_starts is not None:
            positions = field.positions[ragged(field.position_starts, entries)]
        self._append(terms, field.counts[entries], sizes, field.lengths[rows], positions)

    def finish(self, n_documents: int) -> Field:
        """Return the field."""
        self.flush()
        arrays: dict[str, Any] = {name: spool.finish() for name, spool in self.arrays.items()}
        document_frequency, occurrences = np.zeros((2, len(self.numbers)), np.int64)
        count_terms(arrays["terms"], arrays["counts"], document_frequency, occurrences)
        return Field(
            name=self.name,
            analyzer=self.analyzer,
            vocabulary=Strings.of(self.numbers),
            document_frequency=document_frequency.astype(np.int32),
            occurrences=occurrences,
            n_documents=n_documents,
            n_words=int(arrays["lengths"].sum(dtype=np.int64)),
            **arrays,
        )


class TextBuilder:
    """Collects the text of one field."""

    def __init__(self, name: str, new_spool: NewSpool) -> None:
        self.starts, self.text = new_spool(f"{name}.text_starts", np.int64), new_spool(f"{name}.text", np.uint8)
        self.starts.append(np.zeros(1, np.int64))
        self.block, self.n_bytes = list[bytes](), 0

    def add(self, record: Record, column: str, text: str) -> None:
        """Add the text of the next document."""
        self.block.append(encoded(record, column, text))
        self.n_bytes += len(self.block[-1])
        if self.n_bytes >= BYTES_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Append the block to the arrays."""
        self.starts.append(self.text.size + np.cumsum([len(text) for text in self.block], dtype=np.int64))
        self.text.append(np.frombuffer(b"".join(self.block), np.uint8))
        self.block, self.n_bytes = [], 0

    def copy(self, strings: Strings, rows: Ints) -> None:
        """Append rows of other strings."""
        self.flush()
        runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(rows) else []  # of consecutive rows
        for run in runs:
            starts = strings.starts[run[0] : run[-1] + 2]
            self.starts.append(self.text.size + starts[1:] - starts[0])
            self.text.append(strings.text[starts[0] : starts[-1]])

    def finish(self) -> Strings:
        """Return the strings."""
        self.flush()
        return Strings(self.starts.finish(), self.text.finish())


class AttributeBuilder:
    """Collects the numeric attributes of documents.

    Args:
        names: the attributes; None for all columns that only contain numbers.
        others: the columns of text and ids.

    """

    def __init__(self, names: Sequence[str] | None, others: Iterable[str]) -> None:
        self.names, self.others = names, set(others)
        self.columns: dict[str, array.array[float]] = {name: array.array("d") for name in names or ()}
        self.required = set(names or ())  # these must be numbers; other columns are dropped if they are not

    def add(self, record: Record, row: int) -> None:
        """Add the attributes of the document in a row."""
        values = record.values
        names = self.required if self.names is not None else [name for name in values if name not in self.others]
        for name in names:
            value = number_of(values.get(name))
            if value is not None:
                if value == value:  # not missing
                    self._filled(name, row).append(value)
            elif name in self.required:
                raise record.error(f"the attribute {name!r} must be a number, but got {values[name]!r:.40}")
            else:
                self.columns.pop(name, None)
                self.others.add(name)

    def copy(self, attributes: Mapping[str, Floats], rows: Ints, first_row: int) -> None:
        """Append the attributes of rows of another index."""
        for name, values in attributes.items():
            self.required.add(name)
            self._filled(name, first_row).frombytes(np.ascontiguousarray(values[rows], np.float64).tobytes())

    def _filled(self, name: str, n_rows: int) -> array.array[float]:
        """Return a column with a number, or NaN, for each of the first rows."""
        column = self.columns.setdefault(name, array.array("d"))
        column.extend([np.nan] * (n_rows - len(column)))
        return column

    def finish(self, n_rows: int) -> dict[str, Floats]:
        """Return the columns, NaN where a document has no value."""
        table = {}
        for name, column in sorted(self.columns.items()):
            values = np.full(n_rows, np.nan)
            values[: len(column)] = column
            table[name] = values
        return table


class IndexBuilder:
    """Collects documents, and returns the content of an index.

    Args:
        fields: the analyzer of each field.
        id_column: the column of document ids.
        attributes: the numeric attributes; None for all numeric columns.
        has_positions: whether to store the positions of terms.
        has_texts: whether to store the text of fields.
        folder: a folder for the arrays; None to keep them in memory.

    """

    def __init__(
        self, fields: Mapping[str, Analyzer], id_column: str, attributes: Sequence[str] | None, has_positions: bool,
        has_texts: bool, folder: Path | None = None,
    ) -> None:  # fmt: skip
        def new_spool(name: str, dtype: Any) -> Spool:
            return Spool(dtype, None if folder is None else folder / f"{name}.npy")

        self.id_column, self.has_positions = id_column, has_positions
        self.fields = {
            name: FieldBuilder(name, analyzer, has_positions, new_spool) for name, analyzer in fields.items()
        }
        self.texts = {name: TextBuilder(name, new_spool) for name in fields} if has_texts else None
        self.attributes = AttributeBuilder(attributes, [id_column, *fields])
        self.rows: dict[str, int] = {}
        self.n_copied = 0  # rows that came from other indexes
        self.unseen = set(fields)  # fields that no document has contained so far
        self.columns: set[str] = set()  # the columns of the documents, for an error message

    def add(self, record: Record) -> None:
        """Add a document."""
        key, row = id_of(record, self.id_column), len(self.rows)
        if key in self.rows:
            is_old = self.rows[key] < self.n_copied
            problem = "is already in the index: remove it first" if is_old else "occurs twice"
            raise record.error(f"the document id {key!r} {problem}")
        if self.unseen:
            self.unseen.difference_update(record.values)
            self.columns.update(record.values)
        for name, builder in self.fields.items():
            text = text_of(record, name)
            builder.add(text)
            if self.texts is not None:
                self.texts[name].add(record, name, text)
        self.attributes.add(record, row)
        self.rows[key] = row

    def copy(self, content: IndexContent) -> None:
        """Add the live documents of an index with the same fields."""
        first_row, rows, keys = len(self.rows), np.flatnonzero(content.is_live), content.live_ids()
        if shared := self.rows.keys() & keys:
            raise DataError(f"the document id {min(shared)!r} is in both indexes: remove it from one of them first")
        self.rows.update(zip(keys, range(first_row, first_row + len(keys)), strict=True))
        self.n_copied = len(self.rows)
        for name, builder in self.fields.items():
            builder.copy(content.fields[name], rows)
            if self.texts is not None and content.texts is not None:
                self.texts[name].copy(content.texts[name], rows)
        self.attributes.copy(content.attributes, rows, first_row)
        self.unseen.clear()

    def finish(self) -> IndexContent:
        """Return the content of the index."""
        n_rows = len(self.rows)
        return IndexContent(
            fields={name: field.finish(n_rows) for name, field in self.fields.items()},
            ids=Strings.of(self.rows),
            is_live=np.ones(n_rows, bool),
            attributes=self.attributes.finish(n_rows),
            texts=None if self.texts is None else {name: text.finish() for name, text in self.texts.items()},
            id_column=self.id_column,
            attribute_names=self.attributes.names,
        )

    def require_fields(self) -> None:
        """Raise if no document has a field, which is usually a misspelt name."""
        for name in self.fields:
            if name in self.unseen and self.rows:
                near = did_you_mean(name, map(str, self.columns))
                raise DataError(f"no document has a field {name!r}{near}")
