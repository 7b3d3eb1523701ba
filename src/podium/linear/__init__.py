"""Linear rankers: by descent on λ, or by ascent on the measure itself."""

from podium.linear.ascent import Ascent
from podium.linear.descent import Descent, DescentResult, LinearStep

__all__ = ["Ascent", "Descent", "DescentResult", "LinearStep"]
