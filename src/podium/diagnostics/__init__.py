"""Diagnostics of training and of trained models.

Functions examine a trained model. Observers, named `Watch…`, are passed to `fit(…, observers=[…])` of any trainer.
`history_` keeps their records, and `result()` returns them with a table and a plot.
"""

from podium.diagnostics.lambdas import (
    LambdaArrows,
    LambdaShares,
    PairsBehind,
    WatchLambdaShares,
    lambda_arrows,
    lambda_shares,
)
from podium.diagnostics.learning_curves import (
    Agreement,
    LineSearchWeights,
    MeasureCurves,
    WatchAgreement,
    WatchLineSearch,
    WatchMeasures,
)
from podium.diagnostics.optimality import Optimality, directions_needed, local_optimality
from podium.diagnostics.probabilities import Calibration, calibration
from podium.diagnostics.ranks import RankChanges, TopLabels, WatchRankChanges, WatchTopLabels
from podium.diagnostics.watching import TrainingObserver, TrainingRound

__all__ = [
    "Agreement", "Calibration", "LambdaArrows", "LambdaShares", "LineSearchWeights", "MeasureCurves", "Optimality",
    "PairsBehind", "RankChanges", "TopLabels", "TrainingObserver", "TrainingRound", "WatchAgreement",
    "WatchLambdaShares", "WatchLineSearch", "WatchMeasures", "WatchRankChanges", "WatchTopLabels", "calibration",
    "directions_needed", "lambda_arrows", "lambda_shares", "local_optimality",
]  # fmt: skip
