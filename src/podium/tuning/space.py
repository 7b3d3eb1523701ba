"""The search space: a range or a list of choices for each parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.core.parameters import parameters, unknown_parameter
from podium.core.validation import require_number
from podium.errors import DataError

Value = int | float | str | bool | None


@dataclass(frozen=True)
class Between:
    """A range of numbers including both ends; a range of integers if both ends are integers.

    Args:
        low: the smallest value.
        high: the largest value.
        log: whether to search on a logarithmic scale, with as many values between 1 and 10 as between 10 and 100.

    Example:
        >>> import podium
        >>> podium.tuning.Between(4, 64, log=True).is_whole, podium.tuning.Between(0.5, 1.0).is_whole
        (True, False)

    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        require_number("low", self.low, above=0.0 if self.log else -math.inf)
        require_number("high", self.high, above=float(self.low))

    def __contains__(self, value: Any) -> bool:
        return value is not None and self.low <= value <= self.high

    @property
    def is_whole(self) -> bool:
        """Whether it is a range of integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)


Space = Mapping[str, Between | tuple[float, float] | Sequence[Value]]  # as callers pass it
CheckedSpace = dict[str, Between | list[Value]]

# The default search spaces; an estimator uses the entries of the parameters that it has.
TREES: CheckedSpace = {
    "n_leaves": Between(4, 64, log=True),
    "learning_rate": Between(0.02, 0.2, log=True),
    "min_documents_in_leaf": Between(2, 100, log=True),
    "l2": Between(0.1, 100.0, log=True),
    "document_fraction": Between(0.5, 1.0),
    "feature_fraction": Between(0.3, 1.0),
}
NETS: CheckedSpace = {
    "learning_rate": Between(1e-4, 1e-1, log=True),
    "hidden": [10, 20, 40],
    "l2": Between(1e-6, 1e-1, log=True),
}
OBJECTIVES: list[Value] = [None, "lambdaloss(ndcg)", "queryregression", "xendcg"]  # None trains on λ of the measure


def default_space(estimator: Any) -> CheckedSpace:
    """Return the default search space of an estimator."""
    declared = parameters(type(estimator))
    is_tree_ranker = "n_leaves" in declared
    space = {name: values for name, values in (TREES if is_tree_ranker else NETS).items() if name in declared}
    if "feature_fraction" in space and estimator.feature_fraction is None:
        del space["feature_fraction"]  # the estimator chooses it by the data
    if is_tree_ranker and "objective" in declared and estimator.objective is None:
        space["objective"] = list(OBJECTIVES)
    if not space:
        raise DataError(f"{type(estimator).__name__} has no default search space: pass space={{…}}")
    return space


def checked_space(space: Space | None, estimator: Any) -> CheckedSpace:
    """Return the search space, by default that of the estimator; raise for invalid names, ranges or choices."""
    if space is None:
        return default_space(estimator)
    declared, checked = parameters(type(estimator)), CheckedSpace()
    if not space:
        raise DataError("space is empty: pass a range or choices for at least one parameter")
    for name, values in space.items():
        if name not in declared:
            raise unknown_parameter(type(estimator).__name__, name, declared)
        checked[name] = choices = _range_or_choices(name, values)
        for value in (choices.low, choices.high) if isinstance(choices, Between) else choices:
            declared[name].check(value, f"space: {name}")
    return checked


def _range_or_choices(name: str, values: Any) -> Between | list[Value]:
    if isinstance(values, Between):
        return values
    if isinstance(values, tuple) and len(values) == 2 and all(type(end) in (int, float) for end in values):
        return Between(*values)
    if isinstance(values, Sequence) and not isinstance(values, str) and values:
        if all(isinstance(value, int | float | str | bool) or value is None for value in values):
            return list(values)
        raise DataError(f"space: choices of {name} must be numbers, text, booleans or None, but got {values!r}")
    raise DataError(
        f"space: {name} must be Between(low, high), a pair (low, high) or a list of choices, but got {values!r}"
    )
