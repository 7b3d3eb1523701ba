import numpy as np
import pytest

import podium


@pytest.fixture(scope="session")
def parts():
    return tuple(podium.artificial(n, documents=12, features=6, seed=2, part=p)
                 for p, n in (("train", 80), ("valid", 40), ("test", 40)))  # fmt: skip


@pytest.fixture(scope="session")
def shuffled(parts):
    """The training data with its rows in another order, queries mixed."""
    rows = np.random.default_rng(5).permutation(len(parts[0]))
    train = parts[0]
    return rows, podium.RankingData(train.features[rows], train.relevance[rows], qid=train.qid[rows])
