"""Measures of each round reach TensorBoard, Weights & Biases and MLflow."""

import struct
from types import SimpleNamespace

import pytest

import podium
from podium.errors import DataError
from podium.integrations import LogMetrics, metric_name

TRAIN, VALID = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")


def fit(to, estimator=None):
    estimator = estimator or podium.LambdaMART(n_trees=3, metrics=["ndcg(gain=linear)@5"], verbose=0)
    return estimator.fit(TRAIN, valid=VALID, observers=[LogMetrics(to)])


def events(path):
    """Yield the events of a file of TensorBoard: length, checksum, content, checksum."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    content, at = path.read_bytes(), 0
    while at < len(content):
        (size,) = struct.unpack_from("<Q", content, at)
        yield event_pb2.Event.FromString(content[at + 12 : at + 12 + size])
        at += 16 + size


def test_tensorboard(tmp_path):
    with pytest.importorskip("tensorboardX").SummaryWriter(str(tmp_path)) as writer:
        model = fit(writer)
    (file,) = tmp_path.iterdir()
    found = {(value.tag, event.step): value.simple_value for event in events(file) for value in event.summary.value}
    expected = {
        (metric_name(name), step): pytest.approx(value, rel=1e-6)
        for name, values in model.history_.items() for step, value in enumerate(values)
    }  # fmt: skip
    assert found == expected
    assert ("valid/ndcg_at_10", 2) in found


@pytest.mark.parametrize("method", ["log", "log_metrics"])  # of a run of Weights & Biases, and of mlflow
@pytest.mark.parametrize(
    "estimator", [None, podium.LinearRanker(n_iterations=2), podium.RankNet(epochs=2, hidden=2, n_threads=1)]
)
def test_logs_of_rows(method, estimator):
    rows = []
    run = SimpleNamespace(**{method: lambda numbers, step=None: rows.append((step, numbers))})
    model = fit(run, estimator)
    expected = {metric_name(name): values for name, values in model.history_.items()}
    for step, numbers in rows:
        assert {name: expected[name][step] for name in numbers} == numbers
    assert [step for step, _ in rows] == list(range(len(rows)))
    assert len(rows) == len(next(iter(expected.values())))


def test_invalid_loggers():
    with pytest.raises(DataError, match=r"takes a TensorBoard SummaryWriter.*not list"):
        LogMetrics([])
    writer = SimpleNamespace(add_scalar=print)
    with pytest.raises(DataError, match="LogMetrics needs validation data"):
        podium.LambdaMART(n_trees=2).fit(TRAIN, observers=[LogMetrics(writer)])
