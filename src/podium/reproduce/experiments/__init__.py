"""The experiments by name. A file of the same name beside this one has the experiment, as `EXPERIMENT`."""

from __future__ import annotations

from importlib import import_module

from podium.core.validation import did_you_mean
from podium.errors import DataError
from podium.reproduce.experiment import Experiment

# In the order of the papers; each is loaded when it is asked for.
EXPERIMENTS = {
    "accuracy": "[W] table 1: LambdaRank, McRank, LambdaMART and a single feature",
    "trees": "[W] fig. 2: accuracy against the number of trees, LambdaMART and McRank",
    "adaptation": "[W] tables 2 to 4: adaptation with too little data, with enough, from several markets",
    "line_search": "[W] figs 3 and 4: exact line search against Newton's steps",
    "factored_ranknet": "[B] §2.1: the cost of factored RankNet against documents per query",
    "arrows": "[B] fig. 1: RankNet's gradients beside LambdaRank's, on one ranked list",
    "optimality": "[B] §4.2: does LambdaRank end at an optimum of NDCG, MAP and MRR?",
    "sigma": "[B] §6: when σ matters, and when it does not",
    "balanced": "[B] §6.1: the balanced loss on unbalanced classes",
    "combination": "[B] §7.1: the exact combination of two rankers, beside a linear LambdaRank on their scores",
    "graded": "[S] table 1: NDCG and CNDCG together, two sources of clicks, weights of the clicks",
    "agreement": "[S] fig. 2: agreement of the λ of two measures",
    "annealing": "[S] table 2, figs 3, 4, 6 and 7: gradients that change with the iteration",
    "truncation": "[S] §3: training on the whole NDCG against NDCG@10 and NDCG@3",
    "leaf_search": "beyond the papers: an exact search for each leaf",
    "unlabelled": "beyond the papers: documents without a label of some source",
    "measures": "beyond the papers: models trained on each measure, judged by every measure",
    "label_noise": "beyond the papers: wrong labels, λ that gives up on lost pairs",
    "real_data": "beyond the papers: line search, graded and annealed λ on MQ2008 and OHSUMED",
    "clicks": "beyond the papers: training on biased clicks",
}


def check_name(name: str) -> None:
    """Refuse what is no experiment."""
    if name not in EXPERIMENTS:
        near = did_you_mean(name, EXPERIMENTS)
        raise DataError(f"there is no experiment {name!r}{near}; there are {', '.join(EXPERIMENTS)}")


def experiment(name: str) -> Experiment:
    """An experiment by its name."""
    check_name(name)
    found: Experiment = import_module(f"podium.reproduce.experiments.{name}").EXPERIMENT
    return found
