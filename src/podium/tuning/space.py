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


Space = Mapping[str, Between | tuple[float, float] | Sequence[Value]]
Checked = dict[str, Between | list[Value]]

# The default search space; an estimator uses the entries of those parameters that it has.
TREES: Checked = {
    "n_leaves": Between(4, 64, log=True),
    "learning_rate": Between(0.02, 0.2, log=True),
    "min_documents_in_leaf": Between(2, 100, log=True),
    "l2": Between(0.1, 100.0, log=True),
    "document_fraction": Between(0.5, 1.0),
    "feature_fraction": Between(0.3, 1.0),
}
NETS: Checked = {
    "learning_rate": Between(1e-4, 1e-1, log=True),
    "hidden": [10, 20, 40],
    "l2": Between(1e-6, 1e-1, log=True),
}
OBJECTIVES: list[Value] = [None, "lambdaloss(ndcg)", "queryregression", "xendcg"]  # None: λ of the measure


def default_space(estimator: Any) -> Checked:
    """Return the default search space of an estimator."""
    known = parameters(type(estimator))
    space = {name: over for name, over in (TREES if "n_leaves" in known else NETS).items() if name in known}
    if "feature_fraction" in space and estimator.feature_fraction is None:
        del space["feature_fraction"]  # the estimator chooses it from the data
    if "n_leaves" in known and "objective" in known and estimator.objective is None:
        space["objective"] = list(OBJECTIVES)
    if not space:
        raise DataError(f"{type(estimator).__name__} has no default search space: pass space={{…}}")
    return space


def checked_space(space: Space | None, estimator: Any) -> Checked:
    """Return the search space, with names and ranges validated."""
    if space is None:
        return default_space(estimator)
    known, checked = parameters(type(estimator)), Checked()
    if not space:
        raise DataError("space is empty: pass a range or choices for at least one parameter")
    for name, over in space.items():
        if name not in known:
            raise unknown_parameter(type(estimator).__name__, name, known)
        checked[name] = values = _checked_values(name, over)
        for value in (values.low, values.high) if isinstance(values, Between) else values:
            known[name].check(value, f"space: {name}")
    return checked


def _checked_values(name: str, over: Any) -> Between | list[Value]:
    if isinstance(over, Between):
        return over
    if isinstance(over, tuple) and len(over) == 2 and all(type(end) in (int, float) for end in over):
        return Between(*over)
    if isinstance(over, Sequence) and not isinstance(over, str) and over:
        if all(isinstance(value, int | float | str | bool) or value is None for value in over):
            return list(over)
        raise DataError(f"space: choices of {name} must be numbers, text, booleans or None, but got {over!r}")
    raise DataError(
        f"space: {name} must be Between(low, high), a pair (low, high) or a list of choices, but got {over!r}"
    )
