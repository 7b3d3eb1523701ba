"""From documents as clients give them to the rows of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.validation import did_you_mean
from podium.data.encoding import codes_of_categories, shifted
from podium.data.schema import Schema
from podium.serving.refusing import Refused

Rows = NDArray[np.float32]


class Matcher:
    """Turns documents, lists of values or values by name, into float32 rows in the encoding of a model.

    Every feature must be there: null is a missing value. A category that the model has not seen counts as missing.

    >>> Matcher(Schema(2, ("bm25", "age"))).rows([{"age": None, "bm25": 1.5}]).tolist()
    [[1.5, nan]]
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        names = schema.names
        self._places = None if names is None else {name: k for k, name in enumerate(names)}
        self._pick: Callable[[dict[str, Any]], tuple[Any, ...]] | None = None
        if names is not None and len(names) == 1:
            only = names[0]
            self._pick = lambda document: (document[only],)
        elif names:
            self._pick = itemgetter(*names)

    def rows(self, documents: Sequence[list[Any] | dict[str, Any]], *, has_text: bool = True) -> Rows:
        """A row for each document; what does not fit is refused. `has_text`: whether values may be text."""
        lists = [self._values(number, document) for number, document in enumerate(documents)]
        if not lists:
            return np.empty((0, self.schema.n_features), np.float32)
        if self.schema.encoding:
            return self._finite(self._encoded(lists))
        if has_text:
            self._refuse_text(lists)
        with np.errstate(over="ignore"):
            return self._finite(np.array(lists, np.float32))  # None becomes NaN

    def _values(self, number: int, document: list[Any] | dict[str, Any]) -> Sequence[Any]:
        """The values of a document in the order of the model's features."""
        if type(document) is list:
            if len(document) != self.schema.n_features:
                raise Refused(
                    422,
                    f"document {number} has {len(document)} values, but the model takes {self.schema.n_features}",
                )
            return document
        assert isinstance(document, dict)
        if self._pick is None or self._places is None:
            n = self.schema.n_features
            raise Refused(422, f"the model has no names of features: give each document as a list of {n} numbers")
        try:
            values = self._pick(document)
        except KeyError as error:
            name = error.args[0]
            raise Refused(422, f"document {number} lacks the feature {name!r}; null is a missing value") from None
        if len(document) != len(self._places):
            unknown = next(name for name in document if name not in self._places)
            hint = did_you_mean(unknown, self._places)
            raise Refused(
                422, f"document {number} has the feature {unknown[:80]!r}, which the model does not know{hint}"
            )
        return values

    def _encoded(self, lists: list[Sequence[Any]]) -> Rows:
        """Rows with the numbers of categories, and with what the model subtracts from features."""
        rows = np.empty((len(lists), self.schema.n_features), np.float32)
        for feature, column in enumerate(zip(*lists, strict=True)):
            names = self.schema.encoding.categories.get(feature)
            if names is not None:
                rows[:, feature] = codes_of_categories(column, names)
                continue
            self._refuse_text([[value] for value in column], feature)
            shift = self.schema.encoding.shifts.get(feature, 0)
            with np.errstate(over="ignore"):
                rows[:, feature] = shifted(np.array(column, np.float64), shift)
        return rows

    def _finite(self, rows: Rows) -> Rows:
        """The rows, if no number is beyond float32."""
        beyond = np.isinf(rows)
        if beyond.any():
            document, feature = np.argwhere(beyond)[0]
            raise Refused(422, f"document {document}: the value of {self._shown(feature)} is too large")
        return rows

    def _refuse_text(self, lists: Sequence[Sequence[Any]], first: int = 0) -> None:
        """Refuse text in features that hold numbers, of which the first has this number."""
        for number, values in enumerate(lists):
            for feature, value in enumerate(values, first):
                if isinstance(value, str):
                    raise Refused(422, f"document {number}: {self._shown(feature)} holds numbers, and text was given")

    def _shown(self, feature: int) -> str:
        names = self.schema.names
        return f"feature {feature}" if names is None else f"the feature {names[feature]!r}"
