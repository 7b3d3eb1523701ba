"""Exports of random trees score every double as Podium does, at thresholds as well as infinite and missing ones."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

import podium
from podium.data.encoding import Encoding
from podium.errors import FileFormatError, PodiumWarning
from podium.formats import check_export, export_model
from podium.formats.consumers import LIBRARIES, RULES, consumer_of
from podium.formats.solr import without_slack
from podium.formats.trees import (
    Leaf,
    SplitNode,
    highest_double,
    lowest_double,
    make_tree,
    raw_threshold,
    without_infinity,
)
from tests.formats import evaluators

f32, LARGEST, TINY = np.float32, float(np.finfo(np.float32).max), float(np.finfo(np.float32).smallest_subnormal)
N_FEATURES, CATEGORICAL = 3, 2
LABELS = [f"f{k}" for k in range(N_FEATURES)]
SPECIAL = [0.0, -0.0, 1.0, TINY, -TINY, 1e-7, -3e-7, 1e-35, LARGEST, -LARGEST, np.inf, -np.inf]

thresholds = st.one_of(st.sampled_from(SPECIAL), st.floats(width=32, allow_nan=False), st.floats(-2, 2, width=32))
numeric = st.tuples(st.integers(0, CATEGORICAL - 1), thresholds, st.booleans(), st.none())
sets = st.tuples(
    st.just(CATEGORICAL), st.just(0.0), st.just(False), st.lists(st.integers(0, 40), min_size=1, max_size=4)
)
leaves = st.integers(-50, 50)  # sums of few whole numbers are exact in any arithmetic


@st.composite
def trees(draw, *, with_sets=True):
    """Return a tree as nested tuples: splits are (test, left, right)."""
    shape = st.recursive(leaves, lambda inner: st.tuples(numeric | sets if with_sets else numeric, inner, inner),
                         max_leaves=6)  # fmt: skip
    return draw(shape)


def as_tree(nested):
    nodes = [nested]

    def node(key):
        entry = nodes[key]
        if isinstance(entry, int):
            return Leaf(float(entry))
        (feature, threshold, missing_left, categories), left, right = entry
        nodes.extend((left, right))
        return SplitNode(feature, threshold, missing_left, len(nodes) - 2, len(nodes) - 1, categories)

    return make_tree(0, node, "tree")


@st.composite
def models(draw, **options):
    nested = draw(st.lists(trees(**options), min_size=1, max_size=4))
    return podium.models.Ensemble.of_trees([as_tree(tree) for tree in nested], N_FEATURES)


def values_near(model, feature):
    """Return doubles that reveal a wrong comparison with a threshold of a feature."""
    arrays = model.arrays
    exact = arrays["threshold"][(arrays["feature"] == feature) & (arrays["category"] < 0)]
    with np.errstate(over="ignore"):
        near = np.concatenate([exact, np.nextafter(exact, f32(np.inf)), np.nextafter(exact, f32(-np.inf))])
    ends = np.concatenate([highest_double(near), lowest_double(near)])
    around = [ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf)]
    return np.unique(np.concatenate([near.astype(float), *around, SPECIAL, [1e300, -1e300]]))


def rows_near(model, n=400, *, missing=True):
    rng = np.random.default_rng(0)
    columns = [rng.choice(values_near(model, k), n) for k in range(CATEGORICAL)]
    rows = np.column_stack([*columns, rng.integers(0, 42, n).astype(float)])
    if missing:
        rows[rng.random(rows.shape) < 0.2] = np.nan
    return rows


def quietly(model, path, name, **options):
    """Export without warnings of differences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)
        return export_model(model, path, format=name, **options)


FORMATS = [
    ("lightgbm", {}), ("lightgbm-json", {}), ("xgboost", {}), ("xgboost-dump", {}), ("catboost", {}),
    ("ranklib", {"missing": "zero"}), ("solr", {}), ("solr", {"missing": "zero"}), ("onnx", {"version": 5}),
    ("onnx", {"version": 3}), ("elasticsearch", {}), ("elasticsearch-plugin", {}), ("opensearch", {}),
    ("opensearch", {"missing": "zero"}), ("vespa", {}), ("elasticsearch-plugin", {"definition": "xgboost+json+raw"}),
    ("opensearch", {"definition": "ranklib", "missing": "zero"}),
]  # fmt: skip
examples = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def announced_differences(name, model, rows, written):
    """Return the rows whose values may go elsewhere than in Podium, as the export says."""
    numbers = rows[:, :CATEGORICAL]
    if name == "catboost" and written.differences:
        return np.isinf(f32(numbers)).any(axis=1)
    if name == "lightgbm" and written.differences:
        return ((np.abs(numbers) <= f32(1e-35)) & (numbers != 0)).any(axis=1)
    differs = np.zeros(len(rows), bool)
    if name == "solr" and any("Solr adds" in text for text in (*written.notes, *written.differences)):
        arrays = model.arrays
        for feature, threshold in zip(arrays["feature"], arrays["threshold"], strict=True):
            reached = f32(without_slack(threshold)[0] + f32(1e-6))
            differs |= (f32(rows[:, feature]) > reached) & (f32(rows[:, feature]) <= threshold)
    return differs


@pytest.mark.parametrize(("name", "options"), FORMATS, ids=str)
@pytest.mark.parametrize("by", ["the library", "its rules"])
@examples
@given(model=models())
def test_every_double_goes_where_podium_sends_it(name, options, by, model, tmp_path, monkeypatch):
    if by == "its rules":
        if name not in RULES:
            pytest.skip("only its library scores it")
        monkeypatch.setattr("podium.formats.consumers.LIBRARIES", {})
    elif name not in LIBRARIES:
        pytest.skip("it has no library")
    path = tmp_path / ("m.onnx" if name == "onnx" else "m.json")
    with np.errstate(over="ignore"):
        zero = options.get("missing") == "zero"
        rows = rows_near(model, missing=not zero)
        written = quietly(model, path, name, **options)
        scores = consumer_of(path, name, model)[1](rows)
        same = ~announced_differences(name, model, rows, written)
        expected = model.predict(rows)
    assert np.array_equal(scores[same], expected[same])


INDEPENDENT = {
    "ranklib": evaluators.ranklib, "solr": evaluators.solr, "elasticsearch": evaluators.elasticsearch,
    "vespa": evaluators.vespa, "elasticsearch-plugin": lambda content, rows: evaluators.plugin(content, rows, LABELS),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEPENDENT)
@examples
@given(model=models())
def test_rules_agree_with_independent_evaluators(name, model, tmp_path):
    rows = rows_near(model, 60)
    quietly(model, tmp_path / "m", name, **{"missing": "zero"} if name == "ranklib" else {})
    with np.errstate(over="ignore"):
        scores = consumer_of(tmp_path / "m", name, model)[1](rows)
        expected = INDEPENDENT[name]((tmp_path / "m").read_bytes(), rows)
    assert np.array_equal(scores, expected)


@examples
@given(st.one_of(st.sampled_from([f32(x) for x in SPECIAL]), st.floats(width=32, allow_nan=False).map(f32)))
def test_the_doubles_that_round_to_a_float32(value):
    low, high = float(lowest_double(np.array(value))), float(highest_double(np.array(value)))
    with np.errstate(over="ignore"):
        assert f32(low) == f32(high) == value
        assert high == np.inf or f32(np.nextafter(high, np.inf)) > value
        assert low == -np.inf or f32(np.nextafter(low, -np.inf)) < value


@examples
@given(st.floats(-1e6, 1e6, width=32), st.floats(-1e13, 1e13))
def test_thresholds_of_values_before_a_shift(threshold, shift):
    raw = raw_threshold(f32(threshold), shift)
    assert f32(raw - shift) <= f32(threshold)
    assert f32(np.nextafter(raw, np.inf) - shift) > f32(threshold)


@examples
@given(nested=trees())
def test_trees_without_infinity_are_the_same(nested):
    tree = as_tree(nested)
    finite = without_infinity(tree, "tree")
    assert (finite.threshold[finite.category < 0] < np.inf).all()
    original, rewritten = (podium.models.Ensemble.of_trees([t], N_FEATURES) for t in (tree, finite))
    rows = rows_near(original)
    assert np.array_equal(original.predict(rows), rewritten.predict(rows))


def split_of_missing():
    """Return a model that sends every value left, and a missing value right."""
    split = SplitNode(0, np.inf, False, 1, 2)
    return podium.models.Ensemble.of_trees(
        [make_tree(0, {0: split, 1: Leaf(1.0), 2: Leaf(2.0)}.__getitem__, "tree")], 1
    )


@pytest.mark.parametrize(("name", "options"), FORMATS, ids=str)
def test_infinity_is_not_a_missing_value(name, options, tmp_path):
    model, path = split_of_missing(), tmp_path / ("m.onnx" if name == "onnx" else "m.json")
    written = quietly(model, path, name, **options)
    rows = np.array([[-np.inf], [-LARGEST], [0.0], [LARGEST], [1e300], [np.inf], [np.nan]])
    scores = consumer_of(path, name, model)[1](rows)
    assert scores[:-1].tolist() == [1.0] * 6 if name != "catboost" else scores[1:4].tolist() == [1.0] * 3
    assert scores[-1] == (2.0 if options.get("missing") != "zero" and name != "ranklib" else 1.0)
    if name.endswith("json") or name in ("vespa", "elasticsearch"):
        json.loads(path.read_text(), parse_constant=pytest.fail)  # Infinity is not JSON
    assert bool(written.differences) == (name == "catboost")


@pytest.mark.parametrize("missing_left", [True, False])
def test_the_warning_names_the_infinity_that_catboost_reads_as_missing(missing_left, tmp_path):
    votes = [SplitNode(0, 0.0, missing_left, 1, 2)] * 2 + [SplitNode(0, 1.0, not missing_left, 1, 2)]
    trees = [make_tree(0, {0: split, 1: Leaf(1.0), 2: Leaf(2.0)}.__getitem__, "tree") for split in votes]
    model = podium.models.Ensemble.of_trees(trees, 1, feature_names=("age",))
    with pytest.warns(
        PodiumWarning, match=f"treats {'−' if missing_left else '[+]'}∞ as a missing value in feature age"
    ):
        export_model(model, tmp_path / "m", format="catboost")
    rows = np.array([[-np.inf], [np.inf], [np.nan], [-LARGEST], [LARGEST]])
    differs = consumer_of(tmp_path / "m", "catboost", model)[1](rows) != model.predict(rows)
    assert differs.tolist() == [missing_left, not missing_left, False, False, False]


def test_the_warning_names_small_values_that_go_the_other_way_in_solr(tmp_path):
    split = SplitNode(0, 3e-14, True, 1, 2)
    tree = make_tree(0, {0: split, 1: Leaf(1.0), 2: Leaf(2.0)}.__getitem__, "tree")
    model = podium.models.Ensemble.of_trees([tree], 1, feature_names=("rate",))
    with pytest.warns(PodiumWarning, match=r"those of 'rate' above 0 and up to 2.99999995e-14. Multiply"):
        export_model(model, tmp_path / "m", format="solr")


def test_the_warning_names_values_that_lightgbm_reads_as_zero(tmp_path):
    tree = make_tree(0, {0: SplitNode(0, 1e-40, True, 1, 2), 1: Leaf(1.0), 2: Leaf(2.0)}.__getitem__, "tree")
    model = podium.models.Ensemble.of_trees([tree], 1, feature_names=("rate",))
    with pytest.warns(PodiumWarning, match="within 1e-35 of 0 as 0: those of feature rate"):
        export_model(model, tmp_path / "m", format="lightgbm")


QID = np.repeat(np.arange(20), 30)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("names", [None, ("1", "2", "3")])
def test_xgboost_accepts_arrays_if_features_have_no_names(suffix, names, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(600, 2)), rng.integers(0, 6, 600)])
    labels = (rows[:, 0] > 0) + np.isin(rows[:, 2], [1, 4])
    data = podium.RankingData(rows, labels, qid=QID, feature_names=names)
    for categorical in ([], [2]):
        model = podium.LambdaMART(n_trees=5, categorical=categorical).fit(data).model_
        assert (model.arrays["category"] >= 0).any() == bool(categorical)
        export_model(model, tmp_path / f"m.{suffix}", format="xgboost")
        booster = xgboost.Booster(model_file=tmp_path / f"m.{suffix}")
        assert booster.feature_names is None
        assert np.allclose(booster.predict(xgboost.DMatrix(rows)), model.predict(rows), atol=1e-6)
        ranker = xgboost.XGBRanker()
        ranker.load_model(tmp_path / f"m.{suffix}")
        assert np.allclose(ranker.predict(rows), model.predict(rows), atol=1e-6)


def with_names(sites=("news", "blog", "shop", "wiki")):
    """Return a model with category names, and its data."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"bm25": rng.normal(size=600), "site": pd.Categorical(rng.choice(sites, 600))})
    data = podium.RankingData(frame, (frame["site"] == sites[0]) + (frame["bm25"] > 1), qid=QID)
    model = podium.LambdaMART(n_trees=3, n_leaves=5).fit(data).model_
    assert (model.arrays["category"] >= 0).any()
    return model, data


class TestNamesOfCategories:
    @pytest.mark.parametrize(
        "name", ["onnx", "elasticsearch", "solr", "catboost", "xgboost", "ranklib", "opensearch", "xgboost-dump"]
    )
    def test_notes_list_their_numbers(self, name, tmp_path):
        model, data = with_names()
        options = {"missing": "zero"} if name == "ranklib" else {}
        written = export_model(model, tmp_path / "m", format=name, **options)
        assert written.categories == {"site": ["blog", "news", "shop", "wiki"]}
        note = "categories of 'site' are numbers: 'blog' is 0, 'news' is 1, 'shop' is 2, 'wiki' is 3; any other"
        assert note in str(written)
        assert check_export(model, written.path, name, data).changed_queries == ()

    def test_a_note_lists_100_and_the_export_has_all(self, tmp_path):
        names = tuple(f"site {k}" for k in range(1000))
        model = podium.models.Ensemble.of_trees([as_tree(0)], 1, encoding=Encoding({0: names}))
        written = export_model(model, tmp_path / "m", format="solr")
        assert "'site 99' is 99, … (1,000 in all" in str(written)
        assert written.categories["f0"][999] == "site 999"

    def test_files_hold_category_names(self, tmp_path):
        model, _ = with_names()
        expected = {"site": ["blog", "news", "shop", "wiki"]}

        def exported(name, **options):
            return export_model(model, tmp_path / "m", format=name, **options).path

        body = json.loads(exported("elasticsearch").read_text())
        assert body["metadata"]["podium_categories"] == expected
        comments = [line for line in exported("ranklib", missing="zero").read_text().splitlines() if line[:2] == "##"]
        assert f"## podium_categories = {json.dumps(expected)}" in comments
        attributes = json.loads(exported("xgboost").read_text())["learner"]["attributes"]
        if xgboost := pytest.importorskip("xgboost"):
            assert xgboost.Booster(model_file=bytearray((tmp_path / "m").read_bytes())).attributes() == attributes
        assert json.loads(attributes["podium_categories"]) == expected
        onnx = pytest.importorskip("onnx")
        (entry,) = onnx.load_model_from_string(exported("onnx").read_bytes()).metadata_props
        assert (entry.key, json.loads(entry.value)) == ("podium_categories", expected)
        catboost = pytest.importorskip("catboost")
        metadata = catboost.CatBoost().load_model(str(exported("catboost")), format="json").get_metadata()
        assert json.loads(metadata["podium_categories"]) == expected

    def test_vespa_compares_strings_with_names(self, tmp_path):
        model, data = with_names()
        written = export_model(model, tmp_path / "m", format="vespa")
        assert written.categories == {}
        assert any("'site' is compared with category names" in note for note in written.notes)
        rows = np.nan_to_num(data.features[:200]).astype(float)
        scores = evaluators.vespa((tmp_path / "m").read_bytes(), rows, model.encoding.categories)
        assert np.allclose(scores, model.predict(data)[:200], rtol=1e-12)
        assert check_export(model, tmp_path / "m", "vespa", data).largest_difference == 0.0

    def test_vespa_compares_numbers_where_names_would_break_its_expression(self, tmp_path):
        model, data = with_names(("a", 'b"c', "d"))
        written = export_model(model, tmp_path / "m", format="vespa")
        assert written.categories == {"site": ["a", 'b"c', "d"]}
        assert '"=="' not in (tmp_path / "m").read_text()
        assert check_export(model, tmp_path / "m", "vespa", data).largest_difference == 0.0


class TestCheck:
    def data(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(600, 2))
        rows[rng.random(rows.shape) < 0.2] = np.nan
        return podium.RankingData(rows, (np.nan_to_num(rows[:, 0]) > 0) + np.isnan(rows[:, 1]), qid=QID)

    def test_doubles_that_round_to_the_data_are_scored(self, tmp_path):
        """Thresholds that are exact for float32 values alone score doubles otherwise."""
        data = self.data()
        model = podium.LambdaMART(n_trees=5).fit(data).model_
        assert (model.arrays["threshold"] == np.inf).any()
        export_model(model, tmp_path / "m", format="lightgbm-json")
        check = check_export(model, tmp_path / "m", "lightgbm-json", data)
        assert check.largest_difference == 0.0
        assert set(check.probes.values()) == {0.0}
        document = json.loads((tmp_path / "m").read_text())
        rounded = json.loads(
            json.dumps(document),
            object_hook=lambda d: d | {"threshold": float(f32(d["threshold"]))} if "threshold" in d else d,
        )
        (tmp_path / "m").write_text(json.dumps(rounded))
        assert check_export(model, tmp_path / "m", "lightgbm-json", data).probes["at thresholds"] > 0.01

    def test_a_score_that_is_nan_is_an_infinite_difference(self, tmp_path):
        """The file has no score for the document that the model ranks last, so the order alone does not show it."""
        data = podium.RankingData([[0.0], [1.0]] * 20, [0, 1] * 20, qid=np.repeat(np.arange(20), 2))
        model = podium.LambdaMART(n_trees=1, n_leaves=2, min_documents_in_leaf=1).fit(data).model_
        export_model(model, tmp_path / "m", format="lightgbm-json")
        document = json.loads((tmp_path / "m").read_text())
        document["tree_info"][0]["tree_structure"]["left_child"]["leaf_value"] = np.nan
        (tmp_path / "m").write_text(json.dumps(document))
        check = check_export(model, tmp_path / "m", "lightgbm-json", data)
        assert check.largest_difference == np.inf
        assert len(check.changed_queries) == 20

    @pytest.mark.parametrize("name", ["lightgbm-json", "xgboost", "onnx", "ranklib", "solr"])
    def test_a_damaged_file_is_named(self, name, tmp_path):
        data = podium.artificial(5, features=2)
        model = podium.LambdaMART(n_trees=2, n_leaves=4, min_documents_in_leaf=2).fit(data).model_
        written = export_model(model, tmp_path / "m", format=name)
        written.path.write_bytes(written.path.read_bytes()[:-60])
        with pytest.raises(FileFormatError, match=f"m: cannot be scored as {name} "):
            check_export(model, written.path, name, data)

    def test_the_result_names_the_library_or_rules(self, tmp_path):
        data = self.data()
        model = podium.LambdaMART(n_trees=5).fit(data).model_
        for name, by in (("lightgbm", "LightGBM"), ("xgboost", "XGBoost"), ("vespa", "the rules of vespa")):
            export_model(model, tmp_path / "m", format=name)
            check = check_export(model, tmp_path / "m", name, data)
            assert check.scored_by == by
            assert max(check.largest_difference, *check.probes.values()) < 1e-6

    def test_notes_say_that_missing_values_count_as_zero(self, tmp_path):
        data = self.data()
        model = podium.LambdaMART(n_trees=5).fit(data).model_
        export_model(model, tmp_path / "m", format="ranklib", missing="zero")
        check = check_export(model, tmp_path / "m", "ranklib", data)
        assert min(check.largest_difference, check.probes["missing"]) > 0.01
        assert check.changed_queries

    def test_blocks_of_queries_change_nothing(self, tmp_path, monkeypatch):
        data = self.data()
        model = podium.LambdaMART(n_trees=5).fit(data).model_
        export_model(model, tmp_path / "m", format="ranklib", missing="zero")
        whole = check_export(model, tmp_path / "m", "ranklib", data)
        monkeypatch.setattr("podium.formats.checking.BLOCK", 100)
        assert check_export(model, tmp_path / "m", "ranklib", data) == whole

    def test_sparse_data_sums_of_trees_and_shifted_features(self, tmp_path):
        data = self.data()
        rows = np.nan_to_num(data.features).astype(float)
        sparse = podium.RankingData(csr_matrix(rows), data.relevance, qid=QID)
        first = podium.LambdaMART(n_trees=3).fit(sparse).model_
        stamps = podium.RankingData(
            np.column_stack([rows[:, 0], 1.7e9 + np.arange(600) / 16]),
            data.relevance + (np.arange(600) % 7 > 3),
            qid=QID,
        )
        shifted = podium.LambdaMART(n_trees=5).fit(stamps).model_
        assert shifted.encoding.shifts
        for model, scored in ((podium.models.Combined((first, first), (2.0, 0.5)), sparse), (shifted, stamps)):
            for name in ("lightgbm", "vespa", "elasticsearch"):
                export_model(model, tmp_path / "m", format=name)
                check = check_export(model, tmp_path / "m", name, scored)
                assert max(check.largest_difference, *check.probes.values()) < 1e-12

    def test_other_models_have_no_probes(self, tmp_path):
        data = podium.artificial(20, features=3)
        model = podium.LinearRanker().fit(data).model_
        export_model(model, tmp_path / "m", format="ranklib")
        check = check_export(model, tmp_path / "m", "ranklib", data)
        assert (check.scored_by, check.probes) == ("the weights of ranklib", {})
        assert check.largest_difference < 1e-5

    @pytest.mark.slow
    def test_real_data_as_doubles(self, real_data, tmp_path):
        """Rows as a consumer reads them from the text, in double: one in 3,538 went another way once."""
        lightgbm, onnxruntime = pytest.importorskip("lightgbm"), pytest.importorskip("onnxruntime")
        model = podium.LambdaMART().fit(podium.read([real_data / "ohsumed" / f"S{k}.txt.gz" for k in (1, 2, 3)])).model_
        rows = load_svmlight_file(str(real_data / "ohsumed" / "S5.txt.gz"), n_features=25)[0].toarray()
        assert (rows != rows.astype(f32)).any()
        expected = model.predict(rows)
        model.export(tmp_path / "m.lgb")
        assert np.array_equal(lightgbm.Booster(model_file=tmp_path / "m.lgb").predict(rows), expected)
        model.export(tmp_path / "m.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # several threads add the trees in another order
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options)
        assert np.array_equal(session.run(None, {"X": rows})[0].ravel(), expected)
