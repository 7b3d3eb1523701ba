"""Fusion of runs: values worked by hand, a slow reference, ranx where it is installed, and the command."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium import DataError
from podium.evaluation import Run, fuse
from tests.commands import run as run_command

A = Run("a", {"1": {"x": 9.0, "y": 5.0, "z": 1.0}, "2": {"x": 1.0}})
B = Run("b", {"1": {"y": 0.8, "w": 0.2}})


def test_worked_by_hand():
    assert fuse(A, B).scores["1"] == pytest.approx({"x": 1 / 61, "y": 1 / 62 + 1 / 61, "z": 1 / 63, "w": 1 / 62})
    assert fuse(A, B, k=0).scores["1"] == pytest.approx({"x": 1, "y": 1 / 2 + 1, "z": 1 / 3, "w": 1 / 2})
    assert fuse(A, B, by="combsum").scores["1"] == pytest.approx({"x": 1, "y": 0.5 + 1, "z": 0, "w": 0})
    assert fuse(A, B, by="combmnz").scores["1"] == pytest.approx({"x": 1, "y": 2 * 1.5, "z": 0, "w": 0})
    # Four candidates: A gives 4, 3, 2 and 1 for the one it lacks; B gives 4, 3 and (4 − 2 + 1) / 2 for each of two.
    assert fuse(A, B, by="borda").scores["1"] == pytest.approx({"x": 4 + 1.5, "y": 3 + 4, "z": 2 + 1.5, "w": 1 + 3})
    assert fuse(A, B).scores["2"] == {"x": 1 / 61}
    assert fuse(A, B, by="combsum", name="both").name == "both"


def test_equal_scores_are_ranked_as_in_trec_eval():
    tied = Run("t", {"1": {"a": 1.0, "b": 1.0}})
    assert fuse(tied, tied, k=0).scores["1"] == {"a": 1.0, "b": 2.0}
    assert fuse(tied, tied, by="combsum").scores["1"] == {"a": 0.0, "b": 0.0}


@pytest.mark.parametrize("score", [float("inf"), -float("inf"), float("nan")])
def test_scores_that_cannot_be_scaled_are_refused(score):
    for scores in ({"x": score, "y": 1.0}, {"x": 1.0, "y": score}):
        with pytest.raises(DataError, match="combsum and combmnz scale scores, which must be finite"):
            fuse(Run("i", {"1": scores}), B, by="combsum")


def slow(runs, by, k):
    """Fuse one query by the definitions, document by document."""
    pool = {d for run in runs for d in run}
    result = {}
    for d in pool:
        total = 0.0
        for run in runs:
            rank = 1 + sum(run[o] > run[d] or (run[o] == run[d] and o > d) for o in run) if d in run else None
            if by == "rrf" and rank:
                total += 1 / (k + rank)
            if by == "borda":
                points = [len(pool) - place for place in range(len(run), len(pool))]
                total += len(pool) - rank + 1 if rank else sum(points) / len(points)
            if by in ("combsum", "combmnz") and rank:
                spread = max(run.values()) - min(run.values())
                total += (run[d] - min(run.values())) / spread if spread else 0
        result[d] = total * (sum(d in run for run in runs) if by == "combmnz" else 1)
    return result


LISTS = st.lists(
    st.dictionaries(st.sampled_from("abcdefg"), st.integers(-3, 3).map(float), min_size=1), min_size=2, max_size=4
)


@pytest.mark.parametrize("by", ["rrf", "combsum", "combmnz", "borda"])
def test_agrees_with_a_slow_reference(by):
    @settings(max_examples=100, deadline=None)
    @given(LISTS, st.integers(1, 60))
    def agree(lists, k):
        fused = fuse(*(Run("r", {"q": scores}) for scores in lists), by=by, k=k)
        assert fused.scores["q"] == pytest.approx(slow(lists, by, k))
        backwards = fuse(*(Run("r", {"q": scores}) for scores in reversed(lists)), by=by, k=k)
        assert backwards.scores == fused.scores

    agree()


@pytest.mark.parametrize(
    ("by", "method"), [("rrf", "rrf"), ("combsum", "sum"), ("combmnz", "mnz"), ("borda", "bordafuse")]
)
def test_agrees_with_ranx(by, method):
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(0)
    runs = [
        {str(q): {f"d{d}": float(rng.normal()) for d in rng.permutation(12)[:8]} for q in range(5)} for _ in range(3)
    ]
    theirs = ranx.fuse([ranx.Run(run) for run in runs], norm="min-max" if "comb" in by else None, method=method)
    ours = fuse(*(Run("r", run) for run in runs), by=by)
    for query, scores in theirs.to_dict().items():
        assert ours.scores[query] == pytest.approx(scores)


@pytest.mark.parametrize(
    ("runs", "how", "words"),
    [
        ([A], {}, "at least two runs"),
        ([A, {"1": {}}], {}, "at least two runs"),
        ([A, B], {"by": "sum"}, "by must be one of 'rrf', 'combsum', 'combmnz', 'borda', but got 'sum'"),
        ([A, B], {"k": -1}, "k must be"),
    ],
)
def test_invalid_arguments(runs, how, words):
    with pytest.raises(DataError, match=words):
        fuse(*runs, **how)


def test_a_run_is_written_and_read_back(tmp_path):
    fused = fuse(A, B)
    fused.write(tmp_path / "fused.run")
    again = podium.read_run(tmp_path / "fused.run")
    assert (again.name, again.scores) == ("rrf", fused.scores)
    assert (tmp_path / "fused.run").read_text().splitlines()[0] == f"1 Q0 y 1 {1 / 61 + 1 / 62!r} rrf"
    with pytest.raises(DataError, match="for a TREC file"):
        fuse(Run("r", {"1": {"a b": 1.0}}), B).write(tmp_path / "bad.run")


def test_combine_fuses_runs(tmp_path):
    A.write(tmp_path / "a.run")
    B.write(tmp_path / "b.run")
    files = tmp_path / "a.run", tmp_path / "b.run"
    done = run_command("combine", *files, "--by", "borda", "-o", tmp_path / "fused.run")
    assert done.returncode == 0, done.stderr
    assert podium.read_run(tmp_path / "fused.run").scores == fuse(A, B, by="borda").scores
    done = run_command("combine", *files, tmp_path / "b.run", "--by", "rrf", "--k", "10")
    assert done.stdout == "".join(fuse(A, B, B, k=10).lines())
    done = run_command("combine", *files)
    assert done.returncode == 2
    assert "--by" in done.stderr
