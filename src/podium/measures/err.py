"""Expected reciprocal rank."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats
from podium.errors import DataError
from podium.measures.base import Example, Measure
from podium.measures.cascade import Cascade
from podium.measures.gains import LARGEST_POWER, Gain, highest_label
from podium.measures.registry import as_measure, register

if TYPE_CHECKING:
    from podium.data import RankingData
    from podium.measures.err_ia import ERRIA


@register
@dataclass(frozen=True)
class ERR(Cascade):
    """Expected reciprocal rank: Σ_{r≤T} (1/r) R_r Π_{q<r} (1 − R_q), R = (2^l − 1) / 2^{l_max}.

    Chapelle, Metzler, Zhang and Grinspan 2009; [B] §3.

    Args:
        max_label: l_max; None takes the highest label of the data (`fixed` keeps it for other data), or
            of the list where a single list is measured. Models keep the highest one of their training and
            validation data.

    Example:
        >>> from podium import ERR
        >>> ERR(max_label=4).value([4, 0, 4])
        0.95703125

    """

    _: KW_ONLY
    max_label: float | None = None

    name: ClassVar[str] = "err"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("err(max_label=4)", (4, 0, 4), 15 / 16 + (1 / 16) * (15 / 16) / 3),
        Example("err(max_label=4)@1", (0, 4), 0.0),
        Example("err(max_label=1,ties=expected)", (1, 0), (1 / 2 + 1 / 4) / 2, scores=(1, 1)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_label is not None and (
            not isinstance(self.max_label, int | float) or not 0 <= self.max_label <= LARGEST_POWER
        ):
            raise DataError(f"max_label must be a number from 0 to {LARGEST_POWER}, not {self.max_label!r}")

    def fixed(self, *data: RankingData) -> Self:
        """With l_max taken from the data, if it is not given."""
        if self.max_label is not None or not any(self.labels in part.labels for part in data):
            return self
        return self.replace(max_label=highest_label(self.labels, *data))

    def fixed_like(self, *models: Iterable[Measure | str]) -> Self:
        """With l_max of an ERR that looks at the same labels, if it is not given; the highest of several models'."""
        return self if self.max_label is not None else self.replace(max_label=max_label_of(self, models))

    def power(self, *data: RankingData) -> float:
        """The highest label."""
        return highest_label(self.labels, *data)

    def stops(self, labels: NDArray[Any]) -> Floats:
        """(2^l − 1) / 2^{l_max}."""
        highest = float(np.fmax.reduce(labels, initial=0.0)) if self.max_label is None else self.max_label
        gains = Gain()(labels)
        if len(gains) and gains.max() > 2.0**highest - 1.0:
            raise DataError(
                f"there is a label above max_label = {highest:g}, the highest that {self} expects: "
                f"say the highest of all data, as in err(max_label={np.nanmax(labels):g})"
            )
        return np.asarray(gains / 2.0**highest)


def max_label_of(measure: ERR | ERRIA, models: Iterable[Iterable[Measure | str]]) -> float | None:
    """l_max of a measure of the same kind and labels that a model was trained by; the highest of several models'."""
    highest = []
    for measures in models:
        of_model = []
        for text in measures:
            with suppress(DataError):  # a measure of a user's own need not be registered here
                other: Any = as_measure(text)
                if type(other) is type(measure) and other.labels == measure.labels and other.max_label is not None:
                    of_model.append(other.max_label)
        highest += of_model[:1]
    return max(highest, default=None)
