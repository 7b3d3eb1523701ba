"""Compiled loops over ranked lists.

Everything is given in rank order, query after query: `gains[offsets[q]:offsets[q + 1]]` are those of query
q from the top. A loop over queries writes one number for each; loops over pairs fill rows of a triangle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Int = Any  # an integer, compiled as int64

_RUN = 12  # as many are sorted by insertion before runs are merged


@helper
def _sort_descending(keys: Floats, items: Ints, spare_keys: Floats, spare_items: Ints, n: Int) -> None:
    """Sort by falling key, equal keys in the order they came: insertion in short runs, then merging."""
    for start in range(0, n, _RUN):
        for k in range(start + 1, min(start + _RUN, n)):
            key, item = keys[k], items[k]
            place = k
            while place > start and keys[place - 1] < key:
                keys[place], items[place] = keys[place - 1], items[place - 1]
                place -= 1
            keys[place], items[place] = key, item
    width = _RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for k in range(start, end):
                if left < middle and (right >= end or keys[left] >= keys[right]):
                    spare_keys[k], spare_items[k] = keys[left], items[left]
                    left += 1
                else:
                    spare_keys[k], spare_items[k] = keys[right], items[right]
                    right += 1
        for k in range(n):
            keys[k], items[k] = spare_keys[k], spare_items[k]
        width *= 2


@kernel
def rank_queries(scores: Floats, base: Ints, offsets: Ints, ranked: Ints) -> None:
    """The rows of each query by falling score; equal scores stay in the order of `base`."""
    largest = 0
    for q in range(len(offsets) - 1):
        largest = max(largest, offsets[q + 1] - offsets[q])
    keys, spare_keys = np.empty(largest), np.empty(largest)
    items, spare_items = np.empty(largest, np.int64), np.empty(largest, np.int64)
    for q in range(len(offsets) - 1):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        for k in range(n):
            items[k] = base[start + k]
            keys[k] = scores[items[k]]
        _sort_descending(keys, items, spare_keys, spare_items, n)
        for k in range(n):
            ranked[start + k] = items[k]


@kernel
def discounted(gains: Floats, scores: Floats, offsets: Ints, discounts: Floats, expected: bool, values: Floats) -> None:
    """Σ gain · discount of each query; `expected`: documents with equal scores share their mean gain."""
    depth = len(discounts)
    for q in range(len(offsets) - 1):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        total = 0.0
        k = 0
        while k < min(n, depth):
            end = k + 1
            if expected:
                while end < n and scores[start + end] == scores[start + k]:
                    end += 1
            if end == k + 1:
                total += gains[start + k] * discounts[k]
            else:
                gain = 0.0
                weight = 0.0
                for i in range(k, end):
                    gain += gains[start + i]
                    if i < depth:
                        weight += discounts[i]
                total += gain / (end - k) * weight
            k = end
        values[q] = total


@kernel
def discounted_swaps(gains: Floats, discounts: Floats, norm: float, first: Int, rows: Floats) -> None:
    """(g_j − g_i)(d_i − d_j) / norm for the ranks i from `first` on and all j below them."""
    n = len(gains)
    share = gains / norm
    weight = np.zeros(n)
    weight[: len(discounts)] = discounts
    for row in range(rows.shape[0]):
        i = first + row
        mine, its_weight = share[i], weight[i]
        for j in range(i + 1, n):
            rows[row, j] = (share[j] - mine) * (its_weight - weight[j])


@kernel
def average_precision(
    relevant: Floats,
    retrieved: Floats,
    scores: Floats,
    offsets: Ints,
    depth: Int,
    expected: bool,
    values: Floats,
) -> None:
    """AP of each query, divided by all its relevant documents.

    `relevant` is 1 or 0; `retrieved` is 0 for documents that count as relevant without being ranked.
    """
    for q in range(len(offsets) - 1):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        total, above, count = 0.0, 0.0, 0.0
        for k in range(n):
            count += relevant[start + k]
        k = 0
        while k < min(n, depth):
            end = k + 1
            if expected:
                while end < n and scores[start + end] == scores[start + k]:
                    end += 1
            size = float(end - k)
            r = 0.0
            for i in range(k, end):
                r += relevant[start + i] * retrieved[start + i]
            if r > 0.0:
                # r/n · (c + 1 + (k−1)(r−1)/(n−1)) / (a+k−1) for the k-th place of the group
                step = (r - 1.0) / (size - 1.0) if end > k + 1 else 0.0
                for i in range(k, min(end, depth)):
                    total += r / size * (above + 1.0 + (i - k) * step) / (i + 1.0)
            above += r
            k = end
        values[q] = total / max(count, 1.0)


@kernel
def average_precision_swaps(relevant: Floats, depth: Int, first: Int, rows: Floats) -> None:
    """ΔAP@T: ±[(c_{i−1}+1)/i + Σ_{i<k<j} rel_k/k − c_j/j] / R, terms beyond T dropped."""
    n = len(relevant)
    count = np.zeros(n + 1)  # c_k, of the top k
    share = np.zeros(n + 1)  # Σ_{m≤k} rel_m / m, for m up to T
    for k in range(n):
        count[k + 1] = count[k] + relevant[k]
        share[k + 1] = share[k] + (relevant[k] / (k + 1.0) if k < depth else 0.0)
    for row in range(rows.shape[0]):
        i = first + row + 1
        for j in range(i + 1, n + 1):
            difference = relevant[j - 1] - relevant[i - 1]
            if difference != 0.0 and i <= depth:
                change = (count[i - 1] + 1.0) / i + share[j - 1] - share[i]
                if j <= depth:
                    change -= count[j] / j
                rows[row, j - 1] = difference * change / count[n]
            else:
                rows[row, j - 1] = 0.0


@kernel
def cascade(stops: Floats, scores: Floats, offsets: Ints, depth: Int, expected: bool, values: Floats) -> None:
    """Σ_r (1/r) R_r Π_{q<r} (1 − R_q) of each query, R the probability that a user stops."""
    largest = 0
    for q in range(len(offsets) - 1):
        largest = max(largest, offsets[q + 1] - offsets[q])
    mean = np.empty(largest + 1)  # E_k, the mean product of (1 − R) over all k documents of a group
    for q in range(len(offsets) - 1):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        total, going_on = 0.0, 1.0
        k = 0
        while k < min(n, depth) and going_on > 0.0:
            end = k + 1
            if expected:
                while end < n and scores[start + end] == scores[start + k]:
                    end += 1
            size = end - k
            if size == 1:
                total += going_on * stops[start + k] / (k + 1.0)
                going_on *= 1.0 - stops[start + k]
            else:
                # With a document x more, E_k = ((m−k) E_k + k x E_{k−1}) / m: no overflow, all in [0, 1].
                mean[0] = 1.0
                for m in range(1, size + 1):
                    x = 1.0 - stops[start + k + m - 1]
                    mean[m] = 0.0
                    for i in range(m, 0, -1):
                        mean[i] = ((m - i) * mean[i] + i * x * mean[i - 1]) / m
                for i in range(1, min(size, depth - k) + 1):
                    total += going_on * (mean[i - 1] - mean[i]) / (k + i)
                going_on *= mean[size]
            k = end
        values[q] = total


@kernel
def cascade_swaps(stops: Floats, depth: Int, first: Int, rows: Floats) -> None:
    """ΔERR = P_i (R_j − R_i)(1/i − S_ij − Q_ij/j), without division by 1 − R: safe at R = 1."""
    n = len(stops)
    before = np.empty(n + 1)  # P_i, the product of (1 − R) over the ranks before i
    before[0] = 1.0
    for k in range(n):
        before[k + 1] = before[k] * (1.0 - stops[k])
    for row in range(rows.shape[0]):
        i = first + row
        between, inside = 1.0, 0.0  # Q_ij and S_ij, kept up to rank T
        for j in range(i + 1, n):
            change = 0.0
            if i < depth:
                change = 1.0 / (i + 1.0) - inside
                if j < depth:
                    change -= between / (j + 1.0)
                    inside += stops[j] / (j + 1.0) * between
                    between *= 1.0 - stops[j]
            rows[row, j] = before[i] * (stops[j] - stops[i]) * change


@kernel
def pair_counts(labels: Floats, scores: Floats, offsets: Ints, by_score: bool, counts: Floats) -> None:
    """For each query the pairs in right order, in wrong order, tied in labels alone, tied in scores alone.

    NaN labels take no part. `by_score`: equal scores are ties; otherwise the ranks decide.
    """
    for q in range(len(offsets) - 1):
        right, wrong, equal_labels, equal_scores = 0.0, 0.0, 0.0, 0.0
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(i + 1, offsets[q + 1]):
                if np.isnan(labels[i]) or np.isnan(labels[j]):
                    continue
                tied = by_score and scores[i] == scores[j]
                if labels[i] == labels[j]:
                    equal_labels += not tied
                elif tied:
                    equal_scores += 1.0
                elif labels[i] > labels[j]:
                    right += 1.0
                else:
                    wrong += 1.0
        counts[q, 0], counts[q, 1], counts[q, 2], counts[q, 3] = right, wrong, equal_labels, equal_scores


@helper
def _sign(a: float, b: float) -> float:
    """1, 0 or −1 as a is above, equal to or below b; 0 where one is NaN."""
    return 1.0 if a > b else (-1.0 if a < b else 0.0)


@kernel
def accuracy_swaps(labels: Floats, pairs: float, first: Int, rows: Floats) -> None:
    """Changes of the share of pairs in the right order."""
    n = len(labels)
    before = np.zeros(n)  # Σ_{k≤i} sgn(l_j, l_k), and below Σ_{k<j}, for each j
    above = np.zeros(n)
    for j in range(n):
        for k in range(j):
            above[j] += _sign(labels[j], labels[k])
            if k < first:
                before[j] += _sign(labels[j], labels[k])
    for row in range(rows.shape[0]):
        i = first + row
        mine = 0.0  # Σ_{i<k<j} sgn(l_i, l_k)
        for j in range(i + 1, n):
            before[j] += _sign(labels[j], labels[i])
            change = above[j] - before[j] - mine + _sign(labels[j], labels[i])
            rows[row, j] = change / pairs
            mine += _sign(labels[i], labels[j])
