"""Whether an exported file scores as the model does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podium.data import RankingData
from podium.data.encoding import Encoding
from podium.errors import DataError
from podium.formats.base import get_format, import_model
from podium.models import Model

FLOAT32 = 1e-5  # relative difference of sums of float32, of what they can tell apart


@dataclass(frozen=True)
class Check:
    """The scores of some data by a model and by its export.

    Attributes:
        n_documents: compared.
        largest_difference: of the scores.
        changed_queries: names of queries whose ranking differs by more than rounding: a pair of documents stands in
            another order although the model's scores of the two differ by more than 1e-5 of the largest score.

    Example:
        >>> from podium.formats import Check
        >>> print(Check(1000, 3e-08, ()))
        1000 documents: scores differ by 3e-08 at most, no ranking changes

    """

    n_documents: int
    largest_difference: float
    changed_queries: tuple[object, ...]

    def __str__(self) -> str:
        changed = f"{len(self.changed_queries)} rankings change" if self.changed_queries else "no ranking changes"
        return f"{self.n_documents} documents: scores differ by {self.largest_difference:.3g} at most, {changed}"


def check_export(model: Model, path: Path, format: str, data: RankingData) -> Check:  # noqa: A002
    """Score data with a model and with the file that was exported from it.

    Args:
        model: the model.
        path: the file.
        format: of the file.
        data: what to score.

    Returns:
        How far the scores are apart, and which rankings differ.

    Example:
        >>> import podium
        >>> from podium.formats import check_export
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=2).fit(data).model_
        >>> written = model.export("model.lgb")
        >>> check_export(model, written.path, "lightgbm", data).largest_difference
        0.0

    """
    if not get_format(format).can_read():
        raise DataError(f"{format} is not read back, so it cannot be checked")
    exported = import_model(path, format)
    matched = model.schema.matched(data)
    expected = model.predict(data)
    if exported.feature_names is not None:
        scores = exported.predict(_as_read(matched, exported))
    else:  # features that no tree asks for may be left out at the end
        scores = exported.predict(matched.features[:, : exported.n_features])
    differs = np.abs(scores - expected)
    slack = FLOAT32 * float(np.abs(expected).max(initial=0.0))
    changed = [
        data.query_ids[query].item() for query in range(data.n_queries)
        if _is_changed(expected[data.rows(query)], scores[data.rows(query)], slack)
    ]  # fmt: skip
    return Check(len(data), float(differs.max(initial=0.0)), tuple(changed))


def _as_read(data: RankingData, exported: Model) -> RankingData:
    """The data as a file reads it: with the numbers of categories, where it has no names of them."""
    if exported.encoding.categories or not data.encoding.categories:
        return data
    return data.replace(features=data.features, encoding=Encoding(shifts=data.encoding.shifts))


def _is_changed(expected: np.ndarray, scores: np.ndarray, slack: float) -> bool:
    """Whether a document that is clearly ahead by the expected scores is behind by the others."""
    order = np.argsort(-scores, kind="stable")
    highest_after = np.maximum.accumulate(expected[order][::-1])[::-1]
    return bool((highest_after[1:] > expected[order][:-1] + slack).any())
