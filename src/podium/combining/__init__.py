"""The exact sweep over α: line search, and the best combination of two rankers."""

from podium.combining.sweep import Path, Sweep, Swept

__all__ = ["Path", "Sweep", "Swept"]
