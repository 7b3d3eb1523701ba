"""Exported and imported models have the same scores as in the real libraries, or in independent evaluators."""

import json
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import podium
from podium.errors import DataError, FileFormatError, ParameterError, PodiumWarning
from podium.formats import check_export, export_model, formats, get_format, import_model
from podium.formats.solr import SLACK, without_slack
from podium.formats.trees import Leaf, SplitNode, below32, floor32, make_tree, raw_threshold, without_categories
from tests.formats import evaluators
from tests.formats.data import CATEGORICAL, N_FEATURES, QID, X, Y, hard_rows, random_rows

SETTINGS = {"n_trees": 12, "n_leaves": 12, "min_documents_in_leaf": 5}


@pytest.fixture(scope="module")
def models():
    """Return models of each kind with trees."""
    numeric = podium.LambdaMART(**SETTINGS).fit(X, Y, qid=QID).model_
    categorical = podium.LambdaMART(categorical=[CATEGORICAL], **SETTINGS).fit(X, Y, qid=QID).model_
    leaf = podium.models.Ensemble.of_trees([make_tree(0, lambda _: Leaf(0.25), "leaf"), numeric.tree(0)], N_FEATURES)
    on_submodel = podium.LambdaMART(submodel=numeric, **SETTINGS).fit(X, Y, qid=QID).model_
    stumps = podium.LambdaMART(n_trees=3, n_leaves=2).fit(X, Y, qid=QID).model_
    return {
        "numeric": numeric, "categorical": categorical, "one leaf": leaf, "on a submodel": on_submodel,
        "stumps": stumps, "no trees": numeric.truncate(0),
    }  # fmt: skip


KINDS = ("numeric", "categorical", "one leaf", "on a submodel", "stumps", "no trees")


def rows_for(model, **options):
    parts = model.parts if isinstance(model, podium.models.Combined) else (model,)
    return np.concatenate([hard_rows(part, **options) for part in parts])[:4000]


def plugin_scores(content, rows):
    return evaluators.plugin(content, rows, [f"f{k}" for k in range(N_FEATURES)])


# Formats without a Python library, and how closely float32 or double sums agree with Podium's.
ENGINES = [
    ("ranklib", {"missing": "zero"}, evaluators.ranklib, 1e-6), ("solr", {}, evaluators.solr, 1e-6),
    ("solr", {"missing": "zero"}, evaluators.solr, 1e-6), ("elasticsearch", {}, evaluators.elasticsearch, 1e-12),
    ("elasticsearch-plugin", {}, plugin_scores, 1e-6), ("opensearch", {}, plugin_scores, 1e-6),
    ("vespa", {}, evaluators.vespa, 1e-12),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
class TestExports:
    def test_lightgbm(self, kind, models, tmp_path):
        lightgbm = pytest.importorskip("lightgbm")
        model, rows = models[kind], rows_for(models[kind])
        export_model(model, tmp_path / "m.txt", format="lightgbm")
        if kind == "no trees":
            return
        scores = lightgbm.Booster(model_file=tmp_path / "m.txt").predict(rows)
        assert np.allclose(scores, model.predict(rows), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("suffix", [".json", ".ubj"])
    def test_xgboost(self, kind, suffix, models, tmp_path):
        xgboost = pytest.importorskip("xgboost")
        model, rows = models[kind], rows_for(models[kind], infinite=False)
        export_model(model, tmp_path / f"m{suffix}", format="xgboost")
        booster = xgboost.Booster(model_file=tmp_path / f"m{suffix}")
        types = ["float"] * N_FEATURES
        if kind == "categorical":
            types[CATEGORICAL] = "c"
        matrix = xgboost.DMatrix(
            rows, feature_names=booster.feature_names, feature_types=types, enable_categorical=True
        )
        assert np.allclose(booster.predict(matrix), model.predict(rows), rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("suffix", ["json", "cbm"])
    def test_catboost(self, kind, suffix, models, tmp_path):
        catboost = pytest.importorskip("catboost")
        model, rows = models[kind], rows_for(models[kind], infinite=False)
        if kind == "no trees":
            return
        path = tmp_path / f"m.{suffix}"
        export_model(model, path, format="catboost")
        scores = catboost.CatBoost().load_model(str(path), format=suffix).predict(rows)
        assert np.allclose(scores, model.predict(rows), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize(("version", "dtype", "tolerance"), [(5, np.float64, 1e-12), (3, np.float32, 1e-6)])
    def test_onnx(self, kind, version, dtype, tolerance, models, tmp_path):
        onnxruntime = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
        model, rows = models[kind], rows_for(models[kind])
        export_model(model, tmp_path / "m.onnx", version=version)
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
        scores = session.run(None, {"X": rows.astype(dtype)})[0].ravel()
        assert np.allclose(scores, model.predict(rows), rtol=tolerance, atol=tolerance)

    def test_treelite_reads_both_exports(self, kind, models, tmp_path):
        treelite = pytest.importorskip("treelite")
        model = models[kind]
        if kind in ("categorical", "no trees"):
            return
        rows = rows_for(model, infinite=False)
        export_model(model, tmp_path / "m.txt", format="lightgbm")
        export_model(model, tmp_path / "m.json", format="xgboost")
        for loaded in (
            treelite.frontend.load_lightgbm_model(tmp_path / "m.txt"),
            treelite.frontend.load_xgboost_model(tmp_path / "m.json", format_choice="json"),
        ):
            assert np.allclose(treelite.gtil.predict(loaded, rows).ravel(), model.predict(rows), rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize(("name", "options", "scores_of", "tolerance"), ENGINES)
    def test_engines(self, kind, name, options, scores_of, tolerance, models, tmp_path):
        model, zero = models[kind], options.get("missing") == "zero"
        rows = rows_for(model, missing=not zero, infinite=scores_of is not plugin_scores)[:600]
        export_model(model, tmp_path / "m", format=name, **options)
        scores = scores_of((tmp_path / "m").read_bytes(), rows)
        assert np.allclose(scores, model.predict(rows), rtol=tolerance, atol=tolerance)

    @pytest.mark.parametrize("definition", ["xgboost+json+raw", "ranklib"])
    @pytest.mark.parametrize("name", ["elasticsearch-plugin", "opensearch"])
    def test_other_definitions_of_plugins(self, kind, name, definition, models, tmp_path):
        model, is_text = models[kind], definition == "ranklib"
        rows = rows_for(model, infinite=False, missing=not is_text)[:600]
        written = export_model(
            model, tmp_path / "m", format=name, definition=definition, **{"missing": "zero"} if is_text else {}
        )
        content = (tmp_path / "m").read_bytes()
        text = json.loads(content)["model"]["model"]["definition"]
        scores = evaluators.ranklib(text.encode(), rows) if is_text else evaluators.raw_plugin(content, rows)
        assert np.allclose(scores, model.predict(rows), rtol=1e-5, atol=1e-6)
        n_features = N_FEATURES if is_text else None  # which RankLib's text does not state
        again = import_model(tmp_path / "m", format=name, n_features=n_features)
        assert np.allclose(again.predict(rows), scores, rtol=1e-6, atol=1e-6)
        assert any("in the model's order" in note or "keep this order" in note for note in written.notes)
        assert any("features are called" in note for note in written.notes) != is_text

    @pytest.mark.parametrize(
        "name", ["lightgbm", "lightgbm-json", "xgboost", "xgboost-dump", "catboost", "onnx", "solr"]
    )
    def test_exports_can_be_imported(self, kind, name, models, tmp_path):
        if name == "onnx":
            pytest.importorskip("onnx")
        if kind == "no trees" and name == "xgboost-dump":
            return
        model, rows = models[kind], rows_for(models[kind], infinite=name != "catboost")
        export_model(model, tmp_path / "m", format=name)
        again = import_model(tmp_path / "m", format=name)
        if again.n_features < N_FEATURES:  # a dump names only the features that its splits use
            rows = rows[:, : again.n_features]
            assert name == "xgboost-dump"
        tolerance = 1e-12 if name in ("lightgbm", "lightgbm-json", "catboost", "onnx") else 1e-6
        close = np.isclose(again.predict(rows), model.predict(rows_for(model, infinite=name != "catboost")),
                           rtol=tolerance, atol=tolerance)  # fmt: skip
        assert close.all() if name != "solr" else close.mean() > 0.95


class TestImports:
    @pytest.mark.parametrize(
        "settings",
        [
            {}, {"zero_as_missing": True}, {"use_missing": False}, {"boosting": "dart"},
            {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1, "objective": "regression"},
        ],
        ids=str,
    )  # fmt: skip
    def test_lightgbm(self, settings, tmp_path):
        lightgbm = pytest.importorskip("lightgbm")
        defaults = {"objective": "lambdarank", "num_leaves": 9, "verbose": -1, "min_data_per_group": 5, "cat_smooth": 1,
                  "max_cat_to_onehot": 1, "min_data_in_leaf": 5, "num_threads": 1}  # fmt: skip
        data = lightgbm.Dataset(X, Y, group=np.full(40, 30), categorical_feature=[CATEGORICAL])
        booster = lightgbm.train(defaults | settings, data, 10)
        booster.save_model(tmp_path / "m.txt")
        (tmp_path / "m.json").write_text(json.dumps(booster.dump_model()))
        model = import_model(booster)
        rows = hard_rows(model)
        expected = booster.predict(rows)
        for each in (model, import_model(tmp_path / "m.txt"), import_model(tmp_path / "m.json")):
            assert np.allclose(each.predict(rows), expected, rtol=1e-12, atol=1e-12)
        assert (model.arrays["category"] >= 0).any()

    def test_lightgbms_linear_trees_are_refused(self):
        lightgbm = pytest.importorskip("lightgbm")
        data = lightgbm.Dataset(np.nan_to_num(X), Y, group=np.full(40, 30))
        booster = lightgbm.train(
            {"objective": "regression", "linear_tree": True, "verbose": -1, "num_threads": 1}, data, 3
        )
        with pytest.raises(DataError, match="linear functions"):
            import_model(booster)

    @pytest.mark.parametrize("settings", [{}, {"booster": "dart", "rate_drop": 0.3}, {"base_score": 0.7}], ids=str)
    @pytest.mark.parametrize("categorical", [False, True])
    def test_xgboost(self, settings, categorical, tmp_path):
        xgboost = pytest.importorskip("xgboost")
        types = ["float"] * N_FEATURES
        types[CATEGORICAL] = "c" if categorical else "float"

        def matrix(rows):
            return xgboost.DMatrix(rows, feature_types=types, enable_categorical=True)

        data = matrix(X)
        data.set_label(Y)
        data.set_group(np.full(40, 30))
        defaults = {"objective": "rank:ndcg", "max_depth": 4, "max_cat_to_onehot": 1, "nthread": 1}
        booster = xgboost.train(defaults | settings, data, 10)
        model = import_model(booster)
        rows = hard_rows(model, infinite=False)
        expected = booster.predict(matrix(rows))
        for suffix in ("json", "ubj"):
            booster.save_model(tmp_path / f"m.{suffix}")
            assert np.allclose(import_model(tmp_path / f"m.{suffix}").predict(rows), expected, rtol=1e-5, atol=1e-6)
        assert np.allclose(model.predict(rows), expected, rtol=1e-5, atol=1e-6)
        assert (model.arrays["category"] >= 0).any() == categorical

    @pytest.mark.parametrize("parallel", [1, 2])
    def test_xgboost_stopped_early(self, parallel, tmp_path):
        """An `XGBRanker` predicts with the trees up to its best round, a `Booster` with all of them."""
        xgboost = pytest.importorskip("xgboost")
        ranker = xgboost.XGBRanker(
            n_estimators=60, max_depth=3, early_stopping_rounds=2, num_parallel_tree=parallel, subsample=0.7, n_jobs=1
        )
        noise = np.random.default_rng(0).permutation(Y)
        ranker.fit(X, Y, qid=QID, eval_set=[(X, noise)], eval_qid=[QID], verbose=False)
        booster, n_best = ranker.get_booster(), parallel * (ranker.best_iteration + 1)
        assert n_best < parallel * booster.num_boosted_rounds()
        ranker.save_model(tmp_path / "m.json")
        for model in (import_model(ranker), import_model(tmp_path / "m.json")):
            assert model.n_trees == n_best
            assert np.allclose(model.predict(X), ranker.predict(X), rtol=1e-5, atol=1e-6)
        with pytest.warns(PodiumWarning, match=rf"import booster\[:{ranker.best_iteration + 1}\]"):
            model = import_model(booster)
        assert np.allclose(model.predict(X), booster.predict(xgboost.DMatrix(X)), rtol=1e-5, atol=1e-6)
        assert import_model(booster[: ranker.best_iteration + 1]).n_trees == n_best

    @pytest.mark.parametrize("settings", [{}, {"grow_policy": "Lossguide"}, {"nan_mode": "Max"}], ids=str)
    def test_catboost(self, settings, tmp_path):
        catboost = pytest.importorskip("catboost")
        ranker = catboost.CatBoost(
            {"loss_function": "QueryRMSE", "iterations": 10, "depth": 4, "verbose": 0, "thread_count": 1,
             "allow_writing_files": False, **settings}
        )  # fmt: skip
        ranker.fit(catboost.Pool(X, Y, group_id=QID))
        ranker.save_model(str(tmp_path / "m.cbm"))
        model = import_model(ranker)
        rows = hard_rows(model, infinite=False)
        export_model(model, tmp_path / "n.cbm")
        for each in (model, import_model(tmp_path / "m.cbm"), import_model(tmp_path / "n.cbm")):
            assert np.allclose(each.predict(rows), ranker.predict(rows), rtol=1e-12, atol=1e-12)

    def test_binary_models_with_infinite_borders_cannot_be_imported(self, models, tmp_path):
        pytest.importorskip("catboost")
        export_model(models["numeric"], tmp_path / "m.cbm")
        with pytest.raises(FileFormatError, match=r"CatBoost cannot convert it to JSON.*inf"):
            import_model(tmp_path / "m.cbm")

    def test_catboosts_binary_models_need_catboost(self, models, tmp_path, monkeypatch):
        (tmp_path / "m.cbm").write_bytes(b"CBM1 and no more")
        with pytest.raises(FileFormatError, match=r"m\.cbm: CatBoost cannot convert it to JSON"):
            import_model(tmp_path / "m.cbm")
        monkeypatch.setitem(sys.modules, "catboost", None)
        with pytest.raises(podium.errors.MissingExtraError, match=r"binary format needs catboost"):
            import_model(tmp_path / "m.cbm")
        with pytest.raises(podium.errors.MissingExtraError, match=r"binary format needs catboost"):
            export_model(models["stumps"], tmp_path / "n.cbm")

    def test_linear_models_of_scikit_learn(self):
        from sklearn import linear_model, svm

        rows, above = np.nan_to_num(X).astype(np.float64), Y > 0
        for estimator in (linear_model.Ridge(), linear_model.Lasso(0.01), linear_model.LinearRegression(),
                          svm.SVR(kernel="linear")):  # fmt: skip
            model = import_model(estimator.fit(rows, Y))
            assert np.allclose(model.predict(rows), estimator.predict(rows), rtol=1e-9, atol=1e-9)
        classifier = linear_model.LogisticRegression().fit(pd.DataFrame(rows).add_prefix("x"), above)
        model = import_model(classifier)  # scores before the sigmoid
        assert model.feature_names[0] == "x0"
        assert np.allclose(model.predict(rows), classifier.decision_function(pd.DataFrame(rows).add_prefix("x")))
        sparse = import_model(linear_model.SGDClassifier().fit(rows, above).sparsify())
        assert sparse.weights.shape == (N_FEATURES,)
        for wrong, problem in (
            (linear_model.LogisticRegression().fit(rows, Y), "LogisticRegression has several outputs"),
            (linear_model.Ridge(), "Ridge is not fitted"),
            (svm.SVR().fit(rows, Y), "SVR has no feature weights"),
        ):
            with pytest.raises(DataError, match=problem):
                import_model(wrong)

    def test_scikit_learn(self):
        from sklearn import ensemble, tree

        filled = np.nan_to_num(X)
        for estimator, features in (
            (ensemble.GradientBoostingRegressor(n_estimators=10), filled),
            (ensemble.HistGradientBoostingRegressor(max_iter=10), X),
            (ensemble.RandomForestRegressor(10, max_depth=5), X),
            (ensemble.ExtraTreesRegressor(10, max_depth=5), filled),
            (tree.DecisionTreeRegressor(max_depth=5), X),
            (tree.ExtraTreeRegressor(max_depth=5), filled),
        ):
            estimator.fit(features, Y)
            model = import_model(estimator)
            rows = hard_rows(model, infinite=False, missing=features is X)
            assert np.allclose(model.predict(rows), estimator.predict(rows), rtol=1e-12, atol=1e-12)

    def test_scikit_learn_without_its_private_attributes(self):
        from sklearn.ensemble import HistGradientBoostingRegressor

        estimator = HistGradientBoostingRegressor(max_iter=2).fit(X, Y)
        del estimator._predictors
        with pytest.raises(DataError, match="this version of scikit-learn stores its trees differently"):
            import_model(estimator)

    def test_imported_models_can_do_what_others_can(self, models, tmp_path):
        export_model(models["numeric"], tmp_path / "m.txt", format="lightgbm")
        model = import_model(tmp_path / "m.txt")
        data = podium.RankingData(X, Y, qid=QID)
        assert model.truncate(3).n_trees == 3
        combination = podium.combine(model, models["stumps"], data, "ndcg@10")
        assert combination.value >= max(combination.values)
        on_top = podium.LambdaMART(2, submodel=model).fit(data)
        assert on_top.n_trees_ == 2
        model.save(tmp_path / "m.podium")
        assert podium.load(tmp_path / "m.podium").digest() == model.digest()


def filled(columns):
    """Return the training data without missing values in some columns."""
    rows = X.copy()
    rows[:, columns] = np.nan_to_num(rows[:, columns])
    return rows


class TestNeverMissing:
    """A format that reads missing values as 0 accepts a feature that was never missing in training."""

    def test_models_record_features_with_missing_values(self, models):
        assert models["numeric"].features_with_missing == {0, 1, 2, 4}
        assert models["numeric"].truncate(2).features_with_missing == {0, 1, 2, 4}
        assert podium.LambdaMART(2).fit(filled([0, 4]), Y, qid=QID).model_.features_with_missing == {1, 2}
        assert (
            podium.LambdaMART(2).fit(csr_matrix(filled([0, 1, 2, 4])), Y, qid=QID).model_.features_with_missing == set()
        )
        data = podium.RankingData(filled([1]), Y, qid=QID)
        committee = podium.Committee(members=[("lambda(ndcg)", 2)], n_trees=3).fit(data, valid=data)
        assert committee.model_.features_with_missing == {0, 2, 4}

    def test_model_files_keep_the_record_and_the_digest_ignores_it(self, models, tmp_path):
        model = models["numeric"]
        model.save(tmp_path / "m.podium")
        loaded = podium.models.load_model(tmp_path / "m.podium")
        assert loaded.features_with_missing == {0, 1, 2, 4}
        assert loaded.with_info(features_with_missing=[]).digest() == model.digest()
        assert loaded.with_info(features_with_missing="all").features_with_missing is None

    def test_imported_models_have_no_record(self, models, tmp_path):
        export_model(models["numeric"], tmp_path / "m.txt", format="lightgbm")
        assert import_model(tmp_path / "m.txt").features_with_missing is None

    def test_ranklib_accepts_features_that_were_never_missing(self, tmp_path):
        rows = np.nan_to_num(X)
        trained = podium.LambdaMART(**SETTINGS).fit(rows, Y, qid=QID).model_
        on_top = podium.LambdaMART(submodel=trained, **SETTINGS).fit(rows, Y, qid=QID).model_
        for model in (trained, on_top):
            written = export_model(model, tmp_path / "m", format="ranklib")
            assert "had no missing values in training" in written.missing
            scores = evaluators.ranklib((tmp_path / "m").read_bytes(), X[:300])
            assert np.allclose(scores, model.predict(rows[:300]), rtol=1e-5, atol=1e-6)
        unknown = trained.with_info(features_with_missing=None)
        for model in (unknown, podium.models.Combined((trained, unknown), (1.0, 1.0))):
            with pytest.raises(DataError, match="send a missing value to the other side"):
                export_model(model, tmp_path / "m", format="ranklib")

    def test_ranklib_refuses_one_feature_with_missing_values(self, tmp_path):
        model = podium.LambdaMART(**SETTINGS).fit(filled([0, 2, 4]), Y, qid=QID).model_
        with pytest.raises(DataError, match="such as one of 'f1'"):
            export_model(model, tmp_path / "m", format="ranklib")
        written = export_model(model, tmp_path / "m", format="ranklib", missing="zero")
        assert "it may go elsewhere in Podium" in written.missing

    def test_missing_values_go_right_and_category_0_by_its_set(self, tmp_path):
        entries = {0: SplitNode(0, 0.0, False, 1, 2, [0.0, 2.0]), 1: Leaf(1.0), 2: Leaf(2.0)}
        for categories, refused in (([0.0, 2.0], True), ([1.0, 2.0], False)):
            nodes = entries | {0: entries[0]._replace(categories=categories)}
            model = podium.models.Ensemble.of_trees([make_tree(0, nodes.__getitem__, "tree")], 1)
            if refused:
                with pytest.raises(DataError, match="send a missing value to the other side"):
                    export_model(model, tmp_path / "m", format="ranklib")
            else:
                assert "as in Podium" in export_model(model, tmp_path / "m", format="ranklib").missing


class TestRefusals:
    def test_missing_directions(self, models, tmp_path):
        with pytest.raises(DataError, match=r"send a missing value to the other side than 0.*missing='zero'"):
            export_model(models["numeric"], tmp_path / "m", format="ranklib")
        assert not list(tmp_path.iterdir())

    def test_classes_nets_and_base_scores(self, tmp_path):
        classes = podium.McRank(2).fit(X, Y, qid=QID).model_
        with pytest.raises(DataError, match="holds trees, but"):
            export_model(classes, tmp_path / "m", format="lightgbm")
        on_scores = (
            podium.LambdaMART(2, submodel=X[:, CATEGORICAL].astype(float), submodel_scale=1.0).fit(X, Y, qid=QID).model_
        )
        with pytest.raises(DataError, match="holds trees, but"):
            export_model(on_scores, tmp_path / "m", format="xgboost")

    def test_options_and_formats_that_do_not_exist(self, models, tmp_path):
        with pytest.raises(
            ParameterError, match=r"no option 'objektive'.*did you mean 'objective'.*options are objective"
        ):
            export_model(models["numeric"], tmp_path / "m", format="lightgbm", objektive="x")
        with pytest.raises(DataError, match="did you mean 'lightgbm'"):
            get_format("lightgmb")
        with pytest.raises(DataError, match=r"the suffix of m\.json does not determine the format"):
            export_model(models["numeric"], tmp_path / "m.json")
        (tmp_path / "x.bin").write_bytes(b"\0\1\2")
        with pytest.raises(FileFormatError, match="has an unknown format"):
            import_model(tmp_path / "x.bin")

    def test_entities_are_refused(self, tmp_path):
        bomb = (
            '## LambdaMART\n<!DOCTYPE x [<!ENTITY a "aaaa">]>\n<ensemble><tree id="1" weight="1">&a;</tree></ensemble>'
        )
        (tmp_path / "m.ranklib").write_text(bomb)
        with pytest.raises(FileFormatError, match="ENTITY"):
            import_model(tmp_path / "m.ranklib")

    @pytest.mark.parametrize(
        ("name", "suffix", "options"),
        [
            *((name, "", {}) for name in ("lightgbm", "lightgbm-json", "xgboost", "xgboost-dump", "catboost")),
            ("xgboost", ".ubj", {}), ("ranklib", "", {"missing": "zero"}), ("solr", "", {"missing": "zero"}),
            ("onnx", ".onnx", {"version": 5}), ("onnx", ".onnx", {"version": 3}),
        ],
    )  # fmt: skip
    def test_damaged_files_are_refused_or_safe(self, name, suffix, options, models, tmp_path):
        path = tmp_path / f"m{suffix}"
        if name == "onnx":
            pytest.importorskip("onnx")
        export_model(models["stumps"], path, format=name, **options)
        refuses_or_predicts(path, name)

    def test_damaged_graphs_without_trees_are_refused_or_safe(self, tmp_path):
        pytest.importorskip("onnx")
        neural = pytest.importorskip("podium.neural")
        net = neural.Net(neural.Layers(N_FEATURES, 3), neural.Inputs.fitted(X, "log"))
        for model in (podium.models.LinearModel(np.ones(N_FEATURES), np.zeros(N_FEATURES)), net):
            export_model(model, tmp_path / "m.onnx")
            refuses_or_predicts(tmp_path / "m.onnx", "onnx")


SIGNS, BYTES = b"0123456789-.[]{}<>,: \n", bytes([0, 1, 2, 8, 10, 0x7F, 0x80, 0xFF])


def refuses_or_predicts(path, name, n=150):
    """Change bytes at random: the result is an error that names the file or a model that predicts, in little memory."""
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    likely = BYTES if path.suffix else SIGNS
    tracemalloc.start()
    for _ in range(n):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), rng.integers(1, 4)):
            content[at] = rng.choice([*likely, int(rng.integers(0, 256))])
        path.write_bytes(content[: int(rng.integers(1, len(content) + 1))] if rng.random() < 0.2 else content)
        try:
            model = import_model(path, format=name)
        except FileFormatError:
            continue
        assert model.n_features <= 1 << 24
        if model.n_features <= 64:
            model.predict(np.zeros((2, model.n_features), np.float32))
    assert tracemalloc.get_traced_memory()[1] < 1 << 26
    tracemalloc.stop()


def test_each_format_lists_the_kinds_of_content_that_it_carries():
    from podium.formats.base import CARRIES

    for each in formats().values():
        assert set(each.carries) == (set(CARRIES) if each.can_write() else set())


@pytest.mark.parametrize("threshold", [1e-6, -1e-6, 0.0, 1e-45, 0.25, 3.4e38, -3.4e38])
def test_solrs_slack_is_subtracted_from_thresholds(threshold):
    threshold = np.float32(threshold)
    lowered, is_exact = without_slack(threshold)
    above = np.nextafter(lowered, np.float32(np.inf))
    assert lowered + SLACK <= threshold
    with np.errstate(over="ignore"):
        assert above + SLACK > threshold
    assert is_exact == (lowered + SLACK == threshold)


def test_thresholds_are_exact():
    rng = np.random.default_rng(0)
    bounds = np.concatenate([rng.normal(size=500), rng.normal(size=500).astype(np.float32), [0.0, -0.0, 1e-45, 3e38]])
    for bound in bounds.tolist():
        near = np.float32(bound)
        for x in (near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))):
            assert (float(x) <= bound) == (x <= floor32(bound))
            assert (float(x) < bound) == (x <= below32(bound))
        if np.isfinite(near):
            slack = without_slack(near)[0]
            assert np.float32(slack + np.float32(1e-6)) <= near


def test_thresholds_of_shifted_features():
    rng = np.random.default_rng(0)
    for shift in (1.7e9, -3e12, 0.1):
        for threshold in rng.normal(size=50).astype(np.float32) * np.float32(1000):
            raw = raw_threshold(threshold, shift)
            assert np.float32(raw - shift) <= threshold
            assert np.float32(np.nextafter(raw, np.inf) - shift) > threshold


def test_sets_of_categories_become_intervals(monkeypatch):
    entries = {0: SplitNode(0, 0.0, False, 1, 2, [2.0, 5.0, 6.0]), 1: Leaf(1.0), 2: SplitNode(1, 0.5, True, 3, 4, None),
               3: Leaf(2.0), 4: SplitNode(0, 0.0, False, 5, 6, [0.0, 3.0]), 5: Leaf(3.0), 6: Leaf(4.0)}  # fmt: skip
    tree = make_tree(0, entries.__getitem__, "tree")
    plain = without_categories(tree, "tree")
    assert (plain.category < 0).all()
    rows = random_rows(500, 3)[:, :2]
    rows[:, 0] = np.random.default_rng(4).choice([0, 1, 2, 3, 5, 6, 7, np.nan, 2.0000002, 1.9999999, -1], 500)
    with_sets, numeric = (podium.models.Ensemble.of_trees([t], 2) for t in (tree, plain))
    assert np.array_equal(with_sets.predict(rows), numeric.predict(rows))
    monkeypatch.setattr("podium.formats.trees.MAX_NODES_WITH_COPIES", 5)
    with pytest.raises(DataError, match="over 5 nodes"):
        without_categories(tree, "tree")


def test_the_page_has_a_table_of_what_each_format_carries():
    from podium.formats.base import CARRIES

    header = ["format", "what it is", "in", "out", *CARRIES]
    rows = [
        [f"`{name}`", each.title, "yes" if each.can_read() else "from memory" if each.reads_objects() else "",
         "yes" if each.can_write() else "", *(each.carries.get(content, "") for content in CARRIES)]
        for name, each in formats().items()
    ]  # fmt: skip
    table = "".join(f"| {' | '.join(line)} |\n" for line in [header, ["---"] * len(header), *rows])
    page = (Path(__file__).parent.parent.parent / "docs" / "formats.md").read_text()
    assert table in page, f"put this table into docs/formats.md:\n{table}"


@pytest.mark.parametrize("name", [name for name, each in formats().items() if each.can_write()])
def test_exports_are_checked(name, models, tmp_path):
    if name == "onnx":
        pytest.importorskip("onnx")
    options = {"missing": "zero"} if name in ("ranklib", "solr") else {}
    data = podium.RankingData(np.nan_to_num(X), Y, qid=QID)
    export_model(models["numeric"], tmp_path / "m", format=name, **options)
    check = check_export(models["numeric"], tmp_path / "m", name, data)
    assert check.largest_difference < 1e-5
    assert check.changed_queries == ()
    other = podium.LambdaMART(3).fit(data).model_
    assert check_export(other, tmp_path / "m", name, data).changed_queries
    assert "rankings change" in str(check_export(other, tmp_path / "m", name, data))


def test_linear_models(tmp_path):
    linear = podium.LinearRanker().fit(np.nan_to_num(X), Y, qid=QID).model_
    rows = np.nan_to_num(X)
    for name in ("ranklib", "solr", "elasticsearch-plugin", "opensearch"):
        export_model(linear, tmp_path / "m", format=name)
        again = import_model(tmp_path / "m", format=name)
        gap = linear.predict(rows) - again.predict(rows)
        assert np.ptp(gap) < 1e-9  # some have no constant, which changes no ranking
    onnxruntime = pytest.importorskip("onnxruntime")
    export_model(linear, tmp_path / "m.onnx")
    scores = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"X": X.astype(np.float64)})[0].ravel()
    assert np.allclose(scores, linear.predict(X), rtol=1e-12, atol=1e-12)


def test_estimators_export_too(tmp_path):
    ranker = podium.LambdaMART(2).fit(X, Y, qid=QID)
    assert ranker.export(tmp_path / "m.lgb").format == "lightgbm"
    assert np.array_equal(import_model(tmp_path / "m.lgb").predict(X), ranker.predict(X))


class TestNothingIsLostSilently:
    def test_base_scores_of_other_scales_are_refused(self, models, tmp_path):
        export_model(models["stumps"], tmp_path / "m.json", format="xgboost")
        document = json.loads((tmp_path / "m.json").read_text())
        document["learner"]["objective"]["name"] = "count:poisson"
        (tmp_path / "m.json").write_text(json.dumps(document))
        with pytest.raises(FileFormatError, match="scale of the base score"):
            import_model(tmp_path / "m.json")

    def test_other_aggregations_of_trees_are_refused(self, models, tmp_path):
        onnx = pytest.importorskip("onnx")
        for version in (3, 5):
            export_model(models["stumps"], tmp_path / "m.onnx", version=version)
            model = onnx.load(tmp_path / "m.onnx")
            for attribute in model.graph.node[0].attribute:
                if attribute.name == "aggregate_function":
                    attribute.s, attribute.i = b"MAX", 3
            onnx.save(model, tmp_path / "max.onnx")
            with pytest.raises(FileFormatError, match="trees are combined by"):
                import_model(tmp_path / "max.onnx")

    def test_normalized_features_of_solr_are_refused(self, models, tmp_path):
        export_model(models["stumps"], tmp_path / "m", format="solr")
        document = json.loads((tmp_path / "m").read_text())
        document["features"][0]["norm"] = {"class": "org.apache.solr.ltr.norm.MinMaxNormalizer"}
        (tmp_path / "m").write_text(json.dumps(document))
        with pytest.raises(FileFormatError, match="Solr normalizes 'f0'"):
            import_model(tmp_path / "m")

    def test_weights_of_trees_in_elasticsearch_count(self, models, tmp_path):
        export_model(models["stumps"], tmp_path / "m", format="elasticsearch")
        document = json.loads((tmp_path / "m").read_text())
        ensemble = document["definition"]["trained_model"]["ensemble"]
        ensemble["aggregate_output"]["weighted_sum"]["weights"] = [2.0] * len(ensemble["trained_models"])
        (tmp_path / "m").write_text(json.dumps(document))
        scores = import_model(tmp_path / "m").predict(X)
        assert np.allclose(scores, 2 * models["stumps"].predict(X))

    def test_wrong_definitions_of_plugins_are_refused(self, models, tmp_path):
        linear = podium.models.LinearModel(np.ones(2), np.zeros(2))
        with pytest.raises(DataError, match="definition must be 'xgboost\\+json', 'xgboost\\+json\\+raw' or 'ranklib'"):
            export_model(models["stumps"], tmp_path / "m", format="opensearch", definition="xgboost")
        with pytest.raises(DataError, match="only with definition='ranklib'"):
            export_model(models["stumps"], tmp_path / "m", format="elasticsearch-plugin", missing="zero")
        with pytest.raises(DataError, match="holds trees, but LinearModel"):
            export_model(linear, tmp_path / "m", format="opensearch", definition="xgboost+json+raw")
        export_model(linear, tmp_path / "m", format="opensearch", definition="ranklib")
        again = import_model(tmp_path / "m", format="opensearch")
        assert again.predict([[1.0, 2.0]]) == [3.0]

    def test_plugins_read_no_base_score_and_leaves_from_base_weights(self, tmp_path):
        xgboost = pytest.importorskip("xgboost")
        data = xgboost.DMatrix(X, Y, feature_names=[f"f{k}" for k in range(N_FEATURES)])
        settings = {"objective": "reg:logistic", "base_score": 0.7, "nthread": 1}
        booster = xgboost.train(
            settings | {"max_depth": 2}, xgboost.DMatrix(X, Y > 0, feature_names=data.feature_names), 3
        )
        document = json.loads(booster.save_raw("json"))
        for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
            tree["base_weights"] = [2 * weight for weight in tree["base_weights"]]
        model = {"type": "model/xgboost+json+raw", "definition": json.dumps(document)}
        (tmp_path / "m").write_text(json.dumps({"model": {"name": "m", "model": model}}))
        scores = import_model(tmp_path / "m", format="opensearch").predict(X)
        expected = 2 * (booster.predict(data, output_margin=True) - np.log(0.7 / 0.3))
        assert np.allclose(scores, expected, rtol=1e-5, atol=1e-5)

    def test_missing_as_zero_is_read(self, models, tmp_path):
        export_model(models["numeric"], tmp_path / "m", format="opensearch", missing="zero")
        again = import_model(tmp_path / "m", format="opensearch")
        rows = X[:, : again.n_features]
        assert np.allclose(again.predict(rows), models["numeric"].predict(np.nan_to_num(X)), atol=1e-6)

    def test_a_note_names_the_normalization_of_training_data(self, models, tmp_path):
        model = models["numeric"].with_info(reading={"normalize": "minmax"})
        written = export_model(model, tmp_path / "m", format="lightgbm")
        assert any("normalized within each query (minmax)" in note for note in written.notes)
        assert export_model(models["numeric"], tmp_path / "m", format="lightgbm").notes == ()

    @pytest.mark.parametrize("name", ["elasticsearch", "elasticsearch-plugin", "opensearch", "solr", "vespa"])
    def test_a_note_says_that_feature_names_are_generated(self, tmp_path, name):
        ensemble = podium.LambdaMART(2).fit(podium.artificial(20, features=4)).model_
        for names, generated in ((None, "f0, f1, f2, …"), (("1", "2", "3", "4"), "1, 2, 3, …"), (tuple("abcd"), None)):
            notes = export_model(replace(ensemble, feature_names=names), tmp_path / "m", format=name).notes
            note = f"features are called {generated}: use these names in the engine, or train with feature names"
            assert [text for text in notes if "called" in text] == [note] * bool(generated)

    def test_leaves_beyond_float32_are_refused(self, tmp_path):
        huge = podium.models.Ensemble.of_trees([make_tree(0, lambda _: Leaf(1e100), "leaf")], 1)
        with pytest.raises(DataError, match="beyond their range"):
            export_model(huge, tmp_path / "m", format="ranklib")


@pytest.mark.parametrize(
    "name", ["lightgbm", "lightgbm-json", "xgboost", "xgboost-dump", "catboost", "solr", "elasticsearch"]
)
def test_a_format_is_detected_from_the_file(name, models, tmp_path):
    export_model(models["stumps"], tmp_path / "m", format=name)
    model = import_model(tmp_path / "m")
    rows = X[:, : model.n_features]
    assert np.allclose(model.predict(rows), models["stumps"].predict(X), atol=1e-6)
