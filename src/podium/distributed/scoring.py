"""Scoring files on a cluster; each file of documents gets a file of scores."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.files import replacing, write_text
from podium.core.validation import to_path
from podium.data import RankingData, read_blocks
from podium.data.features import first_repeated
from podium.data.io.reading import format_of
from podium.data.io.text_blocks import COMPRESSED
from podium.distributed.dask_engine import DaskEngine
from podium.distributed.engine import HEARTBEAT, TIMEOUT
from podium.distributed.sources import paths_of
from podium.errors import DataError, FileFormatError
from podium.models import Model, load
from podium.models.base import model_of

MANIFEST = "scores.json"  # the file in the folder of scores that identifies the model and the files of documents
ROWS = 1 << 15  # number of rows to score at a time
Blocks = Callable[..., Iterator[RankingData]]


def score_files(
    model: Any,
    files: Any,
    output: str | os.PathLike[str],
    *,
    client: Any = None,
    blocks: Blocks | None = None,
    timeout: float = TIMEOUT,
    heartbeat: float = HEARTBEAT,
) -> list[Path]:
    """Score files on the workers of a Dask cluster, block by block to bound memory use.

    Every file of documents gets a file of scores. For text it is `NAME.scores.txt`, with a number per line in the
    order of the rows. For Parquet it is `NAME.scores.parquet`, with the columns `qid`, `score` and, if there is one,
    `document_id`. Files appear when they are complete. Existing files of scores are skipped, so the same call resumes
    where an earlier one stopped. If a worker is lost, another one scores its files.

    Args:
        model: a model, an estimator, or the name of a model file.
        files: names of files, patterns or folders that every worker can read.
        output: a folder that every worker can write to.
        client: a client of the cluster; the current one by default.
        blocks: reads a file block by block; `podium.read_blocks` by default.
        timeout: seconds to wait for the next file to be complete.
        heartbeat: seconds without a heartbeat after which a worker is restarted; others score its files.

    Returns:
        The files of scores, in the order of the files.

    Example:
        >>> import pathlib, podium, tempfile
        >>> from distributed import Client
        >>> from podium.distributed import score_files
        >>> data, folder = podium.artificial(20, features=4), pathlib.Path(tempfile.mkdtemp())
        >>> data.write(folder / "documents.txt")
        >>> model = podium.LambdaMART(2, n_leaves=4).fit(data)
        >>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
        ...     (scores,) = score_files(model, folder / "documents.txt", folder / "scores", client=client)
        >>> scores.name, [float(line) for line in scores.open()] == model.predict(data).tolist()
        ('documents.scores.txt', True)

    """
    loaded = load(model) if isinstance(model, str | os.PathLike) else model_of(model)
    if not isinstance(loaded, Model):
        raise DataError(f"model must be a model, a fitted estimator or a model file, not {type(model).__name__}")
    engine = DaskEngine(client, timeout, heartbeat)
    paths, folder = paths_of(files), to_path(output)
    targets = [folder / name for name in _names_of_scores(paths)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"output: cannot create the folder {folder}: {error.strerror or error}") from error
    _require_same_model(folder, loaded, dict(zip(paths, targets, strict=True)))
    engine.wait_for_worker(timeout)
    remote = engine.submit(pickle.loads, pickle.dumps(loaded))  # a task, so that Dask repeats it if its worker is lost
    running = [
        engine.submit(_score_file, remote, path, str(target), blocks)
        for path, target in zip(paths, targets, strict=True)
        if not target.exists()
    ]
    for future in running:
        engine.wait(future)
    return targets


def _names_of_scores(paths: list[str]) -> list[str]:
    """Return the name of the file of scores for each file."""
    names = []
    for path in paths:
        name = Path(path).name
        if Path(name).suffix.lower() in COMPRESSED:
            name = Path(name).stem
        suffix = ".scores.parquet" if format_of(path) == "parquet" else ".scores.txt"
        names.append(Path(name).stem + suffix)
    if len(set(names)) < len(names):
        raise DataError(
            f"two files would write their scores to the same file {first_repeated(names)!r}: score them into different "
            "folders"
        )
    return names


def _require_same_model(folder: Path, model: Model, targets: Mapping[str, Path]) -> None:
    """Raise if the folder holds scores of another model or of other files; otherwise record model and files."""
    states = {path: [(stat := Path(path).stat()).st_size, stat.st_mtime_ns] for path in targets}
    digest, manifest = model.digest(), _read_manifest(folder / MANIFEST)
    files = {} if manifest is None else manifest["files"]
    problem = None
    if manifest is not None and manifest["model"] != digest:
        problem = "scores of another model"
    for path, target in targets.items():
        if path in files and files[path] != states[path]:
            problem = problem or f"scores of an earlier version of {path}"
        elif path not in files and target.exists():
            problem = problem or f"a file {target.name!r} that does not come from {path}"
    if problem is not None:
        raise DataError(f"{folder} holds {problem}: delete it, or use another folder")
    write_text(folder / MANIFEST, json.dumps({"model": digest, "files": files | states}, indent=1) + "\n")


def _read_manifest(manifest: Path) -> dict[str, Any] | None:
    """Return the content of the manifest of an earlier call, or None if there is none."""
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FileFormatError(manifest, f"cannot be read ({error}): delete its folder, or use another one") from error
    if not isinstance(content, dict) or not isinstance(content.get("files"), dict) or "model" not in content:
        raise FileFormatError(manifest, "was not written by score_files: delete its folder, or use another one")
    return content


def _score_file(model: Model, path: str, target: str, blocks: Blocks | None) -> None:
    """Score one file; its file of scores appears when it is complete."""
    like = model.schema if model.has_one_schema else None
    documents = (blocks or read_blocks)(path, rows=ROWS, whole_queries=model.sees_lists, like=like)
    write = _write_parquet if target.endswith(".parquet") else _write_text
    with replacing(Path(target)) as temporary:
        write(temporary, ((block, model.predict(block)) for block in documents))


def _write_text(path: Path, scored: Iterator[tuple[RankingData, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for _, scores in scored:
            file.write("".join(f"{value!r}\n" for value in scores.tolist()))


def _write_parquet(path: Path, scored: Iterator[tuple[RankingData, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    try:
        for data, scores in scored:
            columns: dict[str, Any] = {"qid": data.qid, "score": np.asarray(scores, np.float64)}
            if data.document_ids is not None:
                columns["document_id"] = data.document_ids
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
