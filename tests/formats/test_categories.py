"""Categories by name: frames with a categorical column predict as in the tool that the model came from."""

import json
import warnings

import numpy as np
import pytest

import podium
from podium.errors import FileFormatError, PodiumWarning
from podium.formats import check_export, export_model, formats, import_model

pd = pytest.importorskip("pandas")
N = 600
SITES, YEARS = ["news", "blog", "shop", "wiki"], [2024, 2019, 2021]


def frame(seed=0, sites=SITES, years=YEARS):
    rng = np.random.default_rng(seed)
    columns = {
        "bm25": rng.normal(size=N),
        "site": pd.Categorical(rng.choice(np.array([*sites, None], object), N)),
        "year": pd.Categorical(rng.choice(np.array([*years, None], object), N)),
        "length": rng.integers(0, 5, N),
    }
    return pd.DataFrame(columns)


def labels(data):
    values = {"news": 1.5, "blog": -1.0, "shop": 0.3, 2024: 1.0, 2019: -0.7}
    terms = [data[name].astype(object).map(lambda value: values.get(value, 0.1)) for name in ("site", "year")]
    return np.round(np.clip(sum(terms) + 0.3 * data["bm25"] + 2, 0, 4))


TRAIN = frame()
FRAMES = {
    "the same": TRAIN,
    "other rows": frame(1),
    "fewer categories, in another order": frame(2, sites=["wiki", "news"], years=[2021]),
    "missing ones": TRAIN.assign(site=pd.Categorical([None] * N, categories=SITES)),
}
UNSEEN = frame(3, sites=["news", "forum", "video"], years=[2024, 1999])


@pytest.fixture(scope="module")
def lightgbm_booster():
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"objective": "lambdarank", "verbose": -1, "min_data_per_group": 5, "cat_smooth": 1,
                "min_data_in_leaf": 5, "max_cat_to_onehot": 1, "num_threads": 1}  # fmt: skip
    return lightgbm.train(settings, lightgbm.Dataset(TRAIN, labels(TRAIN), group=[30] * 20), 10)


@pytest.fixture(scope="module")
def xgboost_booster():
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(TRAIN, label=labels(TRAIN), group=[30] * 20, enable_categorical=True)
    settings = {"objective": "rank:ndcg", "max_depth": 4, "max_cat_to_onehot": 1, "nthread": 1}
    return xgboost.train(settings, data, 10)


def forms_of(booster, folder, suffixes):
    """The same model from memory and from files."""
    yield import_model(booster)
    for suffix in suffixes:
        booster.save_model(folder / f"m{suffix}")
        yield import_model(folder / f"m{suffix}")


class TestLightGBM:
    def test_frames_predict_alike(self, lightgbm_booster, tmp_path):
        (tmp_path / "dump.json").write_text(json.dumps(lightgbm_booster.dump_model()))
        for model in (*forms_of(lightgbm_booster, tmp_path, [".txt"]), import_model(tmp_path / "dump.json")):
            assert (model.arrays["category"] >= 0).any()
            assert model.encoding.categories[2] == ("2019", "2021", "2024")
            for rows in (*FRAMES.values(), UNSEEN):
                assert np.allclose(model.predict(rows), lightgbm_booster.predict(rows), rtol=1e-12, atol=1e-12)

    def test_an_export_and_import_keep_category_names(self, lightgbm_booster, tmp_path):
        model = import_model(lightgbm_booster)
        for name in ("lightgbm", "lightgbm-json"):
            export_model(model, tmp_path / "m", format=name)
            again = import_model(tmp_path / "m", format=name)
            assert again.encoding == model.encoding
            assert np.array_equal(again.predict(UNSEEN), model.predict(UNSEEN))
        model.save(tmp_path / "m.podium")
        assert podium.load(tmp_path / "m.podium").encoding == model.encoding

    def test_names_are_dropped_if_their_columns_are_unknown(self, lightgbm_booster):
        lightgbm = pytest.importorskip("lightgbm")
        ordered = TRAIN.assign(site=TRAIN["site"].cat.as_ordered())
        data = lightgbm.Dataset(ordered, labels(TRAIN), group=[30] * 20)
        booster = lightgbm.train({"objective": "lambdarank", "verbose": -1, "num_threads": 1}, data, 5)
        with pytest.warns(PodiumWarning, match="names for 2 columns, but 1 features"):
            model = import_model(booster)
        numbers = np.column_stack([
            ordered[name].cat.codes.replace(-1, np.nan) if name in ("site", "year") else ordered[name]
            for name in ordered.columns
        ])  # fmt: skip
        assert np.allclose(model.predict(numbers), booster.predict(ordered), rtol=1e-12, atol=1e-12)

    def test_damaged_names_are_refused(self, lightgbm_booster, tmp_path):
        text = lightgbm_booster.model_to_string()
        for part, replacement, match in (
            ('[["blog"', "[[[", "not a valid lightgbm"), ("max_feature_idx=3", "max_feature_idx=1", "feature"),
        ):  # fmt: skip
            assert part in text
            (tmp_path / "m.txt").write_text(text.replace(part, replacement))
            with pytest.raises(FileFormatError, match=match):
                import_model(tmp_path / "m.txt")


class TestXGBoost:
    def test_frames_predict_alike(self, xgboost_booster, tmp_path):
        xgboost = pytest.importorskip("xgboost")
        with pytest.warns(PodiumWarning, match="treats them as missing"):
            models = list(forms_of(xgboost_booster, tmp_path, [".json", ".ubj"]))
        for model in models:
            assert (model.arrays["category"] >= 0).any()
            assert model.encoding.categories == {1: tuple(sorted(SITES)), 2: ("2019", "2021", "2024")}
            for rows in FRAMES.values():
                expected = xgboost_booster.predict(xgboost.DMatrix(rows, enable_categorical=True))
                assert np.allclose(model.predict(rows), expected, rtol=1e-5, atol=1e-6)

    def test_unseen_categories_are_missing(self, xgboost_booster):
        with pytest.warns(PodiumWarning, match="not in the training data"):
            model = import_model(xgboost_booster)
        as_missing = UNSEEN.assign(**{
            name: pd.Categorical(UNSEEN[name].astype(object).where(UNSEEN[name].isin(categories)))
            for name, categories in (("site", SITES), ("year", YEARS))
        })  # fmt: skip
        assert np.array_equal(model.predict(UNSEEN), model.predict(as_missing))

    def test_names_that_are_not_ascii_are_dropped(self):
        xgboost = pytest.importorskip("xgboost")
        rows = TRAIN.assign(site=TRAIN["site"].cat.rename_categories({"news": "nöws"}))
        data = xgboost.DMatrix(rows, label=labels(TRAIN), group=[30] * 20, enable_categorical=True)
        booster = xgboost.train({"objective": "rank:ndcg", "nthread": 1}, data, 2)
        with pytest.warns(PodiumWarning, match="ASCII"):
            assert not import_model(booster).encoding

    def test_damaged_names_are_refused(self, xgboost_booster, tmp_path):
        document = json.loads(xgboost_booster.save_raw("json"))
        encoded = document["learner"]["gradient_booster"]["model"]["cats"]["enc"]
        for change in ([0, 9, 4, 12, 16], [0, 4, 8, 12, 10**12]):
            encoded[1]["offsets"] = change
            (tmp_path / "m.json").write_text(json.dumps(document))
            with pytest.raises(FileFormatError, match="names of the categories of feature 1"):
                import_model(tmp_path / "m.json")

    def test_numeric_frames_do_not_warn(self):
        xgboost = pytest.importorskip("xgboost")
        data = xgboost.DMatrix(TRAIN[["bm25", "length"]], label=labels(TRAIN), group=[30] * 20)
        booster = xgboost.train({"objective": "rank:ndcg", "nthread": 1}, data, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not import_model(booster).encoding


@pytest.mark.parametrize("name", [name for name, each in formats().items() if each.can_write()])
def test_exports_of_models_with_category_names_pass_the_check(name, tmp_path):
    if name == "onnx":
        pytest.importorskip("onnx")
    data = podium.RankingData(TRAIN, labels(TRAIN), qid=np.repeat(np.arange(20), 30))
    model = podium.LambdaMART(n_trees=3, n_leaves=5).fit(data).model_
    assert model.encoding.categories
    export_model(model, tmp_path / "m", format=name, **{"missing": "zero"} if name == "ranklib" else {})
    present = data.take(np.flatnonzero(~np.isnan(data.features).any(axis=1))) if name == "ranklib" else data
    assert check_export(model, tmp_path / "m", name, present).largest_difference < 1e-5
