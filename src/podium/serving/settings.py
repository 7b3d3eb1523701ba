"""What a service is told when it starts."""

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
COUNTS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where workers share what they count; prometheus_client reads it at import


@dataclass(frozen=True)
class Limits:
    """What a request may ask for; more is refused.

    Attributes:
        body_bytes: of a request's body.
        documents: in a request, of all its queries together.
        features: of a model; a model with more is not loaded.
        explained: documents in a request to explain, which takes longer than to rank.
        seconds: until a request has arrived and is answered.

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
    """All that a service is told.

    Attributes:
        models: the file of each model, by name; the first is the default.
        folders: folders whose model files are served, too, each by its name without suffix.
        split: the share of queries that each of some models gets, where a request names no model.
        shadow: a model that scores beside the one that answers; how often their top documents differ is counted.
        shadow_k: how many top documents are compared, where a request does not say `k`.
        token: what a request must bring as bearer token; None for no check.
        limits: what a request may ask for.
        watch_seconds: how often files are looked at for a new model; 0 for never (SIGHUP only).
        log_requests: whether each request is logged.
        good_files: a folder in which workers keep the last model files that could be loaded, for a worker that starts
            when a file is bad.

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
    good_files: Path | None = None

    def __post_init__(self) -> None:
        if not self.models:
            raise DataError("there is no model to serve: name a model file, or a folder with model files (.podium)")
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
    def default(self) -> str:
        """The model that answers where nothing else is said."""
        return next(iter(self.split or self.models))


def model_files(arguments: list[str]) -> tuple[dict[str, Path], tuple[Path, ...]]:
    """The files of models by name, and the folders among the arguments: `name=file`, a file, or a folder.

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
                raise DataError(f"{argument}: {place} is a folder, whose models are named by their files")
            folders.append(path)
            found = files_in(path)
        else:
            found = {name or path.stem: path}
        for one, file in found.items():
            if one in files:
                raise DataError(f"two models are called {one!r}: {files[one]} and {file}; name one with NAME=FILE")
            files[one] = file
    return files, tuple(folders)


def files_in(folder: Path) -> dict[str, Path]:
    """The model files of a folder, by name."""
    return {path.stem: path for path in sorted(folder.glob(f"*{SUFFIX}")) if not path.name.startswith(".")}


def shares(texts: list[str]) -> dict[str, float]:
    """The shares of a split, from `NAME=SHARE`.

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
    """The bearer token: the text of a file, or else what stands in PODIUM_TOKEN. Not an option: all users see those."""
    text = os.environ.get("PODIUM_TOKEN") if path is None else path.read_text(encoding="utf-8")
    return None if text is None else text.strip()
