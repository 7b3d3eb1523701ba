"""Adaptation of a background model to a new domain ([W] 5.5)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.combining import weighted
from podium.core.parameters import parameters
from podium.data import RankingData
from podium.data.schema import as_data
from podium.data.subsets import split_by_content
from podium.errors import DataError, PodiumWarning
from podium.estimators.lambdamart import LambdaMART
from podium.estimators.many import fit_many
from podium.estimators.parameters import AdaptParameters
from podium.evaluation import Comparison, compare
from podium.measures import as_measure, warn_of_powers
from podium.measures.gains import POWER_WARNING
from podium.models import Combination, combine
from podium.models.rankers import as_submodel, scores_of


@dataclass(frozen=True)
class Adaptation:
    """Four ways to rank a new domain, and their comparison.

    Attributes:
        adapted: trees on top of the background model, trained in the domain.
        in_domain: trees trained in the domain only.
        interpolated: the best combination of the background and the in-domain model on validation queries: exact for
            two, by Powell's method for more.
        comparison: `background`, any others, `in-domain`, `interpolated` and `adapted`, with significance.

    Example:
        >>> import podium
        >>> domain = podium.artificial(30, features=4)
        >>> background = podium.LambdaMART(n_trees=2, n_leaves=3).fit(podium.artificial(30, features=4, shift=0.2))
        >>> podium.adapt(background, domain, n_trees=2, measure="ndcg").adapted.n_trees_ <= 2
        True

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
    others: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Adaptation:
    """Train trees on top of a background model on the queries of a domain, and compare with the alternatives.

    According to [W], a few thousand queries of the domain are sometimes not enough, and it is crucial to grow each tree
    on a random 70% of the documents. The defaults are those of the paper.

    Args:
        background: a Podium model or estimator, features with weights, or any object with `predict`.
        data: the domain's queries.
        valid: validation queries, which stop training and set the weights of the interpolation; by default a fifth of
            the data.
        test: queries to compare on; by default the validation queries, which flatters all but the background.
        others: models of further domains by name, to compare and to interpolate with.
        **settings: parameters of `LambdaMART`, but with `n_leaves=20`, `document_fraction=0.7` and `patience=50` by
            default. Training follows `measure` and stops by it, and the comparison uses it.

    Example:
        >>> import podium
        >>> background = podium.LambdaMART(n_trees=5).fit(podium.artificial(20, features=4))
        >>> domain = podium.artificial(20, features=4, shift=0.5)
        >>> adaptation = podium.adapt(background, domain, n_trees=3, measure="ndcg@10")
        >>> sorted(adaptation.comparison.evaluations)
        ['adapted', 'background', 'in-domain', 'interpolated']

    """
    if "submodel" in settings:
        raise DataError("adapt takes no submodel: the background model is the submodel")
    others = others or {}
    if {"background", "in-domain", "interpolated", "adapted"} & set(others):
        raise DataError(
            f"others must not be named background, in-domain, interpolated or adapted, but are {', '.join(others)}"
        )
    defaults = {name: parameter.default for name, parameter in parameters(AdaptParameters).items()}
    settings = defaults | settings
    data = as_data(data)
    valid, test = (None if queries is None else as_data(queries) for queries in (valid, test))
    if valid is None:
        data, valid = split_by_content(data, 0.8, 0.2, seed=settings["random_state"])
    test = valid if test is None else test
    measure = settings["measure"] = as_measure(settings["measure"]).fixed(data, valid, test)
    with warnings.catch_warnings():
        if warn_of_powers([measure], data, valid):  # once for training, combining and comparing
            warnings.filterwarnings("ignore", re.escape(POWER_WARNING), PodiumWarning)
        rankers = [LambdaMART(**settings), LambdaMART(**settings | {"submodel": background})]
        in_domain, adapted = fit_many(
            rankers, data, valid=valid, n_threads=settings.get("n_threads"), verbose=settings.get("verbose")
        )
        systems = {"background": background, **others, "in-domain": in_domain}
        systems = {name: as_submodel(ranker, data) for name, ranker in systems.items()}
        runs = {name: scores_of(ranker, test) for name, ranker in systems.items()}
        interpolated = combine(*systems.values(), data=valid, measure=measure, method="powell" if others else None)
        runs["interpolated"] = weighted(list(runs.values()), interpolated.weights)
        runs["adapted"] = adapted.predict(test)
        return Adaptation(adapted, in_domain, interpolated, compare(test, runs, [measure]))
