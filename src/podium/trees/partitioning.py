"""Partition the documents of a leaf in place: those that go left come first, and both sides keep their order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Bytes, Int, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.core.intrinsics import wait_at_barrier
from podium.trees.bin_matrix import BinMatrix
from podium.trees.growth_types import Member, N, Record, U
from podium.trees.histograms import share_start

WORDS_PER_THREAD = 8  # of `Member.totals`: a cache line, so that no two threads write to the same line


class Partition(NamedTuple):
    """The borders of the two sides of a leaf."""

    left_sample_end: Any  # where the sample of the left side ends
    middle: Any  # where the left side ends and the right side begins
    right_sample_end: Any  # where the sample of the right side ends
    is_left_small: Any  # whether the left side has at most half of the sample
    is_enough: Any  # whether both sides have enough documents; if not, the documents stay in place


@helper
def partition_leaf(
    member: Member, bins: BinMatrix, leaf: Record, min_documents: Int, documents: Int32s, buffer: Int32s
) -> Partition:
    """Partition the documents of a leaf by its split; each thread takes a share of the sample and of the others.

    First every thread partitions its shares in the buffer. After a barrier, each thread knows how many documents the
    threads before it sent left, and so where to write. If the split was not checked and a side has too few documents,
    nothing is written.
    """
    thread, n_threads, one = member.thread, member.n_threads, N(1)
    start, sample_end, end = leaf.start, leaf.sample_end, leaf.end
    a = start + share_start(sample_end - start, one, thread, n_threads)
    b = start + share_start(sample_end - start, one, thread + 1, n_threads)
    c = sample_end + share_start(end - sample_end, one, thread, n_threads)
    d = sample_end + share_start(end - sample_end, one, thread + 1, n_threads)
    column = bins.columns[leaf.feature * bins.n_rows : (leaf.feature + 1) * bins.n_rows]
    at = thread * WORDS_PER_THREAD
    member.totals[at] = partition(column, leaf.goes_left, documents, buffer, a, b)
    member.totals[at + 1] = partition(column, leaf.goes_left, documents, buffer, c, d)
    wait_at_barrier(member.barrier, n_threads)
    sampled_left = sum_of_threads(member.totals, N(0), n_threads)
    others_left = sum_of_threads(member.totals, one, n_threads)
    left_sample_end, middle = start + sampled_left, start + sampled_left + others_left
    right_sample_end = middle + (sample_end - start) - sampled_left
    is_left_small = 2 * sampled_left <= sample_end - start
    is_enough = leaf.is_checked == 1 or min(middle - start, end - middle) >= min_documents
    if is_enough:
        before = sum_of_threads(member.totals, N(0), thread)
        scatter(buffer, a, b, member.totals[at], documents, start + before, middle + (a - start) - before)
        before = sum_of_threads(member.totals, one, thread)
        left_at, right_at = left_sample_end + before, right_sample_end + (c - sample_end) - before
        scatter(buffer, c, d, member.totals[at + 1], documents, left_at, right_at)
    return Partition(left_sample_end, middle, right_sample_end, is_left_small, is_enough)


@helper
def partition(column: Bytes, goes_left: Any, documents: Int32s, buffer: Int32s, a: Int, b: Int) -> Int:
    """Write the documents a … b − 1 that go left to the front of buffer[a:b], the others to its end, descending.

    Each document is written to both ends, and one end moves on, because a branch would be mispredicted half of the
    time. Return the number of documents that go left.
    """
    left, right = a, b - 1
    for k in range(a, b):
        document = documents[U(k)]
        goes = np.int64(goes_left[column[U(document)]])
        buffer[U(left)] = document
        buffer[U(right)] = document
        left += goes
        right -= 1 - goes
    return left - a


@helper
def scatter(buffer: Int32s, a: Int, b: Int, n_left: Int, documents: Int32s, left_at: Int, right_at: Int) -> None:
    """Copy the two sides that `partition` wrote to buffer[a:b] to `documents`, in their previous order."""
    for k in range(n_left):
        documents[U(left_at + k)] = buffer[U(a + k)]
    for k in range(b - a - n_left):
        documents[U(right_at + k)] = buffer[U(b - 1 - k)]


@helper
def sum_of_threads(totals: Ints, which: Int, n_threads: Int) -> Int:
    """Return the sum of one of the totals over the first threads."""
    total = np.int64(0)
    for thread in range(n_threads):
        total += totals[thread * WORDS_PER_THREAD + which]
    return total


compiled_scatter = kernel(scatter)  # for calls from Python code
