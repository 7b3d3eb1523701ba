"""A flavour for MLflow: models that MLflow saves, loads and serves, and runs that log themselves.

A model is saved as Podium's own file, which is data and never code. MLflow serves it as a Python function that takes
features and returns scores.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import podium
from podium.data import RankingData
from podium.errors import DataError, MissingExtraError, warn
from podium.estimators import load
from podium.estimators.base_ranker import AFTER_FIT, BaseRanker
from podium.integrations.metrics import metric_name

__all__ = ["FLAVOR_NAME", "autolog", "load_model", "log_fit", "log_model", "save_model"]

FLAVOR_NAME = "podium"
FILE = "model.podium"
MOST_METRICS = 1000  # in a batch: MLflow's limit


def _mlflow() -> Any:
    try:
        import mlflow
        import mlflow.pyfunc
    except ImportError:
        raise MissingExtraError("mlflow", "mlflow", "podium.integrations.mlflow") from None
    return mlflow


def save_model(model: Any, path: str | os.PathLike[str], *, mlflow_model: Any = None, **options: Any) -> None:
    """Save a model, or a fitted estimator, as a folder that MLflow loads.

    Args:
        model: the model or estimator.
        path: the folder, which must not exist.
        mlflow_model: the MLflow model to add this flavour to; a new one by default.
        **options: options of `mlflow.pyfunc.save_model`, such as `signature`, `input_example` and `pip_requirements`,
            which is this version of Podium by default.

    """
    mlflow = _mlflow()
    mlflow_model = mlflow.models.Model() if mlflow_model is None else mlflow_model
    mlflow_model.add_flavor(FLAVOR_NAME, podium_version=podium.__version__, data=f"data/{FILE}")
    example = options.get("input_example")
    if example is not None and "signature" not in options:
        options["signature"] = mlflow.models.infer_signature(example, model.predict(example))
    if "conda_env" not in options:
        options.setdefault("pip_requirements", [f"podium=={podium.__version__}"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / FILE
        model.save(file)
        mlflow.pyfunc.save_model(
            os.fspath(path), loader_module=__name__, data_path=str(file), mlflow_model=mlflow_model, **options
        )


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Save a model as an artifact of the active run; `options` are options of `save_model` and of MLflow.

    Returns:
        MLflow's `ModelInfo`, whose `model_uri` `load_model` takes.

    """
    return _mlflow().models.Model.log(None, name=name, flavor=sys.modules[__name__], model=model, **options)


def load_model(model_uri: str) -> Any:
    """Return the estimator or model that `log_model` or `save_model` saved, given its folder or MLflow's URI."""
    mlflow = _mlflow()
    flavors = mlflow.models.get_model_info(model_uri).flavors
    if FLAVOR_NAME not in flavors:
        raise DataError(f"{model_uri} is not a Podium model; it has the flavours {', '.join(flavors)}")
    return load(Path(mlflow.artifacts.download_artifacts(model_uri)) / flavors[FLAVOR_NAME]["data"])


class PyfuncModel:
    """The object that MLflow calls to score documents."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Return the score of each row; columns that the model does not know are ignored."""
        return self.model.predict(model_input)


def _load_pyfunc(path: str) -> PyfuncModel:
    """Load a model for MLflow, which looks for a function of this name."""
    return PyfuncModel(load(path))


def log_fit(
    ranker: BaseRanker,
    train: RankingData | None = None,
    valid: RankingData | None = None,
    *,
    log_models: bool = True,
    log_report: bool = False,
) -> None:
    """Log a fitted estimator to the active run: parameters, history, the measures of the best round, and the model.

    Args:
        ranker: the estimator.
        train, valid: its training and validation data, for the report.
        log_models: whether to save the model as an artifact.
        log_report: whether to write a report on `valid` as an artifact (extra `report`).

    """
    mlflow = _mlflow()
    mlflow.log_params(ranker.model_.info["parameters"])
    mlflow.set_tags({"estimator": type(ranker).__name__, "digest": ranker.digest()})
    if log_models:
        log_model(ranker)  # before the history, because MLflow would log the measures of its first round again
    logged = [
        (metric_name(name), value, step)
        for name, values in ranker.history_.items()
        for step, value in enumerate(values)
    ]
    best = ranker.best_iteration_
    if best is not None and best >= 0:
        logged.append(("best_iteration", best, 0))
        logged += [(f"best/{metric_name(name)}", values[best], 0) for name, values in ranker.history_.items()]
    now, run_id = int(1000 * time.time()), mlflow.active_run().info.run_id
    metrics = [mlflow.entities.Metric(name, value, now, step) for name, value, step in logged if math.isfinite(value)]
    for first in range(0, len(metrics), MOST_METRICS):
        mlflow.MlflowClient().log_batch(run_id, metrics[first : first + MOST_METRICS])
    if log_report:
        if valid is None:
            raise DataError("a report needs validation data: pass fit(…, valid=…)")
        from podium.reports.page import report

        with tempfile.TemporaryDirectory() as folder:
            page = report(ranker, valid, Path(folder) / "report.html", train=train, data_name="valid")
            mlflow.log_artifact(str(page))


@dataclass(frozen=True)
class FitLogger:
    """Logs each fit with `log_fit`, to the active run or to a new one."""

    # log_models, log_report: as in `autolog`
    log_models: bool
    log_report: bool

    def __call__(self, ranker: BaseRanker, train: RankingData, sets: dict[str, RankingData]) -> None:
        """Log a fit; if that fails, only warn, because the model has been trained."""
        mlflow = _mlflow()
        starts_run = mlflow.active_run() is None
        try:
            if starts_run:
                mlflow.start_run()
            valid = next(iter(sets.values()), None)
            log_fit(ranker, train, valid, log_models=self.log_models, log_report=self.log_report and valid is not None)
        except Exception as error:
            warn(f"the fit was not logged to MLflow: {type(error).__name__}: {error}")
        finally:
            if starts_run:
                mlflow.end_run()


def autolog(*, log_models: bool = True, log_report: bool = False, disable: bool = False) -> None:
    """Log all further fits of Podium estimators, to the active run or to a new one.

    Args:
        log_models: whether to save the models.
        log_report: whether to write a report on the validation data, if there is any, which takes a few seconds.
        disable: whether to stop logging instead.

    """
    _mlflow()
    AFTER_FIT[:] = [callback for callback in AFTER_FIT if not isinstance(callback, FitLogger)]
    if not disable:
        AFTER_FIT.append(FitLogger(log_models, log_report))
