"""What models are trained on: scores in, λ and curvature out."""

from podium.objectives.base import BoundObjective, Objective
from podium.objectives.debiasing import Debiased
from podium.objectives.links import CrossEntropy, Fidelity, Hinge, Link, LocalSigmoid, SquaredHinge
from podium.objectives.lists import XENDCG, ListMLE, ListNet, QueryRegression, RankCosine
from podium.objectives.mixtures import Anneal, Tiers
from podium.objectives.pairs import Lambda, LambdaLoss, Local, PairTerm, Pairwise
from podium.objectives.parsing import describe, parse
from podium.objectives.points import Logistic, Multiclass, Regression
from podium.objectives.preferences import Preferences
from podium.objectives.schedules import Constant, ExponentialGrowth, ExponentialShare, LinearGrowth, Schedule

__all__ = [
    "XENDCG", "Anneal", "BoundObjective", "Constant", "CrossEntropy", "Debiased", "ExponentialGrowth",
    "ExponentialShare", "Fidelity", "Hinge", "Lambda", "LambdaLoss", "LinearGrowth", "Link", "ListMLE", "ListNet",
    "Local", "LocalSigmoid", "Logistic", "Multiclass", "Objective", "PairTerm", "Pairwise", "Preferences",
    "QueryRegression", "RankCosine", "Regression", "Schedule", "SquaredHinge", "Tiers", "describe", "parse",
]  # fmt: skip
