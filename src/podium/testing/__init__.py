"""A contract for measures, and a slow, obvious reference for scores: for tests of your own."""

from podium.testing.measures import check_measure
from podium.testing.models import score_slowly

__all__ = ["check_measure", "score_slowly"]
