"""What a model does while it learns, and where it ended."""

from podium.diagnostics.optimality import Optimality, directions_needed, local_optimality

__all__ = ["Optimality", "directions_needed", "local_optimality"]
