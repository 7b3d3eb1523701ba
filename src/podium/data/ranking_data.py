"""`RankingData`: documents with features and labels, grouped into queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.core.array_types import Bools, Float32s, Floats, Int32s, Ints, UInt64s
from podium.data import columns, frames
from podium.data.columns import PreferencePairs, to_preferences
from podium.data.encoding import Encoding
from podium.data.features import (
    Features,
    already_encoded,
    as_list_of_features,
    checked_names,
    n_rows,
    numbers_of_features,
    to_features,
)
from podium.data.sparse import is_sparse
from podium.errors import DataError

if TYPE_CHECKING:
    import os

    from podium.data.summary import Summary


class RankingData:
    """Immutable ranking data; every array is in the caller's row order.

    Args:
        features: an (n, f) array, a scipy sparse matrix (which stays sparse), or a pandas, polars or pyarrow frame. NaN
            is a missing value, ±inf are values. Features are stored as float32; a float32 array is not copied.
        relevance: the main labels, one real number per row, or NaN for "not labelled".
        qid: the query id of each row: whole numbers or text, in any order.
        group_sizes: the number of rows of each query, instead of `qid`, if rows are grouped by query.
        labels: further label sources by name, for example `{"clicks": c}`.
        document_weights: non-negative weights of rows.
        query_weights: weights of queries: a mapping from query id, one entry per query in the order of `query_ids`, or
            one per row that is constant within a query.
        positions: the rank, from 1, at which each document was shown; −1 or NaN if it was not shown.
        preferences: pairs (i, j, probability, weight) of rows of one query, where i should rank above j; the last two
            columns are optional, and 1 by default.
        document_ids: an id for each row.
        feature_names: a name for each feature; a frame has its own.
        categorical: the categorical features by name or number, which hold text or numbers that are names. Columns of
            frames that have a categorical type need not be listed. Categories are stored as numbers, with their names
            in `encoding`.
        encoding: the encoding, if features are already encoded.

    Example:
        >>> import podium
        >>> X = [[0.5, 1.0], [0.25, 0.0], [0.75, 2.0]]
        >>> data = podium.RankingData(X, [2, 0, 1], qid=["shoes", "shoes", "hats"])
        >>> data
        RankingData(3 documents in 2 queries, 2 features, labels: relevance)
        >>> data.rows(0).tolist(), data.query_of_row.tolist()
        ([0, 1], [0, 0, 1])

    With a frame, any argument may be the name of a column. Columns named `qid`, `label` (or `relevance`),
    `label.SOURCE`, `document_id`, `document_weight`, `query_weight` and `position` have these roles by default. All
    other columns, or those named in `feature_names`, are features.

    Attributes:
        features, qid, document_weights, query_weights, positions, preferences, document_ids, feature_names: the
            arguments, validated and converted.
        labels: all labels by source, including `"relevance"`.
        query_ids: the distinct query ids in order of first appearance; query k has the id `query_ids[k]`.
        order, offsets: the rows of query k are `order[offsets[k]:offsets[k + 1]]`.
        encoding: how features are encoded: `encoding.categories` has the names of categories by feature,
            `encoding.shifts` what was subtracted from values that would have become equal in float32.
        wide: the original values of features for which float32 has few steps, by feature.
        absent_value: for sparse text, the value of features beyond the last one in it, 0 or NaN; otherwise None.
        reading: the options of `podium.read` that determined the values of features.
        losses: descriptions of what the conversion to float32 lost.
        row_index: the index of the pandas frame that the data came from, unless it was 0, 1, 2 …
        base_scores: the scores that training starts from, if not 0; see `with_base_scores`.

    """

    features: Features
    qid: NDArray[Any]
    labels: Mapping[str, Float32s]
    document_weights: Float32s | None
    query_weights: Float32s | None
    positions: Int32s | None
    preferences: PreferencePairs | None
    document_ids: NDArray[Any] | None
    feature_names: tuple[str, ...] | None
    query_ids: NDArray[Any]
    order: Ints
    offsets: Ints
    encoding: Encoding
    wide: Mapping[int, NDArray[Any]]
    absent_value: float | None
    reading: Mapping[str, Any]
    losses: tuple[str, ...]
    row_index: NDArray[Any] | None
    base_scores: Floats | None = None

    def __init__(
        self,
        features: Any,
        relevance: ArrayLike | str | None = None,
        *,
        qid: ArrayLike | str | None = None,
        group_sizes: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike | str] | None = None,
        document_weights: ArrayLike | str | None = None,
        query_weights: Any = None,
        positions: ArrayLike | str | None = None,
        preferences: Any = None,
        document_ids: ArrayLike | str | None = None,
        feature_names: Sequence[str] | None = None,
        categorical: Sequence[int | str] = (),
        encoding: Encoding | None = None,
    ) -> None:
        roles: dict[str, Any] = {
            "relevance": relevance, "qid": qid, "labels": dict(labels or {}), "document_weights": document_weights,
            "query_weights": query_weights, "positions": positions, "document_ids": document_ids,
        }  # fmt: skip
        if group_sizes is not None:
            if qid is not None:
                raise DataError("pass either qid or group_sizes, not both")
            roles["qid"] = columns.qid_from_sizes(group_sizes, n_rows(features))
        categorical, is_frame = as_list_of_features(categorical), frames.is_frame(features)
        if is_frame:
            converted, feature_names, roles = frames.convert_frame(features, roles, feature_names, categorical)
        elif encoding is not None:
            converted = already_encoded(features, encoding)
        else:
            converted = to_features(features, numbers_of_features(categorical, feature_names, "categorical"))
        if roles["qid"] is None:
            raise DataError("the queries of the rows are unknown: pass qid, with one id per row, or group_sizes")
        matrix = converted.features
        self.__dict__.update(
            features=columns.frozen(matrix) if isinstance(matrix, np.ndarray) else matrix,
            feature_names=checked_names(feature_names, matrix.shape[1]),
            row_index=frames.row_index(features) if is_frame else None,
            encoding=converted.encoding,
            wide=MappingProxyType(dict(converted.wide)),
            losses=converted.losses,
            absent_value=None,
            reading=MappingProxyType({}),
        )
        self._init_rows(roles, preferences)

    def _init_rows(self, roles: dict[str, Any], preferences: Any) -> None:
        """Group the rows into queries, and validate all columns other than features; only constructors call this."""
        n = self.n_documents
        qid = columns.to_query_ids(roles["qid"], n)
        query_ids, order, offsets = columns.group_rows(qid)

        def unless_none(convert: Any, value: Any, *arguments: Any) -> Any:
            return None if value is None else convert(value, *arguments)

        self.__dict__.update(
            qid=qid,
            query_ids=columns.frozen(query_ids),
            order=columns.frozen(order),
            offsets=columns.frozen(offsets),
            labels=MappingProxyType(columns.to_labels_by_source(roles["relevance"], roles["labels"], n)),
            document_weights=unless_none(columns.to_weights, roles["document_weights"], "document_weights", n),
            query_weights=unless_none(columns.to_query_weights, roles["query_weights"], query_ids, order, offsets),
            positions=unless_none(columns.to_positions, roles["positions"], n),
            document_ids=unless_none(columns.to_document_ids, roles["document_ids"], n),
            preferences=unless_none(to_preferences, preferences, n, order, offsets),
        )

    @classmethod
    def _make(cls, arguments: dict[str, Any], origin: Mapping[str, Any]) -> Self:
        """Return data from the constructor's arguments and the attributes that `_origin` lists."""
        return cls(**arguments)._changed(**origin)

    def _changed(self, **attributes: Any) -> Self:
        """Return a shallow copy with some attributes changed; it keeps cached properties."""
        data = object.__new__(type(self))
        frozen = {name: MappingProxyType(value) if type(value) is dict else value for name, value in attributes.items()}
        data.__dict__.update(self.__dict__ | frozen)
        return data

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"RankingData is immutable: use data.replace({name}=…) to get a changed copy")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("RankingData is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return RankingData._make, (self._arguments() | {"features": self.features}, self._origin())

    def __len__(self) -> int:
        return self.n_documents

    def __repr__(self) -> str:
        sources = ", ".join(self.labels) or "none"
        optional = ("document_weights", "query_weights", "positions", "preferences", "document_ids")
        extras = "".join(f", {name}" for name in optional if getattr(self, name) is not None)
        sparse = " (sparse)" if is_sparse(self.features) else ""
        return (
            f"RankingData({self.n_documents} documents in {self.n_queries} queries, "
            f"{self.n_features} features{sparse}, labels: {sources}{extras})"
        )

    def _repr_html_(self) -> str:
        from podium.data.summary import first_rows_as_html

        return first_rows_as_html(self)

    @property
    def n_documents(self) -> int:
        """The number of documents, one per row."""
        return int(self.features.shape[0])

    @property
    def n_queries(self) -> int:
        """The number of distinct query ids."""
        return len(self.query_ids)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.features.shape[1])

    @property
    def query_sizes(self) -> Ints:
        """The number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def relevance(self) -> Float32s:
        """The main labels."""
        if "relevance" not in self.labels:
            raise DataError("the data has no relevance labels: pass them as RankingData(features, relevance)")
        return self.labels["relevance"]

    @cached_property
    def query_of_row(self) -> Ints:
        """The number of the query of each row; row r has the query id `query_ids[query_of_row[r]]`."""
        return columns.frozen(columns.query_of_row(self.order, self.offsets))

    @cached_property
    def query_in_order(self) -> Ints:
        """The number of the query of each entry of `order`, and of `canonical_order`."""
        return columns.frozen(columns.query_in_order(self.offsets))

    @cached_property
    def row_hashes(self) -> UInt64s:
        """A hash of each row's features; dense and sparse features hash alike."""
        from podium.data.canonical import hash_rows

        return columns.frozen(hash_rows(self.features))

    @cached_property
    def canonical_order(self) -> Ints:
        """Like `order`, but with the rows of each query sorted by content instead of row number."""
        from podium.data.canonical import canonical_order

        return columns.frozen(canonical_order(self))

    @cached_property
    def query_keys(self) -> UInt64s:
        """A key of each query for random numbers, computed from its content."""
        from podium.data.canonical import query_keys

        return columns.frozen(query_keys(self))

    def rows(self, query: int) -> Ints:
        """Return the rows of query k, whose id is `query_ids[k]`."""
        return self.order[self.offsets[query] : self.offsets[query + 1]]

    def feature(self, name: int | str) -> NDArray[Any]:
        """Return the values of a feature, given by its number from 0 or its name.

        Categories are returned as numbers. Values that were shifted to fit into float32 are returned unshifted.
        """
        (number,) = numbers_of_features([name], self.feature_names, "feature")
        if not 0 <= number < self.n_features:
            raise DataError(f"there is no feature {name}; features are numbered 0 to {self.n_features - 1}")
        if number in self.encoding.shifts:
            return self.original_column(number)
        if is_sparse(self.features):
            return np.asarray(self.features[:, [number]].toarray()).ravel()
        return np.asarray(self.features[:, number])

    def original_column(self, feature: int) -> NDArray[Any]:
        """Return the values of a feature before any shift, as exactly as possible."""
        if feature in self.wide:
            return self.wide[feature]
        return np.asarray(self.features[:, feature], np.float64) + float(self.encoding.shifts.get(feature, 0.0))

    def replace(self, **changes: Any) -> RankingData:
        """Return a copy with some of the constructor's arguments changed; it shares the other arrays.

        `labels` replaces all sources other than the relevance, and `relevance=None` removes the relevance.
        """
        arguments = self._arguments() | changes
        labels = dict(self.labels) if "labels" not in changes else dict(changes["labels"])
        if "relevance" in changes or ("relevance" in self.labels and "relevance" not in labels):
            labels["relevance"] = changes.get("relevance", self.labels.get("relevance"))
        arguments |= {"labels": {k: v for k, v in labels.items() if v is not None}, "relevance": None}
        if "group_sizes" in changes:
            arguments["qid"] = changes.get("qid")
        if not changes.keys().isdisjoint(("qid", "group_sizes")) and "query_weights" not in changes:
            if self.query_weights is not None:  # the queries have changed
                arguments["query_weights"] = self.query_weight_of_row
        if "features" not in changes:
            return self._rebuilt(arguments)
        if "encoding" not in changes and (frames.is_frame(changes["features"]) or not self.encoding):
            arguments["encoding"] = None
        return RankingData(**arguments)

    def _rebuilt(self, arguments: dict[str, Any]) -> RankingData:
        return RankingData._make(arguments | {"features": self.features}, self._origin())

    def _with_features(
        self,
        features: Any,
        names: tuple[str, ...] | None,
        encoding: Encoding,
        reading: Mapping[str, Any],
        **origin: Any,
    ) -> RankingData:
        """Return a copy with other features, which are already encoded."""
        arguments = self._arguments() | {"features": features, "feature_names": names, "encoding": encoding}
        origin |= {"reading": dict(reading), "losses": self.losses, "row_index": self.row_index}
        return RankingData._make(arguments, origin)

    def select(self, queries: Iterable[int] | NDArray[Any]) -> RankingData:
        """Return the data of some queries, given by numbers or a mask; rows keep their order."""
        from podium.data.subsets import rows_of_queries

        return self.take(rows_of_queries(self, queries))

    def take(self, rows: Ints) -> RankingData:
        """Return the data of some rows, given by numbers, in that order, or by a mask."""
        from podium.data.subsets import take_rows

        return take_rows(self, rows)

    def without_features(self) -> RankingData:
        """Return the same documents without features, but with their hashes and canonical order."""
        _ = self.row_hashes, self.canonical_order  # compute them while there are features
        no_features = columns.frozen(np.empty((self.n_documents, 0), np.float32))
        data: RankingData = object.__new__(RankingData)  # also if this is a subclass, such as BinnedFiles
        data.__dict__.update(self.__dict__ | {"features": no_features, "feature_names": None})
        return data

    def with_base_scores(self, scores: Floats) -> Self:
        """Return the same documents with base scores, which break ties between otherwise equal documents.

        Copies by `replace` and `take` have no base scores.
        """
        positive_zeros = np.asarray(scores, np.float64) + 0.0  # turns −0 into 0
        data = self._changed(base_scores=columns.frozen(positive_zeros))
        for derived in ("canonical_order", "query_keys"):
            data.__dict__.pop(derived, None)
        return data

    def with_weight(self) -> RankingData:
        """Return the documents with nonzero weight, for pointwise losses; all documents if none has any."""
        has_weight = self.has_weight
        if has_weight.all() or not has_weight.any():
            return self
        return self.replace(preferences=None).take(np.flatnonzero(has_weight))

    @property
    def has_weight(self) -> Bools:
        """Whether each row counts: its own weight and that of its query are positive."""
        is_positive = np.ones(len(self), bool) if self.document_weights is None else self.document_weights > 0
        return is_positive if self.query_weights is None else is_positive & (self.query_weight_of_row > 0)

    @property
    def query_weight_of_row(self) -> Float32s:
        """The weight of each row's query, if there are query weights."""
        assert self.query_weights is not None
        return self.query_weights[self.query_of_row]

    def split(self, *fractions: float, seed: int = 0) -> tuple[RankingData, ...]:
        """Split by query into parts, for example `train, valid, test = data.split(0.6, 0.2, 0.2)`.

        The part of a query depends only on its id and the seed, not on row order.
        """
        from podium.data.subsets import split_queries

        return tuple(self.select(part) for part in split_queries(self.query_ids, fractions, seed))

    def k_fold(self, n_splits: int = 5, *, seed: int = 0) -> list[tuple[RankingData, RankingData]]:
        """Return (train, test) for each of `n_splits` folds; every query is in exactly one test part."""
        from podium.data.subsets import fold_of_queries

        fold = fold_of_queries(self.query_ids, n_splits, seed)
        return [(self.select(fold != k), self.select(fold == k)) for k in range(n_splits)]

    def normalized(self, method: str) -> RankingData:
        """Return the data with features normalized within each query, by "sum", "zscore" or "minmax"."""
        from podium.data.normalizing import normalize_queries

        before = self.reading.get("normalize")
        if before is not None:  # normalizing twice would change the last bits
            if before != method:
                raise DataError(f"the features are already normalized by {before!r}")
            return self
        features, encoding = normalize_queries(self, method), Encoding(self.encoding.categories)
        reading = {**self.reading, "normalize": method}
        return self._with_features(features, self.feature_names, encoding, reading, absent_value=self.absent_value)

    def with_reading(self, **options: Any) -> Self:
        """Return a copy with further options in `reading`."""
        return self._changed(reading={**self.reading, **options})

    def summary(self) -> Summary:
        """Return a summary of the data and of likely mistakes; print it, or read its attributes."""
        from podium.data.summary import summarize

        return summarize(self)

    def write(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write to a file: LETOR text or Parquet, by suffix; see `podium.write`."""
        from podium.data.io.writing import write

        write(self, path, **options)

    def _arguments(self) -> dict[str, Any]:
        """Return the constructor's arguments that recreate this object, except its features."""
        names = ("qid", "document_weights", "query_weights", "positions", "preferences")
        arguments = {name: getattr(self, name) for name in (*names, "document_ids", "feature_names")}
        return arguments | {"labels": dict(self.labels), "encoding": self.encoding}

    def _origin(self) -> dict[str, Any]:
        """Return the attributes that are not arguments of the constructor."""
        return {
            "wide": dict(self.wide), "absent_value": self.absent_value, "reading": dict(self.reading),
            "losses": self.losses, "row_index": self.row_index,
        }  # fmt: skip

    @staticmethod
    def concatenate(parts: Iterable[RankingData]) -> RankingData:
        """Concatenate data sets by row; rows with equal query ids form one query."""
        from podium.data.subsets import concatenate

        return concatenate(list(parts))
