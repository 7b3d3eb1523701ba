"""Podium with other tools: metrics for TensorBoard, Weights & Biases and MLflow, models for MLflow, trees for SHAP.

These libraries are loaded only when they are used. `podium.integrations.mlflow` is the flavour for MLflow.
"""

from podium.integrations.metrics import LogMetrics, metric_name
from podium.integrations.shap import shap_trees

__all__ = ["LogMetrics", "metric_name", "shap_trees"]
