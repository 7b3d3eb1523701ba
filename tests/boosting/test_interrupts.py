"""Ctrl-C, timed checkpoints, and what an interrupted round leaves behind."""

import os
import signal
import time

import numpy as np
import pytest

import podium
from podium import Committee, LambdaMART, LinearRanker, McRank, PodiumWarning
from podium.boosting import Checkpoint
from podium.core.interrupts import Stopped, between_steps

SETTINGS = {"n_leaves": 4, "verbose": 0}


@pytest.fixture(scope="module")
def data():
    return podium.artificial(30, documents=20, features=5)


@pytest.fixture(autouse=True)
def _usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c(after):
    def observer(round_):
        if round_.iteration == after:
            os.kill(os.getpid(), signal.SIGINT)

    return [observer]


def test_signals_wait_for_the_end_of_a_step():
    with pytest.raises(KeyboardInterrupt), between_steps() as check:  # noqa: PT012
        check()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)  # still here
        check()
    with pytest.raises(KeyboardInterrupt), between_steps():
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), between_steps():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
        pytest.fail("the second signal does not wait")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("made", [lambda n: LambdaMART(n, **SETTINGS), lambda n: McRank(n, **SETTINGS)])
def test_ctrl_c_keeps_the_trees_so_far_and_the_run_can_resume(data, made, tmp_path):
    checkpoint = Checkpoint(tmp_path / "c")
    with pytest.warns(PodiumWarning, match="interrupted: the"):
        short = made(30).fit(data, valid=data, observers=ctrl_c(6), checkpoint=checkpoint)
    assert all(len(values) == 7 for values in short.history_.values())
    assert short.digest() == made(7).fit(data, valid=data).digest()
    resumed = made(12).fit(data, valid=data, checkpoint=checkpoint)
    whole = made(12).fit(data, valid=data)
    assert (resumed.digest(), resumed.history_) == (whole.digest(), whole.history_)


def test_an_interrupted_round_is_dropped(data, tmp_path, monkeypatch):
    """Even an impatient second signal, in the middle of a round, leaves whole rounds only."""
    from podium.measures import BoundMeasures

    checkpoint, calls = Checkpoint(tmp_path / "c"), []
    measure = BoundMeasures.means

    def breaking(bound, scores):
        calls.append(1)
        if len(calls) == 10:  # the second set of the fifth round: the tree is there, half of the history is not
            raise Stopped(signal.SIGTERM)
        return measure(bound, scores)

    monkeypatch.setattr(BoundMeasures, "means", breaking)
    sets = {"a": data, "b": data}
    with pytest.raises(Stopped):
        LambdaMART(8, **SETTINGS).fit(data, valid=sets, checkpoint=checkpoint)
    monkeypatch.undo()
    assert podium.load(checkpoint.path).n_trees == 4
    resumed = LambdaMART(8, **SETTINGS).fit(data, valid=sets, checkpoint=checkpoint)
    whole = LambdaMART(8, **SETTINGS).fit(data, valid=sets)
    assert (resumed.digest(), resumed.history_) == (whole.digest(), whole.history_)


def test_a_committee_is_made_of_the_members_so_far(data, monkeypatch):
    from podium.boosting.training import Trainer

    grown, add = [], Trainer.add_round

    def adding(trainer):
        grown.append(1)
        if len(grown) == 7:  # in the second of three members, or with two threads in the first two
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)  # until the thread that waits has told the others
        return add(trainer)

    monkeypatch.setattr(Trainer, "add_round", adding)
    members = [("lambda(ndcg, normalize=true)", 1), ("listnet", 1), ("pairwise", 1)]
    with pytest.warns(PodiumWarning, match="interrupted"):
        model = Committee(n_trees=5, members=members, feature_fraction=0.5, verbose=0, n_threads=1).fit(
            data, valid=data
        )
    assert [trees > 0 for _, trees in model.members_] == [True, True]


def test_a_linear_ranker_stops(data, monkeypatch):
    from podium.linear import design

    scores = design.DesignMatrix.scores

    def once(design, weights):
        os.kill(os.getpid(), signal.SIGINT)
        return scores(design, weights)

    monkeypatch.setattr(design.DesignMatrix, "scores", once)
    with pytest.raises(KeyboardInterrupt):
        LinearRanker(n_iterations=5).fit(data)


def test_time_decides_when_to_write(data, tmp_path, monkeypatch):
    from podium.boosting import checkpoints

    clock, writes = [0.0], []
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: clock[0])
    write = Checkpoint.write

    def slow(checkpoint, *arguments):
        writes.append(clock[0])
        clock[0] += 1.0
        write(checkpoint, *arguments)

    def tick(_):
        clock[0] += 10.0

    monkeypatch.setattr(Checkpoint, "write", slow)
    model = LambdaMART(40, min_documents_in_leaf=1, **SETTINGS)
    model.fit(data, observers=[tick], checkpoint=Checkpoint(tmp_path / "c", seconds=25))
    assert np.diff([0, *writes]).tolist() == [30.0, 101.0, 101.0, 101.0]  # a second's write: 100 until the next
    assert len(writes) / clock[0] < 0.02


def test_invalid_checkpoints_and_leftover_files(tmp_path):
    for wrong in ({"every": 0}, {"every": 1.5}, {"seconds": -1}, {"seconds": "1"}):
        with pytest.raises(podium.DataError, match=r"every|seconds"):
            Checkpoint(tmp_path / "c", **wrong)
    (tmp_path / ".c.0a_b9zzz").touch()
    (tmp_path / ".c.other").touch()
    LambdaMART(2, **SETTINGS).fit(podium.artificial(5, features=3), checkpoint=Checkpoint(tmp_path / "c", seconds=0))
    assert {path.name for path in tmp_path.iterdir()} == {"c", ".c.other"}
