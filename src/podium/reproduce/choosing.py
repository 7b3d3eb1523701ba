"""Trees as the papers grow them, and the choice of settings on validation data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.data import RankingData
from podium.estimators import LambdaMART, fit_many

# Splits by least squares, sought on all documents; leaf values without L2. λ of `Lambda` is not normalised.
PAPERS: dict[str, Any] = {"split": "least-squares", "split_fraction": 1.0, "l2": 0.0}


def best_on_validation(models: Sequence[LambdaMART], train: RankingData, valid: RankingData) -> LambdaMART:
    """Fit all; the one that is best on validation data by the measure they share, of equal ones the first."""
    fitted = fit_many(models, train, valid=valid, verbose=0)
    best: LambdaMART = max(fitted, key=lambda model: max(model.history_[f"valid/{model.measure}"]))
    return best
