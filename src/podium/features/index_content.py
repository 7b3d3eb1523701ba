"""The content of an index: its arrays by label, the description in its manifest, and the validation of both.

Kernels do not check indices, so an index is validated once when it is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Floats, Int, Int32s, Ints
from podium.core.compiling import kernel
from podium.core.manifests import check_array, require
from podium.core.validation import require_whole
from podium.errors import DataError
from podium.features.analyzer import Analyzer
from podium.features.field import POSITION_ARRAYS, ROW_ARRAYS, TERM_ARRAYS, Field, Postings
from podium.features.strings import Strings


@dataclass(frozen=True)
class IndexContent:
    """Everything that an index consists of.

    Attributes:
        fields: the text fields in the order of `Index.build`.
        ids: the document id of each row.
        is_live: whether each row's document is still in the index.
        attributes: the numeric attributes of each row.
        texts: the stored text of fields; None if it is not stored.
        id_column: the column that the ids came from.
        attribute_names: the attributes that the user chose; None for all numeric columns.

    """

    fields: dict[str, Field]
    ids: Strings
    is_live: Bools
    attributes: dict[str, Floats]
    texts: dict[str, Strings] | None
    id_column: str
    attribute_names: Sequence[str] | None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by label."""
        arrays: dict[str, NDArray[Any]] = {"is_live": self.is_live, **_string_arrays("ids", self.ids)}
        arrays |= {f"attribute{k}": values for k, values in enumerate(self.attributes.values())}
        for k, field in enumerate(self.fields.values()):
            names = [*TERM_ARRAYS, *ROW_ARRAYS, *(POSITION_ARRAYS if field.has_positions else ())]
            arrays |= {f"field{k}.{name}": getattr(field, name) for name in names}
            arrays |= {f"field{k}.posting_{name}": getattr(field.postings, name) for name in Postings._fields}
            arrays |= _string_arrays(f"field{k}.vocabulary", field.vocabulary)
            if self.texts is not None:
                arrays |= _string_arrays(f"field{k}.texts", self.texts[field.name])
        return arrays

    def live_ids(self) -> list[str]:
        """Return the ids of the live documents in the order of rows."""
        return [key for key, live in zip(self.ids, self.is_live.tolist(), strict=True) if live]

    def description(self) -> dict[str, Any]:
        """Return the description of the index for the manifest."""
        fields = [
            {
                "name": name, "analyzer": str(field.analyzer), "n_words": field.n_words,
                "has_positions": field.has_positions,
            }
            for name, field in self.fields.items()
        ]  # fmt: skip
        return {
            "fields": fields,
            "attributes": list(self.attributes),
            "n_documents": int(np.count_nonzero(self.is_live)),
            "id_column": self.id_column,
            "attribute_names": None if self.attribute_names is None else list(self.attribute_names),
            "has_texts": self.texts is not None,
        }


def _string_arrays(label: str, strings: Strings) -> dict[str, NDArray[Any]]:
    return {f"{label}.starts": strings.starts, f"{label}.text": strings.text}


def restored(
    manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], analyzers: Sequence[Analyzer]
) -> IndexContent:
    """Return the content that a manifest and arrays describe; raise if arrays have wrong types or sizes."""

    def strings(label: str, size: int | None) -> Strings:
        starts, text = arrays[f"{label}.starts"], arrays[f"{label}.text"]
        check_array(label, text, np.uint8)
        check_starts(f"{label}.starts", starts, None if size is None else size + 1, len(text))
        return Strings(starts, text)

    is_live = arrays["is_live"]
    check_array("is_live", is_live, np.bool_)
    n_rows, n_documents = len(is_live), manifest["n_documents"]
    require_whole("n_documents", n_documents, 0)
    require(n_documents == np.count_nonzero(is_live), "n_documents is not the number of live rows")
    attributes = {str(name): arrays[f"attribute{k}"] for k, name in enumerate(manifest["attributes"])}
    for name, values in attributes.items():
        check_array(name, values, np.float64, n_rows)
    fields, texts = {}, {}
    for k, (facts, analyzer) in enumerate(zip(manifest["fields"], analyzers, strict=True)):
        name, n_words = facts["name"], facts["n_words"]
        vocabulary = strings(f"field{k}.vocabulary", None)
        types = TERM_ARRAYS | ROW_ARRAYS | (POSITION_ARRAYS if facts["has_positions"] else {})
        parts = {part: arrays[f"field{k}.{part}"] for part in types}
        postings = Postings(*(arrays[f"field{k}.posting_{part}"] for part in Postings._fields))
        _check_field(parts, postings, types, n_rows, len(vocabulary))
        require_whole("n_words", n_words, 0, most=2**62)
        require(isinstance(name, str) and name not in fields, "two fields have the same name")
        fields[name] = Field(
            name=name, analyzer=analyzer, vocabulary=vocabulary, n_documents=n_documents, n_words=n_words,
            stored_postings=postings, **parts,
        )  # fmt: skip
        if manifest["has_texts"]:
            texts[name] = strings(f"field{k}.texts", n_rows)
    require(fields, "there are no fields")
    return IndexContent(
        fields, strings("ids", n_rows), is_live, attributes, texts if manifest["has_texts"] else None,
        str(manifest["id_column"]), manifest["attribute_names"],
    )  # fmt: skip


def _check_field(
    parts: Mapping[str, NDArray[Any]], postings: Postings, types: Mapping[str, Any], n_rows: int, n_terms: int
) -> None:
    """Raise if an array of a field has the wrong type or size."""
    n_entries = parts["terms"].size
    sizes = {"document_frequency": n_terms, "occurrences": n_terms, "lengths": n_rows, "counts": n_entries}
    for name, dtype in types.items():
        check_array(name, parts[name], dtype, sizes.get(name))
    check_array("posting_rows", postings.rows, np.int32, n_entries)
    check_array("posting_counts", postings.counts, np.int32, n_entries)
    check_starts("starts", parts["starts"], n_rows + 1, n_entries)
    check_starts("posting_starts", postings.starts, n_terms + 1, n_entries)
    if "positions" in parts:
        check_starts("position_starts", parts["position_starts"], n_entries + 1, len(parts["positions"]))


def check_starts(name: str, starts: NDArray[Any], size: int | None, last: int) -> None:
    """Raise if an array does not ascend from 0 to `last`."""
    check_array(name, starts, np.int64, size)
    require(len(starts) > 0 and starts[0] == 0 and starts[-1] == last, f"{name} do not go from 0 to {last}")
    require((starts[1:] >= starts[:-1]).all(), f"{name} do not ascend")


def check_content(content: IndexContent) -> None:
    """Read everything, and raise if a term, row or statistic is inconsistent with the other arrays."""
    fields = content.fields.values()
    for strings in (content.ids, *(field.vocabulary for field in fields), *(content.texts or {}).values()):
        try:
            for _ in strings:  # decode every string
                pass
        except UnicodeDecodeError as error:
            raise DataError(f"a string is not UTF-8: {error}") from None
    live_ids = content.live_ids()
    require(len(set(live_ids)) == len(live_ids), "two documents have the same id")
    for field in fields:
        frequency, occurrences = np.zeros(field.n_terms, np.int64), np.zeros(field.n_terms, np.int64)
        is_right = lists_ascend(field.starts, field.terms, field.counts, field.n_terms) and rows_are_right(
            field.starts, field.terms, field.counts, field.lengths, content.is_live, frequency, occurrences
        )
        require(is_right, f"{field.name}: terms, counts or lengths are out of range")
        require(np.array_equal(frequency, field.document_frequency), f"{field.name}: document_frequency")
        require(np.array_equal(occurrences, field.occurrences), f"{field.name}: occurrences")
        require(occurrences.sum() == field.n_words, f"{field.name}: n_words")
        require(lists_ascend(*field.postings, len(content.is_live)), f"{field.name}: postings are out of range")
        require(len(set(field.vocabulary)) == field.n_terms, f"{field.name}: a term occurs twice")
        if field.positions is not None and field.position_starts is not None:
            is_right = positions_are_right(
                field.position_starts, field.positions, field.counts, field.starts, field.lengths
            )
            require(is_right, f"{field.name}: positions are out of range")


@kernel
def lists_ascend(starts: Ints, values: Int32s, counts: Int32s, n: Int) -> Any:
    """Return whether the values of each list ascend from 0 to at most n − 1, and counts are positive."""
    for k in range(len(starts) - 1):
        before = -1
        for entry in range(starts[k], starts[k + 1]):
            if values[entry] <= before or values[entry] >= n or counts[entry] < 1:
                return False
            before = values[entry]
    return True


@kernel
def rows_are_right(
    starts: Ints, terms: Int32s, counts: Int32s, lengths: Int32s, is_live: Bools, frequency: Ints, occurrences: Ints
) -> Any:
    """Return whether counts add up to lengths; count the terms of live rows."""
    for row in range(len(lengths)):
        length = 0
        for entry in range(starts[row], starts[row + 1]):
            length += counts[entry]
            if is_live[row]:
                frequency[terms[entry]] += 1
                occurrences[terms[entry]] += counts[entry]
        if length != lengths[row]:
            return False
    return True


@kernel
def positions_are_right(position_starts: Ints, positions: Int32s, counts: Int32s, starts: Ints, lengths: Int32s) -> Any:
    """Return whether each entry has as many positions as its count, ascending within the length of its row."""
    for row in range(len(lengths)):
        for entry in range(starts[row], starts[row + 1]):
            begin, end = position_starts[entry], position_starts[entry + 1]
            before = -1
            if end - begin != counts[entry]:
                return False
            for k in range(begin, end):
                if positions[k] <= before or positions[k] >= lengths[row]:
                    return False
                before = positions[k]
    return True
