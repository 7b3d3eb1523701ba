"""Declare all parameters of all models: name, range, help, and the names in other tools.

Estimators and the engine's settings share these declarations. `core/parameters.py` explains how classes use them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args

from podium.core.choices import SplitMode
from podium.core.parameters import (
    TOOLS,
    Names,
    Parameter,
    anything,
    choice,
    flag,
    fraction,
    integer,
    number,
    optional,
)  # fmt: skip
from podium.core.validation import did_you_mean

ByRound = float | Sequence[float] | Callable[[int], float]  # a number, or one for each round


def _literal(text: str) -> Any:
    """Parse a number, `0.3,0.2` or `[["bm25", "age"], [2, 3]]`; return other text as it is, for the check to judge."""
    try:
        value = ast.literal_eval(text.strip())
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        return text
    return list(value) if isinstance(value, tuple) else value


# Measures

MEASURE = anything(
    "measure", "ndcg@10", read=str,
    help="the measure to train on, which also selects the best round if there is validation data. A name such as "
    "`\"ndcg@10\"`, a value such as `NDCG(10)`, or `Graded([...])`, which trains on its first measure.",
    names=Names(
        "metric eval_at metrics metric_types ndcg_eval_at ndcg_at map_eval_at map_at", "eval_metric",
        "eval_metric custom_metric", "metric2t metric2T",
        ("ndcg at 1 to 5", "ndcg", "follows from the loss", "ERR@10"),
        "use measure='ndcg@10', which stops training, and metrics=[…] for others to watch",
    ),
)  # fmt: skip
STOPPING_MEASURE = anything(
    "measure", "ndcg@10", read=str, names=MEASURE.names,
    help="the measure that selects the best round if there is validation data with queries. A name such as "
    "`\"ndcg@10\"`, a value such as `NDCG(10)`, or `Graded([...])`.",
)  # fmt: skip
METRICS: Parameter[Any] = Parameter(
    "metrics", list, (),
    help="measures to watch in addition to `measure`. `history_` records all of them, for each validation set.",
)  # fmt: skip
METRICS_AND_LOSS: Parameter[Any] = Parameter(
    "metrics", list, (),
    help="measures to watch in addition to `measure`. `history_` records all of them, for each validation set. "
    "`\"loss\"` adds the loss of the objective, also on the training data.",
)  # fmt: skip

# Boosting

N_TREES = integer(
    "n_trees", 500, least=1, help="maximum number of trees",
    names=Names(
        "num_iterations n_estimators num_boost_round num_iteration n_iter num_tree num_trees num_round num_rounds "
        "nrounds max_iter",
        "n_estimators num_boost_round num_round", "iterations n_estimators num_boost_round num_trees", "tree",
        ("100", "100", "1000", "1000"),
    ),
)  # fmt: skip
ROUNDS_OF_RANKER = integer(
    "n_trees", 10_000, least=1, names=N_TREES.names,
    help="maximum number of rounds. Each grows a tree on query regression and one on λ.",
)  # fmt: skip
LEARNING_RATE = number(
    "learning_rate", 0.1, above=0, by_round=True, read=_literal,
    help="the factor of each tree's values. A list has a factor for each round; its last entry applies to all later "
    "rounds. A function of the round, counted from 0, returns the factor.",
    names=Names(
        "learning_rate shrinkage_rate eta", "eta learning_rate", "learning_rate eta", "shrinkage",
        ("0.1", "0.3", "chosen from the data", "0.1"),
    ),
)  # fmt: skip
RANKER_RATE = optional(number(
    "learning_rate", above=0, by_round=True, read=_literal, names=LEARNING_RATE.names,
    help="the factor of each tree's values. A list has a factor for each round; a function of the round returns it. "
    "None means 0.05, or 0.1 with more than 100,000 training documents.",
))  # fmt: skip
PATIENCE = optional(integer(
    "patience", least=1, help="stop after this many rounds without improvement on the validation data",
    names=Names(
        "early_stopping_round early_stopping_rounds early_stopping n_iter_no_change", "early_stopping_rounds",
        "od_wait early_stopping_rounds", "estop", ("0, off", "None", "None", "100"),
    ),
))  # fmt: skip
MIN_DELTA = number(
    "min_delta", 0.0, least=0,
    help="the smallest improvement of the measure on validation data that counts",
    names=Names("early_stopping_min_delta", defaults=("0", "", "", "")),
)  # fmt: skip

N_FOLDS = integer(
    "n_folds", 5, least=2,
    help="number of folds. Without validation data, cross-validation chooses the number of trees, and the model is "
    "then trained on all data. Folds are run until they have held out 600 queries.",
)  # fmt: skip

# Trees

N_LEAVES = integer(
    "n_leaves", 15, least=2, help="maximum number of leaves of a tree",
    names=Names(
        "num_leaves num_leaf max_leaves max_leaf max_leaf_nodes", "max_leaves", "max_leaves num_leaves", "leaf",
        ("31", "0, no limit", "31", "10"),
    ),
)  # fmt: skip
RANKER_LEAVES = optional(integer(
    "n_leaves", least=2, names=N_LEAVES.names,
    help="maximum number of leaves of a tree. None means 15, or 31 with more than 100,000 training documents.",
))  # fmt: skip
MAX_DEPTH = optional(integer(
    "max_depth", least=1, help="maximum number of splits on the path to a leaf. None means no limit.",
    names=Names("max_depth", "max_depth", "depth max_depth", "", ("-1, no limit", "6", "6", "")),
))  # fmt: skip
MIN_DOCUMENTS_IN_LEAF = integer(
    "min_documents_in_leaf", 20, least=1, help="minimum number of documents in a leaf, counted exactly",
    names=Names(
        "min_data_in_leaf min_child_samples min_data_per_leaf min_data min_samples_leaf", "",
        "min_data_in_leaf min_child_samples", "mls", ("20, estimated from the hessian", "", "1", "1"),
    ),
)  # fmt: skip
MIN_DOCUMENTS_TO_SPLIT = integer(
    "min_documents_to_split", 2, least=2, help="minimum number of documents in a node that is split, counted exactly",
)  # fmt: skip
MIN_HESSIAN_IN_LEAF = number(
    "min_hessian_in_leaf", 0.0, least=0,
    help="minimum sum of hessians in a leaf, for `split=\"newton\"`. It is estimated from the documents on which "
    "splits are searched (`split_fraction`).",
    names=Names(
        "min_sum_hessian_in_leaf min_child_weight min_sum_hessian_per_leaf min_sum_hessian min_hessian",
        "min_child_weight", defaults=("0.001", "1", "", ""),
    ),
)  # fmt: skip
MIN_GAIN_TO_SPLIT = number(
    "min_gain_to_split", 0.0, least=0,
    help="minimum gain of a split, G_l²/H_l + G_r²/H_r − G²/H, with l1 and l2",
    names=Names("min_gain_to_split min_split_gain", "gamma min_split_loss", defaults=("0", "0", "", "")),
)  # fmt: skip
L1 = number(
    "l1", 0.0, least=0,
    help="L1 regularization: moves the sum of gradients of a leaf towards 0, in leaf values and in gains of Newton "
    "splits",
    names=Names("lambda_l1 reg_alpha l1_regularization", "alpha reg_alpha", defaults=("0", "0", "", "")),
)  # fmt: skip
L2 = number(
    "l2", 1.0, least=0, help="L2 regularization: added to the hessian of a leaf",
    names=Names(
        "lambda_l2 reg_lambda lambda l2_regularization", "lambda reg_lambda", "l2_leaf_reg reg_lambda", "",
        ("0", "1", "3", ""),
    ),
)  # fmt: skip
MAX_DELTA_STEP = optional(number(
    "max_delta_step", above=0, most=float("inf"),
    help="maximum value of a leaf, before the learning rate, as in LightGBM and XGBoost. It matters where hessians are "
    "close to 0. The default is 1000/σ, or no limit for least squares; `math.inf` means no limit.",
    names=Names(
        "max_delta_step max_tree_output max_leaf_output", "max_delta_step", "", "", ("0, off", "0, off", "", "")
    ),
))  # fmt: skip
SPLIT: Parameter[SplitMode] = choice(
    "split", "newton", get_args(SplitMode),
    help="the criterion of splits. `\"newton\"` maximizes Σ G²/(H + l2), as in LightGBM and XGBoost. "
    "`\"least-squares\"` maximizes Σ G²/n, as in the papers, and only uses the hessian in leaf values.",
)  # fmt: skip
SYMMETRIC = flag(
    "symmetric", False,
    help="use the same split for all leaves of a level, like CatBoost. `n_leaves` limits the depth: 64 leaves are 6 "
    "levels.",
    names=Names(
        catboost="grow_policy", defaults=("", "", "SymmetricTree", ""),
        advice="use symmetric=True for SymmetricTree; other trees grow best leaf first, like Lossguide",
    ),
)  # fmt: skip
MAX_BINS = integer(
    "max_bins", 255, least=2, most=255, help="maximum number of bins of each feature, 2 to 255",
    names=Names("max_bin max_bins", "max_bin", "border_count max_bin", "tc", ("255", "256", "254", "256")),
)  # fmt: skip
CATEGORICAL = anything(
    "categorical", (), option=None,
    help="categorical features, by number or name, in addition to categorical columns of frames and those in "
    "`RankingData(categorical=…)`. Text becomes category numbers, and the model keeps the names.",
    names=Names(
        "categorical_feature cat_feature categorical_column cat_column categorical_features",
        "feature_types enable_categorical", "cat_features", "", ("auto", "None", "None", ""),
    ),
)  # fmt: skip
MONOTONE = anything(
    "monotone", None, option=None,
    help="+1 for a feature with which the score must not fall, −1 for one with which it must not rise. A dictionary by "
    "name or number, or a list with an entry for each feature.",
    names=Names(
        "monotone_constraints mc monotone_constraint monotonic_cst", "monotone_constraints", "monotone_constraints",
        "", ("None", "None", "None", ""),
    ),
)  # fmt: skip
INTERACTION_CONSTRAINTS = anything(
    "interaction_constraints", None, read=_literal,
    help="groups of features that may interact: all features on a path from the root to a leaf belong to one group. "
    "Use names or numbers, for example `[[\"bm25\", \"age\"], [2, 3]]`. Features without a group are not used, as in "
    "LightGBM.",
    names=Names("interaction_constraints", "interaction_constraints", defaults=("None", "None", "", "")),
)  # fmt: skip

# Sampling

DOCUMENT_FRACTION = fraction(
    "document_fraction",
    help="the share of documents that each tree is grown on. Gradients are computed from all documents.",
    names=Names("bagging_fraction subsample sub_row bagging", "subsample", "subsample", "", ("1", "1", "0.8", "")),
)  # fmt: skip
QUERY_FRACTION = fraction(
    "query_fraction",
    help="the share of queries that each tree is grown on. Gradients are computed from all queries.",
    names=Names(
        "bagging_by_query", defaults=("False", "", "", ""), advice="use query_fraction, a share of the queries"
    ),
)  # fmt: skip
FEATURE_FRACTION = fraction(
    "feature_fraction", help="the share of features that each tree is grown on",
    names=Names("feature_fraction colsample_bytree sub_feature", "colsample_bytree", defaults=("1", "1", "", "")),
)  # fmt: skip
FEATURE_FRACTION_PER_NODE = fraction(
    "feature_fraction_per_node",
    help="the share of the tree's features that a node may split on, sampled for each node. With "
    "`interaction_constraints`, it is a share of the allowed features. Symmetric trees sample for each level.",
    names=Names(
        "feature_fraction_bynode sub_feature_bynode colsample_bynode", "colsample_bynode", "rsm colsample_bylevel", "",
        ("1", "1", "1", ""),
    ),
)  # fmt: skip
HALF_OR_ALL_FEATURES = optional(fraction(
    "feature_fraction",
    help="the share of features that each tree is grown on. None means half of them, or all if all are better by 2.5 "
    "standard errors on unseen queries.",
    names=FEATURE_FRACTION.names,
))  # fmt: skip
SPLIT_FRACTION = optional(fraction(
    "split_fraction",
    help="the share of a tree's documents on which splits are searched: those with large gradients or hessians, and a "
    "sample of the others (gradient-based sampling). Leaf values are computed from all of the tree's documents. None "
    "means half, or less with more than 300,000 training documents: 30% of 720,000, 15% of 3 million.",
    names=Names(
        "top_rate", "sampling_method", defaults=("0.2", "uniform", "", ""),
        advice="use split_fraction, the share of documents on which splits are searched",
    ),
))  # fmt: skip
RANDOM_STATE = integer(
    "random_state", 0, help="the seed of sampling",
    names=Names(
        "seed random_state random_seed", "seed random_state", "random_seed random_state", "", ("None", "0", "None", "")
    ),
)  # fmt: skip

# Objectives

TRUNCATION = optional(integer(
    "truncation", least=1,
    help="the cutoff of the measure in training. None means the whole list, whatever the cutoff of `measure`; an "
    "`objective` uses its own cutoff.",
))  # fmt: skip
PAIR_TRUNCATION = optional(integer(
    "pair_truncation", least=1,
    help="count only pairs with a document at this rank or above; the measure itself is not cut off. None counts all "
    "pairs.",
    names=Names(
        "lambdarank_truncation_level", "lambdarank_num_pair_per_sample",
        defaults=("30", "the metric's cutoff, or 32", "", ""),
    ),
))  # fmt: skip
SIGMA = number(
    "sigma", 1.0, above=0, help="the steepness of the pairs' sigmoid",
    names=Names("sigmoid", defaults=("1", "", "", "")),
)  # fmt: skip
CLASS_SIGMA = number("sigma", 1.0, above=0, help="the steepness of the sigmoid: it changes the scale of the scores")
NORMALIZE = flag(
    "normalize", True, option="normalize_lambda",
    help="scale λ within each query, as in LightGBM. False gives the papers' λ.",
    names=Names("lambdarank_norm", "lambdarank_normalization", defaults=("True", "True", "", "")),
)  # fmt: skip
OBJECTIVE = anything(
    "objective", None, read=str,
    help="the training objective: an object of `podium.objectives`, or its text, such as `\"lambda(err)\"` or "
    "`\"anneal(lambda(ndcg), local(ndcg@3), linear_growth(0.1, 0.01))\"`. The default is `Lambda(measure, …)`.",
    names=Names(
        "objective objective_type app application loss", "objective", "loss_function objective", "ranker",
        ("lambdarank in LGBMRanker", "rank:ndcg in XGBRanker", "YetiRank", ""),
    ),
)  # fmt: skip
STEP = anything(
    "step", "newton", read=str,
    help="how to compute leaf values: `\"newton\"`, `\"gradient\"` (for objectives without a hessian), "
    "`\"line-search\"`, which finds the best weight of each tree for the measure, or a step of `podium.boosting`.",
)  # fmt: skip
SUBMODEL = anything(
    "submodel", None, read=str,
    help="a model whose scores training starts from ([W] §3, LambdaSMART): a Podium model or its file, features such "
    "as `{\"bm25\": 1.0}`, any object with `predict`, a function of the data, or the scores of the training data. "
    "With validation data, the submodel alone may be best: then `n_trees_` is 0.",
    names=Names("input_model model_input model_in init_model", "xgb_model", "init_model"),
)  # fmt: skip
SUBMODEL_SCALE = anything(
    "submodel_scale", "fit", read=_literal,
    help="the factor of the submodel's scores: a number above 0, or `\"fit\"` for the factor with the lowest "
    "cross-entropy of RankNet's pairs on the training queries. Scores on a large scale would leave nothing to learn. "
    "1.0 is the papers' F_0.",
)  # fmt: skip
BALANCED = flag("balanced", False, help="give both classes the same weight")
EXPECTS = choice(
    "expects", "relevance", ("relevance", "gain"),
    help="rank by expected `\"relevance\"`, Σ P(k) k, or expected `\"gain\"`, Σ P(k) (2^k − 1).",
)  # fmt: skip
FORM = choice(
    "form", "multiclass", ("multiclass", "ordinal"),
    help="`\"multiclass\"` grows a tree for each label in each round, `\"ordinal\"` for each boundary between two "
    "labels, P(l > k).",
)  # fmt: skip

# Linear models

LINEAR_RATE = number(
    "learning_rate", 1.0, above=0, help="the factor of each Newton step", names=LEARNING_RATE.names
)  # fmt: skip
N_ITERATIONS = integer("n_iterations", 100, least=1, help="maximum number of steps of descent, or cycles of ascent")
BOOSTED_FEATURES = integer(
    "n_iterations", 100, least=1, help="maximum number of rounds. Each adds to the weight of one feature."
)  # fmt: skip
REPEATS = flag(
    "repeats", False,
    help="whether a round may choose the same feature as the previous round, as published. Training then ends when a "
    "feature is chosen twice in a row, because it would be chosen forever.",
)  # fmt: skip
LINEAR_L2 = number(
    "l2", 1e-4, least=0, help="L2 regularization of the weights of standardized features", names=L2.names
)
METHOD = choice(
    "method", "descent", ("descent", "ascent"),
    help="`\"descent\"` on λ, or `\"ascent\"` on the measure. Ascent sets one weight at a time by the exact sweep, and "
    "has no objective; `n_iterations` counts cycles over all features.",
)  # fmt: skip

PASSES = integer("epochs", 20, least=1, help="maximum number of passes over all documents")
AVERAGED = flag(
    "averaged", True,
    help="keep the mean of weights and thresholds over all documents instead of the last ones (averaged perceptron)",
)  # fmt: skip

# Additive Groves

MIN_DOCUMENTS_IN_GROVE_LEAF = integer(
    "min_documents_in_leaf", 1, least=1, help=MIN_DOCUMENTS_IN_LEAF.help, names=MIN_DOCUMENTS_IN_LEAF.names
)  # fmt: skip
N_GROVES = integer("n_groves", 60, least=1, help="number of groves to average, each on its own bootstrap samples")
N_TREES_IN_GROVE = integer(
    "n_trees_in_grove", 8, least=1,
    help="maximum number of trees of a grove. Groves of 1, 2, 3, 4, 6, 8, 11, 16, … trees are tried on the way.",
)  # fmt: skip
ALPHA = number(
    "alpha", 0.01, above=0, most=1,
    help="smallest share of the documents for which a node may be split. 0.5, 0.2, 0.1, 0.05, … are tried on the way; "
    "large shares give small trees.",
)  # fmt: skip
TRAINING: Parameter[Literal["fast", "slow", "layered"]] = choice(
    "training", "fast", ("fast", "slow", "layered"),
    help="the smaller grove that each grove starts from. `\"slow\"`: the one with one tree less or the one with "
    "smaller trees, depending on the out-of-bag error; `\"fast\"`: the same choices as for the first grove; "
    "`\"layered\"`: always the one with smaller trees.",
)  # fmt: skip

# Nets

NET = anything(
    "net", None, option=None,
    help="a torch module from documents (rows) to scores, or a function that creates one from the number of features. "
    "A module whose `forward` also accepts `offsets` sees whole lists. By default, the papers' net.",
)  # fmt: skip
HIDDEN = anything(
    "hidden", 10, read=_literal,
    help="number of units in the hidden layer, or a list with the number in each layer. The papers used 10 or 15.",
)  # fmt: skip
ACTIVATION = choice("activation", "tanh", ("tanh", "relu", "sigmoid"), help="activation of the hidden layers")
INPUTS = choice(
    "inputs", "standard", ("standard", "log", "quantile", "none"),
    help="how to scale features; see `podium.neural.Inputs`",
)  # fmt: skip
OPTIMIZER = choice("optimizer", "adam", ("adam", "sgd"), help='`"adam"`, or `"sgd"` as in the papers')
FIRST_RATE = optional(number(
    "learning_rate", above=0, names=LEARNING_RATE.names,
    help="learning rate of the first epoch. The default is 0.01 for Adam and 0.001 for SGD.",
))  # fmt: skip
SMALLEST_RATE = number("smallest_rate", 1e-5, above=0, help="training ends when the learning rate falls below this")
HALVE_AFTER = integer("halve_after", 5, least=1, help="halve the rate after this many epochs without improvement")
EPOCHS = integer("epochs", 100, least=1, help="maximum number of passes over all queries")
BATCH_QUERIES = optional(integer(
    "batch_queries", 32, least=1,
    help="number of queries per step; None for all. Batches are drawn once, from the seed.",
))  # fmt: skip
WEIGHT_DECAY = number("l2", 0.0, least=0, help="weight decay", names=L2.names)
NET_RANDOM_STATE = integer(
    "random_state", 0, least=0, most=2**32 - 1, help="the seed of weights and batches", names=RANDOM_STATE.names
)  # fmt: skip

# Committees

MEMBERS = anything(
    "members", None, option=None,
    help="objectives, as objects or text, and the number of members of each (per fold, without validation data). The "
    "default is one member for each of these: the objectives of `Ranker`, XE-NDCG, query regression, λ, RankNet's "
    "pairs.",
)  # fmt: skip
CYCLES = integer("cycles", 2, least=0, help="number of cycles of the search for weights. 0 for equal weights.")
SHRINKAGE = optional(number(
    "shrinkage", least=0, most=1,
    help="how far to move the weights from equal ones to the best ones, 0 to 1. The default is n / (n + 1000) for n "
    "validation queries, because weights from few queries are unreliable.",
))  # fmt: skip
TIME_BUDGET = optional(number(
    "time_budget", above=0,
    help="time limit in seconds. Podium always trains the first objective. While there is time, it then trains each of "
    "the others, then again those that improve the measure on unseen queries. It drops the other members.",
))  # fmt: skip

# Running

N_THREADS = optional(integer(
    "n_threads", least=1,
    help="number of threads, all cores by default. The model is the same, bit for bit, for any number.",
    names=Names(
        "num_threads n_jobs nthread num_thread nthreads", "nthread n_jobs", "thread_count", "thread",
        ("all cores", "all cores", "all cores", "all cores"),
    ),
))  # fmt: skip
NET_N_THREADS = optional(integer(
    "n_threads", least=1, names=N_THREADS.names,
    help="number of threads, all cores by default. The model is the same, bit for bit, for the same number.",
))  # fmt: skip
VERBOSE = optional(integer(
    "verbose", least=0,
    help="print a line to standard error every n rounds; 0 for silence. None shows a progress bar on terminals.",
    names=Names("verbosity", "verbosity", "verbose verbose_eval logging_level", "", ("1", "1", "True", "")),
))  # fmt: skip

# A row of the table of names that is not a parameter itself.
LABEL_GAIN = Parameter[Any](
    "measure='ndcg(gain=…)@10'", object, None, "the gain of each label",
    names=Names(
        "label_gain", "ndcg_exp_gain", defaults=("2^l − 1", "True", "", ""),
        advice="use measure='ndcg(gain=linear)@10' or 'ndcg(gain=table:0/1/3/7)@10'",
    ),
)  # fmt: skip


def _first_of_each_name(declared: Iterable[object]) -> tuple[Parameter[Any], ...]:
    """Return the parameters with names in other tools: the first declaration of each name, which is that of trees."""
    parameters: dict[str, Parameter[Any]] = {}
    for value in declared:
        if isinstance(value, Parameter) and value.names != Names():
            parameters.setdefault(value.name, value)
    return tuple(parameters.values())


WITH_OTHER_NAMES = _first_of_each_name(list(globals().values()))  # in the order of docs/coming-from.md


def by_name(tool: str) -> dict[str, Parameter[Any]]:
    """Map a tool's names to Podium's parameters.

    >>> by_name("lightgbm")["num_leaves"].name
    'n_leaves'
    """
    return {name: parameter for parameter in WITH_OTHER_NAMES for name in parameter.names.of(tool)}


def advice(name: str, names: Iterable[str]) -> str:
    """Return a suggestion for an unknown name, to append to an error message; "" if no name is similar.

    >>> advice("eta", ["learning_rate", "l2"])
    ': use learning_rate (LightGBM has eta)'
    """
    names = list(names)
    for tool, tool_name in TOOLS.items():
        parameter = by_name(tool).get(name)
        if parameter is None or not (parameter.name in names or (parameter.names.advice and "measure" in names)):
            continue
        return f": {parameter.names.advice or f'use {parameter.name}'} ({tool_name} has {name})"
    return did_you_mean(name, names)


def translated_name(name: str) -> str:
    """Return Podium's name for another tool's name, or the name itself if no tool has it."""
    return next((parameters[name].name for tool in TOOLS if name in (parameters := by_name(tool))), name)
