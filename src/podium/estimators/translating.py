"""Translation of LightGBM, XGBoost and CatBoost parameters.

`core.hyperparameters` declares the names of Podium's parameters in these tools. This module has the rest: parameters
without a counterpart, and those that mean something else or are translated together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from podium.core import hyperparameters as h
from podium.core.parameters import TOOLS, Parameter, optional
from podium.core.validation import did_you_mean, require_whole
from podium.errors import DataError, warn
from podium.measures import Gain
from podium.objectives import Lambda, describe

NO_COUNTERPART = "Podium has no counterpart"
CATEGORIES = "Podium orders categories by their mean gradient, with the same limits as in other splits"
ANY = ("*",)  # any value is harmless
# Parameters without a counterpart: values that may be ignored, and why Podium cannot follow other values.
WITHOUT_COUNTERPART: dict[str, dict[str, tuple[tuple[Any, ...], str]]] = {
    "lightgbm": {
        "boosting boosting_type boost": (("gbdt", "gbrt"), "Podium has gradient boosted trees only"),
        "data_sample_strategy": (("bagging",), "Podium has split_fraction instead"),
        "other_rate": ((), "Podium has split_fraction instead"),
        "extra_trees extra_tree": ((False,), NO_COUNTERPART),
        "linear_tree linear_trees": ((False,), NO_COUNTERPART),
        "path_smooth": ((0,), NO_COUNTERPART),
        "max_cat_to_onehot": ((4,), CATEGORIES),
        "max_cat_threshold": ((32,), CATEGORIES),
        "cat_l2 cat_smooth": ((10,), CATEGORIES),
        "min_data_per_group": ((100,), CATEGORIES),
        "lambdarank_position_bias_regularization":
            ((0,), "pass positions and objective='debiased(lambda(ndcg), l2=…)'"),
        "bagging_seed bagging_fraction_seed feature_fraction_seed data_random_seed extra_seed data_seed drop_seed":
            ((), "Podium has one seed: random_state"),
        "objective_seed": ((5,), "Podium has one seed: random_state"),
        "first_metric_only": ((True,), "Podium stops by measure alone"),
        "device_type device": (("cpu",), "Podium runs on CPUs"),
        "deterministic force_col_wise force_row_wise histogram_pool_size importance_type silent verbosity verbose "
        "tree_learner two_round bin_construct_sample_cnt subsample_for_bin is_enable_sparse enable_bundle "
        "use_missing task":
            (ANY, ""),
    },
    "xgboost": {
        "booster": (("gbtree",), "Podium has gradient boosted trees only"),
        "colsample_bylevel": ((1,), "Podium samples features for each tree or node: use feature_fraction_per_node"),
        "num_parallel_tree": ((1,), NO_COUNTERPART),
        "lambdarank_unbiased": ((False,), "pass positions and objective='debiased(lambda(ndcg))'"),
        "lambdarank_bias_norm": ((), "pass positions and objective='debiased(lambda(ndcg))'"),
        "lambdarank_score_normalization": ((True,), "normalize=True divides by the gap of the scores"),
        "tree_method": (("hist", "auto"), "Podium grows trees from histograms"),
        "base_score": ((0, 0.5), "Podium starts from the objective's own F_0; use submodel for another"),
        "device": (("cpu",), "Podium runs on CPUs"),
        "max_cat_to_onehot": ((4,), CATEGORIES),
        "max_cat_threshold": ((64,), CATEGORIES),
        "verbosity silent validate_parameters disable_default_eval_metric importance_type missing enable_categorical":
            (ANY, ""),
    },
    "catboost": {
        "boosting_type": (("Plain",), "Podium has gradient boosted trees without ordering"),
        "bagging_temperature mvs_reg": ((), "Podium has document_fraction and split_fraction instead"),
        "random_strength": ((0,), NO_COUNTERPART),
        "leaf_estimation_iterations": ((1,), "Podium takes one step for each tree"),
        "leaf_estimation_method": (("Newton",), "Podium has step='newton' or 'gradient'"),
        "score_function": (("NewtonL2",), "Podium has split='newton' or 'least-squares'"),
        "sampling_frequency": (("PerTree",), "Podium draws a new sample for every tree"),
        "nan_mode": ((), "Podium learns at each split where missing values go"),
        "model_shrink_rate diffusion_temperature": ((0,), NO_COUNTERPART),
        "langevin posterior_sampling boost_from_average": ((False,), NO_COUNTERPART),
        "feature_weights first_feature_use_penalties per_object_feature_penalties penalties_coefficient":
            ((), NO_COUNTERPART),
        "ignored_features": ((), "drop the columns from the data"),
        "text_features embedding_features": ((), "Podium takes numbers and categories; see podium.features"),
        "od_pval": ((0,), "Podium has patience instead"),
        "use_best_model": ((True,), "Podium keeps the best round if there is validation data"),
        "task_type": (("CPU",), "Podium runs on CPUs"),
        "verbose verbose_eval logging_level silent metric_period name train_dir allow_writing_files save_snapshot "
        "snapshot_file snapshot_interval used_ram_limit od_type feature_border_type has_time metadata": (ANY, ""),
        "one_hot_max_size max_ctr_complexity model_size_reg": ((), CATEGORIES),
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
    """The translation of another tool's parameters into those of `LambdaMART`.

    A parameter of a tool may have several names, of which the first is its main name.

    Attributes:
        settings: the translated parameters.
        untranslated: names that cannot be translated, and why.
        values: the parameters still to translate: for each main name, the name and value that the caller passed.

    """

    def __init__(self, tool: str, params: Mapping[str, Any]) -> None:
        if not isinstance(params, Mapping):
            raise DataError(f"parameters must be a dictionary, not {type(params).__name__}")
        self.tool, self.settings, self.untranslated = TOOLS[tool], dict[str, Any](), dict[str, str]()
        self.parameters = h.by_name(tool)
        self.values: dict[str, tuple[str, Any]] = {}
        others = {name: entry for names, entry in WITHOUT_COUNTERPART[tool].items() for name in names.split()}
        main_names = {name: parameter.names.of(tool)[0] for name, parameter in self.parameters.items()} | COMBINED[tool]
        for name, value in params.items():
            if value is None:  # not set, in get_params() of the tools' estimators
                continue
            if name in others:
                harmless, reason = others[name]
                if harmless is not ANY and not any(is_equal(value, ignored) for ignored in harmless):
                    self.untranslated[name] = reason
            elif name in main_names:
                self._add(main_names[name], name, value)
            else:
                near = did_you_mean(str(name), [*main_names, *others])
                self.untranslated[str(name)] = f"is not a parameter of {self.tool} that Podium knows{near}"

    def _add(self, main: str, name: str, value: Any) -> None:
        """Add a parameter to translate; raise if it has another value under another name."""
        earlier = self.values.get(main)
        if earlier is not None and not is_equal(earlier[1], value):
            raise DataError(
                f"{earlier[0]}={earlier[1]!r} and {name}={value!r} are the same parameter of {self.tool}: pass only one"
            )
        self.values[main] = name, value

    def take(self, main: str, default: Any = None) -> Any:
        """Return and remove the value of a parameter, by its main name."""
        return self.values.pop(main, (main, default))[1]

    def translate(
        self, main: str, parameter: Parameter[Any], convert: Callable[[str, Any], Any] | None = None
    ) -> None:  # fmt: skip
        """Translate one parameter if it is set, with `convert` or as Podium declares the parameter."""
        if main in self.values:
            name, value = self.values.pop(main)
            self.settings[parameter.name] = convert(name, value) if convert else converted(parameter, name, value)

    def translate_declared(self) -> None:
        """Translate all numbers and flags that mean the same in Podium, according to its declarations."""
        for main in list(self.values):
            parameter = self.parameters.get(main)
            if parameter is not None and parameter.kind in (int, float, bool) and not parameter.names.advice:
                self.translate(main, parameter)

    def finish(self) -> dict[str, Any]:
        """Return the translated parameters; warn once about all others."""
        for main, (name, _) in self.values.items():
            parameter = self.parameters[main]
            self.untranslated[name] = parameter.names.advice or f"use {parameter.name}"
        if self.untranslated:
            reasons = "; ".join(f"{name} ({reason})" for name, reason in self.untranslated.items())
            warn(f"not translated from {self.tool}: {reasons}", stacklevel=4)
        return self.settings


def is_equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal, which may be arrays."""
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)


# Names of parameters that only have a meaning in combination with others, and their main names.
COMBINED = {
    "lightgbm": {name: name for name in ("eval_at", "bagging_freq", "bagging_by_query")}
    | {"subsample_freq": "bagging_freq"}
    | dict.fromkeys(("ndcg_eval_at", "ndcg_at", "map_eval_at", "map_at"), "eval_at"),
    "xgboost": {name: name for name in ("grow_policy", "lambdarank_pair_method", "feature_types", "sampling_method")},
    "catboost": {name: name for name in ("grow_policy", "bootstrap_type", "sampling_unit", "custom_metric")},
}


def converted(parameter: Parameter[Any], name: str, value: Any) -> Any:
    """Return a value, checked by Podium's declaration; if None is allowed, a number below the range means None."""
    if parameter.optional and isinstance(value, int | float) and not isinstance(value, bool):
        is_off = value <= parameter.above if parameter.above is not None else value < (parameter.least or 0)
        if is_off:
            return None
    parameter.check(value, name)
    return parameter.kind(value) if np.isscalar(value) else value  # a learning rate for each round is a list


def flag(name: str, value: Any) -> bool:
    """Return a value that must be True or False."""
    if not isinstance(value, bool):
        raise DataError(f"{name} must be True or False, but is {value!r}")
    return value


def several(name: str, value: Any) -> list[Any]:
    """Return a value as a list; strings are split at commas, as in the tools' config files."""
    if isinstance(value, str):
        return [part.strip() for part in value.strip("()[]").split(",") if part.strip()]
    return list(value) if isinstance(value, Iterable) else [value]


def numbers(name: str, value: Any) -> list[int]:
    """Return whole numbers from a list or from text with commas."""
    try:
        return [int(part) for part in several(name, value)]
    except (TypeError, ValueError):
        raise DataError(f"{name} must be a list of whole numbers, but is {value!r}") from None


def monotone(name: str, value: Any) -> Any:
    """Return the directions of monotone constraints, by feature or as a list."""
    return dict(value) if isinstance(value, Mapping) else numbers(name, value)


def groups_of_features(name: str, value: Any) -> list[list[int | str]] | None:
    """Return groups of features from lists or JSON; LightGBM's config files have no brackets around all groups."""
    if isinstance(value, str):
        try:
            value = json.loads(f"[{value}]")
        except ValueError:
            raise DataError(f"{name} must be lists of features such as [0,1],[2,3], but is {value!r}") from None
        value = value[0] if value and value[0] and isinstance(value[0][0], list) else value
    return [several(name, group) for group in value if group] or None


def categorical(name: str, value: Any) -> list[int | str]:
    """Return numbers or names of features; none for `auto`, because Podium also looks at the types of columns."""
    if isinstance(value, str):
        if value == "auto" or not value:
            return []
        if not value.startswith("name:"):
            return list(numbers(name, value))
        value = value.removeprefix("name:")
    return several(name, value)


def _translate_shared(translation: Translation, bins: str = "max_bin") -> None:
    """Translate the parameters that all tools share; `bins` is the tool's name of the number of bins."""
    translation.translate("monotone_constraints", h.MONOTONE, monotone)
    translation.translate("interaction_constraints", h.INTERACTION_CONSTRAINTS, groups_of_features)
    name, n_bins = translation.values.get(bins, (bins, None))
    if isinstance(n_bins, int) and n_bins > 255:
        translation.untranslated[bins] = "Podium has at most 255 bins"
        translation.values[bins] = name, 255
    translation.translate_declared()


def from_lightgbm(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `LambdaMART` for those of LightGBM."""
    translation = Translation("lightgbm", params)
    _translate_bagging(translation)
    if translation.values.get("min_data_in_leaf", ("", None))[1] == 0:
        translation.settings["min_documents_in_leaf"] = 1
        translation.take("min_data_in_leaf")
    translation.translate("categorical_feature", h.CATEGORICAL, categorical)
    _translate_shared(translation)
    gain = _label_gain(translation.take("label_gain"))
    cutoffs = numbers("eval_at", translation.take("eval_at", ()))
    names = [name for name in several("metric", translation.take("metric", ())) if name not in ("", "None", "none")]
    metrics: list[tuple[str, int | None]] = [(name, k) for name in names or ["ndcg"] for k in cutoffs or [10]]
    objective = str(translation.take("objective", "lambdarank"))
    _translate_objective(translation, objective, metrics if names or cutoffs or gain else [], gain)
    return translation.finish()


def _translate_bagging(translation: Translation) -> None:
    """Translate bagging: LightGBM samples queries or documents, and only if `bagging_freq` is set."""
    entry, frequency = translation.values.get("bagging_fraction"), translation.take("bagging_freq", 0)
    by_query = flag("bagging_by_query", translation.take("bagging_by_query", False))
    parameter = h.QUERY_FRACTION if by_query else h.DOCUMENT_FRACTION
    translation.translate("bagging_fraction", parameter)
    require_whole("bagging_freq", frequency, 0)
    if entry is not None and not frequency:
        translation.settings.pop(parameter.name)
        if entry[1] != 1:
            reason = "has no effect in LightGBM without bagging_freq; Podium has document_fraction"
            translation.untranslated[entry[0]] = reason
    elif frequency > 1:
        translation.untranslated["bagging_freq"] = "Podium draws a new sample for every tree"


def from_xgboost(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `LambdaMART` for those of XGBoost."""
    translation = Translation("xgboost", params)
    if translation.take("sampling_method", "uniform") != "uniform":
        translation.untranslated["sampling_method"] = "Podium has split_fraction instead"
    _translate_depth(translation)
    kinds = translation.take("feature_types")
    if kinds is not None:
        kinds = several("feature_types", kinds)
        translation.settings["categorical"] = [k for k, kind in enumerate(kinds) if kind == "c"]
    if translation.take("lambdarank_pair_method", "topk") != "topk":
        translation.take("lambdarank_num_pair_per_sample")
        reason = "Podium takes all pairs, or those at the top (pair_truncation)"
        translation.untranslated["lambdarank_pair_method"] = reason
    _translate_shared(translation)
    if translation.settings.get("interaction_constraints"):
        translation.untranslated["interaction_constraints"] = (
            "Podium does not use features in no group; XGBoost uses each of them alone: add a group for each"
        )
    gain = "" if flag("ndcg_exp_gain", translation.take("ndcg_exp_gain", True)) else "linear"
    metrics: list[tuple[str, int | None]] = []
    for entry in reversed(several("eval_metric", translation.take("eval_metric", ()))):  # XGBoost stops by the last one
        name, _, cutoff = str(entry).removesuffix("-").partition("@")
        metrics.append((name, numbers("eval_metric", cutoff)[0] if cutoff else None))
    if gain and not metrics:
        metrics = [("ndcg", 10)]
    _translate_objective(translation, str(translation.take("objective", "rank:ndcg")), metrics, gain)
    return translation.finish()


def _translate_depth(translation: Translation, name: str = "max_depth") -> None:
    """Translate depth and leaves: the trees of XGBoost and CatBoost grow level by level, to the full depth."""
    by_leaf = str(translation.take("grow_policy", "")).lower() == "lossguide"
    has_depth = name in translation.values
    depth = converted(h.MAX_DEPTH, name, translation.take(name, 0))
    leaves = converted(optional(h.N_LEAVES), "max_leaves", translation.take("max_leaves", 0))
    if has_depth:
        translation.settings["max_depth"] = depth
    if leaves is not None:
        translation.settings["n_leaves"] = leaves if depth is None else min(leaves, 2 ** min(depth, 30))
        if not by_leaf and depth is not None and leaves < 2 ** min(depth, 30):
            translation.untranslated["grow_policy"] = "Podium splits the best leaf first, at any depth"
    elif depth is not None:
        translation.settings["n_leaves"] = 2 ** min(depth, 16)


CATBOOST_MEASURES = {
    "NDCG": "ndcg", "DCG": "dcg", "MAP": "ap", "MRR": "rr", "PrecisionAt": "precision", "RecallAt": "recall",
    "PFound": "pfound",
}  # fmt: skip
CATBOOST_OBJECTIVES = {
    "QueryRMSE": "query_regression()", "PairLogit": "pairwise()", "RMSE": "regression()",
    "QuerySoftMax": "querysoftmax()",
}  # fmt: skip
STOCHASTIC = ("YetiRank", "YetiRankPairwise", "StochasticRank")  # with LambdaMart, CatBoost's losses of a measure


def from_catboost(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `LambdaMART` for those of CatBoost."""
    translation = Translation("catboost", params)
    _translate_bootstrap(translation)
    if translation.values.get("grow_policy", ("", ""))[1] == "SymmetricTree":
        translation.settings["symmetric"] = True
    _translate_depth(translation, "depth")
    translation.translate("cat_features", h.CATEGORICAL, categorical)
    _translate_shared(translation, "border_count")
    stops_by = translation.take("eval_metric")
    metrics = [stops_by] if stops_by else []
    metrics += several("custom_metric", translation.take("custom_metric", ()))
    measures = [_catboost_measure(translation, text) for text in metrics]
    measures = list(dict.fromkeys(measure for measure in measures if measure))
    stopping = measures.pop(0) if stops_by and measures else ""
    _translate_loss(translation, str(translation.take("loss_function", "")), stopping)
    if measures:
        translation.settings["metrics"] = measures
    return translation.finish()


def _translate_bootstrap(translation: Translation) -> None:
    """Translate sampling: only Bernoulli samples are a share of the documents or queries."""
    kind, unit = translation.take("bootstrap_type", ""), translation.take("sampling_unit", "Object")
    parameter = h.QUERY_FRACTION if unit == "Group" else h.DOCUMENT_FRACTION
    if kind == "Bernoulli":
        translation.translate("subsample", parameter)
    elif (kind and kind != "No") or translation.take("subsample", 1) != 1:
        name = "bootstrap_type" if kind else "subsample"
        translation.untranslated[name] = "Podium has document_fraction, which is bootstrap_type='Bernoulli'"
        translation.take("subsample")


def _options(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and the options of a loss or metric such as `NDCG:top=10;type=Exp`."""
    name, _, rest = text.partition(":")
    return name, {key: value for key, _, value in (part.partition("=") for part in rest.split(";")) if key}


def _catboost_measure(translation: Translation, text: str) -> str:
    """Return Podium's name for a metric, empty if it has none."""
    name, options = _options(str(text))
    options.pop("hints", None)
    cutoff, inner = options.pop("top", "-1"), []
    if name in ("NDCG", "DCG", "PFound") and options.pop("type", "Base") == "Base":
        inner.append("gain=linear")  # CatBoost's gain is the label itself
    if name in ("NDCG", "DCG") and options.pop("denominator", "LogPosition") == "Position":
        inner.append("discount=reciprocal")
    if name == "MAP" and cutoff != "-1":
        inner.append("norm=reachable")
    if name not in CATBOOST_MEASURES or options:
        reason = f"Podium does not know {', '.join(options) or 'it'}{did_you_mean(name, CATBOOST_MEASURES)}"
        translation.untranslated[f"metric {text}"] = reason
        return ""
    return CATBOOST_MEASURES[name] + (f"({','.join(inner)})" if inner else "") + f"@{cutoff}" * (cutoff != "-1")


def _translate_loss(translation: Translation, text: str, stopping: str) -> None:
    """Translate the loss, and the measure that stops training."""
    name, options = _options(text)
    if stopping:
        translation.settings["measure"] = stopping
    if name == "QuerySoftMax" and options:
        names = {"beta": "beta", "lambda": "l2"}
        arguments = ",".join(f"{ours}={options.pop(theirs)}" for theirs, ours in names.items() if theirs in options)
        translation.settings["objective"] = f"querysoftmax({arguments})"
    elif name in CATBOOST_OBJECTIVES:
        translation.settings["objective"] = CATBOOST_OBJECTIVES[name]
    elif name not in ("", "LambdaMart", *STOCHASTIC):
        near = did_you_mean(name, ("LambdaMart", *STOCHASTIC, *CATBOOST_OBJECTIVES))
        raise DataError(f"CatBoost's loss {name!r} has no counterpart in Podium{near}; see docs/coming-from.md")
    if name in STOCHASTIC:
        translation.untranslated[name] = "Podium trains on λ of the measure instead"
    metric = options.pop("metric", options.pop("mode", "Classic"))
    if metric != "Classic":
        inner = ";".join(f"{key.removeprefix('dcg_')}={value}" for key, value in options.items())
        trained = _catboost_measure(translation, f"{metric}:{inner}")
        if trained and stopping not in ("", trained):
            translation.settings["objective"] = describe(Lambda(trained))
        elif trained:
            translation.settings["measure"] = trained
    elif options:
        translation.untranslated[text] = f"Podium does not know {', '.join(options)}"


def _label_gain(value: Any) -> str:
    """Return LightGBM's gains as Podium's text of a gain, empty for the default 2^l − 1."""
    if value is None:
        return ""
    try:
        table = tuple(float(part) for part in several("label_gain", value))
    except (TypeError, ValueError):
        raise DataError(f"label_gain must be a list of numbers, but is {value!r}") from None
    if table == tuple(2.0**label - 1 for label in range(len(table))):
        return ""
    return str(Gain("table", table=table))


def _translate_objective(translation: Translation, name: str, metrics: list[tuple[str, int | None]], gain: str) -> None:
    """Translate the objective and the measures to watch; the first measure stops training."""
    trained = {"lambdarank": "ndcg", "rank:ndcg": "ndcg", "rank:map": "ap"}.get(name, "")  # the measure of λ
    measures = [_measure(translation, *entry, gain) for entry in metrics]
    measures = list(dict.fromkeys(measure for measure in measures if measure))
    if trained == "ap" and not metrics:
        measures = ["ap"]
    if measures:
        translation.settings["measure"] = measures[0]
    if measures[1:]:
        translation.settings["metrics"] = measures[1:]
    if trained and (not measures or measures[0].partition("@")[0].partition("(")[0] == trained):
        return
    pairs = {
        key: translation.settings.pop(key)
        for key in ("pair_truncation", "normalize", "sigma")
        if key in translation.settings
    }
    normalize = str(pairs.get("normalize", True)).lower()
    if trained:
        measure = f"ndcg(gain={gain})" if gain and trained == "ndcg" else trained
        translation.settings["objective"] = describe(Lambda(measure, **pairs))
    elif name == "rank:pairwise":
        if "pair_truncation" in pairs:
            translation.untranslated["lambdarank_num_pair_per_sample"] = "Podium's pairwise objective takes all pairs"
        translation.settings["objective"] = f"pairwise(cross_entropy({pairs.get('sigma', 1.0)}), normalize={normalize})"
    elif name in XENDCG:
        translation.settings["objective"] = "xendcg()"
    elif name in REGRESSION:
        translation.settings["objective"] = "regression()"
    else:
        near = did_you_mean(name, ("lambdarank", "rank:ndcg", "rank:map", "rank:pairwise", *XENDCG, *REGRESSION))
        raise DataError(
            f"{translation.tool}'s objective {name!r} is not a ranking objective{near}; see MART, MARTClassifier and "
            "McRank"
        )


def _measure(translation: Translation, name: str, cutoff: int | None, gain: str) -> str:
    """Return Podium's name for a metric, empty if it has none."""
    measure = MEASURES.get(name)
    if measure is None:
        translation.untranslated[f"metric {name}"] = f"Podium has no such measure{did_you_mean(name, MEASURES)}"
        return ""
    if cutoff is not None:
        require_whole("a cutoff", cutoff, 1)
    inner = f"(gain={gain})" if gain and measure == "ndcg" else ""
    return f"{measure}{inner}" + (f"@{cutoff}" if cutoff is not None else "")
