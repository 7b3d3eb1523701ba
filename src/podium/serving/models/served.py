"""A model that is served."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.errors import DataError
from podium.explain import Explanation, explain
from podium.models import Combined, Model, load
from podium.serving.requests.matching import Matcher, Rows
from podium.serving.requests.number_rows import leading_rows

WARM_UP = (1, 2, 100, 600)  # numbers of documents; each way to score has its kernels


class ServedModel:
    """A model with all that answers need made ready: no request compiles or prepares anything.

    Attributes:
        name: as clients call it.
        model: the model.
        digest: of the model.
        matcher: turns documents into its rows.
        loaded: when.
        why_not_explained: why the model cannot say what features add to its scores; None where it can.

    """

    def __init__(self, name: str, model: Model, most_features: int) -> None:
        if model.n_features > most_features:
            raise DataError(f"the model has {model.n_features} features, and the limit is {most_features}")
        if isinstance(model, Combined) and not model.has_one_schema and any(part.encoding for part in model.parts):
            raise DataError("the parts of the model encode their features in different ways, so it cannot be served")
        self.name, self.model, self.digest = name, model, model.digest()
        self.loaded = datetime.now(UTC)
        self.matcher = Matcher(model.schema)
        self._scorer = model.scorer(n_threads=1)
        self._normalize = model.reading.get("normalize")
        self._takes_arrays = model.has_one_schema and not model.encoding and self._normalize is None
        for n_documents in WARM_UP:
            self.scores(np.zeros((n_documents, model.n_features), np.float32))
        leading_rows(b'{"documents": [[0]]}')
        self.why_not_explained = self._warm_up_explaining()

    @property
    def has_categories(self) -> bool:
        """Whether values may be text."""
        return bool(self.model.encoding.categories)

    def takes_plain_rows(self, n_features: int) -> bool:
        """Whether rows with so many numbers are its rows as they are."""
        return n_features == self.model.n_features and not self.model.encoding

    def scores(self, rows: Rows) -> NDArray[np.float64]:
        """The score of each document of one query; features are normalised within it where the model wants that."""
        if not len(rows):
            return np.empty(0)
        return self._scorer(rows if self._takes_arrays else self.data(rows))

    def explanation(self, rows: Rows) -> Explanation:
        """What each feature adds to the scores of one query's documents."""
        return explain(self.model, rows if self._takes_arrays else self.data(rows), n_threads=1)

    def _warm_up_explaining(self) -> str | None:
        try:
            self.explanation(np.zeros((2, self.model.n_features), np.float32))
        except DataError as error:
            return str(error)
        return None

    def data(self, rows: Rows) -> RankingData:
        """The documents of one query as the model was trained on them."""
        model = self.model
        encoding = model.encoding if model.has_one_schema else None
        data = RankingData(
            rows, qid=np.zeros(len(rows), np.int64), feature_names=model.feature_names, encoding=encoding
        )
        return data if self._normalize is None else data.normalized(self._normalize)


def load_served(name: str, path: Path, most_features: int) -> ServedModel:
    """A model from its file, ready; a file that is no good model is refused."""
    return ServedModel(name, load(path), most_features)
