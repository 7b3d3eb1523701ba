"""Linear rankers: by descent on λ, or by ascent on the measure itself."""

from podium.linear.ascent import Ascent
from podium.linear.descent import Descended, Descent

__all__ = ["Ascent", "Descended", "Descent"]
