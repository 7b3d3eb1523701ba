"""The base classes of objectives, and the registry of objectives, links and schedules by name."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Float32s, Floats
from podium.core.merging import Same, Total, alone, merged
from podium.core.sums import ExactSum
from podium.core.team import Team
from podium.errors import DataError
from podium.measures import Measure

if TYPE_CHECKING:
    from podium.data import RankingData


class LossTerm(NamedTuple):
    """A term of a loss: weight · Σ costs / Σ counts. Most losses have a single term of weight 1.

    Attributes:
        weight: the weight of the term.
        costs: the weighted costs of queries, pairs or documents; the term's λ is minus the gradient of their sum.
        counts: the weights that the sum is divided by: u_q of each query, or d_i u_q of each document in pointwise
            losses.

    """

    weight: float
    costs: Floats
    counts: Floats

    def sums(self) -> Any:
        """Return the sums over a part of the data (`podium.core.merging`)."""
        return Same(self.weight), Total((ExactSum.of(self.costs), ExactSum.of(self.counts)))


def loss_of_sums(sums: Sequence[tuple[float, tuple[ExactSum, ExactSum]]]) -> float:
    """Return the loss from the sums of its terms over all data; NaN if nothing counts."""
    losses = [weight * float(cost) / float(count) if float(count) > 0 else math.nan for weight, (cost, count) in sums]
    return math.fsum(losses)


class BoundObjective(ABC):
    """An objective bound to data, as the boosting loop and the nets call it.

    Attributes:
        team: the threads to use, set by the caller; None means all cores.
        base_score: F_0, the initial score of every document.
        changes: whether λ at the same scores may differ between rounds. If not, training stops at the first tree with a
            single leaf, because all later trees would be the same.
        n_outputs: the number of scores of a document; if there are several, scores, λ and w have a row for each.
        output_weights: the weights of several outputs in the score that ranks documents; None if they are not summed.
        document_weights: how often each row counts in least-squares splits; None if every row counts once.

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import Regression
        >>> bound = Regression().bind(podium.RankingData([[0.0], [1.0]], [1, 3], qid=["a", "a"]))
        >>> bound.base_score, bound.gradients(np.full(2, bound.base_score))[0].tolist()
        (2.0, [-1.0, 1.0])

    """

    team: Team | None = None
    base_score: float = 0.0
    changes: bool = True
    n_outputs: int = 1
    output_weights: Floats | None = None
    document_weights: Floats | None = None

    @abstractmethod
    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        """Return λ and w for each row, in the order of the data; λ > 0 means that a document should rise."""

    def fill(self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats) -> None:
        """Write λ and w into the caller's arrays; new ones would cost a millisecond per few hundred thousand rows."""
        result = self.gradients(scores, iteration)
        shapes = [np.shape(part) for part in result] if isinstance(result, tuple) else []
        if shapes != [scores.shape] * 2:
            raise DataError(
                f"{type(self).__qualname__}.gradients must return λ and w of the shape {scores.shape}, not {shapes}"
            )
        gradients[:], hessians[:] = result

    def loss(self, scores: Floats, iteration: int = 0) -> float:
        """Return the cost that λ lowers, as a mean over queries, or over documents for pointwise losses."""
        return loss_of_sums(merged([term.sums() for term in self.loss_terms(scores, iteration)]))

    def loss_terms(self, scores: Floats, iteration: int = 0) -> list[LossTerm]:
        """Return the terms of the loss; an objective that never runs on a cluster may define `loss` instead."""
        raise DataError(f"{type(self).__qualname__} has no loss to watch: define loss_terms(scores, iteration)")

    def facts(self) -> Any:
        """Return what this part of the data contributes to facts about all data (`podium.core.merging`), if any."""
        return None

    def set_facts(self, facts: Any) -> None:  # noqa: B027
        """Set the merged `facts` of all parts."""

    def fill_in_parts(
        self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats
    ) -> Generator[Any, Any, None]:
        """Do the work of `fill` on a part of the data; yield sums of this part, and receive those of all parts."""
        self.fill(scores, iteration, gradients, hessians)
        return
        yield  # makes this method a generator

    def ranked_by(self, scores: Floats) -> Floats:
        """Return the score that ranks each document, from the scores of all outputs."""
        return scores

    def state(self) -> dict[str, list[float]]:
        """Return what the objective has learnt in earlier rounds, for a checkpoint; most objectives learn nothing."""
        return {}

    def restore(self, state: dict[str, list[float]]) -> None:  # noqa: B027
        """Restore what `state` returned."""


class BoundInParts(BoundObjective):
    """A bound objective that only defines `fill_in_parts`, which serves one machine and clusters."""

    def gradients(self, scores: Floats, iteration: int = 0) -> tuple[Floats, Floats]:
        gradients, hessians = np.empty(scores.shape), np.empty(scores.shape)
        self.fill(scores, iteration, gradients, hessians)
        return gradients, hessians

    def fill(self, scores: Floats, iteration: int, gradients: Floats, hessians: Floats) -> None:
        alone(self.fill_in_parts(scores, iteration, gradients, hessians))


def require_one_output(bound: BoundObjective, who: str) -> BoundObjective:
    """Return the objective; raise if it has several scores for each document, which `who` does not support."""
    if bound.n_outputs != 1:
        raise DataError(f"{who} takes objectives with one score for each document, but this one has several")
    return bound


class Objective(ABC):
    """A training objective, which is immutable, and bound to data when training begins.

    Attributes:
        has_hessian: whether w > 0 wherever λ ≠ 0, as Newton's step needs; if not, `no_hessian_because` is the reason.
        score_unit: the scale of score differences, such as 1/σ of a sigmoid, far beyond which λ and w vanish; infinite
            if w does not depend on scores, as in least squares.
        pointwise: whether the loss is a sum over documents, so that documents of weight 0 can be dropped.
        checked: whether all data has been checked (`fixed`), so that a part of it may have no labels.
        works_in_parts: whether it can be distributed: bound to parts of the data, each of whole queries. The λ of a
            query then depend on that query, and on what `BoundObjective.facts` and `fill_in_parts` request.
        in_parts: whether it is bound to such parts (`for_parts`), and gets facts about all data later (`set_facts`).

    Example:
        >>> import numpy as np, podium
        >>> from podium.objectives import BoundObjective, Objective
        >>> class Absolute(Objective):  # C = |l − s|: the gradient is a sign, the hessian is set to 1
        ...     def bind(self, data):
        ...         return BoundAbsolute(data.relevance)
        >>> class BoundAbsolute(BoundObjective):
        ...     def __init__(self, labels):
        ...         self.labels = labels
        ...     def gradients(self, scores, iteration=0):
        ...         return np.sign(self.labels - scores), np.ones(len(scores))
        >>> podium.LambdaMART(2, 4, objective=Absolute()).fit(podium.artificial(20, features=4)).n_trees_
        2

    """

    has_hessian: bool = True
    score_unit: float = 1.0
    pointwise: bool = False
    checked: bool = False
    works_in_parts: bool = False
    in_parts: bool = False
    no_hessian_because: str = "its hessian may be zero or negative"

    @abstractmethod
    def bind(self, data: RankingData) -> BoundObjective:
        """Return the objective on these documents."""

    def bind_elsewhere(self, data: RankingData) -> BoundObjective:
        """Bind to data other than the training data, whose facts follow by `set_facts` and `restore`."""
        return (self.for_parts() if self.works_in_parts and not self.in_parts else self).bind(data)

    def measuring(self, *data: RankingData) -> Self:
        """Return a copy with fixed measures, so that training and validation data are measured in the same way."""
        return self._with_parts(lambda part: part.fixed(*data) if isinstance(part, Measure) else part.measuring(*data))

    def fixed(self, data: RankingData) -> Self:
        """Return a copy in which everything that depends on all data is fixed, for training on parts of the data."""
        fixed = self._with_parts(lambda part: part.fixed(data))
        object.__setattr__(fixed, "checked", True)
        return fixed

    def for_parts(self) -> Self:
        """Return a copy to be bound to parts of the data; raise if the class does not support parts."""
        if not self.works_in_parts:
            raise DataError(
                f"{type(self).__name__} cannot be distributed, because it does not support parts of the data: if the λ "
                "of a query depend on that query only, set works_in_parts = True in the class"
            )
        prepared = self._with_parts(lambda part: part if isinstance(part, Measure) else part.for_parts())
        object.__setattr__(prepared, "checked", True)
        object.__setattr__(prepared, "in_parts", True)
        return prepared

    def all_measures(self) -> list[Measure]:
        """Return all measures that λ depends on, including those of its parts."""
        measures: list[Measure] = []
        for part in self._parts():
            measures += [part] if isinstance(part, Measure) else part.all_measures()
        return measures

    def _parts(self) -> list[Measure | Objective]:
        values = [value if isinstance(value, tuple) else (value,) for value in vars(self).values()]
        return [part for parts in values for part in parts if isinstance(part, Measure | Objective)]

    def _with_parts(self, change: Callable[[Any], Any]) -> Self:
        """Return a copy with changed measures and inner objectives."""
        changed = copy.copy(self)
        for name, value in vars(self).items():
            parts = value if isinstance(value, tuple) else (value,)
            new_parts = tuple(change(part) if isinstance(part, Measure | Objective) else part for part in parts)
            object.__setattr__(changed, name, new_parts if isinstance(value, tuple) else new_parts[0])
        return changed


class WatchedLoss:
    """The loss of an objective on training and validation data, for `history_`.

    Args:
        objective: the training objective, with its measures fixed (`Objective.measuring`).
        bound: the objective on the training data.
        valid: validation data by name.
        team: threads to share the work.

    """

    def __init__(
        self, objective: Objective, bound: BoundObjective, valid: Mapping[str, RankingData], team: Team
    ) -> None:
        self.bound = bound
        self.bound_to_valid = {name: objective.bind_elsewhere(data) for name, data in valid.items()}
        for bound_to_set in self.bound_to_valid.values():
            bound_to_set.set_facts(merged(bound.facts()))
            bound_to_set.team = team

    def means(self, training_scores: Floats, scores: Mapping[str, Floats], iteration: int) -> dict[str, float]:
        """Return the loss on the training data and on each validation set, keyed by `set/loss`."""
        losses = {"train/loss": self.bound.loss(training_scores, iteration)}
        for name, bound_to_set in self.bound_to_valid.items():
            if state := self.bound.state():
                bound_to_set.restore(state)
            losses[f"{name}/loss"] = bound_to_set.loss(scores[name], iteration)
        return losses


class CompositeObjective(Objective):
    """An objective that consists of others; it has a hessian if all of them have one."""

    works_in_parts = True

    @property
    def has_hessian(self) -> bool:  # type: ignore[override]
        """Whether every inner objective has a hessian."""
        return all(inner.has_hessian for inner in self._inner())

    @property
    def score_unit(self) -> float:  # type: ignore[override]
        """The largest unit of the inner objectives."""
        return max(inner.score_unit for inner in self._inner())

    @property
    def no_hessian_because(self) -> str:  # type: ignore[override]
        """The reason given by the first inner objective without a hessian."""
        return next(inner.no_hessian_because for inner in self._inner() if not inner.has_hessian)

    def _inner(self) -> list[Objective]:
        return [part for part in self._parts() if isinstance(part, Objective)]


def labels_of(data: RankingData, source: str, who: object) -> Float32s:
    """Return the labels of a source in the canonical order; raise if they are missing, naming the class of `who`."""
    require_source(source)
    if source not in data.labels:
        sources = ", ".join(map(repr, data.labels)) or "none"
        has_preferences = data.preferences is not None
        advice = "; for its preferences use RankNet, RankNetTrees or objective=Preferences()" if has_preferences else ""
        raise DataError(f"{type(who).__name__} needs the labels {source!r}, but the data has {sources}{advice}")
    return data.labels[source][data.canonical_order]


def label_source(objective: Objective) -> str | None:
    """Return the label source of an objective, the first of several, or None if it does not name one."""
    labels = getattr(objective, "labels", None)
    if isinstance(labels, str):
        return labels
    inner = next((part for part in objective._parts() if isinstance(part, Objective)), None)
    return None if inner is None else label_source(inner)


def require_source(labels: object) -> None:
    """Raise if `labels` is not the name of a label source."""
    if not isinstance(labels, str):
        raise DataError(f"labels must name a label source, not {labels!r}")


def require_labels(labels: NDArray[Any], source: str, who: Objective) -> None:
    """Raise if a source has no label at all; a part of data that has been checked as a whole may have none."""
    if len(labels) and np.isnan(labels).all() and not who.checked:
        raise DataError(f"{type(who).__name__} needs labels: the source {source!r} has none")


def labels_and_mask(data: RankingData, source: str, who: Objective) -> tuple[Floats, Bools]:
    """Return the labels of a source in the canonical order, and a mask of documents with one; raise if none has."""
    labels = labels_of(data, source, who).astype(np.float64)
    require_labels(labels, source, who)
    return labels, ~np.isnan(labels)


def document_weights_of(data: RankingData) -> Floats:
    """Return d_i in the canonical order, 1 if there are no document weights."""
    if data.document_weights is None:
        return np.ones(len(data))
    return data.document_weights[data.canonical_order].astype(np.float64)


def query_weights_of(data: RankingData) -> Floats:
    """Return u_q, 1 if there are no query weights."""
    return np.ones(data.n_queries) if data.query_weights is None else data.query_weights.astype(np.float64)


Class = TypeVar("Class", bound=type[Any])
_CLASSES: dict[str, type[Any]] = {}


def register(cls: Class) -> Class:
    """Register an objective, link or schedule under the name of its class, in lower case (a decorator).

    Its text is the name with arguments, as in `pairwise(hinge(margin=0.5))`. Only dataclasses can be written as text.

    Example:
        >>> from dataclasses import dataclass
        >>> from podium.objectives import Constant, describe, parse, register
        >>> @register
        ... @dataclass(frozen=True)
        ... class Halfway(Constant):
        ...     weight: float = 0.5
        >>> describe(parse("anneal(pairwise, listnet, halfway(0.4))"))
        'Anneal(before=Pairwise(), after=ListNet(), schedule=Halfway(weight=0.4))'

    """
    _CLASSES[cls.__name__.lower()] = cls
    return cls


def registered_classes() -> dict[str, type[Any]]:
    """Return all registered classes by name; importing this package registers the built-in ones."""
    import podium.objectives  # noqa: F401

    return _CLASSES
