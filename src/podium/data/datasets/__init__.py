"""Artificial ranking data, and readers for the folders of public benchmarks.

The same seed gives bit-identical data on every machine. The generators only use additions, multiplications, divisions
and comparisons of IEEE numbers, in a fixed order, and random numbers that are hashes of (seed, purpose, index). They
use neither the generator of a library nor functions of libm, which differ between machines.
"""

from podium.data.datasets.benchmark_folds import Fold, folds
from podium.data.datasets.clicks import simulate_clicks

__all__ = ["Fold", "folds", "simulate_clicks"]
