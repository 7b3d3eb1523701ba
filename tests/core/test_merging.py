"""Sums and merges of parts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.core.merging import Counts, Gathered, Max, Same, Total, Union, alone, merge, merge_all, merged
from podium.core.sums import ExactSum
from podium.errors import DataError

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64).filter(lambda x: abs(x) < 1e300)


@given(st.lists(NUMBERS, max_size=40), st.integers(0, 40))
def test_an_exact_sum_of_parts_is_fsum_of_all(numbers, cut):
    first, second = np.array(numbers[:cut]), np.array(numbers[cut:])
    assert float(ExactSum.of(first) + ExactSum.of(second)) == math.fsum(numbers)


def test_an_exact_sum_needs_finite_numbers():
    with pytest.raises(DataError, match="not finite"):
        ExactSum.of(np.array([1.0, np.inf]))


def test_results_of_parts_are_merged_by_their_classes():
    first = {"sum": Total((1, np.array([1, 2]))), "max": Max((0.5, -1)), "all": Gathered([1]), "same": Same("x")}
    second = {"sum": Total((2, np.array([3, 4]))), "max": Max((0.25, 3)), "all": Gathered([2]), "same": Same("x")}
    result = merged(merge_all([None, first, None, second]))
    assert result["sum"][0] == 3
    assert result["sum"][1].tolist() == [4, 6]
    assert (result["max"], result["all"], result["same"]) == ((0.5, 3), [1, 2], "x")
    values, counts = merged(merge(Counts(np.array([1, 3]), np.array([2, 1])), Counts(np.array([3]), np.array([5]))))
    assert (values.tolist(), counts.tolist()) == ([1, 3], [2, 6])
    assert merged(merge(Union(np.array([1, 2, 9]), 3), Union(np.array([0, 5]), 3))).tolist() == [0, 1, 9]
    assert math.isnan(merge(Max(1.0), Max(math.nan)).value)
    assert math.isnan(merge(Max(math.nan), Max(1.0)).value)


def test_a_single_part_receives_its_own_results():
    def steps():
        total = yield Total(3)
        highest = yield Max(total)
        return highest + 1

    assert alone(steps()) == 4
