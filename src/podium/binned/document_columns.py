"""Labels, weights, positions and queries of documents that come in blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.binned.folder import DOCUMENTS, HASHES, QUERY_IDS
from podium.binned.opening import LABEL
from podium.core.array_types import Float32s, Floats, Ints, UInt64s
from podium.data import RankingData
from podium.data.io.queries import QueryBlocks
from podium.errors import DataError

OPTIONAL = ("document_weights", "positions")


class DocumentColumns:
    """Collects what is known of documents beside their features: some bytes for each.

    Attributes:
        query_ids: in the order in which they first appear.

    """

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {}
        self._code_of: dict[Any, int] = {}

    def append(self, block: RankingData, hashes: UInt64s) -> None:
        """Take note of a block, and of hashes of its features."""
        code_of = self._code_of
        codes = np.array([code_of.setdefault(one, len(code_of)) for one in block.query_ids.tolist()], np.int32)
        columns: dict[str, Any] = {f"{LABEL}{source}": labels for source, labels in block.labels.items()}
        columns |= {name: getattr(block, name) for name in OPTIONAL}
        columns |= {"query": codes[block.query_of_row], "hashes": hashes}
        columns["query_weights"] = None if block.query_weights is None else block.query_weight_of_row
        for name, values in columns.items():
            if values is not None:
                self._parts.setdefault(name, []).append(np.array(values))  # a view would keep the block

    def join(self) -> dict[str, NDArray[Any]]:
        """All columns, whole; the parts are let go."""
        names = list(self._parts)
        return {name: np.concatenate(self._parts.pop(name)) for name in names}

    @property
    def query_ids(self) -> list[Any]:
        """The query ids, in the order in which they first appear."""
        return list(self._code_of)


class Documents:
    """The columns of all documents, and how they become grouped.

    Attributes:
        columns: by name.
        query_ids: of all queries.
        sizes: the number of documents of each query.
        order: the rows of the source, query by query; None where they stand so already.

    """

    def __init__(self, columns: dict[str, NDArray[Any]], query_ids: list[Any]) -> None:
        self.columns, self.query_ids = columns, query_ids
        query = columns["query"]
        self.sizes = np.bincount(query, minlength=len(query_ids))
        self.n_runs = 1 + int(np.count_nonzero(query[1:] != query[:-1]))
        self.order = None if self.n_runs == len(query_ids) else np.argsort(query, kind="stable")
        if self.order is not None:
            self.columns = {name: values[self.order] for name, values in columns.items()}

    @property
    def places(self) -> Ints:
        """Where each row of the source goes."""
        assert self.order is not None
        places = np.empty(len(self.order), np.int64)
        places[self.order] = np.arange(len(self.order))
        return places

    def blocks(self, most_rows: int) -> Iterator[tuple[int, int]]:
        """First and last row of blocks of whole queries, once they stand together."""
        blocks, starts = QueryBlocks(most_rows), np.cumsum(self.sizes) - self.sizes
        for query, row in enumerate(starts.tolist()):
            blocks.begin(query, row)
        return pairwise([0, *np.cumsum(blocks.sizes(int(self.sizes.sum()))).tolist()])

    def query_weights(self) -> Float32s | None:
        """One for each query; documents of a query that differ are refused."""
        weights = self.columns.get("query_weights")
        if weights is None:
            return None
        starts = np.cumsum(self.sizes) - self.sizes
        differ = weights != np.repeat(weights[starts], self.sizes)
        if differ.any():
            query = self.query_ids[int(self.columns["query"][int(np.argmax(differ))])]
            raise DataError(f"query_weights must be the same for all documents of a query, but differ in {query!r}")
        return np.asarray(weights[starts])

    def labels(self) -> dict[str, Float32s]:
        """By source."""
        return {k.removeprefix(LABEL): v for k, v in self.columns.items() if k.startswith(LABEL)}

    def save(self, folder: Path, preferences: Floats | None) -> None:
        """Write all but the features."""
        kept: dict[str, Any] = {k: v for k, v in self.columns.items() if k.startswith(LABEL) or k in OPTIONAL}
        others = {"query_weights": self.query_weights(), "preferences": self._moved(preferences)}
        kept |= {name: values for name, values in others.items() if values is not None}
        np.savez(folder / DOCUMENTS, query_sizes=self.sizes, **kept)
        np.save(folder / HASHES, self.columns["hashes"])
        (folder / QUERY_IDS).write_text(json.dumps(self.query_ids), encoding="utf-8")

    def _moved(self, preferences: Floats | None) -> Floats | None:
        """Pairs of rows of the source as pairs of documents here."""
        if preferences is None or self.order is None:
            return preferences
        places = self.places
        moved = preferences.copy()
        moved[:, :2] = places[preferences[:, :2].astype(np.int64)]
        return moved
