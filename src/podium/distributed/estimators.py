"""The estimators of boosted trees on a Dask cluster; the fitted model is an ordinary one, that of local training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from podium.boosting import Checkpoint, TrainingResult
from podium.boosting.checkpoints import require_checkpoint
from podium.boosting.training import run_training
from podium.core.observing import Observer, require_observers
from podium.core.parameters import check_parameters
from podium.core.validation import require_number
from podium.data import RankingData
from podium.data.features import as_list_of_features
from podium.distributed.dask_engine import HEARTBEAT, TIMEOUT, DaskEngine, import_distributed
from podium.distributed.documents import ClusterDocuments
from podium.distributed.engine import Engine, WorkerLostError
from podium.distributed.holder import TRAIN
from podium.distributed.sources import PIECES, DerivedSource, Reader, Source, is_dask_array, is_dask_frame, sources_of
from podium.distributed.training import ClusterTrainer
from podium.errors import DataError, PodiumError, warn
from podium.estimators import MART, LambdaMART, MARTClassifier, McRank, OrdinalMART, Ranker, RankNetTrees
from podium.estimators.tree_ranker import TreeRanker
from podium.models import Model
from podium.objectives.ordinal import BoundOrdinal

ATTEMPTS = 10  # to begin, where workers are lost before training has begun


if TYPE_CHECKING:
    _Base = TreeRanker
else:
    _Base = object  # so that the parameters are those of the estimator that it is mixed into


class OnCluster(_Base):
    """Trains on the workers of a Dask cluster, and scores Dask collections."""

    def fit(  # type: ignore[override]
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
        client: Any = None,
        reader: Reader | None = None,
        timeout: float = TIMEOUT,
        heartbeat: float = HEARTBEAT,
    ) -> Self:
        """Train on documents that are on a cluster, or that its workers read.

        Args:
            X: a Dask DataFrame, whose columns have roles by their names as in `RankingData` (`qid`, `label`, …); a Dask
                Array, with `y` and `qid`; names of files, which every worker must be able to read; or `RankingData`.
                Rows need not be sorted.
            y, qid, sample_weight, query_weight: names of columns, or Dask collections beside X.
            valid: validation data like X, or several by name; the first decides when to stop.
            eval_set: the same as `(X, y, qid)` of Dask Arrays, or several of those.
            observers: called after each round, see `LambdaMART.fit`. Arrays of all documents are fetched from the
                workers when an observer looks at them.
            checkpoint: keeps the trees so far; a client that was killed goes on from there.
            client: of the cluster; the current one by default.
            reader: reads a list of files; `podium.read` by default.
            timeout: seconds that a worker may take for an answer.
            heartbeat: seconds without a heartbeat after which a worker is restarted, and its documents go to others.

        """
        check_parameters(self)
        require_observers(observers)
        require_checkpoint(checkpoint)
        require_number("timeout", timeout, above=0)
        if client is None:
            client = import_distributed().get_client()
        require_number("heartbeat", heartbeat, above=0)
        engine = DaskEngine(client, timeout, heartbeat)
        engine.wait_for_worker(timeout)
        columns = {"y": y, "qid": qid, "sample_weight": sample_weight, "query_weight": query_weight}
        sets = {TRAIN: (X, columns)} | _evaluation_sets(valid, eval_set)
        if self.patience is not None and len(sets) == 1:
            raise DataError("patience needs validation data: give valid=… or eval_set=…")
        categorical, n = as_list_of_features(self.categorical), PIECES * len(engine.workers())
        sources = {name: sources_of(data, c, categorical, reader, n) for name, (data, c) in sets.items()}
        try:
            return self._fit_on(engine, sources, observers, checkpoint)
        finally:
            engine.close()

    def _fit_on(
        self, engine: Engine, sources: dict[str, list[Source]], observers: Sequence[Observer] = (),
        checkpoint: Checkpoint | None = None,
    ) -> Self:  # fmt: skip
        """Train on the workers of an engine."""
        trainer = self._begin(engine, sources)
        self._trainer = trainer
        try:
            result = run_training(trainer, observers, checkpoint)
            self._set_model(result, trainer.documents.outlines[TRAIN])
        finally:
            del self._trainer
        if result.n_splits == 0:
            warn(
                "the model gives all documents the same score: no split of any feature lowers the cost. Look at the "
                "labels and queries of a part of the data, or lower min_documents_in_leaf",
                stacklevel=3,
            )
        return self

    def _begin(self, engine: Engine, sources: dict[str, list[Source]]) -> ClusterTrainer:
        """Place the documents, and prepare training; from the beginning where a worker is lost."""
        for _ in range(ATTEMPTS):
            try:
                documents = ClusterDocuments(engine, self._prepared(engine, sources), self.n_threads)
                filled = self._filled(documents.n_documents)
                return ClusterTrainer(filled._settings(documents.outlines[TRAIN]), documents)
            except WorkerLostError as lost:
                warn(f"{lost} before training has begun: begin again", stacklevel=4)
                engine.close()
        raise PodiumError(f"workers were lost {ATTEMPTS} times before training had begun: look at the cluster's logs")

    def _prepared(self, engine: Engine, sources: dict[str, list[Source]]) -> dict[str, list[Source]]:
        """The sources as this estimator trains on them."""
        return sources

    def predict(self, X: Any, n_trees: int | None = None, **options: Any) -> Any:
        """The score of each row: lazy for Dask collections, else at once."""

        def predict(rows: Any) -> Any:
            return super(OnCluster, self).predict(rows, n_trees, **options)

        return _lazy(X, predict, self._dtype_of_predictions)

    @property
    def _dtype_of_predictions(self) -> Any:
        return np.float64


def _lazy(X: Any, predict: Callable[[Any], Any], dtype: Any) -> Any:
    """A function of rows, for each partition of a Dask collection when it is computed; at once for others."""
    if is_dask_frame(X):
        import pandas as pd

        def of_partition(frame: Any) -> Any:
            scores = predict(frame) if len(frame) else np.empty(0, dtype)
            return pd.Series(scores, index=frame.index, name="score")

        return X.map_partitions(of_partition, meta=pd.Series(np.empty(0, dtype), name="score"))
    if is_dask_array(X):
        whole = X.rechunk({1: -1})
        return whole.map_blocks(
            lambda block: predict(block) if len(block) else np.empty(0, dtype), drop_axis=1, dtype=dtype,
            meta=np.empty(0, dtype),
        )  # fmt: skip
    return predict(X)


def _evaluation_sets(valid: Any, eval_set: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Validation data by name, the first of which stops training."""
    sets: dict[str, tuple[Any, dict[str, Any]]] = {}
    if valid is not None:
        for name, data in (valid if isinstance(valid, Mapping) else {"valid": valid}).items():
            if not isinstance(name, str):
                raise DataError(f"names of validation sets must be text, but one is {name!r:.60}")
            sets[name] = data, {}
    entries = [eval_set] if isinstance(eval_set, tuple) else eval_set or []
    if not isinstance(entries, list):
        raise DataError("eval_set takes (X, y, qid), or a list of those; names of files and frames go to valid=…")
    for k, entry in enumerate(entries):
        if not isinstance(entry, tuple | list) or not 3 <= len(entry) <= 4:
            raise DataError("eval_set takes (X, y, qid) or (X, y, qid, sample_weight), or a list of those")
        name = f"eval{k}" if len(entries) > 1 else "eval"
        if name in sets:
            raise DataError(f"there are two evaluation sets named {name!r}")
        sets[name] = entry[0], dict(zip(("y", "qid", "sample_weight"), entry[1:], strict=False))
    if TRAIN in sets:
        raise DataError("an evaluation set must have a name")
    return sets


class DaskLambdaMART(OnCluster, LambdaMART):
    """`podium.LambdaMART` trained on a Dask cluster; the model is the same, to the bit, for any number of workers.

    Example:
        >>> import podium
        >>> from distributed import Client
        >>> from podium.distributed import DaskLambdaMART
        >>> train = podium.artificial(20, features=4)
        >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        ...     model = DaskLambdaMART(2, n_leaves=4).fit(train, client=client)
        >>> model.digest() == podium.LambdaMART(2, n_leaves=4).fit(train).digest()
        True

    """


class DaskRanker(OnCluster, Ranker):
    """`podium.Ranker` on a Dask cluster; validation data says when to stop, or nothing does (`patience=None`).

    Each tree sees half of the features unless `feature_fraction` says otherwise: all are tried on one machine only, so
    give the share where both are to train the same model.

    Example:
        >>> from podium.distributed import DaskRanker
        >>> DaskRanker(n_trees=20, patience=None).n_trees
        20

    """

    def _set_model(self, result: TrainingResult, train: RankingData, model: Model | None = None) -> None:
        super()._set_model(result, train, model)
        self.feature_fraction_ = self._trainer.settings.sampling.feature_fraction
        if self.feature_fraction is None:
            warn(
                f"each tree saw {self.feature_fraction_:.0%} of the features: whether all are better is tried on one "
                "machine only, so podium.Ranker may train another model; give feature_fraction=0.5 or 1 to choose",
                stacklevel=5,
            )


class DaskMART(OnCluster, MART):
    """`podium.MART` on a Dask cluster; documents need queries there, as they keep together what one worker holds.

    Example:
        >>> from podium.distributed import DaskMART
        >>> DaskMART(n_trees=20).n_trees
        20

    """


class DaskMcRank(OnCluster, McRank):
    """`podium.McRank` on a Dask cluster.

    Example:
        >>> from podium.distributed import DaskMcRank
        >>> DaskMcRank(n_trees=20).n_trees
        20

    """


class DaskRankNetTrees(OnCluster, RankNetTrees):
    """`podium.RankNetTrees` on a Dask cluster.

    Example:
        >>> from podium.distributed import DaskRankNetTrees
        >>> DaskRankNetTrees(n_trees=20).n_trees
        20

    """


class DaskOrdinalMART(OnCluster, OrdinalMART):
    """`podium.OrdinalMART` on a Dask cluster.

    Example:
        >>> from podium.distributed import DaskOrdinalMART
        >>> DaskOrdinalMART(n_trees=20).n_trees
        20

    """

    def _fit_thresholds(self, bound: BoundOrdinal, train: RankingData) -> None:
        trainer = self._trainer
        trees = tuple(self.trees_.tree(k) for k in range(self.trees_.n_trees))
        learnt = bound.state()

        def find() -> dict[str, list[float]]:
            trainer.engine.defer("restore", trees, 1, learnt, trainer.data.bins)
            found: dict[str, list[float]] = trainer.engine.run("find_thresholds")
            return found

        bound.restore(trainer.survive(find))


class DaskMARTClassifier(OnCluster, MARTClassifier):  # type: ignore[misc]
    """`podium.MARTClassifier` on a Dask cluster; labels are two numbers.

    Example:
        >>> from podium.distributed import DaskMARTClassifier
        >>> DaskMARTClassifier(n_trees=20).n_trees
        20

    """

    def _prepared(self, engine: Engine, sources: dict[str, list[Source]]) -> dict[str, list[Source]]:
        labels = engine.compute(_labels_of, sources[TRAIN])
        classes = np.unique(np.concatenate(labels))
        if len(classes) != 2:
            raise DataError(f"DaskMARTClassifier separates two classes, but there are {len(classes)} different labels")
        self.classes_ = classes
        return {
            name: [DerivedSource(_coded, (source, classes)) for source in of_set] for name, of_set in sources.items()
        }

    @property
    def _dtype_of_predictions(self) -> Any:
        return self.classes_.dtype


def _labels_of(data: RankingData) -> Any:
    """The different labels of a partition."""
    labels = data.relevance if len(data) else np.empty(0, np.float32)
    return np.unique(labels[~np.isnan(labels)])


def _coded(data: RankingData, classes: Any) -> RankingData:
    """The data with 1 for the second class, and 0 for the first."""
    if not len(data):
        return data
    labels = data.relevance
    unknown = np.setdiff1d(labels[~np.isnan(labels)], classes)
    if len(unknown):
        raise DataError(f"there is a label {unknown[0]!r} that training has not seen")
    codes = np.where(np.isnan(labels), np.nan, labels == classes[1]).astype(np.float32)
    return data.replace(labels=dict(data.labels) | {"relevance": codes})
