"""Training runs that survive being killed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from podium.data import RankingData
from podium.data.canonical import preference_hashes
from podium.errors import DataError, require_whole
from podium.models import Ensemble, load, save


@dataclass(frozen=True)
class Checkpoint:
    """A file that keeps the trees, or the weights of a net, so far.

    A run that finds the file goes on from there; the model is the same, to the bit, as without the interruption.

    Args:
        path: the file; replaced only once the new one is written whole.
        every: trees, or epochs, between two writes.

    """

    path: str | os.PathLike[str]
    every: int = 50

    def __post_init__(self) -> None:
        require_whole("every", self.every, 1)

    def write(self, ensemble: Ensemble, fingerprint: str) -> None:
        """Keep the trees so far."""
        save(ensemble.with_info(fingerprint=fingerprint), self.path)

    def read(self, fingerprint: str) -> Ensemble | None:
        """The trees of an earlier run of the same settings and data, if there are any."""
        if not Path(self.path).exists():
            return None
        found = load(self.path)
        if not isinstance(found, Ensemble) or found.info.get("fingerprint") != fingerprint:
            raise self.of_others()
        return found

    def of_others(self) -> DataError:
        """The error for a file of another run."""
        return DataError(
            f"{os.fspath(self.path)} is a checkpoint of other data or other settings: delete it, or name another "
            "(a function as schedule and an objective without a repr of its own are others in every process)"
        )


def fingerprint(
    settings: Any, beside: tuple[str, ...], start: str, train: RankingData, valid: Mapping[str, RankingData]
) -> str:
    """What a run depends on, but for some settings; the order of rows does not matter. `start` is a hash as well."""
    shown = {f.name: str(getattr(settings, f.name)) for f in fields(settings) if f.name not in beside}
    shown["start"] = start
    found = hashlib.sha256(repr(sorted(shown.items())).encode())
    for name, data in {"training data": train, **valid}.items():
        found.update(name.encode() + _digest(data))
    return found.hexdigest()


def _digest(data: RankingData) -> bytes:
    """A hash of all documents, each with its query and labels, in no order."""
    keys: Any = data.row_hashes.copy()
    names = {query: int.from_bytes(hashlib.blake2b(str(query).encode(), digest_size=8).digest(), "little")
             for query in data.query_ids.tolist()}  # fmt: skip
    with np.errstate(over="ignore"):
        keys = keys * np.uint64(3) + np.array([names[query] for query in data.qid.tolist()], np.uint64)
        columns: dict[str, Any] = {source: data.labels[source] for source in sorted(data.labels)}
        columns["document weights"] = data.document_weights
        columns["positions"] = data.positions
        columns["preferences"] = None if data.preferences is None else preference_hashes(data, keys)
        columns["query weights"] = None if data.query_weights is None else data._query_weight_of_rows()
        present = {name: column for name, column in columns.items() if column is not None}
        for column in present.values():
            bits = column if column.dtype == np.uint64 else column.view(np.uint32).astype(np.uint64)
            keys = keys * np.uint64(0x9E3779B97F4A7C15) + bits
    return hashlib.sha256(repr(list(present)).encode() + np.sort(keys).tobytes()).digest()
