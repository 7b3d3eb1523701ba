"""Boosted trees for Spark's pipelines: `fit(df)` trains on the cluster, and `transform(df)` adds a column of scores.

The estimators follow the conventions of `pyspark.ml`: parameters such as `featuresCol` name columns, every parameter is
a `Param`, and `write()` and `read()` save and load estimators and models.
"""

from __future__ import annotations

import inspect
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

import podium.estimators
from podium.boosting import Checkpoint
from podium.core.merging import merge_all, merged
from podium.core.parameters import Parameter, parameters, unknown_parameter
from podium.data import RankingData
from podium.distributed.clusters import ESTIMATORS, import_library
from podium.distributed.engine import HEARTBEAT, TIMEOUT
from podium.distributed.estimators import fit
from podium.distributed.spark_frames import SparkDocuments, column, with_scores
from podium.errors import DataError
from podium.estimators.saving import decode, encode, load
from podium.measures import Ranking, as_measure

import_library("spark")

from pyspark.ml import Estimator, Model  # noqa: E402
from pyspark.ml.evaluation import Evaluator  # noqa: E402
from pyspark.ml.param import Param, Params  # noqa: E402
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter  # noqa: E402

__all__ = [f"Spark{name}" for name in ESTIMATORS] + ["SparkRankingEvaluator", "SparkRankingModel", "spark_folds"]

ROLES = {
    "labelCol": "relevance", "groupCol": "qid", "weightCol": "document_weights", "queryWeightCol": "query_weights",
    "positionCol": "positions",
}  # fmt: skip
COLUMNS = {
    "featuresCol": "the column of vectors or arrays of features, or a list of numeric columns",
    "labelCol": "the column of labels",
    "groupCol": "the column of query ids",
    "weightCol": "the column of document weights",
    "queryWeightCol": "the column of query weights",
    "positionCol": "the column of positions at which documents were shown",
    "validationIndicatorCol": "the Boolean column that is true for validation rows, the same in all rows of a query",
    "predictionCol": "the column of scores that `transform` adds",
}
DEFAULTS = {"featuresCol": "features", "labelCol": "label", "groupCol": "qid", "predictionCol": "prediction"}
OPTIONS = {
    "numWorkers": ("the number of tasks that train; by default as many as can run at the same time", None),
    "checkpointPath": ("a file on the driver for the trees so far, from which a stopped fit resumes", None),
    "timeout": ("seconds to wait for an answer of a task, and for Spark to start the tasks", TIMEOUT),
    "heartbeat": ("seconds without a heartbeat after which a task is lost", HEARTBEAT),
}  # fmt: skip


def _param(name: str, text: str, convert: Callable[[Any], Any] | None = None) -> Any:
    return Param(Params._dummy(), name, text, typeConverter=convert)


def _checked(parameter: Parameter[Any]) -> Callable[[Any], Any]:
    """Return a converter for Spark that raises if the value of a Podium parameter is invalid."""

    def check(value: Any) -> Any:
        parameter.check(value)
        return value

    return check


class _Saved(MLWritable, MLReadable):  # type: ignore[misc]
    """Saves parameters and, of a model, the fitted estimator."""

    def write(self) -> Any:
        return _Writer(self)

    @classmethod
    def read(cls) -> Any:
        return _Reader(cls)


class _Writer(MLWriter):  # type: ignore[misc]
    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:  # noqa: N802
        values = {param.name: encode(value, param.name) for param, value in self.instance._paramMap.items()}
        DefaultParamsWriter.saveMetadata(self.instance, path, self.sparkSession, paramMap=values)
        if isinstance(self.instance, SparkRankingModel):
            with tempfile.TemporaryDirectory() as folder:
                self.instance.ranker.save(Path(folder) / "model")
                content = bytearray((Path(folder) / "model").read_bytes())
            self.sparkSession.createDataFrame([(content,)], "model binary").coalesce(1).write.parquet(f"{path}/model")


class _Reader(MLReader):  # type: ignore[misc]
    def __init__(self, cls: type) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        values = {name: decode(value) for name, value in metadata["paramMap"].items()}
        instance = self.cls()
        if isinstance(instance, SparkRankingModel):
            with tempfile.TemporaryDirectory() as folder:
                (content,) = self.sparkSession.read.parquet(f"{path}/model").first()
                (Path(folder) / "model").write_bytes(content)
                instance.ranker = load(Path(folder) / "model")
        instance._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(instance, metadata | {"paramMap": values})
        return instance


def _with_params(*names: str) -> Callable[[type], type]:
    """Return a decorator that adds parameters for columns, with methods to get and set them."""

    def extend(cls: type) -> type:
        for name in names:
            title = name[0].upper() + name[1:]
            setattr(cls, name, _param(name, COLUMNS[name]))
            setattr(cls, f"get{title}", lambda self, name=name: self.getOrDefault(name))
            setattr(cls, f"set{title}", lambda self, value, name=name: self.setParams(**{name: value}))
        return cls

    return extend


class _WithParams(Params):  # type: ignore[misc]
    """A base class that takes parameters by keyword."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self._setDefault(**{name: value for name, value in DEFAULTS.items() if self.hasParam(name)})
        self.setParams(**values)

    def setParams(self, **values: Any) -> Self:  # noqa: N802
        """Set some parameters."""
        for name in values:
            if not self.hasParam(name):
                raise unknown_parameter(type(self).__name__, name, [param.name for param in self.params])
        self._set(**values)
        return self

    def _features_in(self, dataset: Any) -> list[str]:
        names = self.getOrDefault("featuresCol")
        names = [names] if isinstance(names, str) else list(names)
        _require_columns(dataset, "featuresCol", names)
        return names


def _require_columns(dataset: Any, parameter: str, names: list[str]) -> None:
    """Raise if a DataFrame does not have the columns that a parameter names."""
    for name in names:
        if name not in dataset.columns:
            raise DataError(f"{parameter}: the DataFrame has no column {name!r}, only {', '.join(dataset.columns)}")


@_with_params(*COLUMNS)
class _SparkEstimator(_WithParams, Estimator, _Saved):  # type: ignore[misc]
    """Trains a Podium estimator on the tasks of a barrier stage."""

    estimator: str  # its name in `podium.estimators`

    def __init__(self, **values: Any) -> None:
        super().__init__()
        declared = parameters(getattr(podium.estimators, self.estimator))
        self._setDefault(**{name: parameter.default for name, parameter in declared.items()})
        self._setDefault(**{name: default for name, (_, default) in OPTIONS.items()})
        self.setParams(**values)

    def _fit(self, dataset: Any) -> Any:
        from pyspark.sql import functions

        kind = getattr(podium.estimators, self.estimator)
        estimator = kind(**{name: self.getOrDefault(name) for name in parameters(kind) if self.isSet(name)})
        columns = {name: self.getOrDefault(name) for name in COLUMNS if self.isDefined(name)}
        roles = {}
        for name, role in ROLES.items():
            if columns.get(name):
                _require_columns(dataset, name, [columns[name]])
                roles[role] = columns[name]
        valid, is_train, indicator = None, None, columns.get("validationIndicatorCol")
        if indicator:
            _require_columns(dataset, "validationIndicatorCol", [indicator])
            is_valid = functions.coalesce(column(indicator).cast("boolean"), functions.lit(False))
            is_train = ~is_valid
        elif estimator.patience is not None:
            raise DataError("patience needs validation data: set validationIndicatorCol, or patience=None")
        train = SparkDocuments.of(dataset, roles, self._features_in(dataset), estimator.categorical, is_train)
        if indicator:
            valid = SparkDocuments(dataset, train.reading, is_valid)
        path = self.getOrDefault("checkpointPath")
        fitted = fit(
            estimator, train, engine="spark", valid=valid, checkpoint=None if path is None else Checkpoint(path),
            session=dataset.sparkSession, n_workers=self.getOrDefault("numWorkers"),
            timeout=self.getOrDefault("timeout"), heartbeat=self.getOrDefault("heartbeat"),
        )  # fmt: skip
        estimator.__dict__.update(vars(fitted))  # the estimator is not Spark's, so processes without Spark can load it
        model: SparkRankingModel = self._copyValues(SparkRankingModel(estimator))
        return model


@_with_params("featuresCol", "predictionCol")
class SparkRankingModel(_WithParams, Model, _Saved):  # type: ignore[misc]
    """A model fitted by an estimator for Spark.

    Attributes:
        ranker: the fitted Podium estimator, with the parameters, history and methods that it has after local training,
            such as `save` and `explain`.

    Example:
        >>> from podium.distributed import SparkRankingModel
        >>> SparkRankingModel(predictionCol="score").getPredictionCol()
        'score'

    """

    def __init__(self, ranker: Any = None, **values: Any) -> None:
        super().__init__(**values)
        self.ranker = ranker

    def _transform(self, dataset: Any) -> Any:
        return with_scores(dataset, self._features_in(dataset), self.ranker.predict, self.getOrDefault("predictionCol"))


@_with_params("labelCol", "groupCol", "queryWeightCol", "predictionCol")
class SparkRankingEvaluator(_WithParams, Evaluator, _Saved):  # type: ignore[misc]
    """Computes the mean of a measure over all queries, on the cluster.

    Args:
        measure: a name such as `"ndcg@10"`, or a measure.
        labelCol, groupCol, queryWeightCol, predictionCol: columns; `queryWeightCol` weights queries in the mean.

    Example:
        >>> from podium.distributed import SparkRankingEvaluator
        >>> SparkRankingEvaluator(measure="ndcg@5").getOrDefault("measure")
        'ndcg@5'

    """

    measure = _param("measure", 'the measure, or its name, such as "ndcg@10"')

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self._setDefault(measure="ndcg@10")
        self.setParams(**values)

    def _evaluate(self, dataset: Any) -> float:
        from pyspark.sql import functions

        names = {name: self.getOrDefault(name) for name in ROLES if self.hasParam(name) and self.isDefined(name)}
        names["predictionCol"] = self.getOrDefault("predictionCol")
        for parameter, name in names.items():
            _require_columns(dataset, parameter, [name])
        columns = [column(name).alias(parameter) for parameter, name in names.items()]
        highest = dataset.agg(functions.max(column(names["labelCol"]))).first()[0]
        outline = RankingData(np.zeros((2, 1)), [0.0, float(highest or 0.0)], qid=[0, 0])
        measure = as_measure(self.getOrDefault("measure")).fixed(outline)
        rows = dataset.select(*columns).repartition("groupCol")
        parts = rows.mapInArrow(_measuring(measure), "sums binary").collect()
        sums = merged(merge_all(pickle.loads(part["sums"]) for part in parts))
        return float("nan") if sums is None else measure.mean_of_sums(sums)


def _measuring(measure: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function that measures the queries of a partition."""

    def measured(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        nonempty = list(batches)
        if nonempty:
            table = pa.Table.from_batches(nonempty)
            rows = {name: table[name].to_numpy() for name in table.column_names}
            data = RankingData(
                np.zeros((len(table), 1)), rows["labelCol"], qid=rows["groupCol"],
                query_weights=rows.get("queryWeightCol"),
            )  # fmt: skip
            sums = measure.sums(Ranking(data, rows["predictionCol"]))
            yield pa.RecordBatch.from_pydict({"sums": [pickle.dumps(sums)]})

    return measured


def spark_folds(
    dataset: Any,
    numFolds: int = 3,
    *,
    groupCol: str = "qid",
    foldCol: str = "fold",
    seed: int = 0,
) -> Any:
    """Return a DataFrame with a column of fold numbers that is the same in all rows of a query.

    Pass the column to Spark's cross-validation: `CrossValidator(…, numFolds=3, foldCol="fold")`. Without it, Spark
    splits the rows at random, and so splits queries.

    Args:
        dataset: the DataFrame.
        numFolds: the number of folds.
        groupCol: the column of query ids.
        foldCol: the new column.
        seed: the seed of the folds.

    Example:
        >>> spark_folds(spark.read.parquet("documents"), 5).select("fold").distinct().count()  # doctest: +SKIP
        5

    """
    from pyspark.sql import functions

    _require_columns(dataset, "groupCol", [groupCol])
    number = functions.pmod(functions.xxhash64(column(groupCol), functions.lit(seed)), functions.lit(numFolds))
    return dataset.withColumn(foldCol, number.cast("int"))


# --- the estimators

DOCSTRING = """`podium.{name}` on a Spark cluster; the model is the same, to the bit, for any number of tasks.

It has the parameters of `podium.{name}`, and:

{options}

`fit(df)` returns a `SparkRankingModel`.

Example:
    >>> from podium.distributed import Spark{name}
    >>> Spark{name}(n_trees=20, groupCol="query").getOrDefault("n_trees")
    20

"""


def _estimator(kind: str) -> type:
    """Return the class of an estimator for Spark; `kind` is the name of the Podium estimator."""
    declared = parameters(getattr(podium.estimators, kind))
    options = COLUMNS | {option: text for option, (text, _) in OPTIONS.items()}
    lines = "\n".join(f"- `{option}`: {text}." for option, text in options.items())
    members: dict[str, Any] = {option: _param(option, text) for option, (text, _) in OPTIONS.items()}
    members |= {name: _param(name, parameter.summary, _checked(parameter)) for name, parameter in declared.items()}
    members |= {
        "estimator": kind, "__doc__": DOCSTRING.format(name=kind, options=lines), "__module__": __name__,
        "__signature__": inspect.Signature([
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None) for option in (*options, *declared)
        ]),
    }  # fmt: skip
    return type(f"Spark{kind}", (_SparkEstimator,), members)


globals().update({f"Spark{name}": _estimator(name) for name in ESTIMATORS})
