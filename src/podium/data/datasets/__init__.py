"""Ranking data that Podium generates itself, and folders of public benchmarks.

Generated data has the same bits for a seed everywhere. Only additions, multiplications, divisions and comparisons of
IEEE numbers are used, in a fixed order. Random numbers come from a hash of (seed, purpose, index): no library's
generator, no libm.
"""

from podium.data.datasets.benchmark_folds import Fold, folds
from podium.data.datasets.clicks import simulate_clicks

__all__ = ["Fold", "folds", "simulate_clicks"]
