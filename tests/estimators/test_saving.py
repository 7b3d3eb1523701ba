"""Saved estimators are restored; if a parameter is code, the file only gives the model."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from sklearn.base import clone

import podium
from podium import DataError, FileFormatError, LambdaMART, PodiumWarning
from podium.boosting import Gradient
from podium.measures import NDCG
from podium.objectives import Hinge, Pairwise, Regression
from tests.models import hostile

FEW = {"n_trees": 3, "n_leaves": 4}
RANKERS = {
    "lambdamart": lambda: LambdaMART(**FEW, measure=NDCG(5), metrics=("ap", podium.ERR(3)), monotone={0: 1}),
    "objective": lambda: LambdaMART(**FEW, objective=Pairwise(Hinge(0.5)), step=Gradient(normalize=False)),
    "graded": lambda: LambdaMART(**FEW, measure="ndcg@3>ap~0.01", max_delta_step=np.float64(2.0)),
    "submodel": lambda: LambdaMART(**FEW, submodel={0: 1.0}),
    "ranker": lambda: podium.Ranker(n_trees=3, n_folds=2, verbose=0),
    "trees": lambda: podium.RankNetTrees(**FEW),
    "mart": lambda: podium.MART(**FEW),
    "mcrank": lambda: podium.McRank(**FEW),
    "boundaries": lambda: podium.McRank(**FEW, form="ordinal"),
    "ordinal": lambda: podium.OrdinalMART(**FEW),
    "groves": lambda: podium.AdditiveGroves(n_groves=2, n_trees_in_grove=2),
    "prank": lambda: podium.PRank(epochs=2),
    "linear": lambda: podium.LinearRanker(n_iterations=3),
    "svm": lambda: podium.LinearRanker(objective="svm_map(threshold=2)", l2=0.1),
    "adarank": lambda: podium.estimators.AdaRank(n_iterations=3),
    "rankboost": lambda: podium.estimators.RankBoost(n_trees=3),
    "committee": lambda: podium.Committee(members=[("lambda(ndcg)", 1), ("xendcg", 1)], **FEW, patience=None),
    "net": lambda: podium.RankNet(hidden=2, epochs=1, n_threads=1),
}  # fmt: skip


@pytest.fixture(scope="module")
def data():
    return podium.artificial(30, documents=12, features=4).replace(feature_names=tuple("abcd"))


@pytest.fixture(scope="module")
def valid():
    return podium.artificial(10, documents=12, features=4, part="valid").replace(feature_names=tuple("abcd"))


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


@pytest.mark.filterwarnings("ignore::podium.errors.PodiumWarning")  # few trees
@pytest.mark.parametrize("kind", RANKERS)
def test_estimators_are_restored(kind, data, valid, tmp_path):
    if kind == "net":
        pytest.importorskip("torch")
    ranker = RANKERS[kind]().fit(data, valid=valid)
    ranker.save(tmp_path / "m.podium")
    loaded = podium.load(tmp_path / "m.podium")
    assert type(loaded) is type(ranker)
    parameters = ranker.get_params(deep=False) | {"verbose": None}
    assert {name: same(value, loaded.get_params(deep=False)[name]) for name, value in parameters.items()} == (
        dict.fromkeys(parameters, True) | ({"max_delta_step": False} if kind == "graded" else {})  # a NumPy float
    )
    fitted = {name: value for name, value in vars(ranker).items() if name.endswith("_") and name != "model_"}
    assert {"history_", "best_iteration_", "n_features_in_", "feature_names_in_"} <= set(fitted)
    assert {name for name in fitted if not same(fitted[name], getattr(loaded, name, None))} <= {"tried_", "settings_"}
    if kind == "committee":
        assert podium.Committee(**loaded.settings_).fit(data, valid=valid).digest() == ranker.digest()
        with pytest.raises(DataError, match="has no trials"):
            loaded.tried_table()
    assert loaded.digest() == ranker.digest()
    assert np.array_equal(loaded.predict(valid), ranker.predict(valid))
    assert loaded.score(valid) == ranker.score(valid)
    assert np.array_equal(loaded.feature_importances_, ranker.feature_importances_)
    loaded.save(tmp_path / "again.podium")
    assert (tmp_path / "again.podium").read_bytes() == (tmp_path / "m.podium").read_bytes()
    assert clone(loaded).fit(data, valid=valid).digest() == ranker.digest()
    ranker.model_.save(tmp_path / "bare.podium")
    for bare in (podium.load(tmp_path / "bare.podium"), podium.models.load_model(tmp_path / "m.podium")):
        assert type(bare) is type(ranker.model_)
        assert bare.digest() == ranker.digest()


def test_classes_of_a_classifier_are_restored(data, tmp_path):
    labels = np.where(data.relevance > 1, "good", "bad")
    model = podium.MARTClassifier(n_trees=2, n_leaves=3).fit(data.features, labels)
    model.save(tmp_path / "m.podium")
    loaded = podium.load(tmp_path / "m.podium")
    assert loaded.classes_.tolist() == ["bad", "good"]
    assert np.array_equal(loaded.predict(data.features), model.predict(data.features))
    assert np.array_equal(loaded.predict_proba(data.features), model.predict_proba(data.features))


class OwnObjective(Regression):
    pass


class OwnRanker(LambdaMART):
    pass


@pytest.mark.parametrize(
    ("ranker", "words"),
    [
        (LambdaMART(**FEW, submodel=lambda data: data.feature("a")), r"its submodel \(<lambda>\) is not data"),
        (LambdaMART(**FEW, objective=OwnObjective()), "its objective .OwnObjective. cannot be written as text"),
        (OwnRanker(**FEW), "OwnRanker is not a Podium class"),
    ],
)
def test_an_estimator_with_code_gives_the_model_with_a_warning(ranker, words, data, tmp_path):
    ranker.fit(data).save(tmp_path / "m.podium")
    with pytest.warns(PodiumWarning, match=f"loaded the model instead of its estimator: {words}"):
        loaded = podium.load(tmp_path / "m.podium")
    assert loaded.digest() == ranker.digest()
    assert podium.models.load_model(tmp_path / "m.podium").digest() == ranker.digest()


def test_a_submodel_that_is_a_model_is_restored(data, tmp_path):
    linear = podium.LinearRanker(n_iterations=2).fit(data)
    ranker = LambdaMART(**FEW, submodel=linear).fit(data)
    ranker.save(tmp_path / "m.podium")
    loaded = podium.load(tmp_path / "m.podium")
    assert loaded.submodel.digest() == linear.digest()
    assert loaded.submodel_scale_ == ranker.submodel_scale_
    assert clone(loaded).fit(data).digest() == ranker.digest()


def test_a_loaded_estimator_works_in_place_of_a_model(data, valid, tmp_path):
    ranker = LambdaMART(**FEW).fit(data)
    ranker.save(tmp_path / "m.podium")
    loaded, bare = podium.load(tmp_path / "m.podium"), ranker.model_
    assert podium.evaluate(valid, loaded).means == podium.evaluate(valid, bare).means
    assert "b" in str(podium.compare(valid, {"a": loaded, "b": valid.feature(0)}, "ndcg@10"))
    assert np.array_equal(podium.explain.explain(loaded, valid).values, bare.explain(valid).values)
    assert np.array_equal(loaded.explain(valid).values, bare.explain(valid).values)
    podium.formats.export_model(loaded, tmp_path / "m.txt", "lightgbm")
    assert podium.import_model(tmp_path / "m.txt").n_trees == 3
    both = podium.models.Combined((loaded, bare), (1.0, 2.0))
    assert both.digest() == podium.models.Combined((bare, bare), (1.0, 2.0)).digest()
    assert LambdaMART(**FEW, submodel=loaded).fit(data).digest() == LambdaMART(**FEW, submodel=bare).fit(data).digest()
    by_file = LambdaMART(**FEW, submodel=str(tmp_path / "m.podium")).fit(data)
    assert by_file.digest() == LambdaMART(**FEW, submodel=bare).fit(data).digest()
    assert podium.combine(loaded, valid.feature(0), valid).model is None
    assert podium.combine(loaded, bare, valid).model is not None
    assert podium.models.refit_weights(loaded, valid).digest() == podium.models.refit_weights(bare, valid).digest()


def test_a_loaded_prank_refuses_to_continue(data, tmp_path):
    podium.PRank(epochs=1).fit(data).save(tmp_path / "m.podium")
    loaded = podium.load(tmp_path / "m.podium")
    with pytest.raises(DataError, match="a loaded PRank cannot continue to learn"):
        loaded.partial_fit(data, classes=[0, 1, 2, 3, 4])


def changed(tmp_path, data, change):
    LambdaMART(**FEW).fit(data).save(tmp_path / "m.podium")
    header, arrays = hostile.unpacked(tmp_path / "m.podium")
    change(header["estimator"])
    return hostile.write(tmp_path / "m.podium", header, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.pop("class"), lambda e: e.update({"class": ["LambdaMART"]}), lambda e: e.pop("parameters"),
        lambda e: e.update(parameters=[1]), lambda e: e["parameters"].update(n_trees={"submodel": 0}),
        lambda e: e["parameters"].update(n_trees="x"), lambda e: e["parameters"].update(n_leaves=1),
        lambda e: e["parameters"].update(objective={"objective": "print(1)"}),
        lambda e: e["parameters"].update(measure={"measure": 7}), lambda e: e["parameters"].update(step={}),
        lambda e: e["parameters"].update(step={"step": "Boosting", "settings": {}}),
        lambda e: e["parameters"].update(step={"step": ["Newton"], "settings": {}}),
        lambda e: e["fitted"].update(model_=1), lambda e: e["fitted"].update(fit=1),
        lambda e: e["fitted"].update(__class__=1), lambda e: e["fitted"].update(trees_=1),
        lambda e: e["fitted"].update(history_={"array": [1], "type": "O"}),
        lambda e: e["fitted"].update(history_={"array": [[1], [1, 2]], "type": "<f8"}),
        lambda e: e["fitted"].update(history_={"array": [1], "type": "nonsense"}),
        lambda e: e["fitted"].update(history_={"mapping": [[[], 1]]}), lambda e: e.update(fitted=None),
    ],
)  # fmt: skip
def test_hostile_descriptions_are_refused(change, data, tmp_path):
    path = changed(tmp_path, data, change)
    with pytest.raises(FileFormatError, match=r"its estimator cannot be read .*load_model only reads the model"):
        podium.load(path)
    assert podium.models.load_model(path).n_trees == 3


def test_descriptions_of_a_newer_podium_give_the_model(data, tmp_path):
    for change, words in (
        (lambda e: e.update({"class": "NewRanker"}), "has no estimator 'NewRanker'"),
        (lambda e: e["parameters"].update(new=1), "LambdaMART of this Podium has no parameter 'new'"),
    ):
        with pytest.warns(PodiumWarning, match=words):
            assert podium.load(changed(tmp_path, data, change)).n_trees == 3


def test_the_file_names_no_code(data, tmp_path):
    LambdaMART(**FEW, objective=Pairwise(Hinge(0.5)), step="gradient").fit(data).save(tmp_path / "m.podium")
    with zipfile.ZipFile(tmp_path / "m.podium") as archive:
        entries = json.loads(archive.read("header.json"))["estimator"]
    assert entries["class"] == "LambdaMART"
    assert entries["parameters"]["objective"] == {"objective": "Pairwise(link=Hinge(margin=0.5))"}


def test_loading_a_model_imports_little(data, tmp_path):
    LambdaMART(**FEW).fit(data).save(tmp_path / "m.podium")
    code = (
        "import sys, podium; from podium.models.file import load_model; load_model(sys.argv[1]); "
        "print(*{m.split('.')[1] for m in sys.modules if m.startswith('podium.')}, *{'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.podium")], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == {"core", "data", "errors", "models"}
