"""What other tools call Podium's parameters: one table for suggestions, translations and docs/coming-from.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podium.core.validation import did_you_mean

TOOLS = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost", "ranklib": "RankLib"}


@dataclass(frozen=True)
class Counterpart:
    """A parameter of Podium, and its names in other tools: the one that the tool's documentation has, then aliases.

    Attributes:
        parameter: Podium's name.
        lightgbm, xgboost, catboost, ranklib: names, separated by spaces.
        defaults: of each tool, as its documentation has it.
        advice: what to write, where it is more than the other name.

    """

    parameter: str
    lightgbm: str = ""
    xgboost: str = ""
    catboost: str = ""
    ranklib: str = ""
    defaults: tuple[str, str, str, str] = ("", "", "", "")
    advice: str = ""

    def names(self, tool: str) -> list[str]:
        """What a tool calls it."""
        return str(getattr(self, tool)).split()


TABLE = (
    Counterpart(
        "n_trees",
        "num_iterations n_estimators num_boost_round num_iteration n_iter num_tree num_trees num_round num_rounds "
        "nrounds max_iter",
        "n_estimators num_boost_round num_round", "iterations n_estimators num_boost_round num_trees", "tree",
        ("100", "100", "1000", "1000"),
    ),
    Counterpart(
        "n_leaves", "num_leaves num_leaf max_leaves max_leaf max_leaf_nodes", "max_leaves", "max_leaves num_leaves",
        "leaf", ("31", "0, no limit", "31", "10"),
    ),
    Counterpart("max_depth", "max_depth", "max_depth", "depth max_depth", "", ("-1, no limit", "6", "6", "")),
    Counterpart(
        "learning_rate", "learning_rate shrinkage_rate eta", "eta learning_rate", "learning_rate eta", "shrinkage",
        ("0.1", "0.3", "found from the data", "0.1"),
    ),
    Counterpart(
        "min_documents_in_leaf",
        "min_data_in_leaf min_child_samples min_data_per_leaf min_data min_samples_leaf", "",
        "min_data_in_leaf min_child_samples", "mls", ("20, estimated from the hessian", "", "1", "1"),
    ),
    Counterpart(
        "l2", "lambda_l2 reg_lambda lambda l2_regularization", "lambda reg_lambda", "l2_leaf_reg reg_lambda", "",
        ("0", "1", "3", ""),
    ),
    Counterpart(
        "max_delta_step", "max_delta_step max_tree_output max_leaf_output", "max_delta_step", "", "",
        ("0, off", "0, off", "", ""),
    ),
    Counterpart("max_bins", "max_bin max_bins", "max_bin", "border_count max_bin", "tc", ("255", "256", "254", "256")),
    Counterpart(
        "document_fraction", "bagging_fraction subsample sub_row bagging", "subsample", "subsample", "",
        ("1", "1", "0.8", ""),
    ),
    Counterpart(
        "query_fraction", "bagging_by_query", "", "", "", ("False", "", "", ""),
        "use query_fraction, a share of the queries",
    ),
    Counterpart(
        "feature_fraction", "feature_fraction colsample_bytree sub_feature", "colsample_bytree",
        "rsm colsample_bylevel", "", ("1", "1", "1", ""),
    ),
    Counterpart(
        "split_fraction", "top_rate", "sampling_method", "", "", ("0.2", "uniform", "", ""),
        "use split_fraction, the share of documents on which splits are sought",
    ),
    Counterpart(
        "truncation", "lambdarank_truncation_level", "lambdarank_num_pair_per_sample", "", "",
        ("30", "the metric's cutoff, or 32", "", ""),
    ),
    Counterpart(
        "normalize", "lambdarank_norm", "lambdarank_normalization", "", "", ("True", "True", "", "")
    ),
    Counterpart("sigma", "sigmoid", "", "", "", ("1", "", "", "")),
    Counterpart(
        "measure", "metric eval_at metrics metric_types ndcg_eval_at ndcg_at map_eval_at map_at",
        "eval_metric", "eval_metric custom_metric", "metric2t metric2T",
        ("ndcg at 1 to 5", "ndcg", "that of the loss", "ERR@10"),
        "use measure='ndcg@10', which stops training, and metrics=[…] for others to watch",
    ),
    Counterpart(
        "objective", "objective objective_type app application loss", "objective", "loss_function objective", "ranker",
        ("lambdarank in LGBMRanker", "rank:ndcg in XGBRanker", "YetiRank", ""),
    ),
    Counterpart(
        "measure='ndcg(gain=…)@10'", "label_gain", "ndcg_exp_gain", "", "", ("2^l − 1", "True", "", ""),
        "use measure='ndcg(gain=linear)@10' or 'ndcg(gain=table:0/1/3/7)@10'",
    ),
    Counterpart(
        "patience", "early_stopping_round early_stopping_rounds early_stopping n_iter_no_change",
        "early_stopping_rounds", "od_wait early_stopping_rounds", "estop", ("0, off", "None", "None", "100"),
    ),
    Counterpart(
        "random_state", "seed random_state random_seed", "seed random_state", "random_seed random_state", "",
        ("None", "0", "None", ""),
    ),
    Counterpart(
        "n_threads", "num_threads n_jobs nthread num_thread nthreads", "nthread n_jobs", "thread_count", "thread",
        ("all cores", "all cores", "all cores", "all cores"),
    ),
    Counterpart("verbose", "verbosity", "verbosity", "verbose verbose_eval logging_level", "", ("1", "1", "True", "")),
    Counterpart(
        "categorical", "categorical_feature cat_feature categorical_column cat_column categorical_features",
        "feature_types enable_categorical", "cat_features", "", ("auto", "None", "None", ""),
    ),
    Counterpart(
        "monotone", "monotone_constraints mc monotone_constraint monotonic_cst", "monotone_constraints",
        "monotone_constraints", "", ("None", "None", "None", ""),
    ),
    Counterpart("submodel", "input_model model_input model_in init_model", "xgb_model", "init_model", ""),
)  # fmt: skip


def canonical(tool: str) -> dict[str, Counterpart]:
    """The table by each name that a tool has."""
    return {name: row for row in TABLE for name in row.names(tool)}


def advice(name: str, known: Iterable[str]) -> str:
    """What to write in place of a name that does not exist, as the rest of a message; nothing where no name is near."""
    known = list(known)
    near = did_you_mean(name, known)
    for tool, shown in TOOLS.items():
        row = canonical(tool).get(name)
        if row is None or not (row.parameter in known or (row.advice and "measure" in known)):
            continue
        return f": {row.advice or f'use {row.parameter}'} ({shown} has {name})"
    return near


def meant(name: str) -> str:
    """Podium's parameter for another tool's name; the name itself where no tool has it."""
    return next((row.parameter for tool in TOOLS if (row := canonical(tool).get(name)) is not None), name)


def markdown() -> str:
    """The table of names for docs/coming-from.md."""
    from podium.estimators.lambdamart import LambdaMART

    usual = LambdaMART().get_params(deep=False)
    lines = ["| Podium | " + " | ".join(TOOLS.values()) + " |", "|---" * (len(TOOLS) + 1) + "|"]
    for row in TABLE:
        cells = [f"`{row.parameter}={usual[row.parameter]!r}`" if row.parameter in usual else f"`{row.parameter}`"]
        for tool, default in zip(TOOLS, row.defaults, strict=True):
            dash = "-" if tool == "ranklib" else ""
            names = ", ".join(f"`{dash}{name}`" for name in row.names(tool)[:2])
            cells.append(f"{names} ({default})" if names and default else names)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
