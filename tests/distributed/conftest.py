"""Data with weights, several label sources, positions and missing values, in odd partitions."""

import numpy as np
import pytest

import podium
from tests.commands import CAN_FORK, forking
from tests.distributed.clusters import KINDS, local_ray


@pytest.fixture(scope="session", autouse=True)
def workers_start_fast():
    """Let Dask fork its workers from the process that commands are forked from: else each imports everything."""
    if not CAN_FORK:
        yield
        return
    first = forking().Process(target=int)  # before Dask starts that process with fewer imports
    first.start()
    first.join()
    with pytest.importorskip("dask").config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield


def documents(n_queries, part="train", seed=1):
    data, random = podium.artificial(n_queries, documents=12, features=6, part=part), np.random.default_rng(seed)
    n, features = len(data), data.features.copy()
    features[random.random(features.shape) < 0.1] = np.nan
    features[:, 4] = np.where(random.random(n) < 0.8, 0.0, features[:, 4])  # sparse
    features[:, 5] = random.integers(0, 40, n)
    return podium.RankingData(
        features, data.relevance, qid=data.qid, labels={"clicks": random.integers(0, 3, n)},
        positions=random.choice([-1, 1, 2, 3, 4, 5, 6], n), document_weights=random.choice([0, 1, 2.5], n),
        query_weights={q: float(random.choice([1, 2])) for q in data.query_ids},
    )  # fmt: skip


@pytest.fixture(scope="session")
def train():
    """Fifty queries, of which ten are there twice under other names."""
    data = documents(50)
    again = data.select(range(10))
    return podium.RankingData.concatenate([data, again.replace(qid=again.qid + 10**6)])


@pytest.fixture(scope="session")
def valid():
    return documents(15, "valid", 2)


@pytest.fixture(scope="session")
def ray_here():
    """Ray on this machine, for all tests."""
    with local_ray():
        yield


@pytest.fixture(
    scope="session", params=[pytest.param(name, marks=[pytest.mark.slow] * (name == "spark")) for name in KINDS]
)
def any_cluster(request):
    """A cluster of each kind, which starts once."""
    if request.param == "ray":
        request.getfixturevalue("ray_here")
    with KINDS[request.param]() as made:
        yield made
