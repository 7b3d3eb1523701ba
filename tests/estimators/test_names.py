"""Names of parameters: other tools' names, misspelt ones, and dictionaries of LightGBM, XGBoost and CatBoost."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import podium
from podium import DataError, LambdaMART, PodiumWarning
from podium.core import hyperparameters
from podium.core.hyperparameters import WITH_OTHER_NAMES, by_name
from podium.core.parameters import TOOLS
from podium.errors import ParameterError
from podium.estimators import translating

RANKERS = [
    podium.LambdaMART, podium.RankNetTrees, podium.MART, podium.MARTClassifier, podium.McRank, podium.LinearRanker,
    podium.OrdinalMART, podium.PRank, podium.AdditiveGroves, podium.Committee, podium.RankNet, podium.LambdaRank,
    podium.Ranker,
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *((name, "n_leaves") for name in ("num_leaves", "max_leaves", "leaf")),
        *((name, "n_trees") for name in ("n_estimators", "num_boost_round", "iterations", "num_round", "tree")),
        *((name, "learning_rate") for name in ("eta", "shrinkage")),
        *((name, "min_documents_in_leaf") for name in ("min_data_in_leaf", "min_child_samples", "mls")),
        *((name, "document_fraction") for name in ("bagging_fraction", "subsample")),
        ("colsample_bytree", "feature_fraction"), ("reg_lambda", "l2"), ("lambda_l2", "l2"),
        ("early_stopping_rounds", "patience"), ("early_stopping_round", "patience"),
        *((name, "measure='ndcg@10'") for name in ("metric", "eval_metric", "eval_at", "metric2t")),
        ("label_gain", "measure='ndcg(gain=linear)@10'"), ("seed", "random_state"), ("random_seed", "random_state"),
        *((name, "n_threads") for name in ("n_jobs", "nthread", "num_threads")),
        ("lambdarank_truncation_level", "pair_truncation"), ("max_bin", "max_bins"), ("border_count", "max_bins"),
        ("depth", "max_depth"), ("lambda_l1", "l1"), ("reg_alpha", "l1"), ("min_split_gain", "min_gain_to_split"),
        ("gamma", "min_gain_to_split"), ("min_child_weight", "min_hessian_in_leaf"),
        ("min_sum_hessian_in_leaf", "min_hessian_in_leaf"), ("feature_fraction_bynode", "feature_fraction_per_node"),
        ("colsample_bynode", "feature_fraction_per_node"), ("rsm", "feature_fraction_per_node"),
        ("grow_policy", "symmetric=True for SymmetricTree"),
    ],
)  # fmt: skip
def test_names_of_other_tools_say_what_to_use(name, meant):
    for refuse in (lambda: LambdaMART(**{name: 1}), lambda: LambdaMART().set_params(**{name: 1})):
        with pytest.raises(ParameterError, match=f"LambdaMART has no parameter '{name}': use ") as caught:
            refuse()
        assert f"use {meant}" in str(caught.value)
        assert isinstance(caught.value, TypeError | ValueError | podium.PodiumError)


@pytest.mark.parametrize("ranker", RANKERS)
def test_misspelt_parameters_get_the_nearest_name(ranker):
    for error in (TypeError, ValueError, podium.PodiumError):
        with pytest.raises(error, match=rf"{ranker.__name__} has no parameter 'mesure' \(did you mean 'measure'\?\)"):
            ranker(mesure="ap")
    with pytest.raises(ParameterError, match=r"has no parameter 'qqq'; it has .*\bn_threads\b"):
        ranker().set_params(qqq=1)
    for same in (clone, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))):
        assert same(ranker("err") if ranker is podium.RankNet else ranker(verbose=3)).get_params()["verbose"] in (
            None,
            3,
        )


def test_a_subclass_may_declare_parameters():
    class Mine(LambdaMART):
        def __init__(self, n_trees=5, colour="red", **settings):
            super().__init__(n_trees, **settings)
            self.colour = colour

    assert Mine(colour="blue", n_leaves=3).get_params()["colour"] == "blue"
    with pytest.raises(ParameterError, match="did you mean 'colour'"):
        Mine(color="blue")


def test_every_row_of_the_table_names_a_parameter():
    known = inspect.signature(LambdaMART).parameters
    for parameter in WITH_OTHER_NAMES:
        assert parameter.name in known or parameter.names.advice, parameter.name
        for tool in TOOLS:
            names = parameter.names.of(tool)
            assert all(by_name(tool)[name] is parameter for name in names), parameter.name


def translated(translate, params, **overrides):
    """Return the parameters that differ from the defaults."""
    usual = LambdaMART().get_params()
    return {name: v for name, v in translate(params, **overrides).get_params().items() if v != usual[name]}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, {}),
        ({"objective": "lambdarank", "num_leaves": 63, "eta": 0.05, "n_estimators": 200, "min_child_samples": 5},
         {"n_leaves": 63, "learning_rate": 0.05, "n_trees": 200, "min_documents_in_leaf": 5}),
        ({"min_data_in_leaf": 0, "max_depth": -1, "reg_lambda": 2, "num_threads": 0, "n_jobs": 0, "verbosity": -1},
         {"min_documents_in_leaf": 1, "l2": 2.0}),
        ({"subsample": 0.5, "subsample_freq": 1, "colsample_bytree": 0.3, "seed": 7, "early_stopping_round": 9},
         {"document_fraction": 0.5, "feature_fraction": 0.3, "random_state": 7, "patience": 9}),
        ({"bagging_fraction": 0.5, "bagging_freq": 1, "bagging_by_query": True}, {"query_fraction": 0.5}),
        ({"label_gain": [0, 1, 3, 7]}, {}),
        ({"label_gain": "0,1,2"}, {"measure": "ndcg(gain=table:0/1/2)@10"}),
        ({"label_gain": [0, 1, 2], "eval_at": [5, 10]},
         {"measure": "ndcg(gain=table:0/1/2)@5", "metrics": ["ndcg(gain=table:0/1/2)@10"]}),
        ({"metric": "ndcg", "eval_at": "1,3"}, {"measure": "ndcg@1", "metrics": ["ndcg@3"]}),
        ({"metric": ["map", "ndcg"], "eval_at": [3], "sigmoid": 2.0, "lambdarank_norm": False},
         {"measure": "ap@3", "metrics": ["ndcg@3"], "objective": 'Lambda(measure="ndcg", sigma=2.0, normalize=false)'}),
        ({"lambdarank_truncation_level": 20, "lambdarank_norm": False, "sigmoid": 2},
         {"pair_truncation": 20, "normalize": False, "sigma": 2.0}),
        ({"objective": "rank_xendcg", "lambdarank_norm": True}, {"objective": "xendcg()"}),
        ({"objective": "regression"}, {"objective": "regression()"}),
        ({"monotone_constraints": [1, 0, -1], "categorical_feature": "name:a,b"},
         {"monotone": [1, 0, -1], "categorical": ["a", "b"]}),
        ({"categorical_feature": [0, 2], "min_child_weight": 0, "lambda_l1": 0.0, "boosting": "gbdt"},
         {"categorical": [0, 2]}),
        ({"min_child_weight": 1e-2, "reg_alpha": 2, "min_split_gain": 0.1, "colsample_bynode": 0.5,
          "interaction_constraints": [[0, 1], [2]]},
         {"min_hessian_in_leaf": 0.01, "l1": 2.0, "min_gain_to_split": 0.1, "feature_fraction_per_node": 0.5,
          "interaction_constraints": [[0, 1], [2]]}),
        ({"interaction_constraints": "[0,1],[2]"}, {"interaction_constraints": [[0, 1], [2]]}),
        ({"interaction_constraints": ""}, {}),
    ],
)  # fmt: skip
def test_lightgbm(params, expected):
    assert translated(LambdaMART.from_lightgbm, params) == expected


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"objective": "rank:ndcg", "eta": 0.3, "num_boost_round": 50, "tree_method": "hist", "gamma": 0},
         {"learning_rate": 0.3, "n_trees": 50}),
        ({"max_depth": 6}, {"max_depth": 6, "n_leaves": 64}),
        ({"max_depth": 0, "max_leaves": 31, "grow_policy": "lossguide"}, {"n_leaves": 31}),
        ({"max_depth": 3, "max_leaves": 31, "grow_policy": "lossguide"}, {"n_leaves": 8, "max_depth": 3}),
        ({"lambda": 3, "subsample": 0.5, "colsample_bytree": 0.5, "nthread": 2, "random_state": 4},
         {"l2": 3.0, "document_fraction": 0.5, "feature_fraction": 0.5, "n_threads": 2, "random_state": 4}),
        ({"objective": "rank:map"}, {"measure": "ap"}),
        ({"objective": "rank:map", "eval_metric": ["ndcg@5", "map@3-"]}, {"measure": "ap@3", "metrics": ["ndcg@5"]}),
        ({"eval_metric": ["map", "ndcg@5"], "ndcg_exp_gain": False},
         {"measure": "ndcg(gain=linear)@5", "metrics": ["ap"]}),
        ({"eval_metric": "map@5", "ndcg_exp_gain": False, "lambdarank_num_pair_per_sample": 8},
         {"measure": "ap@5", "objective": 'Lambda(measure="ndcg(gain=linear)", pair_truncation=8)'}),
        ({"objective": "rank:pairwise"}, {"objective": "pairwise(cross_entropy(1.0), normalize=true)"}),
        ({"lambdarank_num_pair_per_sample": 8, "lambdarank_normalization": False},
         {"pair_truncation": 8, "normalize": False}),
        ({"monotone_constraints": "(1,-1)", "feature_types": ["q", "c"], "early_stopping_rounds": 5},
         {"monotone": [1, -1], "categorical": [1], "patience": 5}),
        ({"min_child_weight": 3, "alpha": 2, "gamma": 1, "colsample_bynode": 0.5},
         {"min_hessian_in_leaf": 3.0, "l1": 2.0, "min_gain_to_split": 1.0, "feature_fraction_per_node": 0.5}),
    ],
)  # fmt: skip
def test_xgboost(params, expected):
    assert translated(LambdaMART.from_xgboost, params) == expected


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, {}),
        ({"iterations": 50, "eta": 0.3, "l2_leaf_reg": 5, "random_seed": 4, "thread_count": -1, "verbose": False},
         {"n_trees": 50, "learning_rate": 0.3, "l2": 5.0, "random_state": 4}),
        ({"depth": 6}, {"max_depth": 6, "n_leaves": 64}),
        ({"depth": 6, "grow_policy": "SymmetricTree"}, {"max_depth": 6, "n_leaves": 64, "symmetric": True}),
        ({"max_leaves": 31, "grow_policy": "Lossguide", "min_child_samples": 5},
         {"n_leaves": 31, "min_documents_in_leaf": 5}),
        ({"bootstrap_type": "Bernoulli", "subsample": 0.5, "rsm": 0.5},
         {"document_fraction": 0.5, "feature_fraction_per_node": 0.5}),
        ({"bootstrap_type": "Bernoulli", "subsample": 0.5, "sampling_unit": "Group"}, {"query_fraction": 0.5}),
        ({"bootstrap_type": "No", "boosting_type": "Plain", "use_best_model": True, "od_type": "Iter", "od_wait": 9},
         {"patience": 9}),
        ({"loss_function": "QueryRMSE", "eval_metric": "NDCG:top=10;type=Exp"}, {"objective": "query_regression()"}),
        ({"objective": "PairLogit", "eval_metric": "NDCG:top=5", "custom_metric": ["MAP:top=3", "MRR"]},
         {"objective": "pairwise()", "measure": "ndcg(gain=linear)@5", "metrics": ["ap(norm=reachable)@3", "rr"]}),
        ({"loss_function": "QuerySoftMax"}, {"objective": "querysoftmax()"}),
        ({"loss_function": "QuerySoftMax:beta=2;lambda=0.1"}, {"objective": "querysoftmax(beta=2,l2=0.1)"}),
        ({"loss_function": "LambdaMart:metric=NDCG;top=10;type=Exp"}, {}),
        ({"loss_function": "LambdaMart:metric=MAP"}, {"measure": "ap"}),
        ({"loss_function": "LambdaMart:metric=MRR", "eval_metric": "PFound"},
         {"measure": "pfound(gain=linear)", "objective": 'Lambda(measure="rr")'}),
        ({"eval_metric": "DCG:denominator=Position", "custom_metric": "PrecisionAt:top=5"},
         {"measure": "dcg(gain=linear,discount=reciprocal)", "metrics": ["precision@5"]}),
        ({"cat_features": ["a"], "monotone_constraints": "(1,-1)", "border_count": 128},
         {"categorical": ["a"], "monotone": [1, -1], "max_bins": 128}),
    ],
)  # fmt: skip
def test_catboost(params, expected):
    assert translated(LambdaMART.from_catboost, params) == expected
    for measure in (expected.get("measure", "ndcg"), *expected.get("metrics", ())):
        assert str(podium.measures.parse(measure)) == measure


def test_parameters_that_only_catboost_has_are_listed():
    params = {
        "loss_function": "YetiRank:mode=NDCG;dcg_type=Exp;top=10;decay=0.9", "random_strength": 1, "border_count": 1024,
        "bagging_temperature": 1, "bootstrap_type": "MVS", "subsample": 0.8, "custom_metric": "ERR", "x": 1,
    }  # fmt: skip
    with pytest.warns(PodiumWarning) as caught:
        model = LambdaMART.from_catboost(params)
    (message,) = (str(warning.message) for warning in caught)
    assert message.startswith("not translated from CatBoost: ")
    expected = [
        "YetiRank (Podium trains on λ of the measure", "random_strength (", "border_count (Podium has at most 255",
        "bootstrap_type (Podium has document_fraction", "metric ERR (Podium does not know it", "x (is not a parameter",
        "metric NDCG:type=Exp;top=10;decay=0.9 (Podium does not know decay",
    ]  # fmt: skip
    assert [words for words in expected if words not in message] == []
    assert (model.document_fraction, model.max_bins, model.measure) == (1.0, 255, "ndcg@10")
    with pytest.warns(PodiumWarning, match="subsample"):
        LambdaMART.from_catboost({"subsample": 0.5})
    with pytest.raises(DataError, match=r"'CrossEntropy' has no counterpart in Podium.*coming-from"):
        LambdaMART.from_catboost({"loss_function": "CrossEntropy"})


def test_parameters_of_the_tools_estimators():
    """`get_params()` has None for parameters that were not set."""
    lightgbm = pytest.importorskip("lightgbm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LambdaMART.from_lightgbm(lightgbm.LGBMRanker(num_leaves=7).get_params()).n_leaves == 7
    unset = dict.fromkeys(("n_estimators", "max_depth", "eval_metric", "base_score", "tree_method", "subsample"))
    assert translated(LambdaMART.from_xgboost, unset | {"objective": "rank:ndcg"}) == {}
    assert translated(LambdaMART.from_lightgbm, {"metric": None, "objective": None}) == {}
    catboost = pytest.importorskip("catboost")
    with pytest.warns(
        PodiumWarning, match=r"^not translated from CatBoost: YetiRank \(Podium trains on λ of the measure"
    ):
        assert LambdaMART.from_catboost(catboost.CatBoostRanker(depth=3).get_params()).n_leaves == 8


def test_arrays_as_values():
    with pytest.warns(PodiumWarning, match="boosting"):
        LambdaMART.from_lightgbm({"boosting": np.array(["dart", "gbdt"])})
    both = {"mc": np.array([1, 0]), "monotone_constraints": np.array([1, 0])}
    assert LambdaMART.from_lightgbm(both).monotone == [1, 0]


def test_interaction_constraints_of_xgboost_have_another_meaning_for_features_in_no_group():
    for groups in ([["a", "b"], ["c"]], '[["a", "b"], ["c"]]'):
        with pytest.warns(PodiumWarning, match="interaction_constraints .*add a group for each"):
            model = LambdaMART.from_xgboost({"interaction_constraints": groups})
        assert model.interaction_constraints == [["a", "b"], ["c"]]
    assert translated(LambdaMART.from_xgboost, {"interaction_constraints": "[]"}) == {}
    with pytest.raises(DataError, match=r"interaction_constraints must be lists of features such as \[0,1\],\[2,3\]"):
        LambdaMART.from_lightgbm({"interaction_constraints": "[0,1"})


def test_pairs_that_are_sampled_are_listed():
    with pytest.warns(PodiumWarning, match="lambdarank_pair_method"):
        LambdaMART.from_xgboost({"lambdarank_pair_method": "mean"})
    with pytest.warns(PodiumWarning, match=r"lambdarank_num_pair_per_sample \(Podium's pairwise objective"):
        LambdaMART.from_xgboost({"objective": "rank:pairwise", "lambdarank_num_pair_per_sample": 8})


def test_parameters_without_translation_are_listed_with_reasons():
    params = {"num_leaves": 7, "path_smooth": 1, "subsample": 0.5, "max_bin": 1023, "x": 1, "boosting": "dart",
              "metric": "auc"}  # fmt: skip
    with pytest.warns(PodiumWarning) as caught:
        model = LambdaMART.from_lightgbm(params)
    (message,) = (str(warning.message) for warning in caught)
    assert message.startswith("not translated from LightGBM: ")
    expected = [
        "subsample (has no effect in LightGBM without", "x (is no", "path_smooth (Podium has no",
        "max_bin (Podium has at most 255", "boosting (", "metric auc (",
    ]  # fmt: skip
    assert all(words in message for words in expected)
    assert (model.n_leaves, model.max_bins, model.document_fraction) == (7, 255, 1.0)
    with pytest.warns(PodiumWarning, match=r"colsample_bylevel .*; grow_policy .*; lambdarank_pair_method "):
        LambdaMART.from_xgboost({
            "colsample_bylevel": 0.5, "lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 2,
            "max_depth": 9, "max_leaves": 8,
        })  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "name", "default", "other"),
    [
        ("lightgbm", "cat_smooth", 10.0, 1.0),
        ("lightgbm", "max_cat_threshold", 32, 4),
        ("xgboost", "max_cat_threshold", 64, 4),
        ("catboost", "one_hot_max_size", None, 10),
    ],
)
def test_limits_of_categorical_splits_are_listed_as_untranslated(tool, name, default, other):
    translate = getattr(LambdaMART, f"from_{tool}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translate({name: default, "random_state": 1})
    with pytest.warns(PodiumWarning, match=rf"{name} \(Podium orders categories by their mean gradient"):
        translate({name: other})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"num_leaves": "many"}, "num_leaves must be a whole number from 2"),
        ({"num_leaves": 3, "max_leaves": 4}, "num_leaves=3 and max_leaves=4 are the same"),
        ({"eta": 0}, "eta must be positive"),
        ({"lambdarank_norm": "yes"}, "lambdarank_norm must be True or False"),
        ({"label_gain": ["a"]}, "label_gain must be a list of numbers"),
        ({"subsample": 1.5, "subsample_freq": 1}, "subsample must be above 0 and at most 1"),
        ({"eval_at": ["x"]}, "eval_at must be a list of whole numbers"),
        ({"objective": "lambdarnk"}, "is not a ranking objective .did you mean 'lambdarank'"),
        ({"objective": "multiclass"}, "LightGBM's objective 'multiclass' is not a ranking objective"),
    ],
)
def test_values_are_checked(params, message):
    with pytest.raises(podium.DataError, match=message):
        LambdaMART.from_lightgbm(params)


def test_overrides_and_the_published_settings():
    assert translated(LambdaMART.from_lightgbm, {"num_leaves": 7}, n_leaves=9, l2=3) == {"n_leaves": 9, "l2": 3}
    published = LambdaMART.as_published(n_trees=3)
    assert (published.split, published.split_fraction, published.normalize, published.l2, published.n_trees) == (
        "least-squares", 1.0, False, 0.0, 3,
    )  # fmt: skip
    data = podium.artificial(20, features=4)
    by_hand = LambdaMART(3, split="least-squares", split_fraction=1, normalize=False, l2=0).fit(data)
    assert published.fit(data).digest() == by_hand.digest()
    with pytest.raises(ParameterError, match="use n_leaves"):
        LambdaMART.as_published(num_leaves=3)


def test_translated_models_train():
    data = podium.artificial(20, features=4)
    for params in ({"metric": ["map", "ndcg"], "eval_at": [3, 5]}, {"objective": "rank_xendcg"}):
        model = LambdaMART.from_lightgbm(params, n_trees=2).fit(data, valid=data)
        assert model.n_trees_ >= 1
    assert set(LambdaMART.from_lightgbm({"eval_at": [3, 5]}, n_trees=2).fit(data, valid=data).history_) == {
        "valid/ndcg@3", "valid/ndcg@5",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("group", r"LambdaMART.fit has no argument 'group': .*group_sizes"),
        ("group_sizes", r"'group_sizes': pass them in fit\(RankingData\(X, y, group_sizes=…\)\)"),
        ("eval_group", r"eval_set takes \(X, y, qid\)"),
        ("callbacks", "observers are called after each round"),
        ("early_stopping_rounds", r"use patience .*: LambdaMART\(…\).fit\(…\)"),
        ("n_leaves", "LambdaMART.fit has no argument 'n_leaves'; pass parameters to the constructor"),
        ("zzz", "LambdaMART.fit has no argument 'zzz'$"),
    ],
)  # fmt: skip
def test_fit_names_the_replacement_of_other_tools_arguments(argument, message):
    with pytest.raises(podium.errors.ParameterError, match=message):
        LambdaMART().fit([[1.0]], [1], qid=[1], **{argument: 1})


@pytest.mark.parametrize(
    "name",
    ["AdditiveGroves", "Committee", "LambdaRank", "LinearRanker", "MART", "McRank", "OrdinalMART", "PRank", "Ranker",
     "RankNet", "RankNetTrees"],
)  # fmt: skip
def test_every_fit_names_the_replacement_of_group(name):
    if name in ("LambdaRank", "RankNet"):
        pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(podium.errors.ParameterError, match=rf"{name}.fit has no argument 'group': .*qid"):
        getattr(podium, name)().fit([[1.0]], [1], qid=[1], group=[1])


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("num_iteration", r"predict has no argument 'num_iteration': use predict\(X, n_trees=…\)"),
        ("iteration_range", r"predict\(X, n_trees=…\)"),
        ("pred_contrib", r"explain\(X\)"),
        ("n_tree", "did you mean 'n_trees'"),
    ],
)
def test_predict_names_the_replacement_of_other_tools_arguments(argument, message):
    data = podium.artificial(20, features=4)
    model = LambdaMART(2).fit(data)
    for predict in (model.predict, model.model_.predict):
        with pytest.raises(ParameterError, match=message):
            predict(data, **{argument: 1})
    others = (
        podium.LinearRanker(n_iterations=1),
        podium.AdditiveGroves(1, 1),
        podium.PRank(epochs=1),
        podium.McRank(1),
    )
    for other in others if argument != "n_tree" else ():
        with pytest.raises(ParameterError, match=message):
            other.fit(data).predict(data, **{argument: 1})


def test_a_submodel_that_clone_unfitted_is_named():
    data = podium.artificial(20, features=4)
    submodel = podium.LinearRanker(n_iterations=1).fit(data)
    assert clone(LambdaMART(2, submodel=submodel.model_)).fit(data).n_trees_ == 2
    with pytest.raises(DataError, match=r"this LinearRanker is not fitted.*pass its model, submodel=estimator.model_"):
        clone(LambdaMART(2, submodel=submodel)).fit(data)


@pytest.mark.parametrize("tool", translating.WITHOUT_COUNTERPART)
def test_no_declared_parameter_is_listed_as_unknown(tool):
    listed = {name for names in translating.WITHOUT_COUNTERPART[tool] for name in names.split()}
    verbose = {"verbosity", "verbose", "verbose_eval", "logging_level"}
    settings_of_the_tool = {*verbose, "enable_categorical"}  # they change nothing in a model, so they are dropped
    assert listed & set(hyperparameters.by_name(tool)) <= settings_of_the_tool
