"""Data that has every kind of column."""

import numpy as np
import pytest

from podium import RankingData


@pytest.fixture
def data():
    return RankingData(
        np.arange(12, dtype=np.float32).reshape(6, 2), [2, 0, 1, 0, 1, 0], qid=[7, 3, 7, 9, 3, 7],
        labels={"clicks": [0.5, np.nan, 0, 0, 1, 0]}, document_weights=[1, 2, 3, 4, 5, 6],
        query_weights={7: 1.5, 3: 0.5, 9: 2.0}, positions=[1, 1, 2, -1, np.nan, 3],
        preferences=([0, 4], [5, 1], [0.9, 0.3]), document_ids=list("abcdef"), feature_names=["p", "q"],
    )  # fmt: skip
