"""Models of other tools: published examples with their scores, optional content, and damaged or hostile files."""

import base64
import gzip
import json
import re
import struct
import time
import tracemalloc

import numpy as np
import pytest

import podium
from podium.errors import DataError, FileFormatError
from podium.formats import export_model, formats, import_model
from podium.formats.trees import MAX_COPIES
from tests.commands import run
from tests.formats.data import CATEGORICAL, N_FEATURES, QID, X, Y

MISSING = np.nan


@pytest.fixture
def imported(tmp_path):
    """Return a function that imports a model from the content of a file."""

    def from_content(content, name=None, suffix="", **options):
        path = tmp_path / f"m{suffix}"
        if isinstance(content, dict | list):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return import_model(path, name, **options)

    return from_content


# --- Elasticsearch


def elastic_tree(names, *nodes):
    structure = [{"node_index": k, **node} for k, node in enumerate(nodes)]
    return {"tree": {"feature_names": names, "tree_structure": structure, "target_type": "regression"}}


def elastic_stump(name, threshold, left, right, decision="lt", *, default_left=True):
    split = {"split_feature": 0, "split_gain": 12, "threshold": threshold, "decision_type": decision,
             "default_left": default_left, "left_child": 1, "right_child": 2}  # fmt: skip
    return elastic_tree([name], split, {"leaf_value": left}, {"leaf_value": right})


def elastic_ensemble(names, *trees, **others):
    ensemble = {"feature_names": names, "target_type": "regression", "trained_models": list(trees)}
    return {"definition": {"trained_model": {"ensemble": ensemble | others}}}


STORE_NAMES = ["cost", "type_tv", "type_vcr", "type_laptop"]
STORE = elastic_ensemble(STORE_NAMES, elastic_stump("cost", 400, 5.0, 2.0, "lte"), elastic_stump("type_tv", 1, 1.0, 12))


class TestElasticsearch:
    def test_its_published_model(self, imported):
        """Model, documents and scores of Elasticsearch's own tests of learning to rank."""
        products = [("tv", 300), ("tv", 400), ("tv", 600), ("vcr", 15), ("vcr", 350), ("vcr", 580), ("laptop", 100),
                    ("laptop", 300), ("laptop", 500)]  # fmt: skip
        kinds = ["tv", "vcr", "laptop"]
        rows = [[cost, *(1.0986 if kind == other else MISSING for other in kinds)] for kind, cost in products]
        model = imported(STORE)
        assert model.feature_names == tuple(STORE_NAMES)
        assert model.predict(rows).tolist() == [17, 17, 14, 6, 6, 3, 6, 6, 3]

    def test_its_published_model_of_six_features(self, imported):
        trees = [elastic_stump("cost", 400, 5.0, 2.0, "lte"), elastic_stump("type_tv", 1, 1.0, 12.0),
                 elastic_stump("two", 1, 1.0, 2.0), elastic_stump("product_bm25", 1, 1.0, 4.0)]  # fmt: skip
        document = elastic_ensemble([*STORE_NAMES, "two", "product_bm25"], *trees)
        rows = [[300, 1, 0, 0, 2, MISSING], [400, 1, 0, 0, 2, MISSING], [150, 0, 1, 0, 2, MISSING],
                [180, 0, 1, 0, 2, MISSING], [15000, 0, 0, 1, 2, MISSING]]  # fmt: skip
        assert imported(document).predict(rows).tolist() == [20, 20, 9, 9, 6]
        document["definition"]["preprocessors"] = [{"one_hot_encoding": {"field": "product", "hot_map": {}}}]
        with pytest.raises(FileFormatError, match="preprocessors: one_hot_encoding"):
            imported(document)

    def test_a_tree_may_name_features_that_the_ensemble_does_not(self, imported):
        document = elastic_ensemble(["b"], elastic_stump("a", 0.5, 1.0, 2.0), elastic_stump("b", 0.5, 10.0, 20.0))
        model = imported(document)
        assert model.feature_names == ("b", "a")
        assert model.predict([[0, 1], [1, 0]]).tolist() == [12, 21]

    @pytest.mark.parametrize("decision", ["lt", "lte", "gt", "gte"])
    def test_comparisons_are_those_of_doubles(self, decision, imported):
        holds = {"lt": np.less, "lte": np.less_equal, "gt": np.greater, "gte": np.greater_equal}[decision]
        for threshold in (0.1, 0.3, 0.300000012, float(np.float32(0.3)), 0.0, -1.5, 1e-50, 16777217.0, 1e300):
            with np.errstate(over="ignore"):
                near = np.float32(threshold)
            x = np.array([near, np.nextafter(near, np.float32(-9)), np.nextafter(near, np.float32(9)), 0, np.nan])
            for default_left in (True, False):
                stump = elastic_stump("x", threshold, 1.0, 2.0, decision, default_left=default_left)
                goes_left = np.where(np.isnan(x), default_left, holds(x, threshold))
                assert imported(elastic_ensemble(["x"], stump)).predict(x[:, None]).tolist() == (2 - goes_left).tolist()

    def test_a_lone_tree_and_a_bare_definition(self, imported):
        lone = {"definition": {"trained_model": elastic_stump("x", 0.5, 1.0, 2.0)}}
        for document in (lone, lone["definition"]):
            assert imported(document).predict([[0.5], [0.4]]).tolist() == [2, 1]

    def test_compressed_definitions_and_responses_to_get(self, imported):
        compressed = base64.b64encode(gzip.compress(json.dumps(STORE["definition"]).encode())).decode()
        expected = imported(STORE).digest()
        for definition in (STORE, {"compressed_definition": compressed}):
            config = {"model_id": "m", "input": {"field_names": STORE_NAMES}, **definition}
            for document in (config, {"count": 1, "trained_model_configs": [config]}):
                assert imported(document).digest() == expected
        with pytest.raises(FileFormatError, match="2 models, but expected one"):
            imported({"count": 2, "trained_model_configs": [STORE, STORE]})
        with pytest.raises(FileFormatError, match="include=definition"):
            imported({"count": 1, "trained_model_configs": [{"model_id": "m"}]})
        with pytest.raises(FileFormatError, match="not valid gzip"):
            imported({"compressed_definition": base64.b64encode(b"no gzip").decode()})

    def test_counts_and_gains_are_read(self, imported):
        nodes = [{"split_feature": 0, "threshold": 0.5, "split_gain": 3.5, "left_child": 1, "right_child": 2,
                  "number_samples": 30}, {"leaf_value": [1.0], "number_samples": 10},
                 {"leaf_value": 2.0, "number_samples": 20}]  # fmt: skip
        arrays = imported(elastic_ensemble(["x"], elastic_tree(["x"], *nodes))).arrays
        assert (arrays["count"].tolist(), arrays["leaf_count"].tolist(), arrays["gain"].tolist()) == (
            [30],
            [10, 20],
            [3.5],
        )

    def test_nodes_are_found_by_their_place(self, imported):
        nodes = [{"split_feature": 0, "threshold": 0.5, "left_child": 1, "right_child": 2, "leaf_value": 7.0},
                 {"leaf_value": 1.0, "node_index": 2}, {"leaf_value": 2.0, "node_index": 1}]  # fmt: skip
        assert imported(elastic_ensemble(["x"], elastic_tree(["x"], *nodes))).predict([[0], [1]]).tolist() == [1, 2]

    @pytest.mark.parametrize(
        ("node", "problem"),
        [
            ({"split_feature": 1}, "feature has the number 1"), ({"split_feature": -1}, "feature has the number -1"),
            ({"left_child": -1}, "a node has the number -1"), ({"left_child": 0}, "reached twice"),
            ({"right_child": 7}, "a node has the number 7"), ({"decision_type": "eq"}, "compares by eq"),
            ({"threshold": None}, "not a valid elasticsearch model"),
        ],
        ids=str,
    )  # fmt: skip
    def test_wrong_nodes_are_refused(self, node, problem, imported):
        document = elastic_ensemble(["x"], elastic_stump("x", 0.5, 1.0, 2.0))
        document["definition"]["trained_model"]["ensemble"]["trained_models"][0]["tree"]["tree_structure"][0] |= node
        with pytest.raises(FileFormatError, match=problem):
            imported(document)

    def test_classes_and_other_aggregations_are_refused(self, imported):
        with pytest.raises(FileFormatError, match="combined by logistic_regression"):
            imported(elastic_ensemble(["x"], aggregate_output={"logistic_regression": {}}))
        stump = elastic_stump("x", 0.5, 0.0, 1.0)
        stump["tree"]["target_type"] = "classification"
        with pytest.raises(FileFormatError, match="tree 0 is for classification"):
            imported(elastic_ensemble(["x"], stump))
        with pytest.raises(FileFormatError, match="the ensemble is for classification"):
            imported(elastic_ensemble(["x"], elastic_stump("x", 0.5, 0.0, 1.0), target_type="classification"))


# --- Solr


def solr_model(names, *trees, norms=None, **params):
    features = [{"name": name, **({"norm": norms[name]} if name in (norms or {}) else {})} for name in names]
    entries = [{"weight": weight, "root": root} for weight, root in trees]
    return {"class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel", "name": "m", "features": features,
            "params": {"trees": entries, **params}}  # fmt: skip


def solr_split(feature, threshold, left, right, **others):
    left, right = ({"value": side} if isinstance(side, str) else side for side in (left, right))
    return {"feature": feature, "threshold": threshold, **others, "left": left, "right": right}


def solr_norm(kind, **params):
    return {"class": f"org.apache.solr.ltr.norm.{kind}", "params": params}


class TestSolr:
    def test_its_published_model(self, imported):
        """Model and scores of Solr's own tests: a title that matches or not, and a device that is missing."""
        device = solr_split("userDevice", "0f", "50", "65", missing="left")
        inner = solr_split("constant", "10.0f", device, "75", missing="left")
        trees = [("1f", solr_split("matchedTitle", "0.5f", "-100", inner, missing="right")), ("2f", {"value": "-10"})]
        names = ["matchedTitle", "constant", "userDevice"]
        rows = [[0, 1, 0], [1, 1, 0], [1, 1, 1], [1, 11, 0], [MISSING, MISSING, MISSING]]
        zero = imported(solr_model(names, *trees))
        assert zero.predict(rows).tolist() == [-120, 30, 45, 55, -120]
        with_sides = imported(solr_model(names, *trees, isNullSameAsZero="false"))
        assert with_sides.predict(rows).tolist() == [-120, 30, 45, 55, 30]

    def test_its_published_model_of_devices(self, imported):
        trees = [("1f", solr_split("phone", "0.5f", "0", "50", missing="right")),
                 ("1f", solr_split("tablet", "0.5f", "0", "65", missing="left"))]  # fmt: skip
        model = imported(solr_model(["phone", "tablet"], *trees))
        assert model.predict([[1, 0], [0, 1], [0, 0], [1, 1]]).tolist() == [50, 65, 0, 115]

    @pytest.mark.parametrize("text", ["0.5f", "0.5F", " 0.5d ", "5e-1f", "0.5", 0.5, ".5f", "+5.e-1"])
    def test_numbers_are_parsed_as_java_does(self, text, imported):
        model = imported(solr_model(["x"], (text, solr_split("x", text, "2f", "4"))))
        assert model.predict([[0.5], [0.6]]).tolist() == [1, 2]

    def test_a_point_may_end_a_number_before_its_type(self, imported):
        model = imported(solr_model(["x"], ("1.f", solr_split("x", "1.F", "2.d", "4.D"))))
        assert model.predict([[1.0], [1.5]]).tolist() == [2, 4]

    @pytest.mark.parametrize("text", ["1_0", "\u0663", "inf", "0x1p0", "", True, [1]], ids=repr)
    def test_what_java_does_not_parse_is_refused(self, text, imported):
        with pytest.raises(FileFormatError, match="is not a number that Java reads"):
            imported(solr_model(["x"], ("1", solr_split("x", text, "1", "2"))))

    @pytest.mark.parametrize(
        "node", [{}, {"threshold": "1"}, {"left": {"value": "1"}}, {"value": "3", "right": {"value": "2"}}], ids=str
    )
    def test_a_node_without_feature_and_value_is_refused(self, node, imported):
        with pytest.raises(FileFormatError, match="neither a split with a feature nor a leaf"):
            imported(solr_model(["x"], ("1", node)))
        with pytest.raises(FileFormatError, match="neither a split with a feature nor a leaf"):
            imported(solr_model(["x"], ("1", solr_split("x", "1", node, "2"))))

    @pytest.mark.parametrize(
        ("norm", "shift", "scale"),
        [
            (solr_norm("MinMaxNormalizer", min="0.1f", max="0.7f"), "0.1", np.float32("0.7") - np.float32("0.1")),
            (solr_norm("StandardNormalizer", avg="42", std="6"), "42", np.float32(6)),
            (solr_norm("StandardNormalizer", avg="-1e7", std="1e-3"), "-1e7", np.float32("1e-3")),
            (solr_norm("IdentityNormalizer"), "0", np.float32(1)),
        ],
    )  # fmt: skip
    def test_norms_are_folded_in(self, norm, shift, scale, imported):
        shift = np.float32(shift)
        for threshold in ("0.5", "-3f", "0", "1e30", "-1e38"):
            bound = np.float32(threshold[: -1 if threshold.endswith("f") else None]) + np.float32(1e-6)
            model = imported(solr_model(["x"], ("1", solr_split("x", threshold, "1", "2")), norms={"x": norm}))
            with np.errstate(over="ignore"):
                near = bound * scale + shift
                x = [np.float32(0), near]
                for _ in range(20):
                    x += [np.nextafter(x[-1], np.float32(9e37)), np.nextafter(x[-2], np.float32(-9e37))]
                x = np.array(x, np.float32)
                goes_left = (x - shift) / scale <= bound
            assert model.predict(x[:, None]).tolist() == (2 - goes_left).tolist()
            assert model.predict([[np.nan]]) == model.predict([[0.0]])

    def test_norms_of_linear_models(self, imported):
        norms = [solr_norm("MinMaxNormalizer", min="1", max="5"), solr_norm("StandardNormalizer", avg="3", std="2")]
        document = {"class": "org.apache.solr.ltr.model.LinearModel", "name": "m",
                    "features": [{"name": n, "norm": norm} for n, norm in zip("ab", norms, strict=True)],
                    "params": {"weights": {"a": 2.0, "b": "0.5f"}}}  # fmt: skip
        model = imported(document)
        assert model.predict([[1, 3], [5, 5], [MISSING, 3]]).tolist() == [0.0, 2.5, -0.5]

    @pytest.mark.parametrize(
        "norm",
        [solr_norm("MinMaxNormalizer", min="3", max="3"), solr_norm("MinMaxNormalizer", min="3", max="2"),
         solr_norm("MinMaxNormalizer", max="2"), solr_norm("StandardNormalizer", std="0"), solr_norm("MyNormalizer"),
         {"params": {"min": "0"}}],
        ids=str,
    )  # fmt: skip
    def test_other_norms_are_refused(self, norm, imported):
        with pytest.raises(FileFormatError, match="Solr normalizes 'x' by"):
            imported(solr_model(["x"], ("1", solr_split("x", "1", "1", "2")), norms={"x": norm}))


# --- Vespa


def dump_split(name, condition, yes, no, missing):
    children = [{"leaf": child} if isinstance(child, float) else child for child in (yes, no)]
    children = [child | {"nodeid": k + 1} for k, child in enumerate(children)]
    return {"nodeid": 0, "split": name, "split_condition": condition, "yes": 1, "no": 2, "missing": missing,
            "children": children}  # fmt: skip


def gbm_split(feature, threshold, left, right, *, default_left=True, missing="NaN"):
    left, right = ({"leaf_value": side} if isinstance(side, float) else side for side in (left, right))
    is_set = isinstance(threshold, str)
    return {"split_feature": feature, "threshold": threshold, "decision_type": "==" if is_set else "<=",
            "default_left": default_left and not is_set, "missing_type": missing, "left_child": left,
            "right_child": right}  # fmt: skip


def gbm_dump(names, *trees, **others):
    return {"name": "tree", "version": "v3", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0,
            "max_feature_idx": len(names) - 1, "average_output": False, "objective": "regression",
            "feature_names": names, "tree_info": [{"tree_index": k, "tree_structure": t} for k, t in enumerate(trees)],
            "pandas_categorical": None, **others}  # fmt: skip


REGRESSION = gbm_dump(
    ["numerical_1", "numerical_2", "categorical_1", "categorical_2"],
    gbm_split(1, 0.46643291586559305, 2.1594397038037663,
              gbm_split(3, "2||3||4", 2.235297305276056, 2.1792953471546546)),
    gbm_split(2, "3||4", 0.03070842919354316,
              gbm_split(0, 0.5102250691730842, -0.04439151147520909, 0.005117411709368601)),
    gbm_split(1, 0.668665477622446, gbm_split(1, 0.008118820676863816, -0.15361238490967524, -0.01192330846157292),
              0.03499044894987518),
    gbm_split(0, 0.5201391072644542, -0.02141000620783247,
              gbm_split(2, "0||1", -0.004121485787596721, 0.04534090904886873)),
    gbm_split(3, "2||3||4", gbm_split(1, 0.27283279016959255, -0.01924803254356527, 0.03643772842347651),
              -0.02701711918923075),
    pandas_categorical=[list("abcde"), list("ijklm")],
)  # fmt: skip


class TestVespa:
    @pytest.mark.parametrize("name", ["vespa", "lightgbm-json"])
    def test_its_published_lightgbm_model(self, name, imported):
        """A dump of version 3 and its scores in Vespa's tests: the splits show which columns are categorical."""
        pandas = pytest.importorskip("pandas")
        model = imported(REGRESSION, name)
        assert model.encoding.categories == {2: tuple("abcde"), 3: tuple("ijklm")}
        rows = [(MISSING, MISSING, None, None), (0.1, 0.2, "a", "i"), (MISSING, 0.5, "b", "j"), (0.7, 0.8, None, "m")]
        frame = pandas.DataFrame(rows, columns=REGRESSION["feature_names"])
        expected = [1.91300868, 2.05469776, 2.0745534, 2.3571838]
        assert model.predict(frame) == pytest.approx(expected, abs=1e-7)

    def test_its_published_xgboost_dump(self, imported):
        trees = [
            dump_split("f1", 0.5, dump_split("f2", 0.5, 1.0, 2.0, 1), dump_split("f2", 0.5, 3.0, 4.0, 1), 2),
            dump_split("f1", 1.5, 0.0, dump_split("f2", 0.5, 4.0, 5.0, 2), 2),
            dump_split("f2", 1.5, 0.0, dump_split("f1", 0.5, 4.0, 3.0, 2), 2),
        ]
        values = {(0, 0): 1, (0, 1): 2, (1, 0): 3, (1, 1): 4, (0, MISSING): 5, (1, MISSING): 6, (MISSING, 0): 7,
                  (MISSING, 1): 9, (MISSING, MISSING): 11}  # fmt: skip
        model = imported(trees)
        assert model.predict([[8.0, *row] for row in values]).tolist() == list(values.values())

    def test_missing_values_and_averages_are_read_as_in_vespa(self, imported):
        split = gbm_split(0, 0.5, 1.0, 2.0, default_left=False, missing="None")
        document = gbm_dump(["x"], split, split, average_output=True)
        rows = [[MISSING], [0.5], [0.4]]
        assert imported(document, "vespa").predict(rows).tolist() == [4, 4, 2]
        assert imported(document, "lightgbm-json").predict(rows).tolist() == [1, 1, 1]


# --- LightGBM, XGBoost


class TestLightGBM:
    def test_numeric_names_become_text(self, imported, tmp_path):
        stump = {"split_feature": 0, "threshold": 0.5, "decision_type": "<=", "default_left": True,
                 "left_child": {"leaf_value": 1}, "right_child": {"leaf_value": 2}}  # fmt: skip
        document = {"max_feature_idx": 1, "feature_names": [7, "b"], "tree_info": [{"tree_structure": stump}]}
        model = imported(document, "lightgbm-json")
        assert model.feature_names == ("7", "b")
        model.save(tmp_path / "model.podium")
        assert podium.load(tmp_path / "model.podium").digest() == model.digest()

    def test_names_of_version_3_whose_columns_are_uncertain_give_a_warning(self, imported):
        unused = REGRESSION | {"tree_info": REGRESSION["tree_info"][:1]}  # no split tests the first column
        with pytest.warns(podium.PodiumWarning, match="names for 2 columns, but 1 features"):
            assert not imported(unused).encoding

    def test_names_of_a_real_dump_without_its_infos(self, imported):
        lightgbm, pandas = pytest.importorskip("lightgbm"), pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=[f"f{k}" for k in range(N_FEATURES)])
        frame["f3"] = pandas.Categorical([f"c{int(k)}" for k in X[:, CATEGORICAL]])
        settings = {"objective": "regression", "verbose": -1, "min_data_per_group": 5, "num_threads": 1}
        booster = lightgbm.train(settings, lightgbm.Dataset(frame, Y), 5)
        document = booster.dump_model()
        del document["feature_infos"]
        assert np.allclose(imported(document).predict(frame), booster.predict(frame), rtol=1e-12, atol=1e-12)


@pytest.fixture(scope="module")
def booster():
    xgboost = pytest.importorskip("xgboost")
    settings = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
    return xgboost.train(settings, xgboost.DMatrix(X, Y > 0), 2)


class TestXGBoost:
    @pytest.mark.parametrize("objective", ["binary:logistic", "reg:logistic", "binary:logitraw"])
    @pytest.mark.parametrize("base_score", ["0", "1", "[0E0]", "0.3", "1e-9", "0.9999999"])
    def test_base_scores_are_moved_away_from_0_and_1_as_xgboost_does(self, base_score, objective, booster, imported):
        import xgboost

        document = json.loads(bytes(booster.save_raw("json")))
        document["learner"]["learner_model_param"]["base_score"] = base_score
        document["learner"]["objective"]["name"] = objective
        loaded = xgboost.Booster()
        loaded.load_model(bytearray(json.dumps(document).encode()))
        expected = loaded.predict(xgboost.DMatrix(X), output_margin=True)
        assert np.allclose(imported(document).predict(X), expected, rtol=1e-5, atol=1e-5)

    def test_base_scores_that_are_not_probabilities_are_refused(self, booster, imported):
        document = json.loads(bytes(booster.save_raw("json")))
        document["learner"]["learner_model_param"]["base_score"] = "1.5"
        with pytest.raises(FileFormatError, match=r"must be a probability, but is 1\.5"):
            imported(document)

    def test_numbers_that_are_read_as_missing_are_refused(self, booster, imported):
        xgboost = pytest.importorskip("xgboost")
        ranker = xgboost.XGBRanker(n_estimators=2, missing=99.0, n_jobs=1).fit(X, Y, qid=QID)
        with pytest.raises(DataError, match=r"the value 99\.0 as missing"):
            import_model(ranker)
        assert import_model(ranker.get_booster()).n_trees == 2
        assert import_model(ranker.set_params(missing=np.nan)).n_trees == 2
        document = json.loads(bytes(booster.save_raw("json")))
        for missing, refused in (("99", True), ("NaN", False)):
            document["learner"]["attributes"] = {"scikit_learn": f'{{"missing": {missing}, "n_estimators": 2}}'}
            if refused:
                with pytest.raises(FileFormatError, match="the value 99 as missing"):
                    imported(document)
            else:
                assert imported(document).n_trees == 2

    @pytest.mark.parametrize("change", [{"missing": 99}, {"yes": 2}, {"no": 1}, {"missing": None}], ids=str)
    def test_nodes_of_a_dump_need_two_children_and_one_for_missing_values(self, change, imported):
        with pytest.raises(FileFormatError, match="must have two different children"):
            imported([dump_split("f0", 0.5, 1.0, 2.0, 1) | change])


# --- how many features


RANKLIB = """## LambdaMART
<ensemble><tree id="1" weight="1"><split><feature>2</feature><threshold>0.5</threshold>
<split pos="left"><output>1.0</output></split><split pos="right"><output>2.0</output></split>
</split></tree></ensemble>"""


class TestWidth:
    """A file that does not state the number of features, and data with more features than the model uses."""

    def test_the_error_says_what_to_do(self, imported, tmp_path):
        model = imported(RANKLIB, suffix=".ranklib")
        model.save(tmp_path / "m.podium")
        for each in (model, podium.load(tmp_path / "m.podium")):
            with pytest.raises(DataError, match=r"does not state the number.*n_features=6"):
                each.predict(X)

    @pytest.mark.parametrize(
        ("content", "name"),
        [(RANKLIB, "ranklib"), ("## Linear Regression\n0:1.0 1:2.0", "ranklib"),
         (json.dumps([dump_split("f1", 0.5, 1.0, 2.0, 1)]), "xgboost-dump")],
    )  # fmt: skip
    def test_n_features_sets_the_width(self, content, name, imported):
        narrow, wide = imported(content, name), imported(content, name, n_features=N_FEATURES)
        assert wide.n_features == N_FEATURES
        assert np.array_equal(wide.predict(X), narrow.predict(X[:, : narrow.n_features]))
        with pytest.raises(DataError, match="the features that the model was trained on"):
            wide.predict(X[:, :3])
        with pytest.raises(FileFormatError, match=r"so n_features cannot be 0"):
            imported(content, name, n_features=0)

    def test_graphs_of_any_width(self, tmp_path):
        onnx = pytest.importorskip("onnx")
        trained = podium.LambdaMART(2, 3).fit(X, Y, qid=QID).model_
        export_model(trained, tmp_path / "m.onnx")
        assert import_model(tmp_path / "m.onnx", n_features=N_FEATURES).n_features == N_FEATURES
        with pytest.raises(FileFormatError, match="cannot be 9"):
            import_model(tmp_path / "m.onnx", n_features=9)
        graph = onnx.load(tmp_path / "m.onnx")
        graph.graph.input[0].type.tensor_type.shape.dim[1].Clear()
        onnx.save(graph, tmp_path / "m.onnx")
        assert import_model(tmp_path / "m.onnx", n_features=9).n_features == 9

    def test_a_stated_width_cannot_be_changed(self, imported, booster):
        with pytest.raises(FileFormatError, match="it has 4 features, so n_features cannot be 5"):
            imported(REGRESSION, n_features=5)
        with pytest.raises(FileFormatError, match="cannot be 5"):
            imported([dump_split("price", 0.5, 1.0, 2.0, 1)], n_features=5)  # features are matched by name
        with pytest.raises(DataError, match="cannot be 7"):
            import_model(booster, n_features=7)
        assert import_model(booster, n_features=6).n_features == 6
        with pytest.raises(DataError, match="n_features must be a whole number"):
            imported(RANKLIB, "ranklib", n_features=-1)

    def test_the_command_has_the_option(self, tmp_path):
        (tmp_path / "m.xml").write_text(RANKLIB)
        result = run("import", tmp_path / "m.xml", tmp_path / "m.podium", "--n-features", 5)
        assert result.returncode == 0
        assert podium.load(tmp_path / "m.podium").n_features == 5


# --- damaged and hostile files


def model_or_error(name, content, imported, most_bytes=1 << 24, **options):
    """Import a small file, quickly and in little memory; return the model or the error."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        model = imported(content, name, **options)
    except FileFormatError as error:
        model = error
    seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 5
    assert peak < most_bytes
    return model


TEXT = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={width}
objective=lambdarank
feature_names=f0 f1
feature_infos=none none

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
threshold=0.5 1.5
decision_type={kinds}
left_child={left}
right_child=-3 -2
leaf_value=1 2 3

end of trees
"""


class TestHostile:
    @pytest.mark.parametrize("width", [1, 16777215, 2000000000, 10**30])
    def test_wide_models_in_small_files(self, width, imported):
        split = gbm_split(0, 0.5, 1.0, 2.0)
        catboost = {"features_info": {"float_features": [
            {"feature_index": 0, "flat_feature_index": width, "nan_value_treatment": "AsIs", "borders": [0.5]}]},
            "oblivious_trees": [{"splits": [{"split_index": 0}], "leaf_values": [1.0, 2.0]}]}  # fmt: skip
        for name, content in (
            ("lightgbm", TEXT.format(width=width, kinds="2 10", left="1 -1")),
            ("lightgbm-json", gbm_dump(["x"], split, max_feature_idx=width)),
            ("vespa", gbm_dump(["x"], split, max_feature_idx=width)),
            ("catboost", catboost),
        ):  # fmt: skip
            model = model_or_error(name, content, imported)
            assert isinstance(model, FileFormatError) == (width > 16777215), name
        linear = model_or_error("ranklib", f"## Linear Regression\n{width}:1.0", imported, 1 << 25)
        assert isinstance(linear, FileFormatError) == (width > 1)

    @pytest.mark.parametrize(("kinds", "left"), [("2 10", "1 0"), ("4 4", "1 0"), ("4 6", "0 -1"), ("4 4", "1 9")])
    def test_cycles_of_lightgbm(self, kinds, left, imported):
        error = model_or_error("lightgbm", TEXT.format(width=1, kinds=kinds, left=left), imported)
        assert re.search("reached twice|has over .* nodes|has the number 9", str(error))

    @pytest.mark.parametrize("left", [[1, 0, -1], [0, -1, -1], [1, 1, -1], [1, 7, -1], [1, -2, -1]])
    def test_cycles_of_xgboost(self, left, imported):
        error = model_or_error("xgboost", xgboost_chain(left, [2, 2, -1]), imported)
        assert re.search("has over .* nodes|has the number", str(error))

    def test_copies_of_subtrees_are_limited_by_the_size_of_the_file(self, imported):
        """At a categorical node whose missing values go with the listed ones, the listed subtree is copied."""
        for depth, fits in ((6, True), (24, False)):
            left = [k for pair in ((2 * i + 1, -1) for i in range(depth)) for k in pair] + [-1]
            right = [k for pair in ((2 * i + 2, -1) for i in range(depth)) for k in pair] + [-1]
            model = model_or_error("xgboost", xgboost_chain(left, right), imported)
            if fits:
                assert model.predict([[0.0], [1.0], [np.nan]]).tolist() == [1, 12, 12]
            else:
                assert f"has over {MAX_COPIES * len(left):,} nodes" in str(model)
        deep = 0.5
        for _ in range(30):  # zeros go the other way than their neighbours
            deep = gbm_split(0, 1.0, deep, 2.0, default_left=False, missing="Zero")
        assert "has over" in str(model_or_error("lightgbm-json", gbm_dump(["x"], deep), imported))

    def test_overlapping_sets_are_refused(self, imported):
        document = json.loads(xgboost_chain([1, -1, -1], [2, -1, -1]))
        tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
        tree |= {
            "categories": [0] * 9,
            "categories_nodes": [0, 1],
            "categories_segments": [0, 0],
            "categories_sizes": [9, 9],
        }
        assert "9 categories are listed, but the nodes have 18" in str(model_or_error("xgboost", document, imported))
        text = TEXT.format(width=1, kinds="1 1", left="1 -1").replace("threshold=0.5 1.5", "threshold=0 0")
        text = text.replace("leaf_value", "cat_boundaries=0 1\ncat_threshold=7\nleaf_value")
        assert "sets of its categories overlap" in str(model_or_error("lightgbm", text, imported))

    @pytest.mark.parametrize("kind", [b"Z", b"T", b"F", b"N"])
    def test_ubjson_arrays_without_content(self, kind, imported):
        content = b"{" + b"U\x07learner" + b"[$" + kind + b"#L" + struct.pack(">q", 10**9) + b"}"
        assert "a type without content" in str(model_or_error("xgboost", content, imported, suffix=".ubj"))

    def test_identical_children_are_refused(self, imported):
        node = {"nodeid": 1, "leaf": 1.0}
        for _ in range(25):
            node = {
                "nodeid": 1,
                "split": "f0",
                "split_condition": 0.5,
                "yes": 1,
                "no": 1,
                "missing": 1,
                "children": [node],
            }
        assert "must have two different children" in str(model_or_error("xgboost-dump", [node], imported))

    def test_definitions_that_expand_to_a_huge_size(self, imported):
        compressed = base64.b64encode(gzip.compress(bytes(1 << 26))).decode()
        assert "expands to over 16,777,216 bytes" in str(
            model_or_error("elasticsearch", {"compressed_definition": compressed}, imported, 1 << 26)
        )

    @pytest.mark.parametrize("weight", ["inf", "nan", "-Infinity", "1e999"])
    def test_weights_of_linear_models_are_finite(self, weight, imported):
        with pytest.raises(FileFormatError, match="a weight is not a finite number"):
            imported(f"## Coordinate Ascent\n1:{weight} 2:0.5\n", "ranklib")

    @pytest.mark.parametrize("start", ["## LambdaMART\n<?xml ", "## LambdaMART\n<?xml", "## LambdaMART\n<!--"])
    def test_unclosed_declarations_take_little_time(self, start, imported):
        model_or_error("ranklib", start[:14] + start[14:] * 100_000, imported)

    @pytest.mark.parametrize("name", [name for name, each in formats().items() if each.can_read()])
    def test_random_numbers_in_every_format(self, name, tmp_path, imported):
        """Replace numbers at random: the result is a model that predicts or an error that names the file."""
        if name == "onnx":
            pytest.skip("its bytes are changed in test_formats.py")
        trained = podium.LambdaMART(3, 5, categorical=[CATEGORICAL]).fit(X, Y, qid=QID).model_
        options = {"missing": "zero"} if name in ("ranklib", "solr") else {}
        export_model(trained, tmp_path / "whole", format=name, **options)
        whole, rng = (tmp_path / "whole").read_text(), np.random.default_rng(0)
        places = [match.span() for match in re.finditer(r"(?<![\w.])-?\d+(\.\d+)?(e-?\d+)?(?![\w.])|true|false", whole)]
        for _ in range(120):
            first, last = places[rng.integers(len(places))]
            other = whole[slice(*places[rng.integers(len(places))])]
            value = rng.choice(["-1", "0", "1", "2", "2147483647", "1e308", "NaN", "null", "[]", "1" * 40, other])
            model = model_or_error(name, f"{whole[:first]}{value}{whole[last:]}", imported)
            if not isinstance(model, FileFormatError) and model.n_features <= 64:
                model.predict(
                    X[:2, : model.n_features] if model.n_features <= N_FEATURES else np.zeros((2, model.n_features))
                )


def xgboost_chain(left, right):
    """A document with one tree, whose inner nodes are categorical and send missing values to the listed side."""
    n = len(left)
    inner = [k for k in range(n) if left[k] != -1]
    tree = {"tree_param": {"num_nodes": str(n)}, "left_children": left, "right_children": right,
            "split_indices": [0] * n, "split_conditions": [float(k) for k in range(n)], "default_left": [0] * n,
            "categories": [1] * len(inner), "categories_nodes": inner, "categories_segments": list(range(len(inner))),
            "categories_sizes": [1] * len(inner)}  # fmt: skip
    booster = {"name": "gbtree", "model": {"trees": [tree]}}
    param = {"base_score": "0", "num_feature": "1"}
    return json.dumps({"learner": {"gradient_booster": booster, "learner_model_param": param,
                                   "objective": {"name": "rank:ndcg"}}})  # fmt: skip
