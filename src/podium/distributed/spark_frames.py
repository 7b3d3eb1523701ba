"""Documents in Spark DataFrames: the columns to read, and the conversion of rows to documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.threads import at_most_threads
from podium.data import RankingData
from podium.data.frames import assign_roles
from podium.data.schema import columns_of_text
from podium.distributed.sources import empty_data
from podium.errors import DataError


def is_spark_frame(value: Any) -> bool:
    """Return whether a value is a Spark DataFrame."""
    return type(value).__module__.startswith("pyspark.sql.") and hasattr(value, "mapInArrow")


def column(name: str) -> Any:
    """Return a column by its literal name, which may contain dots."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


@dataclass(frozen=True)
class Reading:
    """The conversion of rows to documents.

    Attributes:
        roles: columns by the argument of `RankingData` that they fill.
        features: the columns of the features, or the single column of arrays.
        is_matrix: whether the features are a single column of arrays.
        names: the names of the features in a column of arrays; None if the features have no names.
        categorical: features that hold categories.

    """

    roles: Mapping[str, Any]
    features: tuple[str, ...]
    is_matrix: bool
    names: tuple[str, ...] | None
    categorical: tuple[Any, ...]

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        names = [*self.features, *self.roles.values(), *self.roles["labels"].values()]
        return list(dict.fromkeys(name for name in names if isinstance(name, str)))

    def to_data(self, table: Any) -> RankingData:
        """Return the rows of a `pyarrow.Table` as documents."""
        if not len(table):
            return empty_data()
        if not self.is_matrix:
            text = columns_of_text(table.select(self.features), list(self.categorical))
            return RankingData(table, feature_names=self.features, categorical=text, **self.roles)
        values = {role: table[name].to_numpy() for role, name in self.roles.items() if isinstance(name, str)}
        labels = {source: table[name].to_numpy() for source, name in self.roles["labels"].items()}
        features = to_matrix(table[self.features[0]].combine_chunks(), self.features[0])
        return RankingData(
            features, values.pop("relevance", None), labels=labels, feature_names=self.names,
            categorical=self.categorical, **values,
        )  # fmt: skip


def columns_of(readings: Sequence[Reading]) -> list[str]:
    """Return the columns to read for several sets."""
    return list(dict.fromkeys(name for reading in readings for name in reading.columns))


def to_matrix(arrays: Any, name: str) -> Any:
    """Return a `pyarrow` array of arrays as a matrix."""
    if arrays.null_count:
        raise DataError(
            f"the column {name!r} of features has {arrays.null_count} empty rows: drop or fill them "
            "(VectorAssembler(handleInvalid='keep') turns missing values into NaN)"
        )
    sizes = np.diff(arrays.offsets.to_numpy())
    if (sizes != sizes[0]).any():
        raise DataError(f"the column {name!r} must have arrays of one length, but has {sizes.min()} to {sizes.max()}")
    return arrays.flatten().to_numpy(zero_copy_only=False).reshape(len(arrays), -1)


@dataclass(frozen=True, eq=False)
class SparkDocuments:
    """Documents in a Spark DataFrame.

    Attributes:
        frame: the DataFrame, which may hold several sets.
        reading: the conversion of its rows to documents.
        rows: a Boolean column that is true for the rows of this set; None for all rows.

    """

    frame: Any
    reading: Reading
    rows: Any = None

    @classmethod
    def of(
        cls, frame: Any, roles: Mapping[str, str], features: Sequence[str] | None = None,
        categorical: Sequence[Any] = (), rows: Any = None,
    ) -> SparkDocuments:  # fmt: skip
        """Choose and check the columns of a DataFrame.

        Args:
            frame: the DataFrame.
            roles: columns by the argument of `RankingData` that they fill.
            features: names of numeric columns, or of a single column of vectors or arrays. By default, all columns
                without a role are features; a column has a role if `roles` names it, or by its own name.
            categorical: features that hold categories.
            rows: see `SparkDocuments`.

        """
        names = frame.columns if features is None else list(dict.fromkeys([*features, *roles.values()]))
        columns_by_role, features = assign_roles(names, dict(roles), features)
        fields = {name: frame.schema[name] for name in features}
        wide = [name for name in features if is_wide(fields[name])]
        if wide and len(features) > 1:
            raise DataError(
                f"features are numeric columns or one column of vectors, but {wide[0]!r} is a vector among "
                f"{len(features)} columns: pass only this column, or assemble all of them with VectorAssembler"
            )
        in_vector = _names_in_vector(fields[wide[0]].metadata) if wide else None
        return cls(frame, Reading(columns_by_role, tuple(features), bool(wide), in_vector, tuple(categorical)), rows)


def as_array(frame: Any, name: str) -> Any:
    """Return a column, with vectors converted to arrays."""
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(column(name)) if _is_vector(frame.schema[name]) else column(name)


def is_wide(field: Any) -> bool:
    """Return whether a column has vectors or arrays."""
    return _is_vector(field) or field.dataType.typeName() == "array"


def _is_vector(field: Any) -> bool:
    return type(field.dataType).__name__ == "VectorUDT"


def _names_in_vector(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the names that `VectorAssembler` gave the entries of a vector, or None if not all have one."""
    attributes = metadata.get("ml_attr", {})
    entries = [entry for kind in attributes.get("attrs", {}).values() for entry in kind]
    names = {entry["idx"]: entry["name"] for entry in entries if "name" in entry}
    if not names or len(names) != attributes.get("num_attrs"):
        return None
    return tuple(names[k] for k in range(len(names)))


def with_scores(frame: Any, names: Sequence[str], predict: Callable[[Any], Any], output: str) -> Any:
    """Return a DataFrame with a column of scores.

    Args:
        frame: the DataFrame.
        names: columns of the features, or a single column of vectors or arrays.
        predict: returns the scores of a pandas frame of these columns, or of a matrix.
        output: the name of the new column.

    """
    import pandas as pd
    from pyspark.sql import functions

    is_matrix = len(names) == 1 and is_wide(frame.schema[names[0]])

    def score(batches: Any) -> Any:
        from pyspark import TaskContext

        for batch in batches:
            rows = np.stack(batch) if is_matrix and len(batch) else batch.set_axis(names, axis=1)
            with at_most_threads(TaskContext.get().cpus()):
                yield pd.Series(predict(rows) if len(batch) else [], dtype="float64")

    batch_type: Any = pd.Series if is_matrix else pd.DataFrame
    score.__annotations__ = {"batches": Iterator[batch_type], "return": Iterator[pd.Series]}  # Spark reads these
    # Names with dots cannot be fields of a struct.
    columns = [column(name).alias(f"c{k}") for k, name in enumerate(names)]
    inputs = as_array(frame, names[0]) if is_matrix else functions.struct(*columns)
    return frame.withColumn(output, functions.pandas_udf(score, "double")(inputs))
