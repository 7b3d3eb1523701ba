"""The settings of a service, and how the command line gives them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podium.core.validation import require_number, require_whole
from podium.errors import DataError, ParameterError

HOST, PORT = "127.0.0.1", 8000
SUFFIX = ".podium"  # of model files in folders


@dataclass(frozen=True)
class Limits:
    """The limits of a request; anything beyond them is refused.

    Attributes:
        body_bytes: the size of a request's body.
        documents: the documents of a request, over all its queries.
        features: the features of a model; a model with more is not loaded.
        explained: the documents of a request to explain, which takes longer than ranking.
        seconds: the time until a body has arrived, and until it is answered.

    Example:
        >>> Limits(documents=500).documents
        500

    """

    body_bytes: int = 8 << 20
    documents: int = 10_000
    features: int = 10_000
    explained: int = 1_000
    seconds: float = 10.0

    def __post_init__(self) -> None:
        for name in ("body_bytes", "documents", "features", "explained"):
            require_whole(name, getattr(self, name), 1)
        require_number("seconds", self.seconds, above=0)


@dataclass(frozen=True)
class Settings:
    """The settings of a service.

    Attributes:
        models: the file of each model, by name; the first is the default.
        folders: folders whose model files are served too, each under its name without the suffix; and saved search
            pipelines, each under the name of its folder.
        split: the share of queries of each model, for requests that name no model.
        shadow: a model that scores every query after the answer; differences in the top documents are counted.
        shadow_k: how many top documents are compared if a request has no `k`.
        token: the bearer token that requests need; None for no check.
        limits: the limits of requests.
        watch_seconds: the time between two looks for changed model files; 0 for none (only SIGHUP).
        log_requests: whether each request is logged.
        clicks: the folder of the click log; None for none. With a log, the service computes click features, logs what
            it shows and takes events.
        good_files: a folder in which workers keep copies of the models that they loaded, for a worker that starts
            while a file is bad.

    Example:
        >>> Settings({"web": Path("web.podium")}).default
        'web'

    """

    models: Mapping[str, Path]
    folders: tuple[Path, ...] = ()
    split: Mapping[str, float] = field(default_factory=dict)
    shadow: str | None = None
    shadow_k: int = 10
    token: str | None = None
    limits: Limits = field(default_factory=Limits)
    watch_seconds: float = 1.0
    log_requests: bool = True
    clicks: Path | None = None
    good_files: Path | None = None

    def __post_init__(self) -> None:
        if not self.models:
            raise DataError("there is no model to serve: give a model file, or a folder with model files (.podium)")
        for name in (*self.split, *([self.shadow] if self.shadow is not None else [])):
            if name not in self.models:
                raise ParameterError(f"there is no model {name!r}; there are {', '.join(map(repr, self.models))}")
        if self.split and not (
            all(share >= 0 for share in self.split.values()) and 0 < sum(self.split.values()) < math.inf
        ):
            raise DataError("the shares of a split must be 0 or more, and not all 0")
        if self.token is not None and (not self.token or not self.token.isascii() or " " in self.token):
            raise DataError("the token must be ASCII text without blanks, and not empty")
        require_whole("shadow_k", self.shadow_k, 1)
        require_number("watch_seconds", self.watch_seconds, least=0)

    @property
    def pipelines(self) -> dict[str, Path]:
        """The folders of search pipelines, by name."""
        if not self.folders:
            return {}
        from podium.features.pipeline import is_pipeline

        return {pipeline_name(folder): folder for folder in self.folders if is_pipeline(folder)}

    @property
    def default(self) -> str:
        """The model that answers requests that name none."""
        return next(iter(self.split or self.models))


def model_files(arguments: list[str]) -> tuple[dict[str, Path], tuple[Path, ...]]:
    """Return the model files by name, and the folders, of arguments such as `name=file`, a file, or a folder.

    The model of a search pipeline is named after the folder of the pipeline.

    >>> model_files(["web=models/web-7.podium", "news.podium"])[0]
    {'web': PosixPath('models/web-7.podium'), 'news': PosixPath('news.podium')}
    """
    files: dict[str, Path] = {}
    folders = []
    for argument in arguments:
        name, equals, place = argument.partition("=")
        if not equals or "/" in name:
            name, place = "", argument
        path = Path(place)
        if path.is_dir():
            if name:
                raise DataError(f"{argument}: {place} is a folder, and its models are named after their files")
            folders.append(path)
            found = files_in(path)
        else:
            found = {_shown(name or path.stem): path}
        for one, file in found.items():
            if one in files:
                raise DataError(f"two models are called {one!r}: {files[one]} and {file}; name one with NAME=FILE")
            files[one] = file
    return files, tuple(folders)


def files_in(folder: Path) -> dict[str, Path]:
    """Return the model files of a folder, by name."""
    from podium.features.index_folder import is_index
    from podium.features.pipeline import is_pipeline, model_file

    if is_pipeline(folder):
        return {pipeline_name(folder): model_file(folder)}
    if is_index(folder):
        raise DataError(f"{folder} is an index without a model: train a search pipeline with podium pipeline first")
    paths = [path for path in sorted(folder.glob(f"*{SUFFIX}")) if not path.name.startswith(".")]
    return {_shown(path.stem): path for path in paths}


def pipeline_name(folder: Path) -> str:
    """Return the name of a search pipeline: that of its folder."""
    return _shown(folder.resolve().name)


def _shown(name: str) -> str:
    """Return a name as valid Unicode: JSON has no place for the bytes of a file name that is not UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode()


def shares(texts: list[str]) -> dict[str, float]:
    """Return the shares of a split, from `NAME=SHARE`.

    >>> shares(["old=0.9", "new=0.1"])
    {'old': 0.9, 'new': 0.1}
    """
    parsed = {}
    for text in texts:
        name, _, share = text.partition("=")
        try:
            parsed[name] = float(share)
        except ValueError:
            raise DataError(f"a split is given as NAME=SHARE, such as new=0.1, not {text!r}") from None
    return parsed


def read_token(path: Path | None) -> str | None:
    """Return the bearer token of a file, or else of PODIUM_TOKEN. Not an option: every user can see those."""
    text = os.environ.get("PODIUM_TOKEN") if path is None else path.read_text(encoding="utf-8")
    return None if text is None else text.strip()
