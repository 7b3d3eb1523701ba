"""Linear rankers: descent on λ, cutting planes, boosted features, ascent on the measure, and PRank."""

from podium.linear.adarank import AdaRankTraining
from podium.linear.ascent import Ascent
from podium.linear.cutting_planes import CuttingPlanes
from podium.linear.descent import Descent, DescentResult, LinearStep
from podium.linear.prank import PRankResult, PRankTraining

__all__ = [
    "AdaRankTraining", "Ascent", "CuttingPlanes", "Descent", "DescentResult", "LinearStep", "PRankResult",
    "PRankTraining",
]  # fmt: skip
