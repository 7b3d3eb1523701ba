"""Ranking data that Podium makes itself: the same seed gives the same bits everywhere.

Only additions, multiplications, divisions and comparisons of IEEE numbers are used, in a fixed order,
and random numbers come from a hash of (seed, purpose, place): no library's generator, no libm.
"""
