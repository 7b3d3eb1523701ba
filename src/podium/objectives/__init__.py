"""What models are trained on: scores in, λ and curvature out."""

from podium.objectives.lambdas import Lambda
from podium.objectives.objective import BoundObjective, Objective

__all__ = ["BoundObjective", "Lambda", "Objective"]
