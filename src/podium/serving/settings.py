"""The settings of a service, and the parsing of its command-line arguments."""

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
    """The limits of requests; a request beyond them is refused.

    Attributes:
        body_bytes: the maximum size of a request's body.
        documents: the maximum number of documents of a request, over all its queries.
        features: the maximum number of features of a model; a model with more is not loaded.
        explained: the maximum number of documents to explain, which takes longer than ranking.
        seconds: the maximum time for a body to arrive, and for the answer.

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
        folders: folders of further model files, each served under its file name without the suffix, and folders of
            search pipelines, each served under the name of its folder.
        split: the share of queries for each model, for requests that do not name a model.
        shadow: a model that scores every query after the response; the metrics count differences in the top documents.
        shadow_k: the number of top documents to compare if a request has no `k`.
        token: the bearer token that requests must send; None accepts all requests.
        limits: the limits of requests.
        watch_seconds: the time between checks for changed model files; 0 to reload only on SIGHUP.
        log_requests: whether to log each request.
        clicks: the folder of the click log, or None. With a log, the service computes click features, logs the
            rankings that it shows, and accepts events.
        good_files: a folder where workers keep copies of the models that they loaded, for a worker that starts while
            a file is damaged.

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
            raise DataError("there is no model to serve: pass a model file, or a folder of model files (*.podium)")
        for name in self.required:
            if name not in self.models:
                raise ParameterError(f"there is no model {name!r}; choose from {', '.join(map(repr, self.models))}")
        if self.split and not (
            all(share >= 0 for share in self.split.values()) and 0 < sum(self.split.values()) < math.inf
        ):
            raise DataError("the shares of a split must be non-negative and not all 0")
        if self.token is not None and (not self.token or not self.token.isascii() or " " in self.token):
            raise DataError("the token must be non-empty ASCII text without spaces")
        require_whole("shadow_k", self.shadow_k, 1)
        require_number("watch_seconds", self.watch_seconds, least=0)

    @property
    def pipelines(self) -> dict[str, Path]:
        """The folders of the search pipelines by name."""
        if not self.folders:
            return {}
        from podium.features.pipeline import is_pipeline

        return {pipeline_name(folder): folder for folder in self.folders if is_pipeline(folder)}

    @property
    def required(self) -> tuple[str, ...]:
        """The models of the split and the shadow, without which the service does not start."""
        return (*self.split, *(() if self.shadow is None else (self.shadow,)))

    @property
    def default(self) -> str:
        """The model that answers requests that do not name one."""
        return next(iter(self.split or self.models))


def model_files(arguments: list[str]) -> tuple[dict[str, Path], tuple[Path, ...]]:
    """Parse arguments (`name=file`, a file, or a folder) into model files by name, and folders.

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
                raise DataError(
                    f"{argument}: {place} is a folder, and its models are named after their files: omit the name"
                )
            folders.append(path)
            new_files = files_in(path)
        else:
            new_files = {_valid_unicode(name or path.stem): path}
        for model, file in new_files.items():
            if model in files:
                raise DataError(f"two models are named {model!r}: {files[model]} and {file}; rename one with NAME=FILE")
            files[model] = file
    return files, tuple(folders)


def files_in(folder: Path) -> dict[str, Path]:
    """Return the model files of a folder by name."""
    from podium.features.index_folder import is_index
    from podium.features.pipeline import is_pipeline, model_file

    if is_pipeline(folder):
        return {pipeline_name(folder): model_file(folder)}
    if is_index(folder):
        raise DataError(f"{folder} is an index, which has no model: train a search pipeline with podium pipeline")
    paths = [path for path in sorted(folder.glob(f"*{SUFFIX}")) if not path.name.startswith(".")]
    return {_valid_unicode(path.stem): path for path in paths}


def pipeline_name(folder: Path) -> str:
    """Return the name of a search pipeline, which is the name of its folder."""
    return _valid_unicode(folder.resolve().name)


def _valid_unicode(name: str) -> str:
    """Return a file name with bytes that are not UTF-8 escaped, because JSON cannot represent them."""
    return name.encode("utf-8", "backslashreplace").decode()


def parse_shares(texts: list[str]) -> dict[str, float]:
    """Parse the shares of a split, given as `NAME=SHARE`.

    >>> parse_shares(["old=0.9", "new=0.1"])
    {'old': 0.9, 'new': 0.1}
    """
    parsed = {}
    for text in texts:
        name, _, share = text.partition("=")
        try:
            parsed[name] = float(share)
        except ValueError:
            raise DataError(f"a split must be NAME=SHARE, for example new=0.1, but got {text!r}") from None
    return parsed


def read_token(path: Path | None) -> str | None:
    """Return the bearer token from a file, else from PODIUM_TOKEN.

    There is no option for the token itself: all users of the machine can see the options of a process.
    """
    text = os.environ.get("PODIUM_TOKEN") if path is None else path.read_text(encoding="utf-8")
    return None if text is None else text.strip()
