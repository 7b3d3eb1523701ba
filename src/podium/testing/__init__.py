"""Helpers for your tests: a contract for measures, and a slow, obvious reference for scores."""

from podium.testing.measures import check_measure
from podium.testing.models import score_slowly

__all__ = ["check_measure", "score_slowly"]
