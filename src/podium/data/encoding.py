"""From a user's columns to float32 features: the names of categories, and offsets that save precision."""

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

MERGE_SAMPLE = 1 << 16  # rows looked at for float64 values that become one float32
CROWDED = 1 / 128  # of a median's size: float32 has only some 2^16 steps within that
LARGE = 1 << 20  # from here on float32's steps are at least 1/8
STEPS = 1 << 16  # different float32 values that are enough, for bins are at most 255
ENOUGH = 7 / 8  # of a column's different values


@dataclass(frozen=True)
class Encoding:
    """How columns became float32 features."""

    # for each categorical feature, by number, the names of its categories; category k has the value k
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    # for some features, by number, what was subtracted from the values before they became float32
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
        """The encoding that `to_json` described; anything else is refused."""
        if content is None:
            return cls()
        if not isinstance(content, dict):
            raise DataError("the encoding of the features is not valid")
        categories, shifts = content.get("categories", {}), content.get("shifts", {})
        if not isinstance(categories, dict) or not isinstance(shifts, dict):
            raise DataError("the encoding of the features is not valid")
        for key in (*categories, *shifts):
            if not (
                isinstance(key, str) and key.isascii() and key.isdecimal() and len(key) <= 9 and key == str(int(key))
            ):
                raise DataError(f"the encoding has an entry for the feature {key!r}, which is not a number")
            if int(key) >= n_features:
                raise DataError(f"the encoding has an entry for feature {key} of {n_features}")
        for names in categories.values():
            is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
            if not is_list or len(set(names)) < len(names):
                raise DataError("the categories of a feature are not a list of different names")
        for shift in shifts.values():
            is_number = isinstance(shift, int | float) and not isinstance(shift, bool)
            if not is_number or abs(shift) >= 2**64 or not math.isfinite(shift):
                raise DataError(f"the shift of a feature is not a finite number: {shift!r}")
        return cls({int(k): tuple(names) for k, names in categories.items()}, {int(k): s for k, s in shifts.items()})

    def of_columns(self, columns: Sequence[int]) -> Encoding:
        """The encoding of some of the features, in a new order."""
        return Encoding(
            {new: self.categories[old] for new, old in enumerate(columns) if old in self.categories},
            {new: self.shifts[old] for new, old in enumerate(columns) if old in self.shifts},
        )


def is_null(value: Any) -> bool:
    """Whether this is not a value: None, NaN, or pandas' NA."""
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def category_name(value: Any) -> str | None:
    """The name of a category: its text, a whole number without a fraction; None for a missing one."""
    if isinstance(value, str):
        return value
    if is_null(value):
        return None
    if isinstance(value, float | np.floating):
        return str(int(value)) if float(value).is_integer() else str(float(value))
    try:
        return str(value)
    except ValueError:  # Python's limit of 4300 digits
        raise DataError("a category is a number of over 4300 digits; give text") from None


def names_of_categories(values: Iterable[Any]) -> tuple[str, ...]:
    """The different categories of a column in an order that follows from them alone: as numbers, or else as text."""
    names = {name for name in map(category_name, values) if name is not None}
    require_utf8("categories", names)
    try:
        numbers = {name: float(name) for name in names}
    except ValueError:
        return tuple(sorted(names))
    if any(map(math.isnan, numbers.values())):  # the text "nan", which is neither above nor below a number
        return tuple(sorted(names))
    return tuple(sorted(names, key=lambda name: (numbers[name], name)))


def codes_of_categories(values: Iterable[Any], names: Sequence[str]) -> Float32s:
    """The number of each value's category; NaN for missing values and for categories that are not among the names."""
    code: dict[str | None, float] = {name: float(k) for k, name in enumerate(names)}
    return np.fromiter((code.get(name, math.nan) for name in map(category_name, values)), np.float32)


def recoded(codes: Float32s, names: Sequence[str], new_names: Sequence[str]) -> Float32s:
    """Codes of one list of categories as codes of another; NaN where the other has no such category."""
    code_of = {name: float(k) for k, name in enumerate(new_names)}
    new_codes = np.array([*(code_of.get(name, math.nan) for name in names), math.nan], np.float32)
    numbers = np.where(np.isnan(codes), len(names), codes).astype(np.int64)
    return new_codes[numbers]


def warn_of_unknown_categories(feature: Any, present: Sequence[str], trained: Sequence[str]) -> None:
    """Warn where data has several categories, and training has seen none of them: they may be written differently.

    One unknown category alone, as in the rows of a single query, is nothing to speak of.
    """
    if len(present) < 2 or set(present) & set(trained):
        return
    warn(
        f"training has seen none of the {len(present)} categories of feature {feature}, so all count as missing: they "
        f"are {_first_few(present)}, and those of training {_first_few(trained)}. Write them as in training",
        stacklevel=6,
    )


class CategoriesSeen:
    """Hears the categories of data that comes in blocks, to warn where training has seen none of a feature's."""

    def __init__(self) -> None:
        self._unknown: dict[Any, tuple[set[str], Sequence[str]]] = {}
        self._known: set[Any] = set()

    def look(self, feature: Any, values: Iterable[Any], trained: Sequence[str]) -> None:
        """Take note of the values of a feature in a block; `feature` is what messages call it."""
        if feature in self._known:
            return
        names = set(names_of_categories(values))
        if names & set(trained):
            self._known.add(feature)
            self._unknown.pop(feature, None)
        else:
            self._unknown.setdefault(feature, (set(), trained))[0].update(names)

    def warn(self) -> None:
        """Warn, now that all blocks are seen."""
        for feature, (names, trained) in self._unknown.items():
            warn_of_unknown_categories(feature, names_of_categories(names), trained)


def _first_few(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")


@dataclass(frozen=True)
class Converted:
    """Features as float32."""

    features: Any  # the matrix
    # the categories and shifts of the content, or those that were asked for
    encoding: Encoding = field(default_factory=Encoding)
    # for each column whose values are crowded, by number, the values as they came
    wide: Mapping[int, NDArray[Any]] = field(default_factory=dict)
    losses: tuple[str, ...] = ()  # what float32 could not hold, in words


class FeatureBuilder:
    """Fills a float32 matrix column by column.

    With an encoding, columns are converted as it says: by the categories and shifts of a model. Without one, categories
    are numbered, and crowded columns shifted, by their own content.
    """

    def __init__(self, matrix: Float32s, encoding: Encoding | None = None, seen: CategoriesSeen | None = None) -> None:
        self.matrix, self.encoding, self.seen = matrix, encoding, seen
        self.categories: dict[int, tuple[str, ...]] = {}
        self.shifts: dict[int, float] = {}
        self.wide: dict[int, NDArray[Any]] = {}
        self.losses = Losses()

    def set_categories(self, column: int, name: Any, values: Sequence[Any]) -> None:
        """A column of categories, of any type that has a text; `name` is what messages call it."""
        trained = None if self.encoding is None else self.encoding.categories.get(column)
        names = names_of_categories(values) if trained is None else trained
        codes = codes_of_categories(values, names)
        if trained is not None and self.seen is not None:
            self.seen.look(name, values, trained)
        elif trained is not None and np.isnan(codes).all():
            warn_of_unknown_categories(name, names_of_categories(values), trained)
        self.matrix[:, column] = codes
        self.categories[column] = names

    def set_numbers(self, column: int, name: Any, values: NDArray[Any]) -> None:
        """A column of numbers; `name` is what messages call it."""
        short = self.matrix[:, column]
        with np.errstate(over="ignore"):
            short[:] = values
        if self.encoding is not None:
            self.apply_shift(column, values)
        elif not fits_float32(values.dtype):
            self.shift_if_crowded(column, name, values, precision(values, short))

    def apply_shift(self, column: int, values: NDArray[Any]) -> None:
        """Shift a column that the matrix holds already, if the encoding says so."""
        assert self.encoding is not None
        if column in self.encoding.shifts:
            self.matrix[:, column] = shifted(values, self.encoding.shifts[column])

    def shift_if_crowded(self, column: int, name: Any, values: NDArray[Any], quality: ColumnPrecision) -> None:
        """Shift a column that the matrix holds already, if it needs that, and take note of what is lost."""
        if quality.is_crowded or quality.is_large:
            self.wide[column] = values.copy()
        short = self.matrix[:, column]
        shift = best_shift(values, short) if quality.is_crowded else None
        if shift is not None:
            self.shifts[column] = shift
            short[:] = shifted(values, shift)
            quality = precision(values, short, shift)
        self.losses.add(name, quality)

    def result(self) -> Converted:
        """What was made."""
        encoding = Encoding(self.categories, self.shifts) if self.encoding is None else self.encoding
        return Converted(self.matrix, encoding, self.wide, self.losses.words())


def fits_float32(dtype: np.dtype[Any]) -> bool:
    """Whether float32 holds every value of a type."""
    return dtype == np.float32 or dtype.itemsize <= 2 or dtype.kind == "b"


class ColumnPrecision(NamedTuple):
    """How well float32 holds a column."""

    is_crowded: bool = False  # whether float32 has few steps for most of its values
    # whether some are of a size at which the data of a model may be crowded, and are not held exactly
    is_large: bool = False
    # is_merged, loses_much: whether different values became equal, and whether many did; in a sample of the rows
    is_merged: bool = False
    loses_much: bool = False
    is_infinite: bool = False  # whether a value is beyond float32's range; in the sample


def precision(values: NDArray[Any], short: Float32s, shift: float = 0) -> ColumnPrecision:
    """Compare a column with its float32 form, after a shift."""
    size = np.abs(short)
    is_held = np.array_equal(short, values, equal_nan=values.dtype.kind == "f")
    if is_held and (values.dtype.kind == "f" or (size < 2**53).all()):  # NumPy compares whole numbers as float64
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
    """Whether most values are so close together, far from 0, that float32 has few steps between them.

    More than half of the values other than 0 lie within 1/128 of their median: float32, with its 2^23 steps from a
    number to its double, has some 2^16 of them there.
    """
    present = values.astype(np.float64, copy=False)
    present = present[(present != 0) & np.isfinite(present)]
    if not len(present):
        return False
    middle = np.partition(present, len(present) // 2)[len(present) // 2]
    return bool(2 * np.count_nonzero(np.abs(present - middle) < CROWDED * abs(middle)) > len(present))


def best_shift(values: NDArray[Any], short: Float32s) -> float | None:
    """What to subtract from crowded values so that float32 keeps them distinct; None if it already does."""
    distinct = np.unique(values[np.isfinite(values)])
    if len(np.unique(short[np.isfinite(values)])) >= min(STEPS, ENOUGH * len(distinct)):
        return None
    nonzero = distinct[distinct != 0]
    return nonzero[len(nonzero) // 2].item()  # type: ignore[no-any-return]


def shifted(values: NDArray[Any], shift: float) -> Float32s:
    """Values − shift as float32; whole numbers are subtracted exactly."""
    with np.errstate(over="ignore", invalid="ignore"):
        difference = values.astype(np.float64) - float(shift)
        if values.dtype.kind in "iu" and isinstance(shift, int):
            near = np.abs(difference) < 2**62  # there the difference modulo 2^64 is the difference
            difference[near] = (values.astype(np.uint64) - np.uint64(shift % 2**64)).view(np.int64)[near]
        return difference.astype(np.float32)


class Losses:
    """Takes note of features whose values float32 does not hold."""

    def __init__(self) -> None:
        self.merged: list[Any] = []
        self.infinite: list[Any] = []
        self.few_left: list[Any] = []

    def add(self, name: Any, quality: ColumnPrecision) -> None:
        """Take note of a column."""
        for is_lost, names in (
            (quality.is_infinite, self.infinite), (quality.is_merged, self.merged), (quality.loses_much, self.few_left)
        ):  # fmt: skip
            if is_lost:
                names.append(name)

    def words(self) -> tuple[str, ...]:
        """What was noted; a warning where much of a feature is lost."""
        merged = f"different values became equal in float32 in {listed('feature', self.merged)}"
        infinite = f"values beyond float32's range became infinite in {listed('feature', self.infinite)}"
        if self.few_left:
            warn(
                f"many different values became equal in float32 in {listed('feature', self.few_left)}: subtract an "
                "offset, or split the feature into a coarse and a fine one"
            )
        if self.infinite:
            warn(f"{infinite}: divide the feature, or take its logarithm")
        return (merged,) * bool(self.merged) + (infinite,) * bool(self.infinite)


def listed(noun: str, items: list[Any], most: int = 8) -> str:
    """`feature 3`, `features 1, 2`, or the first few and how many more."""
    shown = ", ".join(str(item) for item in items[:most])
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return f"{noun}{'s' if len(items) > 1 else ''} {shown}{more}"
