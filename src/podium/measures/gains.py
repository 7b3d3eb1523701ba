"""The gains of labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats
from podium.errors import DataError, warn

if TYPE_CHECKING:
    from podium.data import RankingData
    from podium.measures.base import Measure

LARGEST_USUAL_POWER = 31  # the largest label for which LightGBM has a gain 2^label − 1
LARGEST_POWER = 1000  # sums of gains up to 2^1000 do not overflow
POWER_WARNING = "the highest label has the gain 2^"  # the start of the warning


def shown(number: float) -> str:
    """Return a number in the fewest digits that parse as the same number."""
    return repr(float(number)).removesuffix(".0")


@dataclass(frozen=True)
class Gain:
    """A gain for each label: `exponential` (2^{scale·l} − 1), `linear` (l), or a `table` by label.

    As text: `exponential`, `exponential:4`, `linear`, `table:0/1/3/7`.

    Example:
        >>> import numpy as np
        >>> from podium.measures import Gain
        >>> Gain()(np.array([0.0, 1.0, 2.0])).tolist()
        [0.0, 1.0, 3.0]
        >>> str(Gain.of("table:0/1/5"))
        'table:0/1/5'

    """

    kind: str = "exponential"
    scale: float = 1.0
    table: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        is_valid = {
            "exponential": 0 < self.scale < math.inf,
            "linear": True,
            "table": len(self.table) > 0 and all(0 <= entry < math.inf for entry in self.table),
        }
        if not is_valid.get(self.kind, False):
            raise DataError(f"invalid gain: kind {self.kind!r}, scale {self.scale}, table {self.table}")

    @classmethod
    def of(cls, value: Gain | str) -> Gain:
        """Return a gain that is passed as a `Gain` or as text."""
        if isinstance(value, Gain):
            return value
        if not isinstance(value, str):
            raise DataError(f"a gain must be a Gain or text such as 'linear', but got {value!r}")
        kind, _, rest = value.partition(":")
        try:
            if kind == "exponential":
                return cls(kind, float(rest or 1))
            if kind == "linear" and not rest:
                return cls(kind)
            if kind == "table" and rest:
                return cls(kind, table=tuple(float(entry) for entry in rest.split("/")))
        except ValueError:
            pass
        raise DataError(f"a gain must be exponential, exponential:SCALE, linear or table:G0/G1/…, but got {value!r}")

    def __str__(self) -> str:
        if self.kind == "exponential" and self.scale != 1:
            return f"exponential:{shown(self.scale)}"
        if self.kind == "table":
            return "table:" + "/".join(map(shown, self.table))
        return self.kind

    def __call__(self, labels: NDArray[np.floating]) -> Floats:
        """Return gains in float64, 0 for unlabelled documents."""
        labels = np.asarray(labels, np.float64)
        levels: Floats = np.nan_to_num(labels, nan=0.0)
        if levels.size and levels.min() < 0:
            raise DataError(f"labels must be non-negative to compute gains, but got {levels.min():g}")
        if self.kind == "linear":
            return levels
        if self.kind == "table":
            numbers = levels.astype(np.int64)
            if (numbers != levels).any() or (levels.size and numbers.max() >= len(self.table)):
                raise DataError(
                    f"the gain {self} only has entries for the labels 0 to {len(self.table) - 1}, "
                    f"but got the label {levels[(numbers != levels) | (numbers >= len(self.table))][0]:g}"
                )
            return np.asarray(np.where(np.isnan(labels), 0.0, np.asarray(self.table)[numbers]))
        if levels.size and levels.max() * self.scale > LARGEST_POWER:
            raise DataError(
                f"2^label overflows for the label {levels.max():g}: use gain=linear, or gain=table:… with a "
                "gain for each label"
            )
        return np.asarray(np.exp2(self.scale * levels) - 1.0)

    def power(self, source: str, *data: RankingData) -> float:
        """Return the largest exponent of 2 for the labels of a source; 0 unless the gain is exponential."""
        return self.scale * highest_label(source, *data) if self.kind == "exponential" else 0.0


def probabilities(gains: Floats, measure: Measure) -> Floats:
    """Return gains that a measure uses as probabilities; raise if one is above 1."""
    if len(gains) and gains.max() > 1:
        raise DataError(
            f"the gains of {measure} must be at most 1, but one is {gains.max():g}: set one for each label, as in "
            f"{measure._word()}(gain=table:0/0.25/0.5/1)"
        )
    return gains


def highest_label(source: str, *data: RankingData) -> float:
    """Return the highest label of a source in data; 0 without labels."""
    return max((float(np.fmax.reduce(d.labels[source], initial=0.0)) for d in data if source in d.labels), default=0.0)


def warn_of_powers(measures: Iterable[Measure], *data: RankingData, stacklevel: int = 3) -> bool:
    """Warn if the gain 2^label of the highest label makes all others negligible, and return whether it does.

    Example:
        >>> import podium
        >>> from podium.measures import NDCG, warn_of_powers
        >>> warn_of_powers([NDCG()], podium.artificial(2, features=2))
        False

    """
    for measure in measures:
        if LARGEST_USUAL_POWER < (power := measure.power(*data)) <= LARGEST_POWER:  # larger powers raise an error
            warn(
                f"{POWER_WARNING}{power:g} in {measure}, which makes all others negligible: "
                "use gain=linear, as in ndcg(gain=linear)@10, or gain=table:G0/G1/… with a gain for each label",
                stacklevel=stacklevel,
            )
            return True
    return False
