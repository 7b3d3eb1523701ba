"""The features that a model expects, and the conversion of any input to them, which every prediction uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from podium.core.array_types import Float32s
from podium.data import frames
from podium.data.encoding import Encoding, recoded, shifted, warn_of_unknown_categories
from podium.data.features import Features, are_numbers, to_features
from podium.data.ranking_data import RankingData
from podium.data.sparse import is_sparse
from podium.errors import DataError, warn

EXTRA = ("ignore", "refuse")


@dataclass(frozen=True)
class Schema:
    """The features that a model was trained on."""

    n_features: int
    names: tuple[str, ...] | None = None
    encoding: Encoding = field(default_factory=Encoding)  # the categories and shifts of the training data
    # whether `n_features` is only the number that an imported model uses
    is_inferred: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, data: RankingData) -> Schema:
        """Return the schema of data."""
        return cls(data.n_features, data.feature_names, data.encoding)

    def rows(self, X: Any, extra: str = "ignore") -> Features:
        """Return float32 rows in the model's order from an array, a sparse matrix, a frame or `RankingData`.

        Columns are matched by name if both sides have names. Columns that the model does not have are ignored, or raise
        an error with `extra="refuse"`.
        """
        if extra not in EXTRA:
            raise DataError(f"extra must be 'ignore' or 'refuse', but got {extra!r}")
        if isinstance(X, RankingData):
            return self._rows_from(X, self._sources(X, extra))
        if frames.is_frame(X):
            features: Features = frames.features_by_name(X, self.names, self.encoding, refuse_extra=extra == "refuse")
        else:
            if hasattr(X, "shape") and len(X.shape) == 2:
                self._require_width(X.shape[1])
            features = to_features(X, encoding=self.encoding).features
        self._require_width(features.shape[1])
        return features

    def matched(self, data: RankingData) -> RankingData:
        """Return the data with these features, in this order and encoding; the data itself if it has them already."""
        if self == Schema.of(data) or (
            not (self.encoding or data.encoding)
            and data.n_features == self.n_features
            and (self.names is None or data.feature_names in (None, self.names))
        ):
            return data
        sources = self._sources(data, "ignore")
        wide = {feature: data.wide[source] for feature, source in enumerate(sources) if source in data.wide}
        features = self._rows_from(data, sources)
        return data._with_features(features, self.names, self.encoding, data.reading, wide=wide)

    def n_indices(self, first_index: int) -> int:
        """Return how many indices LETOR text may use for these features if the first index is `first_index`."""
        names = self.names or ()
        if not names or not are_numbers(names):
            return self.n_features
        return max(map(int, names)) + 1 - first_index

    def feature_of(self, column: int, name: str | None) -> int:
        """Return the number of the feature that matches a column, by name or else by index; −1 if none does."""
        if self.names is None or name is None:
            return column
        return self.names.index(name) if name in self.names else -1

    def _require_width(self, n_features: int) -> None:
        if n_features != self.n_features:
            reason = "the features that the model was trained on"
            if self.is_inferred:
                reason = (
                    "the model was imported from a file that does not state the number. If its training data had "
                    f"{n_features}, import it again with import_model(…, n_features={n_features}) or --n-features"
                )
            raise DataError(
                f"X has {n_features} features, but Podium is expecting {self.n_features} features as input: {reason}"
            )

    def _rows_from(self, data: RankingData, sources: list[int]) -> Features:
        features = data.features if sources == list(range(data.n_features)) else self._selected(data, sources)
        return self._recoded(data, sources, features)

    def _sources(self, data: RankingData, extra: str) -> list[int]:
        """Return the column in the data of each feature of the model; −1 for features that a sparse text omits."""
        if self.names is None or data.feature_names is None:
            absent = self.n_features - data.n_features
            if absent > 0 and data.absent_value is not None:
                self._warn_of_absent(data, absent)
                return [*range(data.n_features), *[-1] * absent]
            self._require_width(data.n_features)
            return list(range(self.n_features))
        column_of = {name: k for k, name in enumerate(data.feature_names)}
        sources = [column_of.get(name, -1) for name in self.names]
        missing = [name for name, source in zip(self.names, sources, strict=True) if source < 0]
        if missing:
            if not _are_beyond(missing, data):
                raise DataError(
                    f"the data lacks the feature {missing[0]!r} of the model ({len(missing)} missing in all)"
                )
            self._warn_of_absent(data, len(missing))
        expected = set(self.names)
        unknown = [name for name in data.feature_names if name not in expected] if extra == "refuse" else []
        if unknown:
            raise DataError(f"the model has no feature {unknown[0]!r}, which the data has ({len(unknown)} in all)")
        return sources

    def _warn_of_absent(self, data: RankingData, n_absent: int) -> None:
        value = "0" if data.absent_value == 0 else "missing"
        warn(
            f"the data has {data.n_features} of the model's {self.n_features} features: its text is sparse, so "
            f"the last {n_absent} are treated as {value}",
            stacklevel=6,
        )

    def _selected(self, data: RankingData, sources: list[int]) -> Features:
        """Return these columns of the data, with the absent value in place of −1."""
        if -1 not in sources:
            return data.features[:, sources]
        assert data.absent_value is not None
        present = [source for source in sources if source >= 0]
        columns = data.features[:, present] if present != list(range(data.n_features)) else data.features
        if is_sparse(columns):
            from scipy.sparse import csr_array, hstack

            if data.absent_value != 0:
                raise DataError("omitted features of sparse data are 0, not missing: read the text with sparse=False")
            empty = csr_array((len(data), len(sources) - len(present)), dtype=np.float32)
            rows: Any = csr_array(hstack([columns, empty], format="csr"))
            order = np.argsort(np.argsort([source if source >= 0 else data.n_features for source in sources]))
            return rows if np.array_equal(order, np.arange(len(order))) else rows[:, order]
        filled = np.full((len(data), len(sources)), data.absent_value, np.float32)
        filled[:, [k for k, source in enumerate(sources) if source >= 0]] = columns
        return filled

    def _recoded(self, data: RankingData, sources: list[int], features: Features) -> Features:
        if not (self.encoding or data.encoding):
            return features
        changed: dict[int, Float32s] = {}
        for feature, source in enumerate(sources):
            names, expected = data.encoding.categories.get(source), self.encoding.categories.get(feature)
            if expected is not None and names is None:
                raise DataError(f"feature {self.shown(feature)} is categorical in the model but numeric in the data")
            if names is not None and expected is None:
                raise DataError(f"feature {self.shown(feature)} is categorical in the data but numeric in the model")
            if expected is not None and names is not None and expected != names:
                codes = np.asarray(data.features[:, source])
                changed[feature] = recoded(codes, names, expected)
                if np.isnan(changed[feature]).all():
                    present = [names[int(code)] for code in np.unique(codes[~np.isnan(codes)])]
                    warn_of_unknown_categories(self.shown(feature), present, expected)
            shift = self.encoding.shifts.get(feature, 0)
            if shift != data.encoding.shifts.get(source, 0):
                if is_sparse(features):
                    raise DataError("this model shifts features before the conversion to float32: pass dense features")
                column = data.original_column(source) if source >= 0 else np.full(len(data), data.absent_value)
                changed[feature] = shifted(column, shift)
        if not changed:
            return features
        rows = np.array(features)
        for feature, column in changed.items():
            rows[:, feature] = column
        return rows

    def shown(self, feature: int) -> str:
        """Return the name of a feature, else its number, for messages."""
        return repr(self.names[feature]) if self.names is not None else str(feature)


def _are_beyond(missing: list[str], data: RankingData) -> bool:
    """Return whether the numbers of all these features are above the last one in a sparse text."""
    if data.absent_value is None or data.feature_names is None or not are_numbers([*missing, *data.feature_names]):
        return False
    return min(map(int, missing)) > max(map(int, data.feature_names), default=-1)


def columns_of_text(X: Any, columns: Sequence[Any]) -> list[Any]:
    """Return the given columns that are not numeric."""
    if not len(columns) or isinstance(X, RankingData) or is_sparse(X):
        return []
    if frames.is_frame(X):
        return frames.columns_of_text(X, columns)
    array = np.asarray(X)
    if array.dtype.kind not in "OUS" or array.ndim != 2:
        return []
    numbers = [k for k in columns if isinstance(k, int) and 0 <= k < array.shape[1]]
    return [k for k in numbers if not all(isinstance(value, Real) for value in array[:, k].tolist())]


def as_data(data: Any) -> RankingData:
    """Return `RankingData` as it is, or made from a frame whose column names imply queries and labels."""
    if isinstance(data, RankingData):
        return data
    if frames.is_frame(data):
        return RankingData(data)
    raise DataError(f"expected RankingData, or a frame with a column 'qid', but got {type(data).__name__}")
