"""Adaptation: a background model, taken to a new domain ([W] 5.5)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.combining import weighted
from podium.data import RankingData
from podium.data.schema import as_data
from podium.data.splitting import split_by_content
from podium.errors import DataError, PodiumWarning
from podium.estimators.lambdamart import LambdaMART
from podium.evaluation import Comparison, compare
from podium.measures import Measure, as_measure, warn_of_powers
from podium.measures.gains import POWER_WARNING
from podium.models import Blend, Combination, combine, combine_all
from podium.models.rankers import as_submodel, scores_of


@dataclass(frozen=True)
class Adaptation:
    """Four ways to rank a new domain, side by side.

    Attributes:
        adapted: trees on top of the background model, trained in the domain.
        in_domain: trees trained in the domain alone.
        interpolated: the best combination of the background and the in-domain model on validation queries: the exact
            one of two, or one of more found by Powell's method.
        comparison: of `background`, any others, `in-domain`, `interpolated` and `adapted`, with significance.

    """

    adapted: LambdaMART
    in_domain: LambdaMART
    interpolated: Combination | Blend
    comparison: Comparison

    def __str__(self) -> str:
        return str(self.comparison)


def adapt(
    background: Any,
    data: RankingData,
    *,
    valid: RankingData | None = None,
    test: RankingData | None = None,
    others: Mapping[str, Any] | None = None,
    measure: Measure | str = "ndcg@10",
    n_trees: int = 500,
    n_leaves: int = 20,
    learning_rate: float = 0.1,
    document_fraction: float = 0.7,
    patience: int | None = 50,
    **settings: Any,
) -> Adaptation:
    """Train on a domain's own queries from a background model's scores on, and compare with the other ways.

    [W] found that a few thousand queries of the domain are sometimes not enough, and that to grow each tree on a random
    70% of the documents is crucial; the defaults are theirs.

    Args:
        background: a model or estimator of Podium's, features with weights, or any object with `predict`.
        data: the domain's queries.
        valid: validation queries, which stop the trees and interpolate; by default a fifth of the data.
        test: queries to compare on; by default the validation queries, which flatters all but the background.
        others: models of more domains by name, which are compared and take part in the interpolation.
        measure: what is trained on, stopped by and compared.
        n_trees, n_leaves, learning_rate, document_fraction, patience: of the trees.
        **settings: other settings of `LambdaMART`.

    """
    data = as_data(data)
    valid, test = (None if part is None else as_data(part) for part in (valid, test))
    if valid is None:
        data, valid = split_by_content(data, 0.8, 0.2, seed=settings.get("random_state", 0))
    measure = as_measure(measure).fixed(data, valid, *(() if test is None else (test,)))
    with warnings.catch_warnings():
        if warn_of_powers([measure], data, valid):  # once for all that is trained, combined and compared here
            warnings.filterwarnings("ignore", re.escape(POWER_WARNING), PodiumWarning)
        return _adapted(background, data, valid, valid if test is None else test, others or {}, measure, {
            "n_trees": n_trees, "n_leaves": n_leaves, "learning_rate": learning_rate, "measure": measure,
            "document_fraction": document_fraction, "patience": patience, **settings,
        })  # fmt: skip


def _adapted(
    background: Any, data: RankingData, valid: RankingData, judges: RankingData, others: Mapping[str, Any],
    measure: Measure, trees: dict[str, Any],
) -> Adaptation:  # fmt: skip
    """The four ways, trained on the data and compared by the judges."""
    in_domain = LambdaMART(**trees).fit(data, valid=valid)
    adapted = LambdaMART(**trees, submodel=background).fit(data, valid=valid)
    rankers = {"background": background, **others, "in-domain": in_domain}
    if len(rankers) != 2 + len(others) or {"interpolated", "adapted"} & set(rankers):
        raise DataError(f"others: {', '.join(others)} must not be named as the four ways themselves are")
    rankers = {name: as_submodel(ranker, data) for name, ranker in rankers.items()}
    runs = {name: scores_of(ranker, judges) for name, ranker in rankers.items()}
    interpolated: Combination | Blend
    if others:
        interpolated = combine_all(list(rankers.values()), valid, measure, method="powell")
    else:
        interpolated = combine(rankers["background"], rankers["in-domain"], valid, measure)
    runs["interpolated"] = weighted(list(runs.values()), interpolated.weights)
    runs["adapted"] = adapted.predict(judges)
    return Adaptation(adapted, in_domain, interpolated, compare(judges, runs, [measure]))
