"""The models of a service: how they are loaded, chosen for a query, and replaced while the service runs."""

from __future__ import annotations

import asyncio
import hashlib
import signal
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.array_types import Float32s, Floats
from podium.data import RankingData
from podium.errors import DataError, PodiumError
from podium.explain import Explanation, explain
from podium.models import Combined, Ensemble, Model, load_model
from podium.serving.bodies import Matcher, Refused
from podium.serving.settings import SUFFIX, Settings, files_in

WARM_UP = (1, 2, 100, 600)  # numbers of documents to score: different numbers use different kernels
N_EXAMPLES = 3  # documents in the example on the page
Signature = tuple[int, int, int, int]


class ServedModel:
    """A model that is ready to answer: no request compiles or prepares anything.

    Attributes:
        name: the name that clients use.
        model: the model.
        digest: the model's digest.
        matcher: converts documents to the model's rows.
        loaded: when the model was loaded.
        why_not_explained: why the model's scores cannot be explained; None if they can.

    """

    def __init__(self, name: str, model: Model, max_features: int) -> None:
        if model.n_features > max_features:
            raise DataError(f"the model has {model.n_features} features, but the limit is {max_features}")
        if isinstance(model, Combined) and not model.has_one_schema and any(part.encoding for part in model.parts):
            raise DataError("the model cannot be served: its parts encode their features differently")
        self.name, self.model, self.digest = name, model, model.digest()
        self.loaded = datetime.now(UTC)
        is_zero = model.reading.get("absent") == "zero" or model.reading.get("sparse")
        self.matcher = Matcher(model.schema, absent="0" if is_zero else "null")
        self._scorer = model.scorer(n_threads=1)
        self._normalize = model.reading.get("normalize")
        self._takes_arrays = model.has_one_schema and not model.encoding and self._normalize is None
        for n_documents in WARM_UP:
            self.scores(np.zeros((n_documents, model.n_features), np.float32))
        self.why_not_explained = self._warm_up_explaining()

    def scores(self, rows: Float32s) -> Floats:
        """Score the documents of one query, normalizing features within it if the model was trained that way."""
        if not len(rows):
            return np.empty(0)
        return self._scorer(rows if self._takes_arrays else self._data(rows))

    def explanation(self, rows: Float32s) -> Explanation:
        """Explain the scores of one query's documents by the features."""
        return explain(self.model, rows if self._takes_arrays else self._data(rows), n_threads=1)

    def example(self) -> list[list[float | str]]:
        """Return a few documents that the model accepts, with values around its thresholds so that scores differ."""
        model = self.model
        values: list[list[Any]] = [[0.0, 1.0, 2.0] for _ in range(model.n_features)]
        if isinstance(model, Ensemble):
            features, thresholds = model.arrays["feature"], model.arrays["threshold"].astype(np.float64)
            for feature in range(model.n_features):
                limits = thresholds[(features == feature) & np.isfinite(thresholds)]
                if len(limits):
                    low, middle, high = np.quantile(limits, [0.1, 0.5, 0.9])
                    values[feature] = [low - 1e-3 * abs(low), middle, high + 1e-3 * abs(high)]
        values = [[float(f"{value:.4g}") for value in column] for column in values]
        for feature, shift in model.encoding.shifts.items():
            values[feature] = [value + shift for value in values[feature]]
        for feature, names in model.encoding.categories.items():
            values[feature] = list(names) or [""]
        return [
            [column[(document + k) % len(column)] for k, column in enumerate(values)] for document in range(N_EXAMPLES)
        ]

    def _warm_up_explaining(self) -> str | None:
        try:
            self.explanation(np.zeros((2, self.model.n_features), np.float32))
        except DataError as error:
            return str(error)
        return None

    def _data(self, rows: Float32s) -> RankingData:
        model = self.model
        encoding = model.encoding if model.has_one_schema else None
        data = RankingData(
            rows, qid=np.zeros(len(rows), np.int64), feature_names=model.feature_names, encoding=encoding
        )
        return data if self._normalize is None else data.normalized(self._normalize)


def model_of_query(shares: Mapping[str, float], query: str | float) -> str:
    """Return the model of a query in a split, by a hash of the query's id: the same in every worker and after restarts.

    >>> names = [model_of_query({"old": 0.9, "new": 0.1}, query) for query in range(1000)]
    >>> names.count("old")
    901
    """
    text = str(int(query)) if isinstance(query, float) else str(query)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    point, total = int.from_bytes(digest, "big") / 2**64, sum(shares.values())
    ends = zip(shares, accumulate(shares.values()), strict=True)
    return next((name for name, end in ends if point < end / total), list(shares)[-1])


class Registry:
    """The models by name, reloaded when their files change.

    A new model replaces the old one in one assignment, once it is loaded and warm. If a file cannot be loaded, the old
    model keeps answering, and other models are not affected.

    Args:
        settings: the settings of the service.
        on_event: a function called with the name of an event and facts about it.

    Attributes:
        models: the models by name. Requests read it without a lock, so it is replaced, never changed in place.
        refused: the names of models whose current file cannot be loaded; replaced in the same way.

    """

    def __init__(self, settings: Settings, on_event: Callable[..., None]) -> None:
        self._settings, self._on_event = settings, on_event
        self._loading = threading.Lock()
        self._seen: dict[Path, Signature | None] = {}
        self.models: Mapping[str, ServedModel] = {}
        self.refused: frozenset[str] = frozenset()
        for name, path in settings.models.items():
            self._seen[path] = signature(path)
            model = self._load(name, path) or self._load_copy(name)
            if model is not None:
                self.models = {**self.models, name: model}
        if not self.models:
            raise DataError("no model could be loaded; see the log for the reasons")
        for name in settings.required:  # without it, other models would get its share of the queries
            if name not in self.models:
                raise DataError(f"the model {name!r} of the split or shadow could not be loaded")
        self._require_same_features(self.models)

    def choose(self, name: str | None, query: str | float | None) -> ServedModel:
        """Return the model that a request names, else the query's model in the split, else the default."""
        if name is None:
            split = self._settings.split
            name = model_of_query(split, query) if split and query is not None else self._settings.default
        model = self.models.get(name)
        if model is not None:
            return model
        if name in self.refused:
            raise Refused(503, f"the model {name[:80]!r} could not be loaded: repair its file, or use another model")
        raise Refused(404, f"there is no model {name[:80]!r}; GET /models lists the models")

    @property
    def has_categories(self) -> bool:
        """Whether at least one model accepts text, the names of categories."""
        return any(served.model.encoding.categories for served in self.models.values())

    def reload(self, everything: bool = False) -> None:
        """Load the files that have changed since the last check, or all files."""
        with self._loading:
            files = dict(self._settings.models)
            pipelines = self._settings.pipelines
            for folder in self._settings.folders:
                with suppress(PodiumError):  # a damaged pipeline, which `PipelineRegistry` reports
                    in_folder = files_in(folder)
                    files = files | in_folder if folder in pipelines.values() else in_folder | files
            for name, path in files.items():
                current = signature(path)
                if current is None:  # deleted, perhaps to be replaced: keep the old model
                    self._seen.pop(path, None)
                elif everything or current != self._seen.get(path):
                    self._seen[path] = current
                    self._replace(name, path)
            self.refused &= files.keys()

    def _replace(self, name: str, path: Path) -> None:
        model = self._load(name, path, others=self.models)
        if model is None:
            return
        old = self.models.get(name)
        self.models = {**self.models, name: model}
        self._on_event("model loaded", model=name, digest=model.digest, before=None if old is None else old.digest)

    def _load(self, name: str, path: Path, others: Mapping[str, ServedModel] | None = None) -> ServedModel | None:
        """Load a model and keep a copy of it; log the reason and return None if that fails."""
        try:
            model = ServedModel(name, load_model(path), self._settings.limits.features)
            if others is not None:
                self._require_same_features({**others, name: model})
        except Exception as error:  # one bad file must not stop the other models
            self.refused |= {name}
            self._on_event("model refused", level="error", model=name, reason=reason_of(error))
            return None
        self.refused -= {name}
        self._save_copy(model)
        return model

    def _save_copy(self, model: ServedModel) -> None:
        """Save a copy of a loaded model for workers that start later, when its file may be damaged."""
        if self._settings.good_files is None:
            return
        try:
            model.model.save(self._settings.good_files / f"{model.name}{SUFFIX}")
        except OSError as error:
            self._on_event("model not kept", level="warning", model=model.name, reason=str(error))

    def _load_copy(self, name: str) -> ServedModel | None:
        """Load the last good copy of a model, for a worker that starts while the model's file is damaged."""
        folder = self._settings.good_files
        path = None if folder is None else folder / f"{name}{SUFFIX}"
        if path is None or not path.exists():
            return None
        return ServedModel(name, load_model(path), self._settings.limits.features)

    def _require_same_features(self, models: Mapping[str, ServedModel]) -> None:
        """Raise if models that answer the same requests expect different features."""
        settings = self._settings
        names = settings.required if settings.split else (settings.default, *settings.required)
        loaded = [models[name] for name in names if name in models]
        for first, second in pairwise(loaded):
            a, b = first.model, second.model
            if (a.n_features, a.feature_names) != (b.n_features, b.feature_names):
                raise DataError(f"the models {first.name!r} and {second.name!r} share requests but differ in features")
            if settings.shadow is not None and a.encoding != b.encoding:
                raise DataError(f"the models {first.name!r} and {second.name!r} encode their features differently")


def reason_of(error: Exception) -> str:
    """Return why a file could not be loaded, for the log."""
    return str(error) if isinstance(error, PodiumError | OSError) else f"{type(error).__name__}: {error}"


def signature(path: Path) -> Signature | None:
    """Return a value that changes when the file changes; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@asynccontextmanager
async def watched(reload: Callable[[bool], None], seconds: float) -> AsyncIterator[None]:
    """Reload changed files every `seconds`, and all files on SIGHUP, in a thread while requests are answered."""
    loop = asyncio.get_running_loop()
    hangup = asyncio.Event()

    async def watch() -> None:
        while True:
            everything = True
            try:
                await asyncio.wait_for(hangup.wait(), seconds or None)
                hangup.clear()
            except TimeoutError:
                everything = False
            await asyncio.to_thread(reload, everything)

    with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or not in the main thread
        loop.add_signal_handler(signal.SIGHUP, hangup.set)
    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGHUP)
