"""The estimators of boosted trees on a cluster; the fitted model equals that of local training."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

import podium.estimators
from podium.boosting import Checkpoint, TrainingResult
from podium.boosting.checkpoints import require_checkpoint
from podium.boosting.training import run_training
from podium.core.observing import Observer, require_observers
from podium.core.parameters import check_parameters
from podium.data import RankingData
from podium.data.features import as_list_of_features
from podium.distributed.clusters import CLUSTERS, ESTIMATORS, cluster_for, engine_class
from podium.distributed.documents import ClusterDocuments
from podium.distributed.engine import Engine, WorkerLostError
from podium.distributed.holder import TRAIN
from podium.distributed.sources import DerivedSource, Reader, Source, coded_data, labels_of
from podium.distributed.training import ClusterTrainer
from podium.errors import DataError, PodiumError, warn
from podium.estimators.base_ranker import validation_arguments
from podium.estimators.pointwise_trees import two_classes
from podium.estimators.tree_ranker import TreeRanker
from podium.models import Model
from podium.objectives.ordinal import BoundOrdinal

ATTEMPTS = 10  # to start training, if workers are lost

if TYPE_CHECKING:
    _Base = TreeRanker
else:
    _Base = object  # so that the parameters come from the estimator that this class is mixed into


class OnCluster(_Base):
    """Trains on the workers of a cluster, and scores the collections of its library."""

    cluster: ClassVar[str]  # a name in `CLUSTERS`

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        valid: Any = None,
        eval_set: tuple[Any, ...] | Sequence[tuple[Any, ...]] | None = None,
        observers: Sequence[Observer] = (),
        checkpoint: Checkpoint | None = None,
        reader: Reader | None = None,
        engine: Engine | None = None,
        **connection: Any,
    ) -> Self:
        """Train on documents that are on a cluster, or on files that its workers read.

        Args:
            X: a frame of the cluster's library (a Dask DataFrame, a `ray.data.Dataset`), whose column names determine
                their roles as in `RankingData` (`qid`, `label`, …); a Dask Array, with `y` and `qid`; names of files
                that every worker can read; or `RankingData`. The rows may be in any order.
            y, qid, sample_weight, query_weight: names of columns, or Dask collections with the rows of X.
            valid: validation data like X, or several by name; the first decides when to stop.
            eval_set: validation data as `(X, y, qid)` of Dask Arrays, or a list of such tuples.
            observers: called after each round, see `LambdaMART.fit`. Arrays of all documents are fetched from the
                workers when an observer reads them.
            checkpoint: saves the trees so far, so that training can resume if the client is killed.
            reader: reads a list of files; `podium.read` by default.
            engine: an engine whose workers stay for the next fit, such as `podium.distributed.RayEngine(n_workers=2)`.
            connection: arguments of an engine for this fit only. `timeout=600` is the number of seconds to wait for a
                worker's answer. A worker that sends no heartbeat for `heartbeat=30` seconds is ended, and its documents
                move to others. For Dask, `client` is the client to use, by default the current one. For Ray,
                `n_workers` and `cpus_per_worker` set the workers; by default each node has one with all of its
                processors.

        """
        check_parameters(self)
        require_observers(observers)
        require_checkpoint(checkpoint)
        columns = {"y": y, "qid": qid, "sample_weight": sample_weight, "query_weight": query_weight}
        sets = {TRAIN: (X, columns)} | _evaluation_sets(valid, eval_set)
        if self.patience is not None and len(sets) == 1:
            raise DataError("patience needs validation data: pass valid=… or eval_set=…")
        categorical = as_list_of_features(self.categorical)
        if engine is None:
            with engine_class(self.cluster)(**connection) as new_engine:
                return self._fit_on(new_engine, new_engine.sources_of(sets, categorical, reader), observers, checkpoint)
        if connection:
            raise DataError(f"{next(iter(connection))} belongs to the engine: pass it to {type(engine).__name__}")
        try:
            return self._fit_on(engine, engine.sources_of(sets, categorical, reader), observers, checkpoint)
        finally:
            engine.release()

    def _fit_on(
        self, engine: Engine, sources: dict[str, list[Source]], observers: Sequence[Observer] = (),
        checkpoint: Checkpoint | None = None,
    ) -> Self:  # fmt: skip
        """Train on the workers of an engine."""
        trainer = self._trainer_on(engine, sources)
        self._trainer = trainer
        try:
            result = run_training(trainer, observers, checkpoint)
            self._set_model(result, trainer.documents.outlines[TRAIN])
        finally:
            del self._trainer
        if result.n_splits == 0:
            warn(
                "the model gives all documents the same score, because no split of any feature lowers the cost: check "
                "the labels and queries of a part of the data, or lower min_documents_in_leaf",
                stacklevel=3,
            )
        return self

    def _trainer_on(self, engine: Engine, sources: dict[str, list[Source]]) -> ClusterTrainer:
        """Place the documents, and prepare training; start again if a worker is lost."""
        for _ in range(ATTEMPTS):
            try:
                documents = ClusterDocuments(engine, self._prepared(engine, sources), self.n_threads)
                ranker = self._with_defaults(documents.n_documents)
                return ClusterTrainer(ranker._settings(documents.outlines[TRAIN]), documents)
            except WorkerLostError as lost:
                warn(f"{lost} before training started: starting again", stacklevel=4)
                engine.release()
        raise PodiumError(f"workers were lost {ATTEMPTS} times before training started: check the cluster's logs")

    def _prepared(self, engine: Engine, sources: dict[str, list[Source]]) -> dict[str, list[Source]]:
        """Return the sources in the form that this estimator trains on."""
        return sources

    def predict(self, X: Any, n_trees: int | None = None, **options: Any) -> Any:
        """Return the score of each row.

        For a Dask collection, return a lazy collection of scores; for a `ray.data.Dataset`, the lazy data set with a
        column `score`.
        """

        def predict(rows: Any) -> Any:
            return super(OnCluster, self).predict(rows, n_trees, **options)

        scores = engine_class(self.cluster).lazy_scores(X, predict, self._dtype_of_predictions)
        return predict(X) if scores is None else scores

    @property
    def _dtype_of_predictions(self) -> Any:
        return np.float64


def _evaluation_sets(valid: Any, eval_set: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return validation data by name; the first set stops training."""
    sets: dict[str, tuple[Any, dict[str, Any]]] = {}
    for name, (X, *columns) in validation_arguments(valid, eval_set).items():
        if len(columns) == 1:
            raise DataError("on a cluster, eval_set takes (X, y, qid) or (X, y, qid, sample_weight), but got (X, y)")
        sets[name] = X, dict(zip(("y", "qid", "sample_weight"), columns, strict=False))
    if TRAIN in sets:
        raise DataError("an evaluation set must have a name")
    return sets


class RankerOnCluster(OnCluster):
    """A `Ranker` on a cluster needs validation data to stop early; pass `patience=None` to train without any.

    Each tree sees half of the features unless you set `feature_fraction`. Local training also tries all features, so
    set `feature_fraction` if both should train the same model.
    """

    def _set_model(self, result: TrainingResult, train: RankingData, model: Model | None = None) -> None:
        super()._set_model(result, train, model)
        settings = self._trainer.settings
        self.feature_fraction_, self.learning_rate_ = settings.sampling.feature_fraction, settings.learning_rate
        if self.feature_fraction is None:
            warn(
                f"each tree saw {self.feature_fraction_:.0%} of the features. Only local training also tries all "
                "features, so podium.Ranker may train another model: pass feature_fraction=0.5 or 1 to choose",
                stacklevel=5,
            )


class OrdinalOnCluster(OnCluster):
    """The thresholds between the classes are fitted on all workers."""

    def _fit_thresholds(self, bound: BoundOrdinal, train: RankingData) -> None:
        trainer = self._trainer
        trees = tuple(self.trees_.tree(k) for k in range(self.trees_.n_trees))
        state = bound.state()

        def find() -> dict[str, list[float]]:
            trainer.engine.defer("restore", trees, 1, state, trainer.data.bins)
            thresholds: dict[str, list[float]] = trainer.engine.run("find_thresholds")
            return thresholds

        bound.restore(trainer.survive(find))


class ClassifierOnCluster(OnCluster):
    """The labels must have two different values."""

    def _prepared(self, engine: Engine, sources: dict[str, list[Source]]) -> dict[str, list[Source]]:
        labels = engine.compute(labels_of, sources[TRAIN])
        self.classes_ = two_classes(np.concatenate(labels), type(self).__name__)
        return {
            name: [DerivedSource(coded_data, (source, self.classes_)) for source in set_sources]
            for name, set_sources in sources.items()
        }

    @property
    def _dtype_of_predictions(self) -> Any:
        return self.classes_.dtype


# --- the estimators of each kind of cluster

SPECIAL_CASES: dict[str, type[OnCluster]] = {
    "Ranker": RankerOnCluster, "OrdinalMART": OrdinalOnCluster, "MARTClassifier": ClassifierOnCluster,
}  # fmt: skip
DOCSTRING = """`podium.{name}` on a {prefix} cluster; the model is the same, to the bit, for any number of workers.

Documents need query ids, because each worker holds whole queries.{note}

Example:
    >>> from {home} import {prefix}{name}
    >>> {prefix}{name}(n_trees=20).n_trees
    20

"""


def family(cluster: str) -> dict[str, type[OnCluster]]:
    """Return the estimators of a kind of cluster by name."""
    prefix, classes = CLUSTERS[cluster].prefix, {}
    home = "podium.distributed" if CLUSTERS[cluster].estimators == "estimators" else __name__
    for name in ESTIMATORS:
        base = SPECIAL_CASES.get(name, OnCluster)
        note = "" if base is OnCluster else " " + inspect.cleandoc(base.__doc__ or "")
        documented = DOCSTRING.format(name=name, prefix=prefix, home=home, note=note)
        members = {"cluster": cluster, "__doc__": documented, "__module__": __name__}
        classes[f"{prefix}{name}"] = type(f"{prefix}{name}", (base, getattr(podium.estimators, name)), members)
    return classes


for _cluster in CLUSTERS:
    globals().update(family(_cluster))


def fit(
    estimator: TreeRanker, X: Any, y: Any = None, *, engine: str | Engine | None = None, **options: Any
) -> OnCluster:
    """Train an estimator on the cluster that the data is on, or that this process is connected to.

    Args:
        estimator: an estimator such as `podium.LambdaMART(n_trees=300)`, which is not changed.
        X, y: documents, see `DaskLambdaMART.fit`.
        engine: "dask", "ray", "spark", or an engine whose workers stay for the next fit. By default, the engine of the
            data, or of the cluster that this process is connected to.
        options: options of `DaskLambdaMART.fit`, such as `valid` and `qid`.

    Returns:
        A fitted estimator of the cluster's family, such as `DaskLambdaMART`.

    Example:
        >>> import podium
        >>> from distributed import Client
        >>> train = podium.artificial(20, features=4)
        >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        ...     model = podium.distributed.fit(podium.LambdaMART(2, n_leaves=4), train, engine="dask")
        >>> type(model).__name__
        'DaskLambdaMART'
        >>> model.digest() == podium.LambdaMART(2, n_leaves=4).fit(train).digest()
        True

    """
    name = type(estimator).__name__
    if name not in ESTIMATORS or type(estimator) is not getattr(podium.estimators, name):
        raise DataError(f"on a cluster, estimator must be one of {', '.join(ESTIMATORS)}, not {name}")
    if isinstance(engine, Engine):
        cluster, options["engine"] = engine.cluster, engine
    else:
        cluster = cluster_for(X) if engine is None else engine
        engine_class(cluster)  # raises if there is no such engine
    kind: type[OnCluster] = globals()[f"{CLUSTERS[cluster].prefix}{name}"]
    return kind(**estimator.get_params(deep=False)).fit(X, y, **options)
