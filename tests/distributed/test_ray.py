"""Tests of Ray: workers that hang, fits inside tasks, data sets, and what remains on the cluster."""

import signal
import time

import numpy as np
import pytest

import podium
from podium.cli.app import app
from podium.distributed import fit
from podium.distributed.clusters import cluster_at, cluster_for, engine_class
from podium.errors import DataError, PodiumError, PodiumWarning
from tests.distributed.clusters import strike

ray = pytest.importorskip("ray")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

from podium.distributed import RayEngine, RayLambdaMART  # noqa: E402

HEARTBEAT = 5.0  # shorter, and workers that start on a busy machine count as hung
SLOW = 5  # how much slower the machine may be than an idle one

pytestmark = pytest.mark.usefixtures("ray_here")


def live_workers():
    actors = ray._private.state.actors().values()  # Ray Data has others
    return {a["ActorID"] for a in actors if "RayWorker" in a["ActorClassName"] and a["State"] != "DEAD"}


def wait_for_processors(n):
    """Wait until `n` processors are free: Ray Data takes a moment to release its own."""
    deadline = time.monotonic() + SLOW * 2.0
    while (free := ray.available_resources().get("CPU", 0)) < n:
        assert time.monotonic() < deadline, f"{free} processors are free, but there should be {n}"
        time.sleep(0.1)


@pytest.fixture
def n_free(ray_here):
    """The number of free processors; an engine that all tests share may have the others."""
    deadline, before, free = time.monotonic() + SLOW * 2.0, -1, -2
    while before != free or free != int(ray.cluster_resources()["CPU"]) - len(live_workers()):
        assert time.monotonic() < deadline, f"{free} processors are free, with {len(live_workers())} workers"
        time.sleep(0.3)  # workers of an earlier test may be about to end
        before, free = free, int(ray.available_resources().get("CPU", 0))
    return free


@pytest.fixture
def nothing_left(n_free):
    """Require that no worker of the test still runs, and that its processors are free again."""
    before = live_workers()
    yield
    assert not live_workers() - before
    wait_for_processors(n_free)


@pytest.fixture(scope="module")
def frame(train):
    columns = {f"f{k}": train.features[:, k] for k in range(5)} | {"grade": train.relevance, "query": train.qid}
    return pd.DataFrame(columns).sample(frac=1.0, random_state=1)


def data_set_of(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return ray.data.from_arrow([table[:300], table[300:]])


@pytest.mark.usefixtures("nothing_left")
def test_a_data_set_chooses_its_cluster(frame):
    data = data_set_of(frame)
    with pytest.warns(PodiumWarning, match="are spread over several partitions"):
        model = fit(podium.LambdaMART(3, n_leaves=6), data, "grade", qid="query")
    assert type(model) is RayLambdaMART
    local = podium.LambdaMART(3, n_leaves=6).fit(podium.RankingData(frame, "grade", qid="query"))
    assert model.digest() == local.digest()
    assert np.array_equal(model.predict(frame), local.predict(frame))
    with pytest.raises(DataError, match="y must be the name of a column"):
        fit(podium.LambdaMART(3), data, np.zeros(3))


@pytest.mark.slow
def test_a_data_set_is_scored_lazily(frame):
    local = podium.LambdaMART(3, n_leaves=6).fit(podium.RankingData(frame, "grade", qid="query"))
    model = RayLambdaMART(3, n_leaves=6)
    model.__dict__.update(local.__dict__)
    scored = model.predict(data_set_of(frame)).to_pandas().sort_values(["query", "f0", "f1"])
    expected = frame.assign(score=local.predict(frame)).sort_values(["query", "f0", "f1"])
    assert np.array_equal(scored["score"], expected["score"])


@pytest.mark.usefixtures("nothing_left")
def test_nothing_remains_after_an_error(tmp_path):
    with pytest.raises(PodiumError, match="cannot be opened"):
        RayLambdaMART(2).fit([str(tmp_path / "missing.txt")], cpus_per_worker=1)


def test_workers_are_where_processors_are_free(n_free):
    n_cpus = int(ray.cluster_resources()["CPU"])

    def threads(free, cpus_of_node=n_cpus, **options):
        engine = RayEngine(**options)
        engine._free_cpus = free  # Ray's count lags behind, so this is not a matter of the moment
        node = {"Alive": True, "NodeID": ray.get_runtime_context().get_node_id(), "Resources": {"CPU": cpus_of_node}}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ray, "nodes", lambda: [node])
            return [n for _, n in engine._sites().values()]

    there = ray.remote(threads)
    assert threads(4) == [4]
    assert threads(0) == [n_cpus]  # other jobs use all: wait for them
    assert threads(4, n_workers=3) == [1, 1, 1]
    assert threads(4, n_workers=2, cpus_per_worker=2) == [2, 2]
    assert threads(4, cpus_per_worker=n_cpus + 1) == []
    assert ray.get(there.remote(n_cpus)) == [n_cpus - 1]
    assert ray.get(there.options(num_cpus=2).remote(0, cpus_of_node=2)) == [2]  # it waits while the worker works
    deadline = time.monotonic() + SLOW * 2.0
    while RayEngine()._free_cpus != n_free:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    for bundles, expected in (([{"CPU": 1}, {"CPU": 2}, {"CPU": 1}], [2, 1]), ([{"CPU": 2}], [2])):
        group = ray.util.placement_group(bundles)
        place = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            group, 0, placement_group_capture_child_tasks=True
        )
        assert ray.get(there.options(num_cpus=bundles[0]["CPU"], scheduling_strategy=place).remote(0)) == expected
        ray.util.remove_placement_group(group)
    with pytest.raises(PodiumError, match="no node of the Ray cluster has enough processors for a worker"):
        RayEngine(cpus_per_worker=n_cpus + 1).wait_for_worker(1)


def test_a_hung_worker_is_noticed_and_survived(train, valid):
    local = podium.LambdaMART(4, n_leaves=6).fit(train, valid=valid)
    stopped = []

    def stop(round_):
        if round_.iteration == 1:
            strike(engine, signal.SIGSTOP)
            engine.heartbeat = HEARTBEAT
            stopped.append(time.monotonic())
        elif round_.iteration == 2:
            stopped.append(time.monotonic())

    with (
        RayEngine(n_workers=2) as engine,
        pytest.warns(PodiumWarning, match=f"sent no heartbeat for {HEARTBEAT:g} seconds"),
    ):
        model = fit(podium.LambdaMART(4, n_leaves=6), train, valid=valid, engine=engine, observers=[stop])
    assert model.digest() == local.digest()
    assert stopped[1] - stopped[0] < SLOW * (HEARTBEAT + 2)


@pytest.mark.slow
def test_inside_a_task(train):
    @ray.remote
    def train_there():
        return RayLambdaMART(2, n_leaves=6).fit(train).digest()

    assert ray.get(train_there.remote()) == podium.LambdaMART(2, n_leaves=6).fit(train).digest()


def test_a_worker_that_cannot_start_is_an_error(monkeypatch):
    class Broken:
        def place(self):
            raise RuntimeError("there is no disk")

    monkeypatch.setattr("podium.distributed.ray_engine.MOST_FAILURES", 1)
    with RayEngine(n_workers=1) as engine:
        monkeypatch.setattr(engine, "_actor_class", ray.remote(Broken))
        with pytest.raises(PodiumError, match=r"cannot start a worker(.|\n)*there is no disk"):
            engine.wait_for_worker(60)


def test_the_cluster_is_chosen_by_data_or_connection(monkeypatch, train):
    for other in ("dask", "spark"):  # other tests of this process may have started them
        monkeypatch.setattr(engine_class(other), "is_running", lambda: False)
    assert cluster_for(ray.data.range(3)) == "ray"
    assert cluster_for(train) == "ray"
    assert [cluster_at(address) for address in ("ray", "auto", "ray://host:10001")] == ["ray"] * 3
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(DataError, match=r"any cluster can train on RankingData: pass engine='ray', .*, or connect"):
        cluster_for(train)
    with pytest.raises(PodiumError, match=r"not connected to a Ray cluster: call ray\.init"):
        fit(podium.LambdaMART(2), train, engine="ray")
    with pytest.raises(DataError, match=r"engine must be 'ray', .*, not 'rya' \(did you mean 'ray'\?\)"):
        fit(podium.LambdaMART(2), train, engine="rya")


@pytest.mark.slow
def test_a_command(tmp_path, monkeypatch, capsys):
    from typer.main import get_command

    monkeypatch.chdir(tmp_path)
    podium.artificial(30, documents=10, features=4).write("data.txt")
    words = ["train", "lambdamart", "data.txt", "--n-trees", "2", "--n-leaves", "4"]
    command = get_command(app)
    command.main([*words, "-o", "there", "--cluster", "ray"], standalone_mode=False)
    command.main([*words, "-o", "here"], standalone_mode=False)
    assert podium.load("there/model.podium").digest() == podium.load("here/model.podium").digest()
    with pytest.raises(DataError, match="podium score runs on a Dask cluster"):
        command.main(
            ["score", "here/model.podium", "data.txt", "-o", "scores", "--cluster", "ray"], standalone_mode=False
        )
