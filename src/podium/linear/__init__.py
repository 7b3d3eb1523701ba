"""Linear rankers: by descent on λ, by ascent on the measure itself, or one document at a time."""

from podium.linear.ascent import Ascent
from podium.linear.descent import Descent, DescentResult, LinearStep
from podium.linear.prank import PRankResult, PRankTraining

__all__ = ["Ascent", "Descent", "DescentResult", "LinearStep", "PRankResult", "PRankTraining"]
