"""The exact sweep over α, which finds the best weight of a tree and the best combination of rankers."""

from podium.combining.ascent import ascend, deviation, weighted
from podium.combining.lines import Path, SweepResult
from podium.combining.mixing import Mixture, best_mixture
from podium.combining.sweep import Sweep

__all__ = ["Mixture", "Path", "Sweep", "SweepResult", "ascend", "best_mixture", "deviation", "weighted"]
