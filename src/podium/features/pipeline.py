"""Search pipelines: an index, features and a model that answer queries together, saved as one folder.

A pipeline retrieves candidates from the index, by default with BM25. Their features become ranking data as in
`FeatureSet.compute`, and the model ranks them. Training, evaluation and search share one code path.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.files import locked_folder, write_text
from podium.core.manifests import FolderFormat, checksums
from podium.core.validation import require_whole, to_path
from podium.data import RankingData
from podium.errors import DataError, FileFormatError
from podium.evaluation.tables import Table
from podium.features.feature import Feature
from podium.features.feature_set import FeatureSet
from podium.features.index import Index
from podium.features.index_folder import read_with_retries, require_replaceable
from podium.features.presets import default
from podium.features.search_explanation import SearchExplanation, term_occurrences
from podium.models import Model, TreesOnBaseScores, load_model
from podium.models.base import model_of

FOLDER = FolderFormat("podium-pipeline.json", 1, "a search pipeline", "SearchPipeline.save", "save the pipeline again")


class RankedHits(NamedTuple):
    """The ranking of a pipeline, best first, with ties in ascending order of ids.

    Attributes:
        ids: the ids of the documents.
        scores: the model's scores.
        rows: the rows of the documents in the index.
        retrieval_ranks: the rank of each document, from 1, in the search that chose the candidates, such as BM25.
        retrieval_scores: the scores of that search.
        features: a row for each document, if requested; else None.

    Example:
        >>> import numpy as np, podium
        >>> from podium.features import Index, SearchPipeline
        >>> index = Index.build([{"id": "a", "title": "Red shoes"}], fields={"title": "english"})
        >>> shortest_first = podium.models.LinearModel(np.array([-1.0]), np.zeros(1))
        >>> hits = SearchPipeline(index, ["stream_length(title)"], shortest_first).search("shoes")
        >>> hits.ids, hits.scores.tolist(), hits.retrieval_ranks.tolist()
        (['a'], [-2.0], [1])

    """

    ids: list[str]
    scores: Floats
    rows: Ints
    retrieval_ranks: Ints
    retrieval_scores: Floats
    features: Floats | None = None


class SearchPipeline:
    """An index, features and a model: `search` retrieves candidates and ranks them.

    Args:
        index: the documents.
        features: the features that the model was trained on, in any order.
        model: a Podium model, or a fitted estimator.
        candidates: the number of documents to retrieve for the model to rank.
        by: the feature to retrieve by, see `Index.search`.
        index_digest: the digest of the index that the training data was computed with; that of `index` by default.
        allow_other_index: whether the statistics of `index` may differ from those in training. Features then have
            other values than in training.

    Attributes:
        index, features, candidates, by, index_digest: the arguments.
        model: the model, extracted from an estimator.

    Example:
        >>> import podium
        >>> from podium.features import FeatureSet, Index, SearchPipeline
        >>> titles = {"a": "Red shoes", "b": "Red hat", "c": "Hat"}
        >>> documents = [{"id": key, "title": title} for key, title in titles.items()]
        >>> index = Index.build(documents, fields={"title": "english"})
        >>> features = FeatureSet(["bm25(title)", "stream_length(title)"])
        >>> judgements = {"1": {"b": 0, "c": 1}, "2": {"a": 1, "b": 0}}
        >>> data = features.compute(index, {"1": "hat", "2": "red"}, judgements)
        >>> pipeline = SearchPipeline(index, features, podium.LinearRanker().fit(data))
        >>> pipeline.search("a red hat", k=2).ids
        ['b', 'c']

    """

    def __init__(
        self,
        index: Index,
        features: FeatureSet | Iterable[Feature | str],
        model: Any,
        candidates: int = 100,
        by: str | Feature = "bm25",
        *,
        index_digest: str | None = None,
        allow_other_index: bool = False,
    ) -> None:
        require_whole("candidates", candidates, 1)
        self.index, self.candidates, self.by = index, candidates, str(by)
        self.features = features if isinstance(features, FeatureSet) else FeatureSet(features)
        self.model = _checked_model(model, self.features)
        self.features.check(index)
        self.index_digest = index.digest() if index_digest is None else index_digest
        self.allow_other_index = allow_other_index
        self._checked_content: Any = None  # of the index, when its digest was last compared
        self._normalize = self.model.reading.get("normalize")
        self._needs_all = self._normalize is not None or self.model.sees_lists  # whether scores depend on the list
        self._scorer = self.model.scorer(n_threads=1)
        self.search("", 1)  # raises now if the parts do not fit together

    def __repr__(self) -> str:
        return (
            f"<SearchPipeline: {len(self.index)} documents, {len(self.features)} features, {self.model!r}, "
            f"{self.candidates} candidates by {self.by}>"
        )

    @classmethod
    def train(
        cls,
        index: Index,
        queries: Any,
        judgements: Any,
        model: Any,
        features: FeatureSet | Iterable[Feature | str] | None = None,
        candidates: int = 100,
        by: str | Feature = "bm25",
        *,
        valid: tuple[Any, Any] | None = None,
    ) -> SearchPipeline:
        """Train a model on the documents that the pipeline will retrieve for judged queries.

        Args:
            index: the documents.
            queries: the text of each query, in any form that `read_queries` accepts.
            judgements: the grades, in any form that `read_judgements` accepts. Retrieved documents without a grade get
                label 0.
            model: an estimator, for example `podium.Ranker()`.
            features: the features; `default(index)` if None.
            candidates: the number of documents to retrieve for the model to rank.
            by: the feature to retrieve by, see `Index.search`.
            valid: validation queries and judgements for early stopping.

        Example:
            >>> import podium
            >>> from podium.features import Index, SearchPipeline
            >>> titles = {"a": "Red shoes", "b": "Red hat", "c": "Hat"}
            >>> documents = [{"id": key, "title": title} for key, title in titles.items()]
            >>> index = Index.build(documents, fields={"title": "english"})
            >>> queries, judgements = {"1": "hat", "2": "red hat"}, {"1": {"c": 1}, "2": {"b": 1}}
            >>> pipeline = SearchPipeline.train(index, queries, judgements, podium.LinearRanker())
            >>> pipeline.search("red hat").ids[0]
            'b'

        """
        feature_set = default(index) if features is None else FeatureSet(features)

        def data(queries: Any, judgements: Any) -> RankingData:
            return feature_set.compute(index, queries, judgements, candidates=f"{by} top {candidates}")

        train = data(queries, judgements)
        options = {} if valid is None else {"valid": data(*valid)}
        return cls(index, feature_set, model.fit(train, **options), candidates, by)

    def search(self, text: str, k: int = 10, *, features: bool = False) -> RankedHits:
        """Return the best k documents for a query.

        Args:
            text: the query.
            k: the maximum number of documents; there are never more than `candidates`.
            features: whether to return the features of the documents.

        """
        require_whole("k", k, 1)
        self._check_index()
        hits = self.index.search(text, self.candidates, self.by)
        matrix = self.features.rows(self.index, text, hits.rows)
        scores = self._scores(matrix, hits.ids)
        order = np.array(sorted(range(len(scores)), key=lambda place: (-scores[place], hits.ids[place]))[:k], np.int64)
        return RankedHits(
            [hits.ids[place] for place in order], scores[order], hits.rows[order], order + 1, hits.scores[order],
            matrix[order] if features else None,
        )  # fmt: skip

    def explain(self, text: str, document: Any) -> SearchExplanation:
        """Explain the score of a document for a query by features and terms.

        Args:
            text: the query.
            document: the id of any document of the index, which need not be a candidate.

        """
        explanation = self._explanation(text, [document])
        causes = explanation.of_document(0)
        (row,) = self.index.rows([document])
        terms = {value.feature: value.terms for value in self.features.explain(self.index, text, document)}
        return SearchExplanation(
            text, causes.document, causes.base, causes.score, explanation.method, Table(causes.columns, causes.rows),
            terms, term_occurrences(self.index, text, row),
        )  # fmt: skip

    def why(self, text: str, a: Any, b: Any) -> Any:
        """Explain by features why document `a` ranks above document `b` for a query.

        Args:
            text: the query.
            a: the id of a document.
            b: the id of another.

        Returns:
            A `podium.explain.PairExplanation`.

        """
        return self._explanation(text, [a, b]).why(0, 1)

    def _explanation(self, text: str, documents: list[Any]) -> Any:
        """Explain the scores of documents by features, and of all candidates if scores depend on the list."""
        self._check_index()
        rows = self.index.require_rows(documents).tolist()
        if self._needs_all:
            candidates = self.index.search(text, self.candidates, self.by).rows.tolist()
            rows += [row for row in candidates if row not in rows]
        ids = [self.index.ids[row] for row in rows]
        explanation = self.model.explain(self._data(self.features.rows(self.index, text, rows), ids), n_threads=1)
        names = {f"column {k}": name for k, name in enumerate(self.features.names)}  # of a model without names
        return replace(explanation, names=tuple(names.get(name, name) for name in explanation.names))

    def _scores(self, matrix: Floats, ids: list[str]) -> Floats:
        """Score the candidates of a query."""
        if not len(matrix):
            return np.empty(0)
        scores = self._scorer(self._data(matrix, ids))
        if not np.isfinite(scores).all():
            place = int(np.argmin(np.isfinite(scores)))
            raise DataError(f"scores must be finite, but the score of document {ids[place]!r} is {scores[place]}")
        return scores

    def _data(self, matrix: Floats, ids: list[str]) -> RankingData:
        """Return the candidates of a query as ranking data, as in `FeatureSet.compute`."""
        needs_float64 = bool(self.model.encoding) or not self.model.has_one_schema  # for columns that the model shifts
        data = RankingData(
            matrix if needs_float64 else matrix.astype(np.float32), qid=np.zeros(len(matrix), np.int64),
            document_ids=ids, feature_names=self.features.names,
        )  # fmt: skip
        return data if self._normalize is None else data.normalized(self._normalize)

    def _check_index(self) -> None:
        """Raise if the statistics of the index differ from those in training; check again only after a change."""
        if self.index.content is self._checked_content:
            return
        if not self.allow_other_index and self.index.digest() != self.index_digest:
            raise DataError(
                "the index has other statistics than the one that the model was trained with, so features would have "
                "other values: compute the features and train again, or pass allow_other_index=True"
            )
        self._checked_content = self.index.content

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the index, features and model as one folder, replacing a pipeline that exists there.

        If the process is killed, the folder contains either the old or the new pipeline.
        """
        path = require_replaceable(FOLDER, folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
            with locked_folder(path):
                self._write(path)
        except OSError as error:
            raise FileFormatError(path, f"cannot be written: {error.strerror or error}") from error

    def _write(self, folder: Path) -> None:
        """Write the parts under new names, then the manifest, and remove the parts of the old state."""
        index = f"index-{self.index.digest()[:16]}"
        self.index.save(folder / index)
        features, model = folder / ".features.unfinished", folder / ".model.unfinished"
        self.features.save(features)
        self.model.save(model)
        features = _named_by_content(features, "features-{}.json")
        model = _named_by_content(model, "model-{}.podium")
        parts = {"index": index, "features": features.name, "model": model.name}
        content = {"candidates": self.candidates, "by": self.by, "index_digest": self.index_digest, "parts": parts}
        write_text(folder / FOLDER.manifest, FOLDER.manifest_text(content, [features, model]))
        for path in folder.iterdir():
            if path.name.startswith(("index-", "features-", "model-")) and path.name not in parts.values():
                with suppress(OSError):  # a file that is open elsewhere cannot be removed on Windows
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], index: Index | None = None, *, allow_other_index: bool = False
    ) -> SearchPipeline:
        """Open a saved pipeline.

        Args:
            folder: the folder that `save` wrote.
            index: an index to use instead of the saved one.
            allow_other_index: whether the statistics of the index may differ from those in training.

        """
        path = to_path(folder).resolve()

        def read(manifest: dict[str, Any]) -> SearchPipeline:
            with FOLDER.reporting_damage(path):
                FOLDER.check_files(path, manifest, reads_all=True)
                parts = {part: path / _plain_name(manifest["parts"][part]) for part in ("index", "features", "model")}
                candidates, by, digest = (manifest[key] for key in ("candidates", "by", "index_digest"))
            return cls(
                Index.load(parts["index"]) if index is None else index, FeatureSet.load(parts["features"]),
                load_model(parts["model"]), candidates, by, index_digest=digest, allow_other_index=allow_other_index,
            )  # fmt: skip

        return read_with_retries(FOLDER, path, read)


def is_pipeline(path: Any) -> bool:
    """Return whether a path is the folder of a search pipeline."""
    return isinstance(path, str | os.PathLike) and (Path(path) / FOLDER.manifest).is_file()


def model_file(folder: Path) -> Path:
    """Return the model file of a saved pipeline."""
    return folder / _plain_name(FOLDER.read(folder)["parts"]["model"])


def _plain_name(name: Any) -> str:
    """Return the name of a file in a folder; raise if it leads out of the folder."""
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise DataError(f"{name!r} is not the name of a file in the folder")
    return name


def _named_by_content(path: Path, name: str) -> Path:
    """Rename a file to `name` with its checksum, so that it never replaces a file with other content."""
    return path.replace(path.with_name(name.format(checksums([path])[0][:16])))


def _checked_model(model: Any, features: FeatureSet) -> Model:
    """Return the model of an estimator; raise if it cannot rank by these features."""
    inner = model_of(model)
    if not isinstance(inner, Model):
        fitted = "; fit it first" if hasattr(model, "fit") else ""
        raise DataError(f"model must be a Podium model or a fitted estimator, but got {type(model).__name__}{fitted}")
    if isinstance(inner, TreesOnBaseScores):
        raise DataError("the model adds its trees to the scores of another model, which a pipeline cannot compute")
    if inner.feature_names is None and inner.n_features != len(features):
        raise DataError(f"the model expects {inner.n_features} features, but the feature set has {len(features)}")
    missing = [name for name in inner.feature_names or () if name not in features.names]
    if missing:
        raise DataError(f"the feature set lacks the model's feature {missing[0]!r} ({len(missing)} in all)")
    return inner
