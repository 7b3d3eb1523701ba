"""Adaptation: a background model, taken to a new domain ([W] 5.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.data import RankingData
from podium.estimators.lambdamart import LambdaMART
from podium.evaluation import Comparison, compare
from podium.measures import Measure
from podium.models import Combination, combine
from podium.models.combined import as_submodel, scores_of


@dataclass(frozen=True)
class Adaptation:
    """Four ways to rank a new domain, side by side.

    Attributes:
        adapted: trees on top of the background model, trained in the domain.
        in_domain: trees trained in the domain alone.
        interpolated: the exact best combination of the background and the in-domain model on validation queries.
        comparison: of `background`, `in-domain`, `interpolated` and `adapted`, with significance.

    """

    adapted: LambdaMART
    in_domain: LambdaMART
    interpolated: Combination
    comparison: Comparison

    def __str__(self) -> str:
        return str(self.comparison)


def adapt(
    background: Any,
    data: RankingData,
    *,
    valid: RankingData | None = None,
    test: RankingData | None = None,
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
        measure: what is trained on, stopped by and compared.
        n_trees, n_leaves, learning_rate, document_fraction, patience: of the trees.
        **settings: other settings of `LambdaMART`.

    """
    if valid is None:
        data, valid = data.split(0.8, 0.2, seed=settings.get("random_state", 0))
    trees: dict[str, Any] = {
        "n_trees": n_trees, "n_leaves": n_leaves, "learning_rate": learning_rate, "measure": measure,
        "document_fraction": document_fraction, "patience": patience, **settings,
    }  # fmt: skip
    given = as_submodel(background, data)
    in_domain = LambdaMART(**trees).fit(data, valid=valid)
    adapted = LambdaMART(**trees, submodel=background).fit(data, valid=valid)
    interpolated = combine(given, in_domain, valid, measure)
    judges = valid if test is None else test
    behind = scores_of(given, judges)
    own = in_domain.predict(judges)
    comparison = compare(
        judges,
        {
            "background": behind, "in-domain": own,
            "interpolated": (1 - interpolated.alpha) * behind + interpolated.alpha * own,
            "adapted": adapted.predict(judges),
        },
        [measure],
    )  # fmt: skip
    return Adaptation(adapted, in_domain, interpolated, comparison)
