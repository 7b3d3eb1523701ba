"""TREC runs and judgements, and files of plain scores.

A run has lines `query Q0 document rank score name`, judgements have lines `query subtopic document label`. A file of
plain scores has one number per line.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats
from podium.core.files import write_text
from podium.core.validation import to_path
from podium.data import RankingData
from podium.data.features import first_repeated
from podium.data.io.text_blocks import text_blocks
from podium.data.schema import as_data
from podium.errors import DataError, FileFormatError, warn
from podium.measures import Ranking
from podium.measures.ranking import checked_scores

MOST_SUBTOPICS = 100  # per file of judgements; each is a column of labels for all documents
LARGEST_LABEL = float(np.finfo(np.float32).max)
_LINE_END = re.compile(r"\r\n|\n|\r")  # `str.splitlines` also splits at form feeds and Unicode separators
_WORD = re.compile(r"[^ \t\v\f]+")  # `str.split` also splits at no-break spaces and other Unicode spaces
_LETOR_ID = re.compile(r"docid\s*=\s*(\S+)")  # the comments of LETOR's files: "docid = GX008-86 inc = 1 …"


@dataclass(frozen=True)
class Run:
    """The documents and scores that a system returned by query: `scores[query][document]`.

    Example:
        >>> from podium.evaluation import Qrels, Run
        >>> Run("bm25", {"7": {"a": 2.5, "b": 1.0}}).scores["7"]["a"]
        2.5

    """

    name: str
    scores: dict[str, dict[str, float]]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the run as a TREC file, the documents of each query by descending score."""
        write_text(path, "".join(self.lines()))

    def lines(self) -> list[str]:
        """Return the lines of a TREC file."""
        name = _as_word(self.name, "name of a run")
        return [
            f"{_as_word(query, 'query id')} Q0 {_as_word(document, 'document id')} {rank} {scores[document]!r} {name}\n"
            for query, scores in self.scores.items()
            for rank, document in enumerate(ranked_documents(scores), 1)
        ]


def ranked_documents(scores: dict[str, float]) -> list[str]:
    """Return the documents of a query by rank; ties are in descending order of ids, as in trec_eval."""
    return sorted(sorted(scores, reverse=True), key=lambda document: -scores[document])


@dataclass(frozen=True)
class Qrels:
    """Judgements by query: `labels[query][document]`.

    Attributes:
        labels: the label of each document, the highest of its subtopics if there are any.
        subtopics: judgements by subtopic, for measures of diversity: `subtopics[subtopic][query][document]`.

    Example:
        >>> import podium
        >>> from podium.evaluation import Qrels, Run
        >>> run = Run("bm25", {"7": {"a": 2.5, "b": 1.0}})
        >>> podium.evaluate(Qrels({"7": {"a": 0, "b": 1}}), run, "rr").means["rr"]
        0.5

    """

    labels: dict[str, dict[str, float]]
    subtopics: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)


def read_run(path: str | os.PathLike[str]) -> Run:
    r"""Read a TREC run; its ranks are ignored in favour of the scores, as in trec_eval.

    Args:
        path: a text file, compressed or not, of lines `query Q0 document rank score name`.

    Returns:
        The scores by query and document.

    Example:
        >>> import pathlib, podium, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.txt"
        >>> _ = path.write_text("7 Q0 a 1 2.5 bm25\n7 Q0 b 2 1.0 bm25\n")
        >>> podium.read_run(path).scores
        {'7': {'a': 2.5, 'b': 1.0}}

    """
    scores: dict[str, dict[str, float]] = {}
    names: dict[str, int] = {}  # the first line of each name
    for line, (query, _, document, _, score, name) in _fields_by_line(path, 6, "query Q0 document rank score name"):
        _add_entry(scores, query, document, _number(path, line, score, "score"), path, line)
        names.setdefault(name, line)
    if len(names) > 1:
        (first, _), (second, line), *_ = names.items()
        warn(
            f"{os.fspath(path)}, line {line}: the run is named {second!r:.60}, but {first!r:.60} before; {len(names)} "
            "runs in one file are read as one"
        )
    return Run(next(reversed(names)), scores)


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    r"""Read TREC judgements.

    Args:
        path: a text file, compressed or not, of lines `query 0 document label`, or `query subtopic document label`.
            Lines that begin with `#` and columns after the label are ignored. If the second column has several values,
            they are subtopics.

    Returns:
        The labels by query and document, and by subtopic.

    Example:
        >>> import pathlib, podium, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "qrels.txt"
        >>> _ = path.write_text("7 0 a 1\n7 0 b 0\n")
        >>> podium.read_qrels(path).labels
        {'7': {'a': 1.0, 'b': 0.0}}
        >>> _ = path.write_text("7 car a 1\n7 cat a 0\n7 cat b 2\n")
        >>> podium.read_qrels(path).subtopics["cat"], podium.read_qrels(path).labels
        ({'7': {'a': 0.0, 'b': 2.0}}, {'7': {'a': 1.0, 'b': 2.0}})

    """
    labels: dict[str, dict[str, float]] = {}
    subtopics: dict[str, dict[str, dict[str, float]]] = {}
    for line, (query, subtopic, document, text) in _fields_by_line(path, 4, "query 0 document label", has_more=True):
        label = _number(path, line, text, "label", most=LARGEST_LABEL)
        _add_entry(subtopics.setdefault(subtopic, {}), query, document, label, path, line)
        documents = labels.setdefault(query, {})
        documents[document] = max(label, documents.get(document, -math.inf))
    if len(subtopics) > MOST_SUBTOPICS:
        warn(
            f"the second column of {os.fspath(path)} has {len(subtopics)} different values, which is too many to be "
            f"subtopics (at most {MOST_SUBTOPICS}), so it is ignored"
        )
    return Qrels(labels, subtopics if 1 < len(subtopics) <= MOST_SUBTOPICS else {})


def write_run(data: RankingData, scores: Any, path: str | os.PathLike[str], name: str = "podium") -> None:
    """Write the ranking of data by scores as a TREC run.

    Args:
        data: the documents, identified by their ids or else by row numbers.
        scores: a finite number for each row.
        path: the file to write.
        name: the name of the run, a word.

    Example:
        >>> import pathlib, podium, tempfile
        >>> data = podium.RankingData([[1.0], [2.0]], [1, 0], qid=[7, 7], document_ids=["a", "b"])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.txt"
        >>> podium.write_run(data, data.feature(0), path)
        >>> print(path.read_text().strip())
        7 Q0 b 1 2.0 podium
        7 Q0 a 2 1.0 podium

    """
    write_text(path, "".join(run_lines(as_data(data), scores, name)))


def run_lines(data: RankingData, scores: Any, name: str, rows_before: int = 0) -> list[str]:
    """Return the lines of a TREC run; row numbers that identify documents start from `rows_before`."""
    name = _as_word(name, "name of a run")
    ranking = Ranking(data, scores, base=data.order)
    if not np.isfinite(ranking.scores).all():
        raise DataError("the scores of a TREC run must be finite")
    ids = _pairs_of_ids(data, rows_before)
    lines = []
    for query in range(data.n_queries):
        rows = ranking.order[data.offsets[query] : data.offsets[query + 1]]
        for rank, row in enumerate(rows, 1):
            lines.append(f"{ids[row][0]} Q0 {ids[row][1]} {rank} {float(ranking.scores[row])!r} {name}\n")
    return lines


def write_qrels(data: RankingData, path: str | os.PathLike[str], labels: str = "relevance") -> None:
    """Write labels, which must be whole numbers, as TREC judgements; unlabelled documents are omitted.

    Args:
        data: the documents.
        path: the file to write.
        labels: the label source.

    Example:
        >>> import pathlib, podium, tempfile
        >>> data = podium.RankingData([[1.0], [2.0]], [1, 0], qid=[7, 7], document_ids=["a", "b"])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "qrels.txt"
        >>> podium.write_qrels(data, path)
        >>> print(path.read_text().strip())
        7 0 a 1
        7 0 b 0

    """
    data = as_data(data)
    if labels not in data.labels:
        raise DataError(f"the data has no labels {labels!r}")
    values, ids = data.labels[labels], _pairs_of_ids(data)
    present = values[~np.isnan(values)]
    if (present != np.floor(present)).any():
        raise DataError(f"the labels {labels!r} must be whole numbers to be written as TREC judgements")
    labelled = np.flatnonzero(~np.isnan(values))
    write_text(path, "".join(f"{ids[row][0]} 0 {ids[row][1]} {int(values[row])}\n" for row in labelled))


def matched(data: RankingData, run: Run) -> Ranking:
    """Return a run as a ranking of data, matched by query and document id."""
    unmatched = {(query, document) for query, documents in run.scores.items() for document in documents}
    scores, retrieved = np.zeros(data.n_documents), np.zeros(data.n_documents, bool)
    for row, (query, document) in enumerate(_pairs_of_ids(data)):
        if (query, document) in unmatched:
            unmatched.remove((query, document))
            scores[row], retrieved[row] = run.scores[query][document], True
    if unmatched:
        query, document = min(unmatched)
        raise DataError(
            f"the run {run.name!r} has {len(unmatched)} documents that are not in the data, for example "
            f"{document!r} of query {query!r}"
        )
    return Ranking(data, checked_scores(scores, len(scores)), retrieved=retrieved)


def _pairs_of_ids(data: RankingData, rows_before: int = 0) -> list[tuple[str, str]]:
    """Return the (query, document) ids of each row; raise if two rows have the same."""
    documents = _document_ids(data, rows_before)
    pairs = [(_as_word(str(q), "query id"), d) for q, d in zip(data.qid.tolist(), documents, strict=True)]
    if len(set(pairs)) < len(pairs):
        query, document = first_repeated(pairs)
        raise DataError(
            f"document ids must be distinct within a query for TREC files, but {document!r} occurs twice in {query!r}"
        )
    return pairs


def pooled(qrels: Qrels, runs: Sequence[Run]) -> tuple[RankingData, list[Ranking]]:
    """Return judgements and runs as rankings of one data set without features.

    All queries with judgements count, even if a run lacks them. Relevant documents that a run did not return count as
    relevant but have no rank. Ties are in descending order of document ids, as in trec_eval.
    """
    if not qrels.labels:
        raise DataError("there are no judgements")
    for run in runs:
        _check_overlap(qrels, run)
    rows = [
        (query, document)
        for query in qrels.labels
        for document in sorted(
            set(qrels.labels[query]).union(*(run.scores.get(query, ()) for run in runs)), reverse=True
        )
    ]
    sources = {"relevance": qrels.labels} | {f"subtopic_{name}": table for name, table in qrels.subtopics.items()}
    judged = {
        source: np.array([table.get(query, {}).get(document, math.nan) for query, document in rows])
        for source, table in sources.items()
    }
    # A negative judgement (junk in TREC's web tracks, or a document that was pooled but not judged) counts as 0.
    labels = {source: np.where(values < 0, 0.0, values) for source, values in judged.items()}
    if (judged["relevance"] < 0).any():
        labels["relevance_pool"] = judged["relevance"]  # for bpref and infAP (`podium.measures.incomplete`)
    data = RankingData(
        np.empty((len(rows), 0), np.float32), labels=labels, qid=np.array([query for query, _ in rows], object),
        document_ids=[document for _, document in rows],
    )  # fmt: skip
    rankings = []
    for run in runs:
        listed = [run.scores.get(query, {}).get(document) for query, document in rows]
        retrieved = np.array([score is not None for score in listed])
        # trec_eval stores scores in single precision; we round as well to get the same ties.
        with np.errstate(over="ignore"):
            scores = np.array([0.0 if score is None else score for score in listed], np.float32)
        rankings.append(Ranking(data, scores, base=data.order, retrieved=retrieved))
    return data, rankings


def _check_overlap(qrels: Qrels, run: Run) -> None:
    """Raise if judgements and run have no query in common; warn if they have different queries."""
    missing = [query for query in qrels.labels if query not in run.scores]
    extra = [query for query in run.scores if query not in qrels.labels]
    if len(missing) == len(qrels.labels):
        raise DataError(
            f"the run {run.name!r} and the judgements have no query in common: the run has "
            f"{next(iter(run.scores), 'none')!r}, …, the judgements {missing[0]!r}, …"
        )
    if missing or extra:
        warn(
            f"the run {run.name!r} lacks {len(missing)} of {len(qrels.labels)} judged queries (they count as empty "
            f"rankings) and has {len(extra)} that were not judged (they do not count)",
            stacklevel=4,
        )


def _fields_by_line(path: str | os.PathLike[str], fields: int, shape: str, *, has_more: bool = False) -> Any:
    """Yield the number and the fields of each line; with `has_more`, ignore further fields and comments."""
    is_empty = True
    for number, line in enumerate(text_lines(path), 1):
        if "\0" in line:
            raise FileFormatError(os.fspath(path), "found a NUL character: this is not a text file", line=number)
        parts = line.split()
        if parts != _WORD.findall(line):  # trec_eval reads other Unicode spaces as part of an id
            raise FileFormatError(
                os.fspath(path),
                f"expected '{shape}', separated by spaces or tabs, but found {line[:60]!r}",
                line=number,
            )
        if not parts or (has_more and parts[0].startswith("#")):
            continue
        if has_more:
            parts = parts[:fields]
        if len(parts) != fields:
            raise FileFormatError(os.fspath(path), f"expected '{shape}', but found {line[:60]!r}", line=number)
        is_empty = False
        yield number, parts
    if is_empty:
        raise FileFormatError(os.fspath(path), f"is empty, but expected lines '{shape}'")


def text_lines(path: str | os.PathLike[str]) -> list[str]:
    """Return the lines of a text file, compressed or not, without a byte order mark."""
    content = b"".join(block.text.tobytes() for block in text_blocks(to_path(path)))
    try:
        lines = _LINE_END.split(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = len(_LINE_END.findall(content[: error.start].decode("utf-8"))) + 1
        raise FileFormatError(os.fspath(path), "is not valid UTF-8", line=line) from error
    return lines if lines[-1] else lines[:-1]


def _number(path: str | os.PathLike[str], line: int, text: str, what: str, most: float = sys.float_info.max) -> float:
    value = _number_as_in_c(text)
    if not abs(value) <= most:
        raise FileFormatError(os.fspath(path), f"the {what} must be a finite number, but found {text!r:.60}", line=line)
    return value


def _number_as_in_c(text: str) -> float:
    """Return a number as C parses it, or NaN; Python's `float` also accepts 1_000 and digits of other scripts."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def _add_entry(
    table: dict[str, dict[str, float]], query: str, document: str, value: float, path: Any, line: int
) -> None:
    documents = table.setdefault(query, {})
    if document in documents:
        raise FileFormatError(os.fspath(path), f"document {document!r} occurs twice for query {query!r}", line=line)
    documents[document] = value


def _document_ids(data: RankingData, rows_before: int) -> list[str]:
    """Return a word for each document: its id, LETOR's docid from a comment, or its row number."""
    if data.document_ids is None:
        return [f"row{rows_before + row}" for row in range(data.n_documents)]
    words: NDArray[Any] = data.document_ids
    ids = [match[1] if (match := _LETOR_ID.search(text)) else text for text in words.tolist()]
    return [_as_word(text, "document id") for text in ids]


def _as_word(text: str, what: str) -> str:
    """Return the text; raise unless it is a word."""
    if not text or any(c.isspace() for c in text):
        raise DataError(f"the {what} must be a word without spaces for a TREC file, but is {text!r}")
    return text


def read_scores(path: str | os.PathLike[str]) -> Floats | Run:
    """Read scores from a file: one number per line in the order of the data's rows, or a TREC run."""
    lines = text_lines(path)
    while lines and not lines[-1].strip():
        lines.pop()
    if lines and len(lines[0].split()) == 6:
        return read_run(path)
    scores = np.empty(len(lines))
    for k, line in enumerate(lines):
        scores[k] = _number_as_in_c(line)
        if math.isnan(scores[k]):
            raise FileFormatError(
                os.fspath(path), f"expected a score (or a TREC run), but found {line.strip()[:40]!r}", line=k + 1
            )
    return scores
