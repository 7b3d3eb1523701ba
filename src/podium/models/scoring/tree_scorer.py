"""Scoring with trees, by the method that is fastest for these trees and this number of documents."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.dense_rows import DenseRows, as_rows
from podium.core.threads import for_ranges, n_threads_for
from podium.data.features import Features
from podium.data.sparse import is_sparse
from podium.models.scoring.blocks import LARGE_BLOCK, SMALL_BLOCK, Blocks
from podium.models.scoring.program import Program, make_programs
from podium.models.scoring.traversal import TreeArrays, add_scores

MIN_ROWS_FOR_PROGRAM = 1000  # traversal of this many rows takes as long as making the program
MIN_ROWS_FOR_BLOCKS = 8  # for fewer rows, traversal is faster
SPARSE_ROWS_AT_ONCE = 1 << 22  # maximum number of values to make dense at a time
SmallAndLarge = tuple[Blocks, Blocks]  # of one program


class TreeScorer:
    """Scores rows of float32 features by trees that `check_trees` has accepted; threads may share it.

    `prepare` makes a program. Otherwise the scorer makes one when it has traversed `MIN_ROWS_FOR_PROGRAM` rows.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._trees = TreeArrays.of(arrays)
        self._rows_walked = 0
        self._is_prepared = False
        self._dense: list[SmallAndLarge] = []
        self._sparse: list[SmallAndLarge] = []
        self._used_features: Ints = np.empty(0, np.int64)
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Make the program now, if the trees have one."""
        with self._lock:
            if self._is_prepared:
                return
            programs = make_programs(self._trees)
            self._used_features = np.unique(self._trees.feature).astype(np.int64)
            self._sparse = [_blocks_of(_renumbered(program, self._used_features)) for program in programs]
            self._dense = [_blocks_of(program) for program in programs]
            self._is_prepared = True

    def add_scores(
        self, features: Features, scores: Floats, first: int, last: int, n_threads: int | None = None
    ) -> None:
        """Add the values of the trees `first` … `last` − 1, in this order, to the scores of all rows."""
        n_rows = features.shape[0]
        uses_all_trees = first == 0 and last == self._trees.n_trees
        if uses_all_trees and n_rows >= MIN_ROWS_FOR_BLOCKS and self._should_use_program(n_rows):
            if is_sparse(features):
                self._add_to_sparse(features, scores, n_threads)
            else:
                _add_in_blocks(self._dense, features, scores, n_threads)
        else:
            add_scores(self._trees, features, scores, first, last, n_threads)

    def _should_use_program(self, n_rows: int) -> bool:
        """Return whether to use a program for `n_rows` more rows, making it if necessary."""
        if not self._is_prepared:
            self._rows_walked += n_rows
            if self._rows_walked < MIN_ROWS_FOR_PROGRAM:
                return False
            self.prepare()
        return bool(self._dense)

    def _add_to_sparse(self, features: Features, scores: Floats, n_threads: int | None) -> None:
        """Score sparse rows, making some rows dense at a time, with only the features that the trees use."""
        n_at_once = max(1024, SPARSE_ROWS_AT_ONCE // max(1, len(self._used_features)))
        for start in range(0, features.shape[0], n_at_once):
            rows = slice(start, start + n_at_once)
            dense = features[rows][:, self._used_features].toarray()
            _add_in_blocks(self._sparse, dense, scores[rows], n_threads)


def _blocks_of(program: Program) -> SmallAndLarge:
    return Blocks(program, SMALL_BLOCK), Blocks(program, LARGE_BLOCK)


def _add_in_blocks(programs: list[SmallAndLarge], features: Float32s, scores: Floats, n_threads: int | None) -> None:
    """Score rows on threads, several large blocks at a time."""
    rows = as_rows(features)
    size = programs[0][1].n_documents
    n_blocks = -(-rows.n_rows // size)
    n_threads = n_threads_for(n_blocks, n_threads, least=4)

    def work(first: int, last: int) -> None:
        _add_to_rows(programs, rows, size * first, min(size * last, rows.n_rows), scores)

    for_ranges(n_blocks, work, n_threads, smallest=1)


def _add_to_rows(programs: list[SmallAndLarge], rows: DenseRows, first: int, last: int, scores: Floats) -> None:
    """Score rows in large blocks, and in small ones if the rest fills less than half of a large one."""
    size = programs[0][1].n_documents
    rest = (last - first) % size
    middle = last if rest > size // 2 else last - rest
    for small, large in programs:
        if middle > first:
            large.add_scores(rows, first, middle, scores)
        if last > middle:
            small.add_scores(rows, middle, last, scores)


def _renumbered(program: Program, used: Ints) -> Program:
    """Return the same program for rows that only have the features in use."""
    searches, categories = program.searches, program.categories
    return program._replace(
        searches=searches._replace(feature=np.searchsorted(used, searches.feature)),
        categories=categories._replace(feature=np.searchsorted(used, categories.feature)),
    )
