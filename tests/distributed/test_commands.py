"""`podium train` and `podium score` on a cluster."""

import numpy as np
import pytest

import podium
from podium.cli.app import app
from podium.distributed.clusters import connected
from podium.errors import DataError, PodiumError

pytest.importorskip("distributed")


@pytest.fixture
def run(capsys):
    from typer.main import get_command

    command = get_command(app)

    def run(*arguments):
        command.main([str(a) for a in arguments], standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_train_and_score_on_a_cluster(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = podium.artificial(30, documents=10, features=4)
    for k in range(3):
        data.select(np.arange(30) % 3 == k).write(f"part-{k}.txt")
    podium.artificial(10, documents=10, features=4, part="valid").write("valid.txt")
    options = ["--valid", "valid.txt", "--n-trees", 3, "--n-leaves", 4]
    files = ["part-0.txt", "part-1.txt", "part-2.txt"]
    run("train", "lambdamart", *files, *options, "-o", "cluster", "--cluster", "local:1")
    run("train", "lambdamart", *files, *options, "-o", "here")
    model = podium.load("here/model.podium")
    assert podium.load("cluster/model.podium").digest() == model.digest()
    out = run("score", "here/model.podium", "part-0.txt", "part-1.txt", "-o", "scores", "--cluster", "local:1")
    assert "2 files of scores" in out
    for k in range(2):
        assert np.array_equal(np.loadtxt(f"scores/part-{k}.scores.txt"), model.predict(podium.read(f"part-{k}.txt")))


def test_invalid_addresses_are_refused(monkeypatch):
    for address in ("local:0", "nowhere", ""):
        with pytest.raises(DataError, match=rf"the cluster must be .*, but is '{address}'"), connected(address):
            pass
    monkeypatch.setattr("podium.distributed.dask_engine.SECONDS_TO_CONNECT", 0.2)
    for address in ("tcp://127.0.0.1:9", "tls://127.0.0.1:9", "odd://127.0.0.1:9", "tcp://127.0.0.1:x", "tcp://[::"):
        with pytest.raises(PodiumError, match="cannot connect to a Dask scheduler"), connected(address):
            pass
