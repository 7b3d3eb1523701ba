"""Encode columns as float32 features: number their categories, and shift values to save precision."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s
from podium.core.validation import require_utf8
from podium.errors import DataError, warn

MERGE_SAMPLE = 1 << 16  # rows to check for float64 values that become equal in float32
CROWDED = 1 / 128  # relative distance from the median: float32 has only about 2^16 steps within it
LARGE = 1 << 20  # from here on, the steps of float32 are at least 1/8
STEPS = 1 << 16  # different float32 values are enough, because there are at most 255 bins
ENOUGH = 7 / 8  # share of a column's different values that should stay different


@dataclass(frozen=True)
class Encoding:
    """The encoding of columns as float32 features."""

    # the names of the categories of each categorical feature, by feature number; category k has the value k
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    # what was subtracted from the values of some features before the conversion to float32, by feature number
    shifts: Mapping[int, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.categories or self.shifts)

    def to_json(self) -> dict[str, Any]:
        """Return the encoding as JSON types."""
        return {
            "categories": {str(k): list(names) for k, names in self.categories.items()},
            "shifts": {str(k): shift for k, shift in self.shifts.items()},
        }

    @classmethod
    def from_json(cls, content: Any, n_features: int) -> Encoding:
        """Return the encoding that `to_json` described; raise if the content is invalid."""
        if content is None:
            return cls()
        try:
            categories = {int(k): tuple(names) for k, names in content.get("categories", {}).items()}
            shifts = {int(k): shift for k, shift in content.get("shifts", {}).items()}
            encoding = cls(categories, shifts)
            is_valid = (
                all(content.get(key, {}) == value for key, value in encoding.to_json().items())
                and all(0 <= feature < n_features for feature in (*categories, *shifts))
                and all(type(name) is str for names in categories.values() for name in names)
                and all(len(set(names)) == len(names) for names in categories.values())
                and all(type(shift) in (int, float) and abs(shift) < 2**64 for shift in shifts.values())
            )
        except (AttributeError, TypeError, ValueError):
            is_valid = False
        if not is_valid:
            raise DataError(f"the encoding of the {n_features} features is invalid")
        return encoding

    def of_columns(self, columns: Sequence[int]) -> Encoding:
        """Return the encoding of some of the features, in a new order."""
        return Encoding(
            {new: self.categories[old] for new, old in enumerate(columns) if old in self.categories},
            {new: self.shifts[old] for new, old in enumerate(columns) if old in self.shifts},
        )


def is_null(value: Any) -> bool:
    """Return whether this is a missing value: None, NaN, or pandas' NA."""
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def category_name(value: Any) -> str | None:
    """Return the name of a category: its text, integers without a fraction; None for a missing value."""
    if isinstance(value, str):
        return value
    if is_null(value):
        return None
    if isinstance(value, float | np.floating):
        return str(int(value)) if float(value).is_integer() else str(float(value))
    try:
        return str(value)
    except ValueError:  # Python's limit of 4300 digits
        raise DataError("a category is a number of over 4300 digits: pass text instead") from None


def names_of_categories(values: Iterable[Any]) -> tuple[str, ...]:
    """Return the distinct categories of a column, sorted as numbers if they all are, else as text."""
    names = {name for name in map(category_name, values) if name is not None}
    require_utf8("categories", names)
    try:
        numbers = {name: float(name) for name in names}
    except ValueError:
        return tuple(sorted(names))
    if any(map(math.isnan, numbers.values())):  # the text "nan", which cannot be sorted among numbers
        return tuple(sorted(names))
    return tuple(sorted(names, key=lambda name: (numbers[name], name)))


def codes_of_categories(values: Iterable[Any], names: Sequence[str]) -> Float32s:
    """Return the number of each value's category; NaN for missing values and categories not in `names`."""
    code: dict[str | None, float] = {name: float(k) for k, name in enumerate(names)}
    return np.fromiter((code.get(name, math.nan) for name in map(category_name, values)), np.float32)


def recoded(codes: Float32s, names: Sequence[str], new_names: Sequence[str]) -> Float32s:
    """Convert the codes of one list of categories to another; NaN if the other list has no such category."""
    code_of = {name: float(k) for k, name in enumerate(new_names)}
    new_codes = np.array([*(code_of.get(name, math.nan) for name in names), math.nan], np.float32)
    numbers = np.where(np.isnan(codes), len(names), codes).astype(np.int64)
    return new_codes[numbers]


def warn_of_unknown_categories(feature: Any, present: Sequence[str], trained: Sequence[str]) -> None:
    """Warn if a feature has several categories and training saw none of them: they may be spelled differently.

    A single unknown category, for example in the rows of a single query, is not worth a warning.
    """
    if len(present) < 2 or set(present) & set(trained):
        return
    warn(
        f"all {len(present)} categories of feature {feature} count as missing, because training saw none of them: got "
        f"{_first_few(present)}, but training saw {_first_few(trained)}. Spell them as in training",
        stacklevel=6,
    )


class CategoriesSeen:
    """Collects the categories of blocks of data, to warn about features whose categories training never saw."""

    def __init__(self) -> None:
        self._unknown: dict[Any, tuple[set[str], Sequence[str]]] = {}
        self._known: set[Any] = set()

    def add(self, feature: Any, values: Iterable[Any], trained: Sequence[str]) -> None:
        """Add a block's values of a feature; messages refer to it as `feature`."""
        if feature in self._known:
            return
        names = set(names_of_categories(values))
        if names & set(trained):
            self._known.add(feature)
            self._unknown.pop(feature, None)
        else:
            self._unknown.setdefault(feature, (set(), trained))[0].update(names)

    def warn(self) -> None:
        """Issue the warnings, after the last block."""
        for feature, (names, trained) in self._unknown.items():
            warn_of_unknown_categories(feature, names_of_categories(names), trained)


def _first_few(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")


@dataclass(frozen=True)
class Converted:
    """Features as float32."""

    features: Any  # the matrix
    # the encoding that the caller passed, or one computed from the values
    encoding: Encoding = field(default_factory=Encoding)
    # the original values of crowded columns, by number
    wide: Mapping[int, NDArray[Any]] = field(default_factory=dict)
    losses: tuple[str, ...] = ()  # descriptions of what the conversion to float32 lost


class FeatureBuilder:
    """Fills a float32 matrix column by column.

    An encoding, for example that of a model, determines categories and shifts. Without one, the values of each column
    do: categories are numbered, and crowded columns are shifted.
    """

    def __init__(self, matrix: Float32s, encoding: Encoding | None = None, seen: CategoriesSeen | None = None) -> None:
        self.matrix, self.encoding, self.seen = matrix, encoding, seen
        self.categories: dict[int, tuple[str, ...]] = {}
        self.shifts: dict[int, float] = {}
        self.wide: dict[int, NDArray[Any]] = {}
        self.precisions: dict[Any, ColumnPrecision] = {}  # of numeric columns, by name

    def set_categories(self, column: int, name: Any, values: Sequence[Any]) -> None:
        """Fill in a column of categories of any type; messages refer to it as `name`."""
        trained = None if self.encoding is None else self.encoding.categories.get(column)
        names = names_of_categories(values) if trained is None else trained
        codes = codes_of_categories(values, names)
        if trained is not None and self.seen is not None:
            self.seen.add(name, values, trained)
        elif trained is not None and np.isnan(codes).all():
            warn_of_unknown_categories(name, names_of_categories(values), trained)
        self.matrix[:, column] = codes
        self.categories[column] = names

    def set_numbers(self, column: int, name: Any, values: NDArray[Any]) -> None:
        """Fill in a column of numbers; messages refer to it as `name`."""
        short = self.matrix[:, column]
        with np.errstate(over="ignore"):
            short[:] = values
        if self.encoding is not None:
            self.apply_shift(column, values)
        elif not np.can_cast(values.dtype, np.float32):
            self.shift_if_crowded(column, name, values, precision(values, short))

    def apply_shift(self, column: int, values: NDArray[Any]) -> None:
        """Shift a column that is already in the matrix if the encoding shifts it."""
        assert self.encoding is not None
        if column in self.encoding.shifts:
            self.matrix[:, column] = shifted(values, self.encoding.shifts[column])

    def shift_if_crowded(self, column: int, name: Any, values: NDArray[Any], quality: ColumnPrecision) -> None:
        """Shift a column that is already in the matrix if it is crowded, and record its precision."""
        if quality.is_crowded or quality.is_large:
            self.wide[column] = values.copy()
        short = self.matrix[:, column]
        shift = best_shift(values, short) if quality.is_crowded else None
        if shift is not None:
            self.shifts[column] = shift
            short[:] = shifted(values, shift)
            quality = precision(values, short, shift)
        self.precisions[name] = quality

    def result(self) -> Converted:
        """Return the converted features."""
        encoding = Encoding(self.categories, self.shifts) if self.encoding is None else self.encoding
        return Converted(self.matrix, encoding, self.wide, reported_losses(self.precisions))


class ColumnPrecision(NamedTuple):
    """How well float32 represents a column."""

    is_crowded: bool = False  # whether float32 has few steps between most of the values
    # whether some values are inexact and so large that the training data of a model may have been crowded there
    is_large: bool = False
    # in a sample of the rows:
    is_merged: bool = False  # whether different values became equal
    loses_much: bool = False  # whether many did
    is_infinite: bool = False  # whether a value overflows float32


def precision(values: NDArray[Any], short: Float32s, shift: float = 0) -> ColumnPrecision:
    """Compare a column with its float32 values after a shift."""
    size = np.abs(short)
    is_held = np.array_equal(short, values, equal_nan=values.dtype.kind == "f")
    if is_held and (values.dtype.kind == "f" or (size < 2**53).all()):  # NumPy compares integers as float64
        return ColumnPrecision()
    crowded, large = is_crowded(values), bool(((size >= LARGE) & (size < np.inf)).any())
    step = max(1, len(values) // MERGE_SAMPLE)
    distinct = np.unique(values[::step])
    with np.errstate(over="ignore"):
        shorter = shifted(distinct, shift) if shift else distinct.astype(np.float32)
    if (np.isinf(shorter) & np.isfinite(distinct)).any():
        return ColumnPrecision(crowded, large, is_infinite=True)
    n_left = 1 + int((shorter[1:] != shorter[:-1]).sum())
    return ColumnPrecision(crowded, large, n_left < len(distinct), n_left < ENOUGH * len(distinct))


def is_crowded(values: NDArray[Any]) -> bool:
    """Return whether most values are so close together and far from 0 that float32 has few steps between them.

    That is the case if more than half of the nonzero values lie within 1/128 of their median: float32 has 2^23 steps
    from a number to its double, hence about 2^16 there.
    """
    present = values.astype(np.float64, copy=False)
    present = present[(present != 0) & np.isfinite(present)]
    if not len(present):
        return False
    middle = np.partition(present, len(present) // 2)[len(present) // 2]
    return bool(2 * np.count_nonzero(np.abs(present - middle) < CROWDED * abs(middle)) > len(present))


def best_shift(values: NDArray[Any], short: Float32s) -> float | None:
    """Return the number to subtract from crowded values to keep them distinct in float32; None if they already are."""
    distinct = np.unique(values[np.isfinite(values)])
    if len(np.unique(short[np.isfinite(values)])) >= min(STEPS, ENOUGH * len(distinct)):
        return None
    nonzero = distinct[distinct != 0]
    return nonzero[len(nonzero) // 2].item()  # type: ignore[no-any-return]


def shifted(values: NDArray[Any], shift: float) -> Float32s:
    """Return values − shift as float32; the subtraction of integers is exact."""
    with np.errstate(over="ignore", invalid="ignore"):
        difference = values.astype(np.float64) - float(shift)
        if values.dtype.kind in "iu" and isinstance(shift, int):
            near = np.abs(difference) < 2**62  # no overflow, so the difference modulo 2^64 is exact
            difference[near] = (values.astype(np.uint64) - np.uint64(shift % 2**64)).view(np.int64)[near]
        return difference.astype(np.float32)


def reported_losses(precisions: Mapping[Any, ColumnPrecision]) -> tuple[str, ...]:
    """Return descriptions of what float32 loses, from the precision of features by name; warn of large losses."""
    descriptions = []
    merged = [name for name, quality in precisions.items() if quality.is_merged]
    if merged:
        descriptions.append(f"different values became equal in float32 in {listed('feature', merged)}")
    few_left = [name for name, quality in precisions.items() if quality.loses_much]
    if few_left:
        warn(
            f"many different values became equal in float32 in {listed('feature', few_left)}: subtract an offset, or "
            "split the feature into a coarse and a fine one"
        )
    infinite = [name for name, quality in precisions.items() if quality.is_infinite]
    if infinite:
        descriptions.append(f"values beyond float32's range became infinite in {listed('feature', infinite)}")
        warn(f"{descriptions[-1]}: divide the feature, or take its logarithm")
    return tuple(descriptions)


def listed(noun: str, items: list[Any]) -> str:
    """Return `feature 3`, `features 1, 2`, or the first eight items and how many more there are."""
    shown = ", ".join(str(item) for item in items[:8])
    more = f" and {len(items) - 8} more" if len(items) > 8 else ""
    return f"{noun}{'s' if len(items) > 1 else ''} {shown}{more}"
