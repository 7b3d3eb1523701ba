"""An observer that sends what training measures to an experiment tracker."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from podium.errors import DataError


def metric_name(name: str) -> str:
    """Return a name that trackers accept for a measure: MLflow and TensorBoard refuse `@`, brackets and `=`.

    Example:
        >>> metric_name("valid/ndcg@10"), metric_name("ndcg(gain=linear)@5")
        ('valid/ndcg_at_10', 'ndcg_gain_linear_at_5')

    """
    return re.sub(r"_+", "_", re.sub(r"[^\w./-]", "_", name.replace("@", "_at_")))


class LogMetrics:
    """An observer of training that logs each measure of each validation set after each round.

    Args:
        to: a `SummaryWriter` of TensorBoard (torch or tensorboardX), a run of Weights & Biases (`wandb.init(…)`), or
            the module `mlflow`, which logs to its active run. Other objects work if they have the same method:
            `add_scalar`, `log_metrics` or `log`.

    Example:
        >>> import podium
        >>> from podium.integrations import LogMetrics
        >>> class Writer:
        ...     def add_scalar(self, tag, value, step):
        ...         print(step, tag)
        >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
        >>> model = podium.LambdaMART(n_trees=2).fit(train, valid=valid, observers=[LogMetrics(Writer())])
        0 valid/ndcg_at_10
        1 valid/ndcg_at_10

    """

    needs_arrays = False  # of a `podium.boosting.Round`

    def __init__(self, to: Any) -> None:
        self._send = _sender(to)

    def __call__(self, round_: Any) -> None:
        """Log the measures of a round; its number is the step."""
        if not round_.means:
            raise DataError("LogMetrics needs validation data: pass valid=… or eval_set=…")
        self._send({metric_name(name): value for name, value in round_.means.items()}, round_.iteration)


def _sender(to: Any) -> Callable[[Mapping[str, float], int], None]:
    """Return the function that logs numbers by name at a step."""
    if hasattr(to, "add_scalar"):

        def send(means: Mapping[str, float], step: int) -> None:
            for name, value in means.items():
                to.add_scalar(name, value, step)

        return send
    for method in ("log_metrics", "log"):
        if hasattr(to, method):
            log = getattr(to, method)
            return lambda means, step: log(dict(means), step=step)
    raise DataError(
        "LogMetrics takes a TensorBoard SummaryWriter, a Weights & Biases run or the module mlflow, "
        f"not {type(to).__name__}"
    )
