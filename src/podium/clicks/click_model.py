"""The base class of click models: parameters of (query, document) pairs, likelihood, perplexity, EM and files.

Every model explains a click by two events: the user examines a result (E), and the result is attractive (A). A result
is clicked if both happen, so P(C_r = 1 | clicks above) = α · P(E_r = 1 | clicks above), where α is the attractiveness
of the pair. The models differ in the examination. The formulas and their names follow Chuklin, Markov and de Rijke,
*Click Models for Web Search*, 2015.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Int32s, Ints
from podium.core.compiling import kernel
from podium.core.sums import GroupSums, group_exponent, total
from podium.core.threads import map_threads, n_threads_for, ranges
from podium.core.validation import require_number, require_whole
from podium.errors import DataError, FileFormatError, PodiumWarning
from podium.features.strings import Strings
from podium.models.archive import open_archive, write_archive

if TYPE_CHECKING:
    from podium.clicks.log import ClickLog

FILE_KIND, VERSION = "podium click model", 1
Parameters = tuple[Floats, ...]


class PairValues(NamedTuple):
    """A value of each (query, document) pair, sorted by query and document.

    Attributes:
        query, document: the names.
        value: the values, between 0 and 1.
        impressions: how often the document was shown for the query in the training log.

    """

    query: NDArray[Any]
    document: NDArray[Any]
    value: Floats
    impressions: Ints


class Perplexity(NamedTuple):
    """How well a model predicts clicks: 1 is perfect, 2 is no better than a coin.

    Attributes:
        overall: the mean over positions.
        by_position: the perplexity of positions 1, 2, …; NaN if nothing was shown there.

    """

    overall: float
    by_position: Floats


@dataclass(frozen=True)
class Pairs:
    """The (query, document) pairs that a model has parameters for, sorted by name.

    Attributes:
        queries, documents: the names in ascending order.
        query, document: the codes of each pair; pairs are sorted by both.
        impressions: the number of impressions of each pair.

    """

    queries: Strings
    documents: Strings
    query: Int32s
    document: Int32s
    impressions: Ints

    @classmethod
    def of(cls, log: ClickLog) -> tuple[Pairs, Ints]:
        """Return the pairs of a log, and the pair of each row."""
        counts = np.bincount(log.pairs, minlength=len(log.pair_queries))
        present = np.flatnonzero(counts)  # a part of a log has the codes of the whole
        queries, query = np.unique(log.pair_queries[present], return_inverse=True)
        documents, document = np.unique(log.pair_documents[present], return_inverse=True)
        order = np.lexsort((document, query))
        ranks = np.empty(len(counts), np.int64)
        ranks[present[order]] = np.arange(len(order))
        pairs = cls(
            Strings.of(log.queries[k] for k in queries), Strings.of(log.documents[k] for k in documents),
            query[order].astype(np.int32), document[order].astype(np.int32), counts[present[order]],
        )  # fmt: skip
        return pairs, ranks[log.pairs]

    def __len__(self) -> int:
        return len(self.query)

    def rows(self, log: ClickLog) -> Ints:
        """Return the pair of each row of a log; `len(self)` for unknown pairs."""
        query = np.array([self.queries.place_of.get(name, -1) for name in log.queries], np.int64)
        document = np.array([self.documents.place_of.get(name, -1) for name in log.documents], np.int64)
        keys = self.query.astype(np.int64) * len(self.documents) + self.document
        q, d = query[log.pair_queries], document[log.pair_documents]
        log_keys = q * len(self.documents) + d
        places = np.minimum(np.searchsorted(keys, log_keys), len(keys) - 1)
        is_known = (q >= 0) & (d >= 0) & (keys[places] == log_keys)
        return np.asarray(np.where(is_known, places, len(self))[log.pairs])

    def table(self, values: Floats) -> PairValues:
        """Return the names of all pairs with their values."""
        queries, documents = np.array(list(self.queries), object), np.array(list(self.documents), object)
        return PairValues(queries[self.query], documents[self.document], values.copy(), self.impressions.copy())


class Fitted(NamedTuple):
    """The result of fitting a model.

    Attributes:
        parameters: arrays of probabilities by name; `attraction` has one for each pair.
        unknown: the values of unknown pairs, for the parameters of pairs.
        n_steps: the number of EM steps; 0 for closed forms.

    """

    parameters: dict[str, Floats]
    unknown: dict[str, float]
    n_steps: int = 0


@dataclass
class ClickModel(ABC):
    """The base class of click models.

    Args:
        smoothing: the weight of the prior, in impressions. The prior of the attractiveness of a pair is a Beta
            distribution worth `smoothing` examined impressions with the log's mean attractiveness: the number of clicks
            per row at or above the last click of an impression. The estimate is the posterior mode. Unknown pairs have
            the mean. The prior of parameters of positions is one success in two trials.

    Example:
        >>> from podium.clicks import Cascade, ClickLog, ClickModel
        >>> log = ClickLog.from_arrays(
        ...     impression=[1, 1, 2, 2, 3, 3], query=["tea"] * 6, document=["a", "b", "b", "a", "a", "b"],
        ...     position=[1, 2, 1, 2, 1, 2], clicked=[0, 1, 1, 0, 1, 0],
        ... )
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.model"
        >>> Cascade().fit(log).save(path)
        >>> ClickModel.load(path)
        Cascade(smoothing=2.0)

    """

    smoothing: float = 2.0
    pairs_: Pairs = field(init=False, repr=False, compare=False)
    fitted_: Fitted = field(init=False, repr=False, compare=False)
    name: ClassVar[str]
    pair_parameters: ClassVar[tuple[str, ...]] = ("attraction",)
    other_parameters: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_number("smoothing", self.smoothing, above=0)

    def fit(self, log: ClickLog) -> Self:
        """Estimate all parameters; the order of impressions and the number of threads do not change a bit."""
        _check(log)
        pairs, rows = Pairs.of(log)
        self.fitted_ = self._fitted(log, rows, len(pairs))
        self.pairs_ = pairs
        return self

    @abstractmethod
    def _fitted(self, log: ClickLog, rows: Ints, n_pairs: int) -> Fitted:
        """Estimate the parameters; `rows` has the pair of each row."""

    @abstractmethod
    def _examination(self, log: ClickLog, rows: Ints, given_clicks: bool) -> Floats:
        """Return the examination of each row; `rows` has its pair, `n_pairs` for unknown ones."""

    @property
    def parameters(self) -> Mapping[str, Floats]:
        """The estimated probabilities by name."""
        return self._require_fit().parameters

    @property
    def attractiveness(self) -> PairValues:
        """The probability of a click given examination, for each pair of the training log."""
        fitted = self._require_fit()
        return self.pairs_.table(fitted.parameters["attraction"])

    def examination(self, log: ClickLog, given_clicks: bool = False) -> Floats:
        """Return the probability that the user examines each row of a log.

        Args:
            log: any log; its clicks only matter with `given_clicks`.
            given_clicks: whether to condition on the clicks above each row. By default the result only depends on what
                was shown, not on what was clicked.

        """
        return self._examination(log, self._rows(log), given_clicks)

    def click_probabilities(self, log: ClickLog, given_clicks: bool = False) -> Floats:
        """Return the probability of a click on each row: attractiveness × examination."""
        rows = self._rows(log)
        return self._extended("attraction")[rows] * self._examination(log, rows, given_clicks)

    def labels(self, log: ClickLog) -> Floats:
        """Return a relevance label between 0 and 1 for each row: the attractiveness of its pair."""
        return self._extended("attraction")[self._rows(log)]

    def propensities(self, log: ClickLog) -> tuple[float, ...]:
        """Return the mean examination of positions 1, 2, …, divided by the largest.

        Pass it as `propensities` to `podium.measures.PropensityNDCG` and `podium.objectives.Debiased`. Every position
        up to the last must occur in the log.
        """
        examination = self.examination(log)
        counts = np.bincount(log.position)[1:]
        if not counts.all():
            raise DataError(
                f"every position must occur in the log, but none of its rows has position "
                f"{1 + int(np.argmin(counts != 0))}"
            )
        means = _sums_by_position(log, examination) / counts
        return tuple((means / means.max()).tolist())

    def log_likelihood(self, log: ClickLog) -> float:
        """Return Σ ln P(clicks of an impression) over all impressions; warn and return −∞ if a click is impossible."""
        chances = self._chances(log, given_clicks=True)
        if not chances.all():
            n = len(np.unique(np.searchsorted(log.starts, np.flatnonzero(chances == 0), side="right")))
            warnings.warn(
                f"{n} of {len(log.starts) - 1} impressions have probability 0 under {type(self).__name__}, so the "
                "log-likelihood is -inf: use a model that allows several clicks", PodiumWarning, stacklevel=2,
            )  # fmt: skip
            return -np.inf
        return total(np.log(chances))

    def perplexity(self, log: ClickLog) -> Perplexity:
        """Return how well the model predicts the clicks of a log other than the training log.

        For position r it is 2^(−mean of log₂ P(click or no click, as observed)), predicted without other clicks
        (Dupret and Piwowarski 2008).
        """
        bits = np.log2(self._chances(log, given_clicks=False))
        counts = np.bincount(log.position)[1:]
        means = np.full(len(counts), np.nan)
        np.divide(_sums_by_position(log, bits), counts, out=means, where=counts > 0)
        by_position = 2.0**-means
        return Perplexity(float(np.nanmean(by_position)), by_position)

    def _chances(self, log: ClickLog, given_clicks: bool) -> Floats:
        """Return the probability of the observation, click or no click, in each row."""
        clicks = self.click_probabilities(log, given_clicks)
        return np.where(log.clicked, clicks, 1.0 - clicks)

    def _extended(self, parameter: str) -> Floats:
        """Return a parameter of all pairs, followed by its value for unknown pairs."""
        return np.append(self.fitted_.parameters[parameter], self.fitted_.unknown[parameter])

    def _rows(self, log: ClickLog) -> Ints:
        """Return the pair of each row of a log; raise if the model is not fitted or the log is invalid."""
        self._require_fit()
        _check(log)
        return self.pairs_.rows(log)

    def _require_fit(self) -> Fitted:
        if not hasattr(self, "fitted_"):
            raise DataError(f"this {type(self).__name__} is not fitted: call fit(log) first")
        return self.fitted_

    def describe(self) -> str:
        """Return a description of the parameters: those of positions, and quartiles over pairs."""
        fitted, pairs = self._require_fit(), self.pairs_
        lines = [
            f"{self!r}, {len(pairs):,} pairs of {len(pairs.queries):,} queries and {len(pairs.documents):,} documents, "
            f"{int(pairs.impressions.sum()):,} rows, {fitted.n_steps} EM steps"
        ]
        for name, values in fitted.parameters.items():
            if name in fitted.unknown:
                quartiles = " ".join(f"{value:.3f}" for value in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))
                lines.append(f"{name}: {quartiles} (minimum, quartiles, maximum), unknown {fitted.unknown[name]:.3f}")
            else:
                more = " …" if len(values) > 20 else ""
                lines.append(f"{name}: " + " ".join(f"{value:.3f}" for value in values[:20]) + more)
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as a zip of a JSON header and NumPy arrays, without pickles."""
        fitted, pairs = self._require_fit(), self.pairs_
        header = {
            "kind": FILE_KIND, "version": VERSION, "model": self.name,
            "settings": {setting.name: getattr(self, setting.name) for setting in fields(self) if setting.init},
            "unknown": fitted.unknown, "n_steps": fitted.n_steps, "parameters": list(fitted.parameters),
        }  # fmt: skip
        arrays = {
            "queries": pairs.queries.text, "query_starts": pairs.queries.starts,
            "documents": pairs.documents.text, "document_starts": pairs.documents.starts,
            "query": pairs.query, "document": pairs.document, "impressions": pairs.impressions,
        } | {f"parameter_{name}": values for name, values in fitted.parameters.items()}  # fmt: skip
        write_archive(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ClickModel:
        """Read a model that `save` wrote."""
        from podium.clicks.browsing_models import PositionBased, UserBrowsing
        from podium.clicks.chain_models import DBN, Cascade, DependentClicks

        with open_archive(os.fspath(path)) as (header, array):
            if header.get("kind") != FILE_KIND or header.get("version") != VERSION:
                raise FileFormatError(os.fspath(path), f"is not a click model of version {VERSION}")
            kinds: dict[str, type[ClickModel]] = {
                kind.name: kind for kind in (Cascade, DependentClicks, DBN, PositionBased, UserBrowsing)
            }
            model = kinds[header["model"]](**header["settings"])
            pairs = Pairs(
                Strings(array("query_starts", np.int64), array("queries", np.uint8)),
                Strings(array("document_starts", np.int64), array("documents", np.uint8)),
                array("query", np.int32), array("document", np.int32), array("impressions", np.int64),
            )  # fmt: skip
            parameters = {name: array(f"parameter_{name}", np.float64) for name in header["parameters"]}
            fitted = Fitted(parameters, dict(header["unknown"]), int(header["n_steps"]))
        problem = model._problem(pairs, fitted)
        if problem:
            raise FileFormatError(os.fspath(path), f"is not a valid click model: {problem}")
        model.pairs_, model.fitted_ = pairs, fitted
        return model

    def _problem(self, pairs: Pairs, fitted: Fitted) -> str:
        """Return what is wrong with the content of a file, or "". Kernels do not check indices, so this must."""
        for strings, codes in ((pairs.queries, pairs.query), (pairs.documents, pairs.document)):
            starts = strings.starts
            if not len(starts) or starts[0] != 0 or starts[-1] != len(strings.text) or (np.diff(starts) < 0).any():
                return "the codes of its names are out of range"
            if len(codes) != len(pairs) or not ((codes >= 0) & (codes < len(strings))).all():
                return "the names of its pairs are missing"
        if not len(pairs) or len(pairs.impressions) != len(pairs):
            return "the impressions of its pairs are missing"
        for name in self.pair_parameters:
            if name not in fitted.unknown or len(fitted.parameters.get(name, ())) != len(pairs):
                return f"it lacks {name} for some pairs"
        for name in self.other_parameters:
            if not len(fitted.parameters.get(name, ())):
                return f"it lacks {name}"
        values = np.concatenate([*fitted.parameters.values(), np.array(list(fitted.unknown.values()), np.float64)])
        return "" if ((values >= 0) & (values <= 1)).all() else "a parameter is not between 0 and 1"


def _check(log: ClickLog) -> None:
    """Raise if a log has no rows, or if positions do not increase within an impression."""
    if not len(log.position):
        raise DataError("the log has no rows: a click model needs at least one shown document")
    before = np.append(0, log.position)
    before[log.starts] = 0  # no position before the first row of an impression
    wrong = np.flatnonzero(log.position <= before[:-1])
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"positions must count from 1 and increase within an impression, but row {row}, in impression "
            f"{log.impression[row]}, has position {int(log.position[row])}"
        )


def _sums_by_position(log: ClickLog, values: Floats) -> Floats:
    """Return the sum of values for positions 1, 2, …, independent of the order of rows."""
    groups = GroupSums(log.position - 1, int(log.position.max()))
    exponent = group_exponent(float(np.abs(values).max()), len(values))
    return from_fixed_point(groups.whole(values, exponent), exponent)


def from_fixed_point(sums: Ints, exponent: int) -> Floats:
    """Return sums that are integers, multiples of 2^-exponent, as floating-point numbers."""
    return np.ldexp(sums.astype(np.float64), -exponent)


class ClickCounts(NamedTuple):
    """Counts of each pair that do not depend on a model's parameters.

    Attributes:
        clicks: the number of counted clicks.
        seen: the number of rows at or above the last counted click of their impression; all rows without clicks.
        last_rows: the row of the last counted click of each impression; the row before the first if there is none.

    """

    clicks: Ints
    seen: Ints
    last_rows: Ints

    @property
    def mean(self) -> float:
        """Clicks per seen row of the whole log, with one more click in two more rows so that it is never 0 or 1."""
        return (1.0 + float(self.clicks.sum())) / (2.0 + float(self.seen.sum()))

    def attraction(self, smoothing: float) -> Floats:
        """Return the attractiveness of each pair if exactly the seen rows are examined, with the prior."""
        return np.asarray((smoothing * self.mean + self.clicks) / (smoothing + self.seen))


def count_clicks(log: ClickLog, rows: Ints, n_pairs: int, first_only: bool = False) -> ClickCounts:
    """Count clicks and seen rows of each pair; `first_only` ignores everything after the first click."""
    clicks, seen = np.zeros(n_pairs, np.int64), np.zeros(n_pairs, np.int64)
    last_rows = np.empty(len(log.starts) - 1, np.int64)
    count_seen_rows(log.starts, log.clicked, rows, first_only, clicks, seen, last_rows)
    return ClickCounts(clicks, seen, last_rows)


@kernel
def count_seen_rows(
    starts: Ints, clicked: Any, rows: Ints, first_only: bool, clicks: Ints, seen: Ints, last_rows: Ints
) -> None:
    """Fill in the arrays of `ClickCounts`."""
    for impression in range(len(starts) - 1):
        begin, end = starts[impression], starts[impression + 1]
        last = begin - 1
        for row in range(begin, end):
            if clicked[row]:
                last = row
                clicks[rows[row]] += 1
                if first_only:
                    break
        last_rows[impression] = last
        for row in range(begin, last + 1 if last >= begin else end):
            seen[rows[row]] += 1


def check_em(max_steps: int, tolerance: float) -> None:
    """Raise if a parameter of EM is out of range."""
    require_whole("max_steps", max_steps, 1)
    require_number("tolerance", tolerance, least=0)


def run_em(
    step: Callable[..., Parameters], parameters: Parameters, max_steps: int, tolerance: float
) -> tuple[Parameters, int]:
    """Repeat a step until no parameter changes by more than the tolerance; return parameters and number of steps."""
    for n_steps in range(1, max_steps + 1):
        new = step(*parameters)
        change = max(float(np.abs(a - b).max(initial=0.0)) for a, b in zip(new, parameters, strict=True))
        parameters = new
        if change <= tolerance:
            return parameters, n_steps
    warnings.warn(
        f"EM stopped after max_steps={max_steps} although a parameter still changed by {change:.2g}: pass a larger "
        f"max_steps, or a tolerance above {tolerance:g}", PodiumWarning, stacklevel=2,
    )  # fmt: skip
    return parameters, max_steps


def summed(work: Callable[[int, int], tuple[Ints, ...]], n: int) -> tuple[Ints, ...]:
    """Return the sums of the integer arrays that `work` returns for ranges of 0 … n.

    There is one range per thread, because each range needs arrays for all parameters.
    """
    n_parts = n_threads_for(n)
    bounds = list(pairwise(n * k // n_parts for k in range(n_parts + 1)))
    results = map_threads(lambda part: work(*part), bounds)
    sums = next(results)
    for arrays in results:
        for whole, part in zip(sums, arrays, strict=True):
            np.add(whole, part, out=whole)
    return sums


def for_impressions(log: ClickLog, work: Callable[[int, int], None]) -> None:
    """Call `work` for ranges of a log's impressions on threads."""
    for _ in map_threads(lambda bounds: work(*bounds), ranges(len(log.starts) - 1)):
        pass
