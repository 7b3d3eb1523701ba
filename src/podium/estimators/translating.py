"""Parameters of LightGBM and XGBoost in Podium's terms."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from podium.core.validation import did_you_mean, require_number, require_whole
from podium.errors import DataError, PodiumWarning
from podium.estimators.foreign import TOOLS, canonical
from podium.measures import Gain
from podium.objectives import Lambda, describe

NO_COUNTERPART = "Podium has no counterpart"
# Names that need no translation, or have none: the values that change nothing, and the reason for all others.
HARMLESS = ("*",)  # any value: such as how the work is laid out, which does not change Podium's model
REST: dict[str, dict[str, tuple[tuple[Any, ...], str]]] = {
    "lightgbm": {
        "boosting boosting_type boost": (("gbdt", "gbrt"), "Podium has gradient boosted trees only"),
        "data_sample_strategy": (("bagging",), "Podium has split_fraction in its place"),
        "other_rate": ((), "Podium has split_fraction in its place"),
        "min_sum_hessian_in_leaf min_child_weight min_sum_hessian_per_leaf min_sum_hessian min_hessian":
            ((0,), "Podium counts documents: use min_documents_in_leaf"),
        "lambda_l1 reg_alpha l1_regularization": ((0,), NO_COUNTERPART),
        "min_gain_to_split min_split_gain": ((0,), NO_COUNTERPART),
        "feature_fraction_bynode sub_feature_bynode colsample_bynode": ((1,), "Podium samples features for each tree"),
        "extra_trees extra_tree": ((False,), NO_COUNTERPART),
        "linear_tree linear_trees": ((False,), NO_COUNTERPART),
        "path_smooth": ((0,), NO_COUNTERPART),
        "lambdarank_position_bias_regularization":
            ((0,), "give positions and objective='debiased(lambda(ndcg), l2=…)'"),
        "bagging_seed bagging_fraction_seed feature_fraction_seed data_random_seed extra_seed data_seed drop_seed":
            ((), "Podium has one seed: random_state"),
        "objective_seed": ((5,), "Podium has one seed: random_state"),
        "first_metric_only": ((True,), "Podium stops by measure alone"),
        "device_type device": (("cpu",), "Podium runs on CPUs"),
        "deterministic force_col_wise force_row_wise histogram_pool_size importance_type silent verbosity verbose "
        "tree_learner two_round bin_construct_sample_cnt subsample_for_bin is_enable_sparse enable_bundle "
        "use_missing task":
            (HARMLESS, ""),
    },
    "xgboost": {
        "booster": (("gbtree",), "Podium has gradient boosted trees only"),
        "alpha reg_alpha": ((0,), NO_COUNTERPART),
        "gamma min_split_loss": ((0,), NO_COUNTERPART),
        "min_child_weight": ((0,), "Podium counts documents: use min_documents_in_leaf"),
        "colsample_bylevel colsample_bynode": ((1,), "Podium samples features for each tree"),
        "num_parallel_tree": ((1,), NO_COUNTERPART),
        "lambdarank_unbiased": ((False,), "give positions and objective='debiased(lambda(ndcg))'"),
        "lambdarank_bias_norm": ((), "give positions and objective='debiased(lambda(ndcg))'"),
        "lambdarank_score_normalization": ((True,), "normalize=True divides by the gap of the scores"),
        "tree_method": (("hist", "auto"), "Podium grows trees from histograms"),
        "base_score": ((0, 0.5), "Podium starts from the objective's own F_0; use submodel for another"),
        "device": (("cpu",), "Podium runs on CPUs"),
        "verbosity silent validate_parameters disable_default_eval_metric importance_type missing enable_categorical "
        "max_cat_to_onehot max_cat_threshold": (HARMLESS, ""),
    },
}  # fmt: skip
XENDCG = ("rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart")
REGRESSION = ("regression", "regression_l2", "l2", "mse", "mean_squared_error", "rmse", "reg:squarederror")
MEASURES = {
    "ndcg": "ndcg",
    "lambdarank": "ndcg",
    "map": "ap",
    "mean_average_precision": "ap",
    "pre": "precision",
} | dict.fromkeys(XENDCG, "ndcg")


class Translation:
    """A dictionary of another tool on its way to settings of `LambdaMART`.

    Attributes:
        settings: what was translated.
        left: what was not, and why.

    """

    def __init__(self, tool: str, given: Mapping[str, Any]) -> None:
        if not isinstance(given, Mapping):
            raise DataError(f"parameters are given as a dictionary, not as {type(given).__name__}")
        self.tool, self.settings, self.left = TOOLS[tool], dict[str, Any](), dict[str, str]()
        self.rows = canonical(tool)
        self.values: dict[str, tuple[str, Any]] = {}
        rest = {name: reason for names, reason in REST[tool].items() for name in names.split()}
        known = {name: row.names(tool)[0] for name, row in self.rows.items()} | SEPARATE[tool]
        for name, value in given.items():
            if value is None:  # get_params() of the tools' own estimators: not set
                continue
            if name in rest:
                harmless, reason = rest[name]
                if harmless is not HARMLESS and not any(is_equal(value, one) for one in harmless):
                    self.left[name] = reason
            elif name in known:
                self._note(known[name], name, value)
            else:
                near = did_you_mean(str(name), [*known, *rest])
                self.left[str(name)] = f"is no parameter of {self.tool} that Podium knows{near}"

    def _note(self, main: str, name: str, value: Any) -> None:
        earlier = self.values.get(main)
        if earlier is not None and not is_equal(earlier[1], value):
            raise DataError(
                f"{earlier[0]}={earlier[1]!r} and {name}={value!r} mean the same parameter of {self.tool}: give one"
            )
        self.values[main] = name, value

    def take(self, main: str, default: Any = None) -> Any:
        """The value of a parameter by its main name."""
        return self.values.pop(main, (main, default))[1]

    def put(self, main: str, parameter: str, read: Callable[[str, Any], Any]) -> None:
        """Translate one parameter, if it is there."""
        if main in self.values:
            name, value = self.values.pop(main)
            self.settings[parameter] = read(name, value)

    def ranker(self, cls: type, overrides: Mapping[str, Any]) -> Any:
        """The estimator, and one warning that lists what was not translated."""
        for main, (name, _) in self.values.items():
            row = self.rows[main]
            self.left[name] = row.advice or f"use {row.parameter}"
        if self.left:
            reasons = "; ".join(f"{name} ({reason})" for name, reason in self.left.items())
            warnings.warn(f"not translated from {self.tool}: {reasons}", PodiumWarning, stacklevel=4)
        return cls(**{**self.settings, **overrides})


def is_equal(a: Any, b: Any) -> bool:
    """Whether two values are the same; arrays and lists by their content."""
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)


# Names that are translated together with others, to their main names.
SEPARATE = {
    "lightgbm": {name: name for name in ("eval_at", "bagging_freq", "bagging_by_query")}
    | {"subsample_freq": "bagging_freq"}
    | dict.fromkeys(("ndcg_eval_at", "ndcg_at", "map_eval_at", "map_at"), "eval_at"),
    "xgboost": {name: name for name in ("grow_policy", "lambdarank_pair_method", "feature_types", "sampling_method")},
}


def whole(least: int, none_below: bool = False) -> Callable[[str, Any], int | None]:
    """A whole number; with `none_below`, a smaller one or None means no limit."""

    def read(name: str, value: Any) -> int | None:
        if none_below and (value is None or (isinstance(value, int) and value < least)):
            return None
        require_whole(name, value, least)
        return int(value)

    return read


def share(name: str, value: Any) -> float:
    """A number above 0, at most 1."""
    require_number(name, value, above=0)
    if value > 1:
        raise DataError(f"{name} must be at most 1, but is {value}")
    return float(value)


def positive(name: str, value: Any) -> float:
    """A number above 0."""
    require_number(name, value, above=0)
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """A number from 0 on."""
    require_number(name, value, least=0)
    return float(value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise DataError(f"{name} must be True or False, but is {value!r}")
    return value


def several(name: str, value: Any) -> list[Any]:
    """A list; text is cut at commas, as in the tools' config files."""
    if isinstance(value, str):
        return [part.strip() for part in value.strip("()[]").split(",") if part.strip()]
    return list(value) if isinstance(value, Iterable) else [value]


def numbers(name: str, value: Any) -> list[int]:
    """Whole numbers, as a list or as text with commas."""
    try:
        return [int(part) for part in several(name, value)]
    except (TypeError, ValueError):
        raise DataError(f"{name} must be a list of whole numbers, but is {value!r}") from None


def monotone(name: str, value: Any) -> Any:
    """Directions by feature, or one for each."""
    return dict(value) if isinstance(value, Mapping) else numbers(name, value)


def categorical(name: str, value: Any) -> list[int | str]:
    """Numbers or names of features; `auto` is for the columns' own types."""
    if isinstance(value, str):
        if value == "auto" or not value:
            return []
        named = value.removeprefix("name:")
        return list(several(name, value=named)) if named != value else list(numbers(name, value))
    return list(several(name, value))


def _shared(found: Translation) -> None:
    """What both tools have, under their main names."""
    for main in ("num_iterations", "n_estimators"):
        found.put(main, "n_trees", whole(1))
    for main in ("learning_rate", "eta"):
        found.put(main, "learning_rate", positive)
    for main in ("lambda_l2", "lambda"):
        found.put(main, "l2", not_negative)
    for main in ("feature_fraction", "colsample_bytree"):
        found.put(main, "feature_fraction", share)
    for main in ("early_stopping_round", "early_stopping_rounds"):
        found.put(main, "patience", whole(1, none_below=True))
    found.put("seed", "random_state", whole(0))
    for main in ("num_threads", "nthread"):
        found.put(main, "n_threads", whole(1, none_below=True))
    found.put("monotone_constraints", "monotone", monotone)
    if "max_delta_step" in found.values and found.values["max_delta_step"][1] == 0:
        found.take("max_delta_step")
    found.put("max_delta_step", "max_delta_step", positive)
    found.put("max_bin", "max_bins", whole(2))
    if found.settings.get("max_bins", 0) > 255:
        found.left["max_bin"] = "Podium has at most 255 bins"
        found.settings["max_bins"] = 255


def from_lightgbm(cls: type, given: Mapping[str, Any], overrides: Mapping[str, Any]) -> Any:
    """See `LambdaMART.from_lightgbm`."""
    found = Translation("lightgbm", given)
    _shared(found)
    found.put("num_leaves", "n_leaves", whole(2))
    found.put("max_depth", "max_depth", whole(1, none_below=True))
    found.put("min_data_in_leaf", "min_documents_in_leaf", lambda name, value: max(whole(0)(name, value) or 0, 1))
    found.put("categorical_feature", "categorical", categorical)
    fraction, times = found.values.get("bagging_fraction"), found.take("bagging_freq", 0)
    by_query = flag("bagging_by_query", found.take("bagging_by_query", False))
    found.put("bagging_fraction", "query_fraction" if by_query else "document_fraction", share)
    if fraction is not None and not whole(0)("bagging_freq", times):
        found.settings.pop("query_fraction" if by_query else "document_fraction")
        if fraction[1] != 1:
            found.left[fraction[0]] = "has no effect in LightGBM without bagging_freq; Podium has document_fraction"
    elif isinstance(times, int) and times > 1:
        found.left["bagging_freq"] = "Podium samples anew for every tree"
    gain = _label_gain(found.take("label_gain"))
    cutoffs = numbers("eval_at", found.take("eval_at", ()))
    names = [name for name in several("metric", found.take("metric", ())) if name not in ("", "None", "none")]
    wanted: list[tuple[str, int | None]] = [(name, k) for name in names or ["ndcg"] for k in cutoffs or [10]]
    _objective(found, str(found.take("objective", "lambdarank")), wanted if names or cutoffs or gain else [], gain)
    return found.ranker(cls, overrides)


def from_xgboost(cls: type, given: Mapping[str, Any], overrides: Mapping[str, Any]) -> Any:
    """See `LambdaMART.from_xgboost`."""
    found = Translation("xgboost", given)
    _shared(found)
    found.put("subsample", "document_fraction", share)
    if found.take("sampling_method", "uniform") != "uniform":
        found.left["sampling_method"] = "Podium has split_fraction in its place"
    _depth(found)
    kinds = found.take("feature_types")
    if kinds is not None:
        found.settings["categorical"] = [k for k, kind in enumerate(several("feature_types", kinds)) if kind == "c"]
    if found.take("lambdarank_pair_method", "topk") != "topk":
        found.take("lambdarank_num_pair_per_sample")
        found.left["lambdarank_pair_method"] = "Podium takes all pairs, or those at the top (truncation)"
    gain = "" if flag("ndcg_exp_gain", found.take("ndcg_exp_gain", True)) else "linear"
    wanted: list[tuple[str, int | None]] = []
    for entry in reversed(several("eval_metric", found.take("eval_metric", ()))):  # XGBoost stops by the last one
        name, _, cutoff = str(entry).removesuffix("-").partition("@")
        wanted.append((name, numbers("eval_metric", cutoff)[0] if cutoff else None))
    if gain and not wanted:
        wanted = [("ndcg", 10)]
    _objective(found, str(found.take("objective", "rank:ndcg")), wanted, gain)
    return found.ranker(cls, overrides)


def _depth(found: Translation) -> None:
    """XGBoost's trees grow level by level: as many leaves as fit into the depth, unless it is told otherwise."""
    by_leaf = found.take("grow_policy", "depthwise") == "lossguide"
    has_depth = "max_depth" in found.values
    depth = whole(1, none_below=True)("max_depth", found.take("max_depth"))
    leaves = whole(2, none_below=True)("max_leaves", found.take("max_leaves", 0))
    if has_depth:
        found.settings["max_depth"] = depth
    if leaves is not None:
        found.settings["n_leaves"] = leaves if depth is None else min(leaves, 2 ** min(depth, 30))
        if not by_leaf and depth is not None and leaves < 2 ** min(depth, 30):
            found.left["grow_policy"] = "Podium splits the best leaf first, whatever its depth"
    elif depth is not None:
        found.settings["n_leaves"] = 2 ** min(depth, 16)


def _label_gain(value: Any) -> str:
    """A gain as text; nothing for 2^l − 1."""
    if value is None:
        return ""
    try:
        table = tuple(float(part) for part in several("label_gain", value))
    except (TypeError, ValueError):
        raise DataError(f"label_gain must be a list of numbers, but is {value!r}") from None
    if table == tuple(2.0**label - 1 for label in range(len(table))):
        return ""
    return str(Gain("table", table=table))


def _objective(found: Translation, name: str, wanted: list[tuple[str, int | None]], gain: str) -> None:
    """The objective, and the measures that are watched; the first of these stops training."""
    trained = {"lambdarank": "ndcg", "rank:ndcg": "ndcg", "rank:map": "ap"}.get(name, "")
    measures = [_measure(found, *entry, gain) for entry in wanted]
    measures = list(dict.fromkeys(measure for measure in measures if measure))
    if trained == "ap" and not wanted:
        measures = ["ap"]
    if measures:
        found.settings["measure"] = measures[0]
    if measures[1:]:
        found.settings["metrics"] = measures[1:]
    for main in ("lambdarank_truncation_level", "lambdarank_num_pair_per_sample"):
        found.put(main, "truncation", whole(1))
    for main in ("lambdarank_norm", "lambdarank_normalization"):
        found.put(main, "normalize", flag)
    found.put("sigmoid", "sigma", positive)
    if trained and (not measures or measures[0].partition("@")[0].partition("(")[0] == trained):
        return
    own = {key: found.settings.pop(key) for key in ("truncation", "normalize", "sigma") if key in found.settings}
    scaled = str(own.get("normalize", True)).lower()
    if trained:
        measure = f"ndcg(gain={gain})" if gain and trained == "ndcg" else trained
        found.settings["objective"] = describe(Lambda(measure, **{"normalize": True, **own}))
    elif name == "rank:pairwise":
        if "truncation" in own:
            found.left["lambdarank_num_pair_per_sample"] = "Podium's pairwise objective takes all pairs"
        found.settings["objective"] = f"pairwise(cross_entropy({own.get('sigma', 1.0)}), normalize={scaled})"
    elif name in XENDCG:
        found.settings["objective"] = "xendcg()"
    elif name in REGRESSION:
        found.settings["objective"] = "regression()"
    else:
        near = did_you_mean(name, ("lambdarank", "rank:ndcg", "rank:map", "rank:pairwise", *XENDCG, *REGRESSION))
        raise DataError(f"{found.tool}'s objective {name!r} does not rank{near}; see MART, MARTClassifier and McRank")


def _measure(found: Translation, name: str, cutoff: int | None, gain: str) -> str:
    """A metric as Podium names it; nothing where it has none."""
    known = MEASURES.get(name)
    if known is None:
        found.left[f"metric {name}"] = f"Podium has no such measure{did_you_mean(name, MEASURES)}"
        return ""
    if cutoff is not None:
        require_whole("a cutoff", cutoff, 1)
    inner = f"(gain={gain})" if gain and known == "ndcg" else ""
    return f"{known}{inner}" + (f"@{cutoff}" if cutoff is not None else "")
