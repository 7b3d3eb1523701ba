"""What a model does while it learns, and where it ended.

Functions look at a model that is trained. Observers, named `Watch…`, go into `fit(…, observers=[…])` of any trainer:
what they see stands in `history_`, and `result()` gives it with a table and a plot.
"""

from podium.diagnostics.agreement import Agreement, WatchAgreement
from podium.diagnostics.arrows import LambdaArrows, PairsBehind, lambda_arrows
from podium.diagnostics.line_search_weights import LineSearchWeights, WatchLineSearch
from podium.diagnostics.measure_curves import MeasureCurves, WatchMeasures
from podium.diagnostics.optimality import Optimality, directions_needed, local_optimality
from podium.diagnostics.probabilities import Calibration, calibration
from podium.diagnostics.rank_changes import RankChanges, WatchRankChanges
from podium.diagnostics.shares import LambdaShares, WatchLambdaShares, lambda_shares
from podium.diagnostics.top_labels import TopLabels, WatchTopLabels
from podium.diagnostics.watching import TrainingObserver, TrainingRound

__all__ = [
    "Agreement", "Calibration", "LambdaArrows", "LambdaShares", "LineSearchWeights", "MeasureCurves", "Optimality",
    "PairsBehind", "RankChanges", "TopLabels", "TrainingObserver", "TrainingRound", "WatchAgreement",
    "WatchLambdaShares", "WatchLineSearch", "WatchMeasures", "WatchRankChanges", "WatchTopLabels", "calibration",
    "directions_needed", "lambda_arrows", "lambda_shares", "local_optimality",
]  # fmt: skip
