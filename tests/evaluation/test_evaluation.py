"""evaluate, compare, tables and TREC's files."""

import csv
import gzip
import io
import json
import warnings

import ir_measures
import numpy as np
import pandas
import pytest
from scipy import stats

import podium
from podium import NDCG, DataError, FileFormatError, PodiumWarning, RankingData
from podium.evaluation import Qrels, Run
from podium.measures import BoundMeasures, parse


@pytest.fixture(scope="module")
def data():
    return podium.artificial(80, documents=(2, 12), features=4, seed=2)


@pytest.fixture(scope="module")
def systems(data):
    rng = np.random.default_rng(0)
    return {
        "good": data.relevance + rng.normal(0, 1, len(data)),
        "fair": data.relevance + rng.normal(0, 3, len(data)),
        "chance": rng.normal(size=len(data)),
    }


def test_evaluate_returns_values_means_and_intervals(data, systems):
    evaluation = podium.evaluate(data, systems["good"], ["ndcg@10", "ap", NDCG(3, empty="skip")])
    values = evaluation.values["ndcg@10"]
    assert len(values) == data.n_queries
    assert evaluation.means["ndcg@10"] == pytest.approx(values.mean())
    interval = stats.ttest_1samp(values, 0).confidence_interval()
    assert evaluation.intervals["ndcg@10"] == pytest.approx((interval.low, interval.high))
    low, high = evaluation.bootstrap()["ap"]
    assert low < evaluation.means["ap"] < high
    skipped = np.isnan(evaluation.values["ndcg(empty=skip)@3"])
    is_empty = np.array([not data.relevance[data.rows(k)].any() for k in range(data.n_queries)])
    assert np.array_equal(skipped, is_empty)
    assert list(evaluation.per_query) == ["qid", "ndcg@10", "ap", "ndcg(empty=skip)@3"]


def test_results_do_not_depend_on_the_order_of_rows(data, systems):
    shuffle = np.random.default_rng(1).permutation(len(data))
    other = RankingData(data.features[shuffle], data.relevance[shuffle], qid=data.qid[shuffle])
    names = ["ndcg@10", "ap", "err", "rr", "tau"]
    a = podium.evaluate(data, systems["fair"], names)
    b = podium.evaluate(other, systems["fair"][shuffle], names)
    assert a.means == b.means
    assert a.bootstrap() == b.bootstrap()


def test_uniform_queries_can_be_dropped():
    data = RankingData(np.empty((5, 0)), [1, 1, 2, 0, 0], qid=[1, 1, 2, 2, 3])
    scores = [5.0, 4, 3, 2, 1]
    assert podium.evaluate(data, scores).values["ndcg@10"].tolist() == [1, 1, 0]
    dropped = podium.evaluate(data, scores, drop_uniform=True)
    assert np.array_equal(dropped.values["ndcg@10"], [np.nan, 1, np.nan], equal_nan=True)
    assert dropped.means["ndcg@10"] == 1
    with pytest.warns(PodiumWarning, match="skips every query"):
        nothing = podium.evaluate(data.select([0]), [1, 2], drop_uniform=True)
    assert np.isnan(nothing.means["ndcg@10"])


def test_ties_that_matter_are_reported(data):
    with pytest.warns(PodiumWarning, match=r"decide up to 0\.\d+ of ndcg\(ties=stable\)@10.*ties=expected"):
        podium.evaluate(data, np.zeros(len(data)), "ndcg(ties=stable)@10")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        podium.evaluate(data, np.zeros(len(data)))
        podium.evaluate(data, np.zeros(len(data)), "tau")
        podium.evaluate(data, np.floor(data.relevance), "ndcg")  # ties, but between equal labels


def test_invalid_measures_and_scores(data):
    with pytest.raises(DataError, match="at least one measure"):
        podium.evaluate(data, data.relevance, [])
    with pytest.raises(DataError, match="must be a name or an object"):
        podium.evaluate(data, data.relevance, [3])
    with pytest.raises(DataError, match="one number for each"):
        podium.evaluate(data, data.relevance[:-1])
    with pytest.raises(DataError, match="NaN"):
        podium.evaluate(data, np.full(len(data), np.nan))


def test_groups_of_queries_are_evaluated_separately():
    data = RankingData(
        [[0.0, 1], [1, 1], [0, 2], [1, 2], [0, 1]], [1, 0, 0, 1, 1], qid=["a", "a", "b", "b", "c"],
        feature_names=["x", "device"],
    )  # fmt: skip
    scores = [1.0, 2.0, 1.0, 2.0, 1.0]
    plain = podium.evaluate(data, scores, ["rr", "precision@1"])
    expected = {"1": [0.5, 1.0], "2": [1.0]}
    for by in ("device", {"a": 1, "b": 2, "c": 1}, [1, 2, 1], np.array([1, 1, 2, 2, 1.0])):
        evaluation = podium.evaluate(data, scores, ["rr", "precision@1"], by=by)
        assert {group: part.values["rr"].tolist() for group, part in evaluation.by_group.items()} == expected
        assert evaluation.means == plain.means
    assert evaluation.by_group["1"].query_ids.tolist() == ["a", "c"]
    rows = evaluation.table().rows
    assert [row[:3] for row in rows] == [
        ["1", "rr", 0.75], ["1", "precision@1", 0.5], ["2", "rr", 1.0], ["2", "precision@1", 1.0],
        ["all", "rr", pytest.approx(2.5 / 3)], ["all", "precision@1", pytest.approx(2 / 3)],
    ]  # fmt: skip
    assert list(evaluation.per_query) == ["qid", "group", "rr", "precision@1"]
    assert [row[-1] for row in rows] == [2, 2, 1, 1, 3, 3]


def test_groups_have_names_in_order():
    data = RankingData(np.empty((5, 0)), [1, 1, 1, 1, 1], qid=[1, 2, 3, 4, 5])
    evaluation = podium.evaluate(data, np.zeros(5), "rr", by=["de", None, 10, 2.5, "10"])
    assert list(evaluation.by_group) == ["2.5", "10", "de", "missing"]
    frame = pandas.DataFrame({"qid": [1, 1, 2], "label": [0, 1, 1], "country": pandas.Categorical(["fr", "fr", "de"])})
    of_frame = podium.evaluate(frame, [1.0, 2.0, 3.0], "rr", by="country")
    assert list(of_frame.by_group) == ["de", "fr"]
    by_id = podium.evaluate(data, np.zeros(5), "rr", by=pandas.Series(list("aabbb"), index=[1, 2, 3, 4, 5]))
    assert [len(part.query_ids) for part in by_id.by_group.values()] == [2, 3]


def test_invalid_groups(data, systems):
    with pytest.raises(DataError, match=r"by='feature 0' must be constant within a query"):
        podium.evaluate(data.replace(feature_names=[f"feature {k}" for k in range(4)]), systems["good"], by="feature 0")
    with pytest.raises(DataError, match="by has no entry for query id"):
        podium.evaluate(data, systems["good"], by={})
    with pytest.raises(DataError, match="by must have one entry for each"):
        podium.evaluate(data, systems["good"], by=[1, 2])
    with pytest.raises(DataError, match="the evaluation has no groups"):
        podium.evaluate(data, systems["good"]).by_group  # noqa: B018


def test_compare_finds_differences(data, systems):
    comparison = podium.compare(data, systems, ["ndcg@10", "ap"], margin=0.01)
    assert len(comparison.pairs) == 6
    pair = next(p for p in comparison.pairs if (p.measure, p.a, p.b) == ("ap", "good", "chance"))
    a, b = (comparison.evaluations[name].values["ap"] for name in ("good", "chance"))
    assert pair.difference == pytest.approx((b - a).mean())
    assert pair.p_t == pytest.approx(stats.ttest_rel(b, a).pvalue)
    assert pair.p_t <= pair.p_t_holm
    assert pair.p_random < 0.01
    assert pair.p_equivalent > 0.5
    assert pair.wins + pair.ties + pair.losses == data.n_queries
    assert pair.wins == (b > a).sum()
    assert pair.low < pair.difference < pair.high
    same = podium.compare(data, {"x": systems["good"], "y": systems["good"] * 2}, margin=0.001).pairs[0]
    assert (same.p_t, same.p_random, same.p_equivalent, same.ties) == (1, 1, 0, data.n_queries)


def test_a_baseline_limits_the_pairs(data, systems):
    comparison = podium.compare(data, systems, baseline="chance")
    assert [(p.a, p.b) for p in comparison.pairs] == [("chance", "good"), ("chance", "fair")]
    with pytest.raises(DataError, match="baseline: there is no system 'x'"):
        podium.compare(data, systems, baseline="x")
    with pytest.raises(DataError, match="at least two systems"):
        podium.compare(data, {"a": systems["good"]})


def test_the_queries_that_moved_most(data, systems):
    comparison = podium.compare(data, systems, "ndcg@10")
    rows = comparison.moved("good", "chance", most=5).rows
    changes = [abs(row[3]) for row in rows]
    assert changes == sorted(changes, reverse=True)
    all_changes = comparison.evaluations["chance"].values["ndcg@10"] - comparison.evaluations["good"].values["ndcg@10"]
    assert changes[0] == pytest.approx(np.abs(all_changes).max())
    with pytest.raises(DataError, match="no system 'x'"):
        comparison.moved("x", "good")
    with pytest.raises(DataError, match="was not measured"):
        comparison.moved("good", "fair", "ap")


def test_tables_for_terminals_papers_and_programs(data, systems):
    from rich.console import Console

    evaluation = podium.evaluate(data, systems["good"], ["ndcg@10", "ndcg(empty=skip)@3"])
    table = evaluation.table()
    assert str(evaluation).splitlines()[0].split() == ["measure", "mean", "95%", "from", "to", "queries"]
    assert table.render("markdown").splitlines()[1].startswith("| ---")
    assert table.render("markdown").count("\n") == 3
    latex = table.render("latex")
    assert r"\toprule" in latex
    assert r"95\% from" in latex
    parsed = list(csv.DictReader(io.StringIO(table.render("csv"))))
    assert float(parsed[0]["mean"]) == evaluation.means["ndcg@10"]
    assert json.loads(table.render("json"))[0]["mean"] == evaluation.means["ndcg@10"]
    with pytest.raises(DataError, match="the format of a table"):
        table.render("xml")
    console = Console(file=io.StringIO(), width=200)
    console.print(evaluation)
    console.print(podium.compare(data, systems, margin=0.1))
    assert "p (equivalent)" in console.file.getvalue()
    per_query = json.loads(evaluation.query_table().render("json"))
    assert len(per_query) == data.n_queries
    assert None in [row["ndcg(empty=skip)@3"] for row in per_query]
    assert "good" in str(podium.compare(data, systems))


# --- TREC


@pytest.fixture
def trec(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b 0\n1 0 c 1\n2 0 d 1\n3 0 e 0\n3 0 f 1\n")
    (tmp_path / "run").write_text(
        "1 Q0 b 1 3.0 me\n1 Q0 a 2 2.0 me\n1 Q0 x 3 2.0 me\n2 Q0 y 1 0.5 me\n3 Q0 e 1 1 me\n3 Q0 f 1 1 me\n"
    )
    return tmp_path


@pytest.mark.filterwarnings("ignore::podium.errors.PodiumWarning")
def test_runs_agree_with_trec_eval(trec):
    qrels, run = podium.read_qrels(trec / "qrels"), podium.read_run(trec / "run")
    names = {
        "AP": "ap(ties=stable)", "RR": "rr(ties=stable)", "nDCG@10": "ndcg(ties=stable,gain=linear)@10",
        "P@2": "precision(ties=stable)@2", "R@2": "recall(ties=stable)@2",
    }  # fmt: skip
    evaluation = podium.evaluate(qrels, run, list(names.values()))
    theirs = {ir_measures.parse_measure(name): ours for name, ours in names.items()}
    for metric in ir_measures.iter_calc(
        list(theirs), list(ir_measures.read_trec_qrels(str(trec / "qrels"))),
        list(ir_measures.read_trec_run(str(trec / "run"))),
    ):  # fmt: skip
        query = evaluation.query_ids.tolist().index(metric.query_id)
        assert evaluation.values[theirs[metric.measure]][query] == pytest.approx(metric.value, abs=1e-6), metric
    assert evaluation.query_ids.tolist() == ["1", "2", "3"]


@pytest.mark.filterwarnings("ignore::podium.errors.PodiumWarning")
def test_runs_are_compared_and_missing_queries_count(trec):
    (trec / "half").write_text("1 Q0 a 1 3.0 half\n")
    qrels = podium.read_qrels(trec / "qrels")
    comparison = podium.compare(qrels, {n: podium.read_run(trec / n) for n in ("run", "half")}, ["rr", "ap"])
    assert comparison.evaluations["half"].values["rr"].tolist() == [1, 0, 0]
    assert comparison.evaluations["half"].values["ap"].tolist() == [0.5, 0, 0]


def test_data_goes_to_trec_files_and_back(data, systems, tmp_path):
    named = data.replace(document_ids=[f"d{k}" for k in range(len(data))])
    podium.write_run(named, systems["good"], tmp_path / "run", "good")
    podium.write_qrels(named, tmp_path / "qrels")
    run, qrels = podium.read_run(tmp_path / "run"), podium.read_qrels(tmp_path / "qrels")
    assert run.name == "good"
    expected = podium.evaluate(named, systems["good"], ["ndcg@10", "ap"]).means
    assert podium.evaluate(qrels, run, ["ndcg@10", "ap"]).means == pytest.approx(expected)
    assert podium.evaluate(named, run, ["ndcg@10", "ap"]).means == pytest.approx(expected)
    with pytest.raises(DataError, match="not in the data"):
        podium.evaluate(named.select([0]), run)
    with pytest.raises(DataError, match="not in the data"):
        podium.evaluate(data, run)
    podium.write_run(data, systems["good"], tmp_path / "unnamed")
    assert podium.evaluate(data, podium.read_run(tmp_path / "unnamed"), "ap").means == pytest.approx(
        {"ap": expected["ap"]}
    )
    with pytest.raises(DataError, match="require TREC runs"):
        podium.evaluate(qrels, systems["good"])


def test_ids_in_trec_files_are_words(tmp_path):
    letor = RankingData([[1], [2]], [1, 0], qid=[1, 1], document_ids=["docid = A-1 inc = 1", "docid = B-2"])
    podium.write_run(letor, [1, 2], tmp_path / "run")
    assert podium.read_run(tmp_path / "run").scores == {"1": {"A-1": 1.0, "B-2": 2.0}}
    podium.write_run(RankingData([[1]], qid=[1]), [1], tmp_path / "run")
    assert "row0" in (tmp_path / "run").read_text()
    for bad in ({"document_ids": ["a b"]}, {"document_ids": [""]}):
        with pytest.raises(DataError, match="word without spaces"):
            podium.write_run(RankingData([[1]], qid=[1], **bad), [1], tmp_path / "run")
    with pytest.raises(DataError, match="name of a run"):
        podium.write_run(letor, [1, 2], tmp_path / "run", "a b")
    with pytest.raises(DataError, match="whole numbers"):
        podium.write_qrels(letor.replace(labels={"relevance": [0.5, 1]}), tmp_path / "q")
    with pytest.raises(DataError, match="no labels 'clicks'"):
        podium.write_qrels(letor, tmp_path / "q", "clicks")
    podium.write_qrels(letor.replace(labels={"relevance": [np.nan, 1]}), tmp_path / "q")
    assert podium.read_qrels(tmp_path / "q").labels == {"1": {"B-2": 1.0}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 Q0 a 1 2.0\n", "line 1: expected 'query Q0 document rank score name'"),
        ("1 Q0 a 1 x me\n", "line 1: the score must be a finite number, but found 'x'"),
        ("1 Q0 a 1 nan me\n", "line 1: the score must be a finite number, but found 'nan'"),
        ("1 Q0 a 1 2 me\n\n1 Q0 a 2 1 me\n", "line 3: document 'a' occurs twice for query '1'"),
        ("1 Q0 a 1 2 me\n1 Q0 b 2 1_0 me\n", "line 2: the score must be a finite number, but found '1_0'"),
        ("1 Q0 a 1 2 me\n1 Q0 b 2 \u0663 me\n", "line 2: the score must be a finite number, but found '\u0663'"),
        ("1 Q0 a 1 2 me\r\n1 Q0 b\0 2 1 me\n", "line 2: found a NUL character"),
        ("1 Q0 a 1 2 me\n1 Q0 b\u2028c 2 1 me\n", r"line 2: expected .* but found '1 Q0 b\\u2028c 2 1 me'"),
        ("\n", "is empty"),
    ],
)
def test_invalid_runs_are_refused_with_their_line(text, words, tmp_path):
    (tmp_path / "run").write_text(text)
    with pytest.raises(FileFormatError, match=words):
        podium.read_run(tmp_path / "run")


def test_missing_files_and_files_that_are_not_text(tmp_path):
    with pytest.raises(FileFormatError, match="cannot be opened"):
        podium.read_run(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"\xff\xfe")
    with pytest.raises(FileFormatError, match=r"bad, line 1: .*UTF-8"):
        podium.read_qrels(tmp_path / "bad")
    (tmp_path / "bad").write_bytes(b"1 0 \xc3\xa4 1\r\n1 0 b 1\n1 0 \xff 1\n")
    with pytest.raises(FileFormatError, match="bad, line 3: is not valid UTF-8"):
        podium.read_qrels(tmp_path / "bad")


def test_labels_beyond_single_precision_are_refused_with_their_line(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 1e39\n")
    with pytest.raises(FileFormatError, match="line 2: the label must be a finite number, but found '1e39'"):
        podium.read_qrels(tmp_path / "qrels")


def test_a_file_of_two_runs_is_reported(tmp_path):
    (tmp_path / "run").write_text("1 Q0 a 1 2 me\n2 Q0 a 1 2 you\n")
    with pytest.warns(PodiumWarning, match=r"run, line 2: the run is named 'you', but 'me' before"):
        assert podium.read_run(tmp_path / "run").name == "you"


def test_scores_beyond_single_precision_rank_first(tmp_path):
    (tmp_path / "run").write_text("1 Q0 a 1 1e39 me\n1 Q0 b 2 2 me\n")
    judged = podium.evaluation.Qrels({"1": {"a": 1, "b": 0}})
    assert podium.evaluate(judged, podium.read_run(tmp_path / "run"), "rr").means["rr"] == 1.0


def test_results_are_found_by_any_name_of_the_measure(data, systems):
    evaluation = podium.evaluate(data, systems["good"], ["map", "NDCG@10", NDCG(3)])
    assert evaluation.means["map"] == evaluation.means["ap"] == evaluation.means[podium.AP()]
    assert evaluation.intervals["NDCG@10"] == evaluation.intervals["ndcg@10"]
    with pytest.raises(KeyError):
        _ = evaluation.means["rr"]
    compared = podium.compare(data, systems, "map")
    assert compared.moved("good", "fair", "map").columns[-1] == "change of ap"
    assert set(podium.evaluate(data, systems["good"], podium.Graded(["ndcg", "ap"])).means) == {"ndcg", "ap"}
    with pytest.raises(DataError, match="mapping from names to scores"):
        podium.compare(data, [systems["good"], systems["fair"]])


def test_the_pool_does_not_change_a_systems_value():
    qrels = Qrels({"1": {"a": 1, "b": 1, "c": 0}})
    run, other = Run("r", {"1": {"a": 2.0, "x": 1.0}}), Run("o", {"1": {f"z{k}": float(k) for k in range(7)}})
    from podium.measures import letor

    names = ["precision", "ap", "err", *letor(["ndcg@5"])]
    alone = podium.evaluate(qrels, run, names).means
    assert alone["precision"] == 0.5
    assert podium.compare(qrels, {"r": run, "o": other}, names).evaluations["r"].means == alone


def test_measures_undefined_for_missing_documents_refuse_them():
    class Top(podium.Measure):
        def value(self, labels):
            return float(labels[0])

    qrels, run = Qrels({"1": {"a": 1, "b": 1}}), Run("r", {"1": {"a": 2.0}})
    for measure in (Top(), "accuracy"):
        with pytest.raises(DataError, match="do not return all judged documents"):
            podium.evaluate(qrels, run, measure)


def test_runs_and_judgements_of_different_queries_are_reported():
    run = Run("r", {"1": {"a": 1.0}})
    with pytest.raises(DataError, match="no query in common"):
        podium.evaluate(Qrels({"101": {"a": 1}}), run)
    with pytest.warns(PodiumWarning, match="lacks 1 of 2 judged queries"):
        podium.evaluate(Qrels({"1": {"a": 1}, "2": {"b": 1}}), run)


@pytest.mark.filterwarnings("ignore::podium.errors.PodiumWarning")
def test_judgements_are_read_as_trec_eval_reads_them(tmp_path):
    (tmp_path / "q").write_bytes(b"\xef\xbb\xbf1 0 a 1\n1 0 b -2\n")
    (tmp_path / "r.gz").write_bytes(gzip.compress(b"1 Q0 a 1 1.0 me\n"))
    evaluation = podium.evaluate(podium.read_qrels(tmp_path / "q"), podium.read_run(tmp_path / "r.gz"), ["ap", "ndcg"])
    assert evaluation.means == {"ap": 1.0, "ndcg": 1.0}
    tied = podium.evaluate(
        Qrels({"1": {"a": 1, "b": 0, "c": 0}}), Run("r", {"1": {"a": 1.00000001, "b": 1, "c": 1}}), "rr(ties=stable)"
    )
    assert tied.means["rr(ties=stable)"] == pytest.approx(1 / 3)  # single precision, then falling document id


def test_names_with_markup_in_tables(data, systems):
    from rich.console import Console

    comparison = podium.compare(data, {"[/b]|x": systems["good"], "back\\slash": systems["fair"]})
    console = Console(file=io.StringIO(), width=250)
    console.print(comparison)
    assert "[/b]|x" in console.file.getvalue()
    assert r"[/b]\|x" in comparison.means_table().render("markdown")
    assert r"back\textbackslash{}slash" in comparison.means_table().render("latex")
    comparison.table().render("latex").encode("ascii")


def test_duplicate_ids_and_infinite_scores_are_not_written_to_trec_files(tmp_path):
    twice = RankingData([[1], [2]], [1, 0], qid=[1, 1], document_ids=["a", "a"])
    with pytest.raises(DataError, match="'a' occurs twice in '1'"):
        podium.write_run(twice, [1, 2], tmp_path / "run")
    with pytest.raises(DataError, match="occurs twice"):
        podium.evaluate(twice, Run("r", {"1": {"a": 1.0}}))
    with pytest.raises(DataError, match="finite"):
        podium.write_run(RankingData([[1]], qid=[1]), [np.inf], tmp_path / "run")


@pytest.mark.parametrize("measures", [None, 5, "err", [None, 3, ["err"]], {"a": 1}])
def test_invalid_measures_of_a_model_are_ignored(measures):
    data = podium.artificial(5, seed=0)
    model = podium.LambdaMART(n_trees=1, verbose=0).fit(data).model_.with_info(measures=measures)
    err = "err@5"
    assert podium.evaluate(data, model, err).means == podium.evaluate(data, model.predict(data), err).means


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\x85", "\x1c"])
def test_unicode_spaces_do_not_separate_columns_of_judgements(blank, tmp_path):
    """To trec_eval they are part of an id, so that `7 0 a<no-break space>5 1` must not be a label of 5."""
    (tmp_path / "q").write_text(f"7 0 a 1\n7 0 a{blank}5 1\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"line 2: expected .*, separated by spaces or tabs, but found '7 0 a"):
        podium.read_qrels(tmp_path / "q")
    (tmp_path / "q").write_text("7\t0 \v b\f0\n", encoding="utf-8")
    assert podium.read_qrels(tmp_path / "q").labels == {"7": {"b": 0}}


class TestSubtopics:
    TEXT = "# diversity\n1 1 b 1 0.9 assessor\n1 2 b 1\n1 2 c 1 # a comment\n1 1 d 1\n\n1 2 d 0\n"

    def test_the_second_column_names_them(self, tmp_path):
        (tmp_path / "q").write_text(self.TEXT)
        qrels = podium.read_qrels(tmp_path / "q")
        assert qrels.labels == {"1": {"b": 1, "c": 1, "d": 1}}
        assert qrels.subtopics == {"1": {"1": {"b": 1, "d": 1}}, "2": {"1": {"b": 1, "c": 1, "d": 0}}}

    @pytest.mark.parametrize(
        ("order", "alpha", "err"),
        [("abc", 0.58931211, 0.42360061), ("bca", 0.90255177, 0.81694402), ("ac", 0.24593194, 0.18154312),
         ("b", 0.7795858, 0.72617247)],
    )  # fmt: skip
    def test_runs_that_miss_judged_documents_are_measured_as_ndeval_does(self, order, alpha, err, tmp_path):
        """Values of ndeval, TREC's program for diversity; documents that a run lacks count only in the ideal order."""
        (tmp_path / "q").write_text(self.TEXT)
        run = Run("r", {"1": {document: -float(k) for k, document in enumerate(order)}})
        evaluation = podium.evaluate(podium.read_qrels(tmp_path / "q"), run, ["alpha_ndcg@5", "err_ia(max_label=1)@5"])
        whole = sum(0.5**r / r for r in range(1, 6))  # ndeval divides by the ERR of relevant documents alone
        assert evaluation.means["alpha_ndcg@5"] == pytest.approx(alpha)
        assert evaluation.means["err_ia(max_label=1)@5"] == pytest.approx(err * whole)

    def test_a_column_of_one_value_or_too_many_has_no_subtopics(self, tmp_path):
        (tmp_path / "q").write_text("1 0 a 1\n1 0 b 0\n")
        assert podium.read_qrels(tmp_path / "q").subtopics == {}
        (tmp_path / "q").write_text("".join(f"1 {k} a {k}\n" for k in range(101)))
        with pytest.warns(PodiumWarning, match="has 101 different values, which is too many to be subtopics"):
            assert podium.read_qrels(tmp_path / "q") == Qrels({"1": {"a": 100}})
        (tmp_path / "q").write_text("1 1 a 1\n1 2 a 1\n1 1 a 0\n")
        with pytest.raises(FileFormatError, match="line 3: document 'a' occurs twice"):
            podium.read_qrels(tmp_path / "q")
        (tmp_path / "q").write_text("1 1 a\n")
        with pytest.raises(FileFormatError, match="line 1: expected 'query 0 document label'"):
            podium.read_qrels(tmp_path / "q")


ALL_MEASURES = ["ndcg@10", "ap", "err@5", "rr", "precision@3", "recall@5", "rbp", "q", "accuracy", "tau"]


@pytest.mark.parametrize("measure", ALL_MEASURES)
def test_equal_scores_count_alike_in_every_evaluation(measure):
    """In `score`, `evaluate`, `compare` and validation during training, in any order of the rows."""
    train, valid = (podium.artificial(25, documents=20, features=3, part=part) for part in ("train", "valid"))
    settings = {"n_trees": 3, "n_leaves": 3, "objective": "lambda(ndcg)", "measure": measure}
    fitted = podium.LambdaMART(**settings, patience=None).fit(train, valid={"v": valid})
    assert len(np.unique(fitted.predict(valid))) < 60  # many ties
    values = {
        max(fitted.history_[f"v/{measure}"]),
        fitted.score(valid),
        podium.evaluate(valid, fitted, measure).means[measure],
        podium.compare(valid, {"a": fitted, "b": fitted.model_}, measure).evaluations["b"].means[measure],
    }
    for seed in range(3):
        shuffled = valid.take(np.random.default_rng(seed).permutation(len(valid)))
        values |= {fitted.score(shuffled), podium.evaluate(shuffled, fitted, measure).means[measure]}
    assert len(values) == 1


def test_a_measure_without_a_formula_for_ties_does_not_depend_on_the_rows():
    class First(podium.Measure):
        def value(self, labels):
            return float(labels[0])

    data = podium.artificial(20, documents=10, features=3)
    scores = np.round(data.feature(0), 0)
    means = set()
    for seed in range(4):
        rows = np.random.default_rng(seed).permutation(len(data))
        with pytest.warns(podium.PodiumWarning, match="an order by content"):
            means.add(podium.evaluate(data.take(rows), scores[rows], First()).means["first"])
    assert len(means) == 1


def test_stable_ties_follow_the_rows_everywhere():
    data = podium.RankingData([[0.0], [1.0]], [1, 0], qid=[1, 1])
    turned = data.take(np.array([1, 0]))
    for measure, value in (("ndcg(ties=stable)@1", 1.0), ("accuracy(ties=stable)", 1.0), ("ap(ties=stable)", 1.0)):
        with pytest.warns(podium.PodiumWarning, match="the order of the rows"):
            assert podium.evaluate(data, [0, 0], measure).means[measure] == value
        with pytest.warns(podium.PodiumWarning, match="the order of the rows"):
            assert podium.evaluate(turned, [0, 0], measure).means[measure] < value
    assert BoundMeasures(data, {"m": parse("ndcg(ties=stable)@1")}).means(np.zeros(2)) == {"m": 1.0}
    assert BoundMeasures(turned, {"m": parse("ndcg(ties=stable)@1")}).means(np.zeros(2)) == {"m": 0.0}
