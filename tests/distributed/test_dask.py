"""Training and scoring on a real cluster of worker processes; every test has a time limit."""

import json
import os
import signal
import time

import numpy as np
import pytest

import podium
from podium.boosting import Checkpoint
from podium.errors import DataError, PodiumError, PodiumWarning
from podium.objectives import Debiased, Lambda

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")

from podium.distributed import (  # noqa: E402
    DaskLambdaMART,
    DaskMARTClassifier,
    DaskRanker,
    score_files,
)

pytestmark = pytest.mark.usefixtures("time_limit")


@pytest.fixture
def client(dask_here):
    with distributed.Client(dask_here) as client:
        client.wait_for_workers(2)  # another test may have killed one
        yield client


def frame_of(data):
    columns = {f"f{k}": data.features[:, k] for k in range(data.n_features)}
    frame = pd.DataFrame(columns | {"label": data.relevance, "qid": data.qid, "position": data.positions})
    return frame.assign(document_weight=data.document_weights, query_weight=data.query_weight_of_row)


@pytest.fixture(scope="module")
def frames(train, valid):
    return frame_of(train), frame_of(valid)


def local(model, frames, **options):
    train, valid = (podium.RankingData(frame) for frame in frames)
    return model.fit(train, valid=valid, **options)


def test_a_frame_gives_the_local_model_and_lazy_scores(client, frames):
    settings = {"n_trees": 3, "n_leaves": 8, "split_fraction": 0.4, "objective": Debiased(Lambda("ndcg"))}
    expected = local(podium.LambdaMART(**settings), frames)
    shuffled = frames[0].sample(frac=1.0, random_state=0)
    with pytest.warns(PodiumWarning, match="are spread over several partitions"):
        model = DaskLambdaMART(**settings).fit(
            dd.from_pandas(shuffled, npartitions=5, sort=False), valid=dd.from_pandas(frames[1], npartitions=1)
        )
    assert model.digest() == expected.digest()
    assert model.history_ == expected.history_
    assert np.array_equal(model.position_bias_, expected.position_bias_)
    assert isinstance(model.model_, podium.models.Ensemble)
    assert list(model.feature_names_in_) == list(expected.feature_names_in_)
    scores = model.predict(dd.from_pandas(frames[1], npartitions=3))
    assert not isinstance(scores, np.ndarray)
    assert np.array_equal(scores.compute(), expected.predict(frames[1]))


def test_dask_arrays_and_local_data(client, train, valid):
    X, y, qid = (da.from_array(a, chunks=200) for a in (train.features, train.relevance, train.qid))
    plain = podium.RankingData(train.features, train.relevance, qid=train.qid)
    expected = podium.LambdaMART(2, n_leaves=6).fit(plain)
    with pytest.warns(PodiumWarning, match="are spread over several partitions"):
        model = DaskLambdaMART(2, n_leaves=6).fit(X, y, qid=qid, client=client)
    assert model.digest() == expected.digest()
    assert np.array_equal(model.predict(X).compute(), expected.predict(train.features))
    assert DaskLambdaMART(2, n_leaves=6).fit(plain, client=client).digest() == expected.digest()


def test_a_ranker_counts_all_documents_and_warns_that_it_did_not_try_all_features(client, train, valid, monkeypatch):
    # Trees are larger, although no worker has that many documents.
    monkeypatch.setattr("podium.estimators.ranker.MANY_DOCUMENTS", len(train) - 1)
    with pytest.warns(PodiumWarning, match="each tree saw 50% of the features"):
        model = DaskRanker(n_trees=2).fit(train, valid=valid)
    assert model.feature_fraction_ == 0.5
    local = podium.Ranker(n_trees=2, feature_fraction=0.5).fit(train, valid=valid)
    assert model.digest() == local.digest()
    assert model.history_ == local.history_


def test_two_classes(client, train, valid):
    sets = [data.replace(relevance=np.where(data.relevance > 1, 7, 3)) for data in (train, valid)]
    expected = podium.MARTClassifier(n_trees=2, n_leaves=6).fit(sets[0], valid=sets[1])
    model = DaskMARTClassifier(n_trees=2, n_leaves=6).fit(sets[0], valid=sets[1])
    assert model.digest() == expected.digest()
    assert model.classes_.tolist() == [3, 7]
    assert np.array_equal(model.predict_proba(valid), expected.predict_proba(valid))


def test_files_with_categories_and_a_killed_client(client, frames, tmp_path):
    pytest.importorskip("pyarrow")
    train = frames[0].assign(f5=pd.Series(frames[0]["f5"].astype(int).astype(str)))
    paths = []
    for k, (_, part) in enumerate(train.groupby(train["qid"] % 3)):
        paths.append(str(tmp_path / f"{k}.parquet"))
        part.to_parquet(paths[-1], index=False)
    reader = ReadCategories()
    checkpoint = Checkpoint(tmp_path / "run", every=1)

    def stop(round_):
        if round_.iteration == 1:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        DaskLambdaMART(4, n_leaves=6).fit(paths, reader=reader, observers=[stop], checkpoint=checkpoint)
    rounds = []
    model = DaskLambdaMART(4, n_leaves=6).fit(
        str(tmp_path / "*.parquet"),
        reader=reader,
        observers=[lambda r: rounds.append(r.iteration)],
        checkpoint=checkpoint,
    )
    assert rounds == [1, 2, 3]
    assert model.digest() == podium.LambdaMART(4, n_leaves=6).fit(reader(paths)).digest()
    assert model.model_.encoding.categories


class ReadCategories:
    def __call__(self, paths):
        return podium.read(paths, categorical=["f5"])


def test_training_survives_a_killed_worker_and_uses_its_successor(client, frames, monkeypatch):
    monkeypatch.setattr("podium.distributed.training.SECONDS_BETWEEN_CHECKS", 0.0)
    settings = {"n_trees": 8, "n_leaves": 6, "split_fraction": 0.5, "objective": Debiased(Lambda("ndcg"))}
    expected = local(podium.LambdaMART(**settings), frames)
    killed = []

    def kill(round_):
        if round_.iteration == 2:
            address, pid = sorted(client.run(os.getpid).items())[0]
            killed.append(address)
            os.kill(pid, signal.SIGKILL)
        if round_.iteration == 5:  # by then the nanny has started another one
            client.wait_for_workers(2, timeout=30)

    train, valid = (dd.from_pandas(frame, npartitions=4, sort=False) for frame in frames)
    with pytest.warns(PodiumWarning) as warned:
        model = DaskLambdaMART(**settings).fit(train, valid=valid, observers=[kill], timeout=60)
    assert any("has left: its documents go to other workers" in str(warning.message) for warning in warned)
    assert len(client.nthreads()) == 2
    assert killed
    assert set(killed).isdisjoint(client.nthreads())
    assert model.digest() == expected.digest()
    assert model.history_ == expected.history_


def test_a_worker_that_does_not_answer_is_an_error(client, train):
    class Slow(Lambda):
        def bind(self, data):
            time.sleep(3)
            return super().bind(data)

    with pytest.raises(PodiumError, match="did not answer within 1 seconds"):
        DaskLambdaMART(2, objective=Slow("ndcg")).fit(train, timeout=1)


def test_bad_input_is_refused(client, frames, train):
    with pytest.raises(DataError, match="not list"):
        DaskLambdaMART(2).fit([[1.0]])
    with pytest.raises(DataError, match="patience needs validation data"):
        DaskLambdaMART(2, patience=1).fit(train)
    frame = dd.from_pandas(frames[0], npartitions=2)
    with pytest.raises(DataError, match="there is no column 'nonsense'"):
        DaskLambdaMART(2).fit(frame, qid="nonsense")
    with pytest.raises(DataError, match="column 'qid'"):
        DaskLambdaMART(2).fit(frame.drop(columns="qid"))
    with pytest.raises(DataError, match="y must be one as well"):
        DaskLambdaMART(2).fit(da.zeros((4, 2)))


@pytest.mark.parametrize("suffix", [".txt", ".parquet"])
def test_files_are_scored_once(suffix, client, train, tmp_path):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    model = podium.LambdaMART(3, n_leaves=6).fit(train)
    pieces = [train.select(range(k, 60, 3)) for k in range(3)]
    for k, piece in enumerate(pieces):
        options = {"lossy": True} if suffix == ".txt" else {}
        podium.write(piece.replace(positions=None), tmp_path / f"{k}{suffix}", **options)
    written = score_files(model, str(tmp_path / f"*{suffix}"), tmp_path / "scores")
    for k, (path, piece) in enumerate(zip(written, pieces, strict=True)):
        assert path.name == f"{k}.scores{suffix}"
        scores = np.loadtxt(path) if suffix == ".txt" else pd.read_parquet(path)["score"].to_numpy()
        assert np.array_equal(scores, model.predict(piece))
    written[1].unlink()
    times = [path.stat().st_mtime_ns for path in (written[0], written[2])]
    assert score_files(model, str(tmp_path / f"*{suffix}"), tmp_path / "scores") == written
    assert [path.stat().st_mtime_ns for path in (written[0], written[2])] == times
    assert written[1].exists()
    assert json.loads((tmp_path / "scores" / "scores.json").read_text())["model"] == model.digest()
    other = podium.LambdaMART(2, n_leaves=6).fit(train)
    with pytest.raises(DataError, match="holds scores of another model"):
        score_files(other, str(tmp_path / f"*{suffix}"), tmp_path / "scores")
