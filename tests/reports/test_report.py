"""Reports: the numbers in them are those of the functions they come from, and no input breaks them."""

import re
import sys
from itertools import pairwise

import numpy as np
import pytest

import podium
from podium import DataError, PodiumWarning
from podium.diagnostics import WatchLambdaShares, WatchRankChanges, WatchTopLabels, lambda_arrows
from podium.errors import MissingExtraError
from podium.reports.comparison_charts import wins_and_losses_chart
from podium.reports.feature_charts import summary_chart
from podium.reports.page import comparison_report
from podium.reports.page.building import subject_of
from podium.reports.page.sections import learning_section
from tests.reports.pages import Page

NDCG, AP = "ndcg@10", "ap"
MEASURES = [NDCG, AP]


@pytest.fixture(scope="module")
def parts():
    return [podium.artificial(24, documents=12, features=5, part=part) for part in ("train", "valid", "test")]


@pytest.fixture(scope="module")
def fitted(parts):
    train, valid, _ = parts
    return podium.LambdaMART(8, n_leaves=4).fit(train, valid={"valid": valid, "train": train})


@pytest.fixture(scope="module")
def linear(parts):
    return podium.LinearRanker(n_iterations=3).fit(parts[0])


def written(parts, fitted, linear, path):
    train, valid, test = parts
    return podium.report(fitted, test, path, train=train, valid=valid, others={"linear": linear}, measures=MEASURES)


@pytest.fixture(scope="module")
def file(parts, fitted, linear, tmp_path_factory):
    return written(parts, fitted, linear, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def page(file):
    return Page(file.read_text())


SECTIONS = ["measures", "comparison", "queries", "learning", "ranking", "importance", "contributions", "dependence",
            "cost", "data", "repeat"]  # fmt: skip


class TestNumbers:
    def test_measures_are_those_of_evaluate(self, page, parts, fitted):
        rows = page.table("Means over the queries")
        for name, data in zip(("train", "valid", "test"), parts, strict=True):
            evaluation = podium.evaluate(data, fitted, MEASURES)
            for measure in MEASURES:
                (row,) = [row for row in rows if row["data"] == name and row["measure"] == measure]
                low, high = evaluation.intervals[measure]
                shown = [f"{number:.4f}" for number in (evaluation.means[measure], low, high)]
                assert [row["mean"], row["95% from"], row["to"]] == shown

    def test_the_comparison_is_that_of_compare(self, page, parts, fitted, linear):
        expected = podium.compare(parts[2], {"linear": linear, "model": fitted}, MEASURES)
        rows = page.table("Pairs of systems")
        assert [list(row.values()) for row in rows] == expected.table().texts()
        assert (rows[0]["a"], rows[0]["b"]) == ("linear", "model")

    def test_queries_are_the_worst_the_best_and_the_most_changed(self, page, parts, fitted, linear):
        test = parts[2]
        values, others = (podium.evaluate(test, one, NDCG).values[NDCG] for one in (fitted, linear))
        names = {str(query): k for k, query in enumerate(test.query_ids)}
        shown = [tag["aria-label"].rpartition(" ")[2] for name, tag in page.tags
                 if name == "div" and tag.get("aria-label", "").startswith("Ranked list")]  # fmt: skip
        worst, best, moved = (sorted(names[name] for name in shown[k : k + 5]) for k in (0, 5, 10))
        assert sorted(values[worst]) == pytest.approx(np.sort(values)[:5])
        assert sorted(values[best]) == pytest.approx(np.sort(values)[-5:])
        assert sorted(abs(values - others)[moved]) == pytest.approx(np.sort(abs(values - others))[-5:])

    def test_a_list_is_in_the_order_of_the_scores(self, page, parts, fitted):
        test, scores = parts[2], fitted.predict(parts[2])
        rows = page.tables[next(caption for caption in page.tables if caption.startswith("All 12 documents"))][0][1:]
        listed = [int(row[2].removeprefix("row ")) for row in rows]
        assert len(set(test.qid[listed])) == 1
        assert scores[listed].tolist() == sorted(scores[listed].tolist(), reverse=True)
        assert [row[3] for row in rows] == [f"{label:g}" for label in test.relevance[listed]]
        assert [row[4] for row in rows] == [f"{score:.4g}" for score in scores[listed]]

    def test_deciding_features_are_contributions_against_the_mean_of_the_list(self, page, parts, fitted):
        rows = page.tables[next(caption for caption in page.tables if caption.startswith("All 12 documents"))][0][1:]
        listed = np.array([int(row[2].removeprefix("row ")) for row in rows])
        found = fitted.explain(parts[2].take(listed))
        apart = found.values - found.values.mean(axis=0)
        for k, row in enumerate(rows):
            first = int(np.argmax(np.abs(apart[k])))
            sign = "−" if apart[k, first] < 0 else "+"
            assert row[5].startswith(f"{sign}{abs(apart[k, first]):.3g} column {first} = ")

    def test_arrows_of_the_last_round_are_those_of_lambda_arrows(self, page, parts, fitted):
        test = parts[2]
        arrows = page.content["arrows"]["queries-0"]
        query = next(tag["aria-label"].rpartition(" ")[2] for name, tag in page.tags if "Ranked list" in str(tag))
        expected = lambda_arrows(fitted, test, type(test.query_ids[0])(query), ["pairwise", fitted._objective(test)])
        last = arrows["steps"][-1]
        assert last["round"] == fitted.n_trees_
        assert last["rows"] == expected.rows.tolist()
        assert [arrows["names"][str(row)] for row in last["rows"]] == [f"row {row}" for row in last["rows"]]
        assert arrows["steps"][0]["round"] == 0
        for k in (0, 1):
            assert last["lambdas"][k] == pytest.approx(expected.lambdas[k].tolist(), rel=6e-3, abs=1e-12)

    def test_a_replay_shows_what_observers_record(self, parts, tmp_path):
        train, _, test = parts
        watches = [
            WatchTopLabels(3, every=1),
            WatchRankChanges(3, every=1),
            WatchLambdaShares(of_labels=(3, 4), every=1),
        ]
        observed = podium.LambdaMART(8, n_leaves=4).fit(train, observers=watches)
        plain = podium.LambdaMART(8, n_leaves=4).fit(train)
        rows = []
        for model in (observed, plain):
            page = Page(podium.report(model, test, tmp_path / "a.html", train=train, measures=AP).read_text())
            charts = [spec for spec in page.content["charts"] if "round" in str(spec.get("encoding", {}).get("x", {}))]
            rows.append([spec["data"]["values"] for spec in charts])
        assert len(rows[0]) == len(rows[1]) == 4
        for seen, again in zip(*rows, strict=True):
            assert [list(row.values()) for row in seen] == [pytest.approx(list(row.values())) for row in again]


class TestPage:
    def test_all_sections_are_there_and_only_once(self, page):
        assert [name for name in page.ids if name in SECTIONS] == SECTIONS
        assert len(page.ids) == len(set(page.ids))
        assert "Not here" not in page.words("queries")

    def test_it_loads_nothing_external(self, file):
        text = file.read_text()
        own = re.sub(r"<script>\(function \(\) \{const.*?</script>", "", text, flags=re.DOTALL)
        assert not re.search(
            r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|<script src|<link rel=.stylesheet|innerHTML", own
        )
        assert text.count("window.vegaEmbed=") == 1
        assert len(text) < 2_000_000

    def test_it_is_accessible(self, page):
        tags = page.tags
        headings = [int(name[1]) for name, _ in tags if re.fullmatch(r"h\d", name)]
        assert headings[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(headings))
        assert {"header", "nav", "main"} <= {name for name, _ in tags}
        fields = [tag["id"] for name, tag in tags if name in ("select", "input")]
        labels = [tag["for"] for name, tag in tags if name == "label"]
        assert fields == labels
        assert all("scope" in tag for name, tag in tags if name == "th")
        captions = sum(name == "caption" for name, _ in tags)
        assert captions == sum(name == "table" for name, _ in tags)
        assert all("aria-labelledby" in tag for name, tag in tags if name == "section")

    def test_the_same_model_and_data_give_the_same_file(self, file, parts, fitted, linear, tmp_path):
        again = written(parts, fitted, linear, tmp_path / "again.html")
        assert again.read_bytes() == file.read_bytes()

    def test_hostile_names_are_text(self, parts, tmp_path):
        evil = "</script><img src=x onerror=alert(1)>"
        made = parts[2]
        data = podium.RankingData(
            made.features, made.relevance, qid=[f"{evil}{query}" for query in made.qid],
            document_ids=[f"{evil}{k}" for k in range(len(made))],
            feature_names=[f"{evil}{k}" for k in range(5)],
        )  # fmt: skip
        model = podium.LambdaMART(3, n_leaves=3).fit(data)
        path = podium.report(model, data, tmp_path / "a.html", others={evil: data.feature(0)}, name=f"<b>{evil}")
        text = path.read_text()
        assert evil not in text
        assert "onerror=alert" in text  # as text
        assert all(name != "img" for name, _ in Page(text).tags)


class TestMissingSections:
    def test_scores_alone(self, parts, tmp_path):
        test = parts[2]
        page = Page(podium.report(test.feature(0), test, tmp_path / "a.html").read_text())
        assert [name for name in page.ids if name in SECTIONS] == SECTIONS
        assert "has only scores" in page.words("importance")
        assert "fit(…, valid=…)" in page.words("learning")
        assert "observers=[WatchLambdaShares()" in page.words("ranking")
        assert "Only a sum of trees" in page.words("cost")
        assert "others=" in page.words("comparison")
        assert len(page.content["arrows"]["queries-0"]["steps"]) == 1

    def test_no_labels(self, parts, fitted, tmp_path):
        test = parts[2]
        bare = podium.RankingData(test.features, qid=test.qid)
        page = Page(podium.report(fitted, bare, tmp_path / "a.html", others={"b": bare.feature(0)}).read_text())
        assert "require labels" in page.words("measures")
        assert "λ require labels" in page.words("queries")
        assert "first queries" in page.words("queries")
        assert not page.content["arrows"]
        assert page.table("How scores change")

    def test_one_query(self, parts, fitted, tmp_path):
        page = Page(podium.report(fitted, parts[2].select([3]), tmp_path / "a.html").read_text())
        assert page.table("Means over")[0]["95% from"] == "–"

    def test_equal_labels_and_no_features_that_matter(self, tmp_path):
        data = podium.RankingData(np.ones((6, 2)), np.ones(6), qid=[1, 1, 1, 2, 2, 2])
        page = Page(podium.report(lambda data: np.arange(len(data)), data, tmp_path / "a.html").read_text())
        assert "In every query, all documents have the same label" in page.words("queries")
        assert "Only Podium's own models" in page.words("importance")

    @pytest.mark.parametrize(
        "name", ["McRank", "LinearRanker", "Combined", "imported", "sparse", "submodel", "foreign"]
    )
    def test_other_kinds_of_models(self, name, parts, fitted, linear, tmp_path):
        train, _, test = parts
        model = _other_model(name, train, fitted, linear, tmp_path)
        if name == "sparse":
            from scipy.sparse import csr_array

            test = podium.RankingData(csr_array(test.features), test.relevance, qid=test.qid)
        page = Page(podium.report(model, test, tmp_path / "a.html", queries=1, measures=AP).read_text())
        assert page.table("Means over")[0]["mean"] == f"{podium.evaluate(test, model, AP).means[AP]:.4f}"
        if name == "McRank":
            assert "not a sum over its trees" in page.words("contributions")
            assert "Deciding features cannot be shown" in page.words("queries")
        if name == "sparse":
            assert "dense features" in page.words("importance")
        if name == "imported":
            assert "interventional" in page.words("contributions")

    def test_nets(self, parts, tmp_path):
        pytest.importorskip("torch")
        train, valid, test = parts
        net = podium.RankNet(epochs=2, n_threads=1).fit(train, valid=valid)
        net.model_.save(tmp_path / "net.podium")
        loaded = podium.load(tmp_path / "net.podium")
        page = Page(podium.report(loaded, test, tmp_path / "a.html", queries=1, history=net.history_).read_text())
        assert "integrated gradients" in page.words("contributions")
        assert "observers=[" in page.words("ranking")
        assert "valid/ndcg@10" in page.words("learning")
        subject = subject_of({"net": loaded}, test, "test", {}, AP, n_listed=1)
        assert "report(…, history=" in learning_section(subject).parts[0].text

    def test_warnings_are_shown(self, tmp_path):
        data = podium.RankingData([[1.0], [1.0], [1.0], [2.0]] * 3, [0, 1, 2, 0] * 3, qid=np.repeat([1, 2, 3], 4))
        page = Page(
            podium.report(data.feature(0), data, tmp_path / "a.html", measures="ndcg(ties=stable)@10").read_text()
        )
        text = (tmp_path / "a.html").read_text()
        assert "ties between documents with different labels" in text
        assert "have the same features as another document" in page.words("data")


def _other_model(name, train, fitted, linear, folder):
    known = {
        "sparse": fitted, "LinearRanker": linear,
        "Combined": podium.models.Combined((linear.model_, fitted.model_), (0.5, 0.5)),
    }  # fmt: skip
    if name in known:
        return known[name]
    if name == "McRank":
        return podium.McRank(2, n_leaves=3).fit(train)
    if name == "imported":
        fitted.export(folder / "model.xml", format="ranklib", missing="zero")
        return podium.import_model(folder / "model.xml", format="ranklib")
    if name == "submodel":
        return podium.LambdaMART(2, submodel=lambda data: data.feature(0)).fit(train)
    from sklearn.linear_model import LinearRegression

    return LinearRegression().fit(train.features, train.relevance)


class TestMistakes:
    def test_invalid_arguments(self, parts, fitted, tmp_path, monkeypatch):
        test = parts[2]
        with pytest.raises(DataError, match=r"must end in \.html, but got '\.pdf'"):
            podium.report(fitted, test, tmp_path / "a.pdf")
        with pytest.raises(DataError, match="'model' is already the name of the model"):
            podium.report(fitted, test, tmp_path / "a.html", others={"model": test.feature(0)})
        with pytest.raises(DataError, match="queries must be a whole number from 1"):
            podium.report(fitted, test, tmp_path / "a.html", queries=0)
        with pytest.raises(DataError, match="the data has no documents"):
            podium.report(fitted, test.take(np.arange(0)), tmp_path / "a.html")
        with pytest.raises(DataError, match="at least two systems"):
            comparison_report({"a": test.feature(0)}, test, tmp_path / "a.html")
        assert not (tmp_path / "a.html").exists()
        monkeypatch.setitem(sys.modules, "jinja2", None)
        with pytest.raises(MissingExtraError, match=r"a report needs jinja2.*pip install '\.\[report\]' in a checkout"):
            podium.report(fitted, test, tmp_path / "a.html")


@pytest.mark.slow
def test_ten_thousand_queries_stay_small(tmp_path):
    data = podium.artificial(10_000, documents=4, features=3)
    model = podium.LambdaMART(10, n_leaves=4).fit(data)
    path = podium.report(model, data, tmp_path / "a.html", others={"one": data.feature(0)}, measures="ndcg")
    assert path.stat().st_size < 3_000_000


class TestCharts:
    def test_wins_and_losses(self, parts, fitted, linear):
        result = podium.compare(parts[2], {"a": linear, "b": fitted, "c": parts[2].feature(0)}, MEASURES)
        panels = wins_and_losses_chart(result, AP).to_dict()["vconcat"]
        pairs = [pair for pair in result.pairs if pair.measure == AP]
        assert len(panels) == len(pairs) == 3
        for panel, pair in zip(panels, pairs, strict=True):
            change = result.evaluations[pair.b].values[AP] - result.evaluations[pair.a].values[AP]
            rows = panel["layer"][0]["data"]["values"]
            assert [row["difference"] for row in rows] == sorted(change.tolist(), reverse=True)
            assert sum(row["win"] > 0 for row in rows) == pair.wins
            assert sum(row["loss"] < 0 for row in rows) == pair.losses
            counts = f"{pair.wins} wins, {pair.ties} ties, {pair.losses} losses"
            assert panel["title"] == f"{pair.b} − {pair.a}, query by query: {counts}"

    def test_points_of_contributions(self, parts, fitted):
        found = fitted.explain(parts[2])
        rows = summary_chart(found, top=2).to_dict()["data"]["values"]
        order = np.argsort(-np.abs(found.values).mean(axis=0))[:2]
        for k in order.tolist():
            mine = [row for row in rows if row["feature"] == f"column {k}"]
            assert len(mine) == 250
            assert all(abs(row["place"]) <= 1.01 and 0 <= row["share"] <= 1 for row in mine)
            values = [float(row["value"]) for row in mine]
            shares = [row["share"] for row in mine]
            assert np.argsort(values, kind="stable").tolist() == np.argsort(shares, kind="stable").tolist()
            assert {row["contribution"] for row in mine} <= {float(f"{value:.4g}") for value in found.values[:, k]}

    def test_the_first_trees(self, page, parts, fitted):
        (spec,) = [spec for spec in page.content["charts"] if "time to score" in str(spec)]
        rows = spec["layer"][-1]["data"]["values"]
        for row in rows:
            values = podium.evaluate(parts[2], fitted.predict(parts[2], n_trees=row["trees"]), NDCG)
            assert row["mean"] == pytest.approx(values.means[NDCG])
        assert rows[-1]["trees"] == fitted.n_trees_


class TestNotebooks:
    def test_data(self, parts):
        text = parts[0]._repr_html_()
        assert text.startswith("<table><caption>RankingData(288 documents in 24 queries, 5 features")
        assert text.count("<tr>") == 6
        frame = podium.RankingData([["a<b"], ["c"]], qid=[1, 1], feature_names=["kind"], categorical=["kind"])
        assert "a&lt;b" in frame._repr_html_()

    def test_results_and_models(self, parts, fitted, linear):
        test = parts[2]
        result = podium.compare(test, {"a<b": fitted, "b": linear}, AP)
        assert "a&lt;b" in result._repr_html_()
        assert f"{result.evaluations['b'].means[AP]:.4f}" in result.evaluations["b"]._repr_html_()
        assert fitted.model_.digest() in fitted.model_._repr_html_()
        assert "importance" in podium.models.Combined((linear.model_, fitted.model_), (1.0, 1.0))._repr_html_()


def test_warnings_do_not_leak(parts, tmp_path, recwarn):
    podium.report(np.zeros(len(parts[2])), parts[2], tmp_path / "a.html")
    assert not [one for one in recwarn if issubclass(one.category, PodiumWarning)]
