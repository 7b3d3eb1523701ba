"""The folds in folders of benchmarks: the layouts of LETOR, MSLR-WEB, Istella and Yahoo."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from podium.core.validation import to_path
from podium.data.io.reading import SUFFIXES, read
from podium.data.io.text_blocks import COMPRESSED
from podium.data.io.writing import numbers_of
from podium.data.ranking_data import RankingData
from podium.data.sparse import is_sparse
from podium.errors import DataError, FileFormatError

Parts = Literal["letor", "ohsumed"]

_ROLE_OF_WORD = {
    "train": "train", "training": "train", "trainingset": "train",
    "vali": "valid", "valid": "valid", "validation": "valid", "validationset": "valid",
    "test": "test", "testset": "test",
}  # fmt: skip
_ROLES = ("train", "valid", "test")


@dataclass(frozen=True)
class Fold:
    """The training, validation and test data of a fold, read on first use.

    All parts have as many features as the widest one. `valid` and `test` are None if the fold does not have them.

    Attributes:
        name: the name of the fold.
        files: the files of `train`, `valid` and `test`; all files of a part are read as one data set.
        options: options for `podium.read`.

    Example:
        >>> import pathlib, podium, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> podium.artificial(2, features=4).write(folder / "train.txt")
        >>> train, valid, test = podium.data.datasets.folds(folder)[0]
        >>> train.n_queries, valid, test
        (2, None, None)

    """

    name: str
    files: dict[str, list[Path]]
    options: dict[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def _parts(self) -> dict[str, RankingData]:
        parts = {role: read(list(files), **self.options) for role, files in self.files.items()}
        widest = max(parts.values(), key=lambda part: part.n_features)
        fill = np.nan if self.options.get("absent") == "missing" else 0.0
        return {role: _widened(part, widest, fill) for role, part in parts.items()}

    @property
    def train(self) -> RankingData:
        """The training data."""
        return self._parts["train"]

    @property
    def valid(self) -> RankingData | None:
        """The validation data."""
        return self._parts.get("valid")

    @property
    def test(self) -> RankingData | None:
        """The test data."""
        return self._parts.get("test")

    def __iter__(self) -> Iterator[RankingData | None]:
        """Unpack as `train, valid, test = fold`."""
        return iter((self.train, self.valid, self.test))


def folds(folder: str | os.PathLike[str], *, parts: Parts = "letor", **options: Any) -> list[Fold]:
    """Find the folds in a folder of ranking data.

    - `Fold1/train.txt`, `vali.txt`, `test.txt`, `Fold2/…`: LETOR and MSLR-WEB, also with LETOR 2's names
      `trainingset.txt`, `validationset.txt`, `testset.txt`;
    - `S1.txt` … `S5.txt`: LETOR's parts, which are combined into folds;
    - `train.txt`, `vali.txt`, `test.txt`: Istella, one fold;
    - `set1.train.txt`, `set1.valid.txt`, `set1.test.txt`, `set2.…`: Yahoo LTRC, a fold for each set.

    Files may have any suffix that `podium.read` knows, compressed or not.

    Args:
        folder: the folder of the data.
        parts: how to combine parts into folds. With `"letor"`, fold k trains on the three parts from k on, validates
            on the next and tests on the last, cyclically. With `"ohsumed"`, fold k tests on part k, validates on the
            part before it and trains on the rest, as LETOR 2 does for OHSUMED.
        options: options for `podium.read`.

    Returns:
        The folds, whose files are read on first use of `train`, `valid` or `test`.

    Example:
        >>> import pathlib, podium, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for k in (1, 2):
        ...     (folder / f"Fold{k}").mkdir()
        ...     podium.artificial(2, features=4, seed=k).write(folder / f"Fold{k}" / "train.txt")
        >>> [fold.name for fold in podium.data.datasets.folds(folder)]
        ['Fold1', 'Fold2']

    """
    root = to_path(folder)
    if not root.is_dir():
        raise FileFormatError(root, "is not a folder")
    if parts not in ("letor", "ohsumed"):
        raise DataError(f"parts must be 'letor' or 'ohsumed', but got {parts!r}")
    files_by_fold = _from_subfolders(root) or _from_parts(root, parts) or _from_named_files(root)
    if not files_by_fold:
        raise FileFormatError(
            root, "has no folds: expected Fold1/train.txt …, S1.txt …, train.txt, or set1.train.txt …"
        )
    return [Fold(name, files, options) for name, files in files_by_fold.items()]


def _data_files(folder: Path) -> dict[str, Path]:
    """Return the files that `read` knows, by their lower-case names without suffixes."""
    by_stem: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        name = path.name.lower()
        for suffix in COMPRESSED:
            name = name.removesuffix(suffix)
        stem, dot, last = name.rpartition(".")
        has_role = stem.rpartition(".")[2] in _ROLE_OF_WORD or re.fullmatch(r"s[1-5]", stem)
        if path.is_file() and dot + last in SUFFIXES and has_role:
            if stem in by_stem:
                raise FileFormatError(path, f"exists in two formats, also as {by_stem[stem].name}: keep one of them")
            by_stem[stem] = path
    return by_stem


def _by_role(files: dict[str, Path]) -> dict[str, list[Path]]:
    roles: dict[str, list[Path]] = {}
    for stem, path in files.items():
        if stem in _ROLE_OF_WORD and roles.setdefault(_ROLE_OF_WORD[stem], [path]) != [path]:
            other = roles[_ROLE_OF_WORD[stem]][0].name
            raise FileFormatError(path, f"has the same role as {other}: keep one of them")
    return {role: roles[role] for role in _ROLES if role in roles} if "train" in roles else {}


def _from_subfolders(root: Path) -> dict[str, dict[str, list[Path]]]:
    numbered = [(re.fullmatch(r"fold[ _-]?(\d+)", p.name.lower()), p) for p in root.iterdir() if p.is_dir()]
    named = sorted((int(match[1]), path) for match, path in numbered if match)
    files_by_fold = {}
    for _, path in named:
        roles = _by_role(_data_files(path))
        if not roles:
            raise FileFormatError(path, "has no training data: expected a file such as train.txt")
        files_by_fold[path.name] = roles
    return files_by_fold


def _from_parts(root: Path, parts: Parts) -> dict[str, dict[str, list[Path]]]:
    files = _data_files(root)
    pieces = [files[f"s{k}"] for k in range(1, 6) if f"s{k}" in files]
    if len(pieces) != 5:
        return {}
    files_by_fold = {}
    for k in range(5):
        first = k if parts == "letor" else k + 1
        *train, valid, test = (pieces[(first + place) % 5] for place in range(5))
        files_by_fold[f"Fold{k + 1}"] = {"train": train, "valid": [valid], "test": [test]}
    return files_by_fold


def _from_named_files(root: Path) -> dict[str, dict[str, list[Path]]]:
    files = _data_files(root)
    plain = _by_role(files)
    if plain:
        return {root.name: plain}
    sets: dict[str, dict[str, Path]] = {}
    for stem, path in files.items():
        group, _, word = stem.rpartition(".")
        if group and word in _ROLE_OF_WORD:
            sets.setdefault(group, {})[word] = path
    return {name: roles for name, members in sets.items() if (roles := _by_role(members))}


def _widened(data: RankingData, widest: RankingData, fill: float) -> RankingData:
    """Return the data with columns appended for the features that only other parts have."""
    width, names = widest.n_features, widest.feature_names
    if width == data.n_features:
        return data
    if names is None or numbers_of(names) is None or names[: data.n_features] != data.feature_names:
        raise DataError(f"the parts of a fold have different numbers of features: {data.n_features} and {width}")
    if is_sparse(data.features):
        wider = data.features.copy()
        wider.resize(data.n_documents, width)
    else:
        extra = np.full((data.n_documents, width - data.n_features), fill, np.float32)
        wider = np.hstack([data.features, extra])
    widened = data.replace(features=wider, feature_names=names)
    return widened._changed(absent_value=data.absent_value, reading=data.reading)
