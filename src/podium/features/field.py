"""The arrays of one text field of an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from podium.core.array_types import Int32s, Ints
from podium.features.analyzer import Analyzer
from podium.features.postings import Postings, invert
from podium.features.spool import Spool, StoredFile, stored_files
from podium.features.strings import Strings


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """The terms of one field of every document, and their statistics.

    Rows of removed documents stay in the arrays, but are not part of the statistics. Terms are numbered in order of
    first occurrence, so no result may depend on the numbers.

    Attributes:
        name: the name of the field.
        analyzer: splits its text into terms.
        vocabulary: the terms by number.
        document_frequency: the number of live documents that contain each term.
        occurrences: the number of occurrences of each term in live documents.
        n_documents: the number of live documents of the index, including those with an empty field.
        n_words: the sum of the lengths of live documents.
        lengths: the number of words of each row; 0 if the field is empty or missing.
        starts: where each row's terms begin in `terms`, and the end of the last row.
        terms: the terms of each row by number, in ascending order.
        counts: the number of occurrences of each entry of `terms`.
        position_starts: where the positions of each entry of `terms` begin, and the end; None without positions.
        positions: the positions of each entry of `terms` in ascending order, from 0.
        stored_postings: the inverted arrays, if they are stored.

    Example:
        >>> from podium.features import Index
        >>> field = Index.build([{"id": 1, "title": "red red hat"}], {"title": "english"}).fields["title"]
        >>> field.counts[field.terms == field.term_ids(["red"])[0]].tolist()
        [2]

    """

    name: str
    analyzer: Analyzer
    vocabulary: Strings
    document_frequency: Int32s
    occurrences: Ints
    n_documents: int
    n_words: int
    lengths: Int32s
    starts: Ints
    terms: Int32s
    counts: Int32s
    position_starts: Ints | None = None
    positions: Int32s | None = None
    stored_postings: Postings | None = None

    def __repr__(self) -> str:
        return f"<Field {self.name!r} ({self.analyzer}): {self.n_words} words, {len(self.vocabulary)} terms>"

    @property
    def has_positions(self) -> bool:
        """Whether the positions of terms are stored."""
        return self.positions is not None

    @property
    def n_terms(self) -> int:
        """The size of the vocabulary, including terms of removed documents."""
        return len(self.vocabulary)

    @property
    def mean_length(self) -> float:
        """The mean length of live documents; NaN without documents."""
        return self.n_words / self.n_documents if self.n_documents else float("nan")

    def term_ids(self, terms: Sequence[str]) -> Int32s:
        """Return the number of each term, −1 if the field does not contain it."""
        place_of = self.vocabulary.place_of
        return np.array([place_of.get(term, -1) for term in terms], np.int32)

    @cached_property
    def postings(self) -> Postings:
        """The rows that contain each term, including removed documents; stored, or computed on first use."""
        if self.stored_postings is not None:
            return self.stored_postings
        return invert(self.starts, self.terms, self.counts, self.n_terms, Spool(np.int32), Spool(np.int32))


def with_postings(field: Field, folder: Path, label: str) -> tuple[Field, dict[int, StoredFile]]:
    """Return the field with its postings, computed in files of a folder if necessary, and these files."""
    if field.stored_postings is not None or "postings" in vars(field):
        return replace(field, stored_postings=field.postings), {}
    rows, counts = (Spool(np.int32, folder / f"{label}.posting_{name}.npy") for name in ("rows", "counts"))
    postings = invert(field.starts, field.terms, field.counts, field.n_terms, rows, counts)
    return replace(field, stored_postings=postings), stored_files([rows, counts])


def without_rows(field: Field, rows: Ints) -> Field:
    """Return the field with the statistics after removal of the documents of these rows."""
    document_frequency, occurrences = field.document_frequency.copy(), field.occurrences.copy()
    entries = ragged(field.starts, rows)
    np.subtract.at(document_frequency, field.terms[entries], 1)
    np.subtract.at(occurrences, field.terms[entries], field.counts[entries])
    return replace(
        field,
        document_frequency=document_frequency,
        occurrences=occurrences,
        n_documents=field.n_documents - len(rows),
        n_words=field.n_words - int(field.lengths[rows].sum(dtype=np.int64)),
        stored_postings=vars(field).get("postings", field.stored_postings),
    )


def ragged(starts: Ints, rows: Ints) -> Ints:
    """Return the entries of the given rows, row by row."""
    begins, sizes = starts[rows], starts[rows + 1] - starts[rows]
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    entries: Ints = np.arange(total) + np.repeat(begins - ends + sizes, sizes)
    return entries
