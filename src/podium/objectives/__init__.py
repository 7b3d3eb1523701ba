"""Objectives: functions from scores to gradients λ and hessians w that models are trained on."""

from podium.objectives.base import BoundObjective, Objective, register
from podium.objectives.debiased import Debiased
from podium.objectives.hinges import SVMMAP
from podium.objectives.lambda_ import Lambda, LambdaLoss, Local
from podium.objectives.links import CrossEntropy, Exponential, Fidelity, Hinge, Link, LocalSigmoid, SquaredHinge
from podium.objectives.listwise import XENDCG, ListMLE, ListNet, QueryRegression, RankCosine
from podium.objectives.ordinal import Ordinal
from podium.objectives.pair_terms import PairFilter, PairTerm
from podium.objectives.pairwise import GBRank, Pairwise, Preferences
from podium.objectives.parsing import describe, parse
from podium.objectives.pointwise import Cumulative, Logistic, Multiclass, Regression
from podium.objectives.smooth_measures import ApproxNDCG, SoftRank
from podium.objectives.softmax import QuerySoftMax, TopListNet
from podium.objectives.sums import (
    Anneal,
    Average,
    Constant,
    ExponentialGrowth,
    ExponentialShare,
    LinearGrowth,
    Schedule,
    Sum,
    Tiers,
    default_objective,
)

__all__ = [
    "SVMMAP", "XENDCG", "Anneal", "ApproxNDCG", "Average", "BoundObjective", "Constant", "CrossEntropy", "Cumulative",
    "Debiased", "Exponential", "ExponentialGrowth", "ExponentialShare", "Fidelity", "GBRank", "Hinge", "Lambda",
    "LambdaLoss", "LinearGrowth", "Link", "ListMLE", "ListNet", "Local", "LocalSigmoid", "Logistic", "Multiclass",
    "Objective", "Ordinal", "PairFilter", "PairTerm", "Pairwise", "Preferences", "QueryRegression", "QuerySoftMax",
    "RankCosine", "Regression", "Schedule", "SoftRank", "SquaredHinge", "Sum", "Tiers", "TopListNet",
    "default_objective", "describe", "parse", "register",
]  # fmt: skip
