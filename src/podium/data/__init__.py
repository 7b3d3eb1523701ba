"""Ranking data: what it is, where it comes from, how it is split, and how to make some."""

from podium.data.io.reading import read, read_blocks
from podium.data.io.writing import write
from podium.data.ranking_data import RankingData

__all__ = ["RankingData", "read", "read_blocks", "write"]
