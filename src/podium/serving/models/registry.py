"""All models of a service: loaded when it starts, replaced while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from podium.errors import DataError, PodiumError
from podium.serving.models.choosing import Split
from podium.serving.models.served import ServedModel, load_served
from podium.serving.refusing import Refused
from podium.serving.settings import SUFFIX, Settings, files_in

Signature = tuple[int, int, int, int]


class Registry:
    """The models by name.

    A new model takes the place of the old one in one step, when it is loaded and warm: requests see one or the other.
    What cannot be loaded leaves the old model in its place.

    Args:
        settings: of the service.
        tell: hears what happened: an event, and facts about it.

    Attributes:
        models: by name; never changed, but replaced as a whole.
        changes: how often a model was replaced or added.

    """

    def __init__(self, settings: Settings, tell: Callable[..., None]) -> None:
        self._settings, self._tell = settings, tell
        self._loading = threading.Lock()
        self._seen: dict[Path, Signature | None] = {}
        self._split = Split(settings.split) if settings.split else None
        self.changes = 0
        models = {}
        for name, path in settings.models.items():
            self._seen[path] = _signature(path)
            models[name] = self._loaded_at_first(name, path)
        self.models: Mapping[str, ServedModel] = models
        self._require_same_features(models)

    def choose(self, name: str | None, query: str | float | None) -> ServedModel:
        """The model that a request names, or else that of the split, or else the default."""
        if name is None:
            if self._split is None or query is None:
                return self.models[self._settings.default]
            return self.models[self._split.model_of(query)]
        model = self.models.get(name)
        if model is None:
            raise Refused(404, f"there is no model {name[:80]!r}; GET /models lists those there are")
        return model

    @property
    def has_categories(self) -> bool:
        """Whether values may be text for one of the models."""
        return any(model.has_categories for model in self.models.values())

    def reload(self, everything: bool = False) -> None:
        """Load what has changed since it was last looked at, or everything."""
        with self._loading:
            files = dict(self._settings.models)
            for folder in self._settings.folders:
                files = files_in(folder) | files
            for name, path in files.items():
                signature = _signature(path)
                if signature is None:  # between an unlink and the next file, or gone: the old model stays
                    self._seen.pop(path, None)
                elif everything or signature != self._seen.get(path):
                    self._seen[path] = signature
                    self._replace(name, path)

    def _replace(self, name: str, path: Path) -> None:
        try:
            new = load_served(name, path, self._settings.limits.features)
            models = {**self.models, name: new}
            self._require_same_features(models)
        except Exception as error:  # whatever is wrong with a file, the service goes on
            self._tell("model refused", level="error", model=name, reason=_reason(error))
            return
        old = self.models.get(name)
        self.models = models
        self.changes += 1
        self._keep(new)
        before = None if old is None else old.digest
        self._tell("model loaded", model=name, digest=new.digest, before=before)

    def _loaded_at_first(self, name: str, path: Path) -> ServedModel:
        """A model as the service starts; a worker that takes the place of another may use the last good file."""
        most = self._settings.limits.features
        kept = self._kept(name)
        try:
            model = load_served(name, path, most)
        except (PodiumError, OSError) as error:
            if kept is None or not kept.exists():
                raise
            self._tell("model refused", level="error", model=name, reason=_reason(error))
            return load_served(name, kept, most)
        self._keep(model)
        return model

    def _kept(self, name: str) -> Path | None:
        folder = self._settings.good_files
        return None if folder is None else folder / f"{name}{SUFFIX}"

    def _keep(self, served: ServedModel) -> None:
        """Keep a good model for workers to come, as it was loaded: its file may have changed since."""
        kept = self._kept(served.name)
        if kept is not None:
            served.model.save(kept)

    def _require_same_features(self, models: Mapping[str, ServedModel]) -> None:
        """Models among which requests do not choose must take the same documents."""
        settings = self._settings
        names = list(
            dict.fromkeys([settings.default, *settings.split, *([settings.shadow] if settings.shadow else [])])
        )
        first = models[names[0]].model
        for name in names[1:]:
            other = models[name].model
            if (first.n_features, first.feature_names) != (other.n_features, other.feature_names):
                raise DataError(f"the models {names[0]!r} and {name!r} of a split or shadow differ in their features")
            if settings.shadow is not None and first.encoding != other.encoding:
                raise DataError(f"the models {names[0]!r} and {name!r} encode their features in different ways")


def _signature(path: Path) -> Signature | None:
    """What changes when a file does."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _reason(error: Exception) -> str:
    """Why a model was not taken, for the log."""
    known = isinstance(error, PodiumError | OSError)
    return str(error) if known else f"{type(error).__name__}: {error}"
