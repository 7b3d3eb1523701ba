"""Slow, obvious references for what Podium does fast; for its own tests and for those of others."""
