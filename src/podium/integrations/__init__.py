"""Podium with other tools: metrics to TensorBoard, Weights & Biases and MLflow, models in MLflow, trees for SHAP.

None of these libraries is loaded before it is used. `podium.integrations.mlflow` is the flavour for MLflow.
"""

from podium.integrations.metrics import LogMetrics, metric_name
from podium.integrations.shap import shap_trees

__all__ = ["LogMetrics", "metric_name", "shap_trees"]
