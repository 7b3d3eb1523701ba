"""Scorers: tree ensembles and the file that keeps them."""

from podium.models.ensemble import Ensemble
from podium.models.file import load, save

__all__ = ["Ensemble", "load", "save"]
