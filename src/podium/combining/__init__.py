"""The exact sweep over α: line search, and the best combination of rankers."""

from podium.combining.ascent import ascend, deviation, weighted
from podium.combining.sweep import Path, Sweep, Swept

__all__ = ["Path", "Sweep", "Swept", "ascend", "deviation", "weighted"]
