"""MLflow: models are saved, loaded and served, and fits log themselves."""

import sys

import numpy as np
import pandas as pd
import pytest

import podium
from podium.errors import DataError, MissingExtraError, PodiumWarning
from podium.estimators.base_ranker import AFTER_FIT
from podium.integrations import metric_name
from podium.integrations import mlflow as flavour

TRAIN, VALID = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """Yield the library, with runs in a folder of the test; later fits are not logged."""
    library = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = library.get_tracking_uri()
    library.set_tracking_uri((tmp_path / "runs").as_uri())
    library.set_experiment("test")
    yield library
    flavour.autolog(disable=True)
    library.set_tracking_uri(before)


def runs_of(mlflow):
    return mlflow.search_runs(output_format="list")


def ranker(**settings):
    return podium.LambdaMART(n_trees=3, n_leaves=4, verbose=0, **settings)


def test_models_are_saved_loaded_and_served(mlflow, tmp_path):
    frame = pd.DataFrame(VALID.features).add_prefix("f")
    model = ranker().fit(frame, VALID.relevance, qid=VALID.qid)
    flavour.save_model(model, tmp_path / "saved", input_example=frame[:2])
    with mlflow.start_run():
        info = flavour.log_model(model.model_, name="logged")
    for uri, kind in ((str(tmp_path / "saved"), podium.LambdaMART), (info.model_uri, podium.models.Ensemble)):
        again = flavour.load_model(uri)
        assert isinstance(again, kind)
        assert again.digest() == model.digest()
        served = mlflow.pyfunc.load_model(uri)
        assert np.array_equal(served.predict(frame), model.predict(frame))
    assert mlflow.models.get_model_info(str(tmp_path / "saved")).signature.inputs.input_names() == list(frame.columns)
    assert f"podium=={podium.__version__}" in (tmp_path / "saved" / "requirements.txt").read_text()


def test_models_of_other_flavours_are_refused(mlflow, tmp_path):
    class Other(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input: list[str]):
            return model_input

    mlflow.pyfunc.save_model(str(tmp_path / "other"), python_model=Other(), pip_requirements=[])
    with pytest.raises(DataError, match="is not a Podium model; it has the flavours python_function"):
        flavour.load_model(str(tmp_path / "other"))


def test_fits_log_themselves(mlflow):
    flavour.autolog()
    flavour.autolog(log_report=True)  # the last call counts, and each fit is logged once
    model = ranker(metrics=["ndcg(gain=linear)@5"]).fit(TRAIN, valid=VALID)
    (run,) = runs_of(mlflow)
    assert (run.data.params["n_trees"], run.data.params["n_leaves"]) == ("3", "4")
    assert run.data.tags["estimator"] == "LambdaMART"
    assert run.data.tags["digest"] == model.digest()
    client = mlflow.MlflowClient()
    for name, values in model.history_.items():
        logged = client.get_metric_history(run.info.run_id, metric_name(name))
        assert [point.value for point in sorted(logged, key=lambda point: point.step)] == values
        assert run.data.metrics[f"best/{metric_name(name)}"] == values[model.best_iteration_]
    assert run.data.metrics["best_iteration"] == model.best_iteration_
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["report.html"]
    (logged,) = mlflow.search_logged_models(output_format="list")
    assert flavour.load_model(logged.model_uri).digest() == model.digest()
    with mlflow.start_run() as run:
        podium.AdditiveGroves(1, 1, 0.5, verbose=0).fit(TRAIN)  # no rounds, no validation data
    assert client.get_run(run.info.run_id).data.tags["estimator"] == "AdditiveGroves"
    flavour.autolog(disable=True)
    ranker().fit(TRAIN)
    assert len(runs_of(mlflow)) == 2


def test_a_fit_is_kept_if_it_cannot_be_logged(mlflow):
    flavour.autolog(log_models=False)
    with mlflow.start_run():
        ranker().fit(TRAIN)
        with pytest.warns(PodiumWarning, match=r"the fit was not logged to MLflow: .*n_leaves"):
            model = ranker().set_params(n_leaves=3).fit(TRAIN)  # MLflow does not change a parameter of a run
    assert model.n_trees_ == 3
    with pytest.raises(DataError, match="a report needs validation data"), mlflow.start_run():
        flavour.log_fit(model, log_models=False, log_report=True)


def test_without_mlflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"podium\.integrations\.mlflow needs mlflow"):
        flavour.autolog()
    assert AFTER_FIT == []
