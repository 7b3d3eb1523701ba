"""Check that an exported file gives the same scores as the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats
from podium.data import RankingData
from podium.data.encoding import Encoding
from podium.data.encoding import shifted as as_float32
from podium.data.sparse import is_sparse
from podium.errors import FileFormatError, PodiumError
from podium.formats.consumers import Scores, consumer_of
from podium.formats.trees import as_ensemble, highest_double, is_of_trees, lowest_double, raw_threshold
from podium.models import Ensemble, Model

TOLERANCE = 1e-5  # relative difference of sums of float32
BLOCK = 1 << 22  # number of values to score at a time
N_PROBES = 1 << 13  # rows for each kind of probe


@dataclass(frozen=True)
class Check:
    """The scores of some data by a model and by its export.

    Each value of the data is scored as the smallest and as the largest double that Podium rounds to the same float32.

    Attributes:
        n_documents: the number of documents compared.
        largest_difference: the largest difference between two scores of a document; infinite if the file does not give
            a document a score.
        changed_queries: the names of queries whose ranking changes by more than rounding: two documents swap although
            the model's scores for them differ by more than 1e-5 of the largest score.
        scored_by: the library, or the rules, that scored the file.
        probes: the largest difference after some values of the data are replaced, by the kind of the new values: at
            thresholds, infinite, missing. Empty for models without trees.

    Example:
        >>> from podium.formats import Check
        >>> print(Check(1000, 3e-08, (), "XGBoost", {"at thresholds": 5e-08, "infinite": 0.25}))
        1000 documents, scored by XGBoost: scores differ by at most 3e-08, no ranking changes
        with other values in the data, scores differ by at most 5e-08 (at thresholds), 0.25 (infinite)

    """

    n_documents: int
    largest_difference: float
    changed_queries: tuple[object, ...]
    scored_by: str
    probes: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        n_changed = len(self.changed_queries)
        changed = f"{n_changed} rankings change" if n_changed > 1 else f"{'1' if n_changed else 'no'} ranking changes"
        lines = [
            f"{self.n_documents} documents, scored by {self.scored_by}: scores differ by at most "
            f"{self.largest_difference:.3g}, {changed}"
        ]
        if self.probes:
            shown = ", ".join(f"{difference:.3g} ({kind})" for kind, difference in self.probes.items())
            lines.append(f"with other values in the data, scores differ by at most {shown}")
        return "\n".join(lines)


def check_export(model: Model, path: Path, format: str, data: RankingData) -> Check:  # noqa: A002
    """Compare the scores of a model with those that a consumer computes from its exported file.

    The consumer's own library scores if it is installed: LightGBM, XGBoost, CatBoost, ONNX Runtime. Otherwise Podium
    follows the consumer's rules, comparing doubles or float32 numbers as the consumer does.

    Args:
        model: the model.
        path: the exported file.
        format: its format.
        data: the documents to score.

    Returns:
        How much the scores differ, and which rankings change.

    Raises:
        FileFormatError: if the consumer cannot read or score the file.

    Example:
        >>> import podium
        >>> from podium.formats import check_export
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=2).fit(data).model_
        >>> written = model.export("model.lgb")
        >>> check_export(model, written.path, "lightgbm", data).largest_difference
        0.0

    """
    with _file_errors(path, format):
        consumer, scores_of = consumer_of(path, format, model)

    def score(rows: Floats) -> Floats:
        with _file_errors(path, format):
            return scores_of(rows)

    matched = model.schema.matched(data)
    expected = model.predict(data)
    slack = TOLERANCE * float(np.abs(expected).max(initial=0.0))
    largest, changed = 0.0, set()
    for first, last in _blocks_of_queries(matched, 1 if model.sees_lists else BLOCK):
        rows = matched.order[matched.offsets[first] : matched.offsets[last]]
        for to_double in (lowest_double, highest_double):
            scores = score(_as_doubles(matched, rows, to_double, model))
            largest = max(largest, _largest_difference(scores, expected[rows]))
            for query in range(first, last):
                documents = slice(*(matched.offsets[query : query + 2] - matched.offsets[first]))
                if _is_changed(expected[rows[documents]], scores[documents], slack):
                    changed.add(query)
    names = tuple(data.query_ids[query].item() for query in sorted(changed))
    probes = _probed(as_ensemble(model, format), matched, score) if is_of_trees(model) and len(data) else {}
    return Check(len(data), largest, names, consumer, probes)


@contextmanager
def _file_errors(path: Path, format: str) -> Iterator[None]:  # noqa: A002
    """Turn any exception of a consumer's library into an error that names the file."""
    try:
        yield
    except PodiumError:
        raise
    except Exception as error:
        raise FileFormatError(path, f"cannot be scored as {format} ({type(error).__name__}: {error!s:.200})") from error


def _blocks_of_queries(data: RankingData, max_values: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of whole queries with at most `max_values` values, or of one query."""
    first = 0
    max_rows = max_values // max(data.n_features, 1)
    while first < data.n_queries:
        last = int(np.searchsorted(data.offsets, data.offsets[first] + max_rows, "right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _largest_difference(scores: NDArray[Any], expected: NDArray[Any]) -> float:
    differences = np.abs(scores - expected)
    return float(np.where(np.isnan(differences), np.inf, differences).max(initial=0.0))


def _as_doubles(data: RankingData, rows: NDArray[Any], to_double: Callable[[Any], Floats], model: Model) -> Floats:
    """Return rows as a consumer may get them: `to_double` returns a double that rounds to each float32 value.

    Categories are whole numbers, and shifted features have their original values.
    """
    features = data.features[rows]
    values = features.toarray() if is_sparse(features) else features
    doubles = to_double(values)
    categorical = sorted(_categorical(model))
    doubles[:, categorical] = values[:, categorical]
    for feature in model.encoding.shifts:
        doubles[:, feature] = data.original_column(feature)[rows]
    return doubles


def _categorical(model: Model) -> set[int]:
    features = set(model.encoding.categories)
    if is_of_trees(model):
        arrays = as_ensemble(model, "").arrays
        features |= set(arrays["feature"][arrays["category"] >= 0].tolist())
    return features


def _probed(ensemble: Ensemble, data: RankingData, score: Scores) -> dict[str, float]:
    """Return the largest difference for rows of the data in which about half of the values are replaced, by kind."""
    shifts = ensemble.encoding.shifts
    plain = replace(ensemble, feature_names=None, encoding=Encoding())
    largest = {}
    for kind, values_of in PROBES.items():
        rng = np.random.default_rng(0)
        rows = rng.integers(0, len(data), N_PROBES)
        probes = _as_doubles(data, rows, lambda values: values.astype(np.float64), ensemble)
        for feature in sorted(set(range(data.n_features)) - _categorical(ensemble)):
            values = values_of(ensemble, feature)
            if len(values):
                replaced = rng.random(len(probes)) < 0.5
                probes[replaced, feature] = rng.choice(values, replaced.sum())
        rounded = np.empty(probes.shape, np.float32)
        for k in range(data.n_features):
            rounded[:, k] = as_float32(probes[:, k], shifts.get(k, 0.0))
        largest[kind] = _largest_difference(score(probes), plain.predict(rounded))
    return largest


def _at_thresholds(ensemble: Ensemble, feature: int) -> Floats:
    """Return the doubles on both sides of each threshold of a feature, and the thresholds themselves."""
    arrays = ensemble.arrays
    thresholds = np.unique(arrays["threshold"][(arrays["feature"] == feature) & (arrays["category"] < 0)])
    thresholds = thresholds[np.isfinite(thresholds)]
    shift = ensemble.encoding.shifts.get(feature, 0.0)
    highest = np.array([raw_threshold(t, shift) for t in thresholds])
    exact = thresholds + np.float64(shift)
    return np.concatenate([exact, highest, np.nextafter(highest, np.inf)])


PROBES: dict[str, Callable[[Ensemble, int], Any]] = {
    "at thresholds": _at_thresholds,
    "infinite": lambda ensemble, feature: [np.inf, -np.inf, *(np.finfo(np.float32).max * np.array([1.0, -1.0]))],
    "missing": lambda ensemble, feature: [np.nan],
}


def _is_changed(expected: np.ndarray, scores: np.ndarray, slack: float) -> bool:
    """Return whether two documents with clearly different expected scores swap, or a document has no score."""
    if np.isnan(scores).any():
        return True
    order = np.argsort(-scores, kind="stable")
    highest_after = np.maximum.accumulate(expected[order][::-1])[::-1]
    return bool((highest_after[1:] > expected[order][:-1] + slack).any())
