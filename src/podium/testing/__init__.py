"""Slow, obvious references for what Podium does fast; for its own tests and for those of others."""

from podium.testing.measures import check_measure
from podium.testing.models import score_slowly

__all__ = ["check_measure", "score_slowly"]
