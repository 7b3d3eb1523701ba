"""Search pipelines: the same scores as `compute` and `predict`, to the bit; folders; explanations."""

import json
import math
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium.errors import DataError, FileFormatError
from podium.features import FeatureSet, Index, SearchPipeline, default
from podium.features.pipeline import FOLDER, is_pipeline
from tests.commands import run
from tests.features.collections_ import TEXTS, WORDS, built, documents

FEATURES = FeatureSet(
    ["bm25", "bm25(title)", "lm_jm(body)", "covered_ratio", "stream_length(title)", "attribute(votes)", "query_length"]
)


def made_documents(n=60, seed=5, first=0):
    random = np.random.default_rng(seed)

    def text(size):
        return " ".join(random.choice(WORDS, random.integers(1, size)))

    return [
        {"id": f"d{k}", "title": text(4), "body": text(12), "votes": int(random.integers(-5, 5))}
        for k in range(first, first + n)
    ]


@pytest.fixture(scope="module")
def index():
    return built(made_documents())


QUERIES = {f"q{k}": text for k, text in enumerate(["a b", "runs", "東京 c", "dd x1 a", "é b c", "running dd"])}


@pytest.fixture(scope="module")
def data(index):
    return FEATURES.compute(index, QUERIES, candidates="bm25 top 100")


def labelled(data):
    labels = (np.nan_to_num(data.feature("attribute(votes)")) > 1) + (data.feature("bm25(title)") > 0)
    return data.replace(relevance=labels.astype(float))


@pytest.fixture(scope="module")
def models(data):
    train = labelled(data)
    return {
        "trees": podium.LambdaMART(n_trees=8, n_leaves=4, min_documents_in_leaf=2).fit(train),
        "linear": podium.LinearRanker().fit(train),
        "normalized": podium.LambdaMART(n_trees=8, n_leaves=4, min_documents_in_leaf=2).fit(train.normalized("zscore")),
    }


def offline(index, features, model, text, candidates):
    """The ids and scores by `compute` and `predict`, in the order of a pipeline."""
    if not index.search(text, candidates).ids:
        return [], []
    data = features.compute(index, {"q": text}, candidates=f"bm25 top {candidates}")
    normalize = model.model_.reading.get("normalize")
    scores = model.predict(data if normalize is None else data.normalized(normalize))
    order = sorted(range(len(data)), key=lambda k: (-scores[k], data.document_ids[k]))
    return [data.document_ids[k] for k in order], scores[order].tolist()


@settings(deadline=None, max_examples=40)
@given(documents(), TEXTS, st.sampled_from(["trees", "linear", "normalized"]), st.integers(1, 6), st.integers(1, 12))
def test_search_gives_the_bits_of_compute_and_predict(models, rows, text, name, k, candidates):
    index = built(rows)
    pipeline = SearchPipeline(index, FEATURES, models[name], candidates)
    hits = pipeline.search(text, k, features=True)
    ids, scores = offline(index, FEATURES, models[name], text, candidates)
    assert (hits.ids, hits.scores.tolist()) == (ids[:k], scores[:k])
    retrieved = index.search(text, candidates)
    for place, document in enumerate(hits.ids):
        first = retrieved.ids.index(document)
        assert (hits.retrieval_ranks[place], hits.retrieval_scores[place]) == (first + 1, retrieved.scores[first])
    assert np.array_equal(hits.features, FEATURES.rows(index, text, hits.rows), equal_nan=True)


def test_values_too_close_for_float32_are_the_same_online():
    """Timestamps differ by less than float32 can represent: training shifts them, and so does search."""
    rows = [{"id": f"{k:03}", "title": "red shoes", "time": 1.7e9 + 7 * k} for k in range(80)]
    index = Index.build(rows, fields={"title": "english"})
    features = FeatureSet(["bm25(title)", "attribute(time)"])
    train = features.compute(index, {"q": "red"}, {"q": {row["id"]: int(row["time"] % 3) for row in rows}})
    assert train.encoding.shifts
    model = podium.LambdaMART(n_trees=10, min_documents_in_leaf=1).fit(train)
    hits = SearchPipeline(index, features, model).search("red shoes", 80)
    ids, scores = offline(index, features, model, "red shoes", 100)
    assert len(set(scores)) > 5
    assert (hits.ids, hits.scores.tolist()) == (ids, scores)


def test_candidates_can_be_retrieved_by_any_feature(index, models):
    by = "bm25f(title:3, body)"
    hits = SearchPipeline(index, FEATURES, models["trees"], 5, by).search("a b dd", features=True)
    data = FEATURES.compute(index, {"q": "a b dd"}, candidates=f"{by} top 5")
    scores = dict(zip(data.document_ids, models["trees"].predict(data).tolist(), strict=True))
    assert dict(zip(hits.ids, hits.scores.tolist(), strict=True)) == scores
    first = index.search("a b dd", 5, by)
    assert [hits.ids[place] for place in np.argsort(hits.retrieval_ranks)] == first.ids


def test_threads_get_the_same_answers(index, models):
    pipeline = SearchPipeline(
        built(made_documents()), FEATURES, models["trees"]
    )  # a new index has no cached statistics
    texts = [*QUERIES.values()] * 20
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(pipeline.search, texts))
    for text, hits in zip(texts, results, strict=True):
        alone = SearchPipeline(index, FEATURES, models["trees"]).search(text)
        assert (hits.ids, hits.scores.tolist()) == (alone.ids, alone.scores.tolist())


def test_ties_are_in_the_order_of_ids():
    index = Index.build([{"id": key, "t": "x"} for key in "cab"], fields={"t": "standard"})
    model = podium.models.LinearModel(np.zeros(1), np.zeros(1))
    assert SearchPipeline(index, ["bm25"], model).search("x").ids == ["a", "b", "c"]


def test_a_pipeline_is_saved_and_loaded(index, models, tmp_path):
    for name, model in models.items():
        pipeline = SearchPipeline(index, FEATURES, model, 20)
        pipeline.save(tmp_path / "shop")  # replaces the one before
        loaded = SearchPipeline.load(tmp_path / "shop")
        assert (loaded.candidates, loaded.by, loaded.index_digest) == (20, "bm25", index.digest())
        for text in QUERIES.values():
            one, other = pipeline.search(text, features=True), loaded.search(text, features=True)
            assert one.ids == other.ids, name
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one[1:], other[1:], strict=True))
    assert is_pipeline(tmp_path / "shop")
    assert len(list((tmp_path / "shop").glob("model-*"))) == 1
    loaded.save(tmp_path / "shop")  # over its own memory-mapped files
    assert SearchPipeline.load(tmp_path / "shop").search("a b").ids == loaded.search("a b").ids


def test_a_save_that_fails_leaves_the_old_pipeline(index, models, tmp_path, monkeypatch):
    old = SearchPipeline(index, FEATURES, models["trees"])
    old.save(tmp_path / "shop")
    larger = built(made_documents(70))
    new = SearchPipeline(larger, FEATURES, models["linear"])
    for broken in ("write_text", "_named_by_content"):

        def fail(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(f"podium.features.pipeline.{broken}", fail)
            with pytest.raises(FileFormatError, match="No space left"):
                new.save(tmp_path / "shop")
        hits, expected = SearchPipeline.load(tmp_path / "shop").search("a b"), old.search("a b")
        assert (hits.ids, hits.scores.tolist()) == (expected.ids, expected.scores.tolist())
    new.save(tmp_path / "shop")
    assert len(SearchPipeline.load(tmp_path / "shop").index) == 70
    assert sorted(path.name.partition("-")[0] for path in (tmp_path / "shop").iterdir() if path.name[0] != ".") == [
        "features", "index", "model", "podium",
    ]  # fmt: skip


def test_other_folders_are_neither_replaced_nor_opened(index, models, tmp_path):
    pipeline = SearchPipeline(index, FEATURES, models["linear"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(FileFormatError, match="exists but is not a search pipeline"):
        pipeline.save(tmp_path / "full")
    assert (tmp_path / "full" / "letter.txt").read_text() == "mine"
    with pytest.raises(FileFormatError, match="is not a search pipeline"):
        SearchPipeline.load(tmp_path / "full")
    (tmp_path / "empty").mkdir()
    pipeline.save(tmp_path / "empty")


def test_damage_is_named(index, models, tmp_path):
    SearchPipeline(index, FEATURES, models["linear"]).save(tmp_path / "good")
    for part in ("model-*", "features-*", "index-*/*.npy", FOLDER.manifest):
        shutil.copytree(tmp_path / "good", tmp_path / "bad")
        path = next((tmp_path / "bad").glob(part))
        path.write_bytes(path.read_bytes()[:-1] + b"!")
        with pytest.raises(FileFormatError, match="damaged"):
            SearchPipeline.load(tmp_path / "bad")
        shutil.rmtree(tmp_path / "bad")
    manifest = FOLDER.read(tmp_path / "good")
    for change in ({"parts": {**manifest["parts"], "index": "../good"}}, {"parts": {}}, {"parts": None}):
        (tmp_path / "good" / FOLDER.manifest).write_text(FOLDER.signed(manifest | change))
        with pytest.raises(FileFormatError, match="damaged"):
            SearchPipeline.load(tmp_path / "good")


def test_another_index_is_refused_unless_allowed(models, tmp_path):
    index = built(made_documents())
    pipeline = SearchPipeline(index, FEATURES, models["trees"])
    pipeline.save(tmp_path / "shop")
    index.add(made_documents(5, first=100))
    for call in (
        pipeline.search,
        lambda text: pipeline.explain(text, "d0"),
        lambda text: pipeline.why(text, "d0", "d1"),
    ):
        with pytest.raises(DataError, match="other statistics than the one that the model was trained with"):
            call("a b")
    with pytest.raises(DataError, match="allow_other_index=True"):
        SearchPipeline.load(tmp_path / "shop", index)
    allowed = SearchPipeline.load(tmp_path / "shop", index, allow_other_index=True)
    _, scores = offline(index, FEATURES, models["trees"], "a b", 100)
    assert allowed.search("a b", 100).scores.tolist() == scores
    assert allowed.index_digest == pipeline.index_digest
    index.remove([f"d{k}" for k in range(100, 105)])
    assert pipeline.search("a b").ids == SearchPipeline.load(tmp_path / "shop").search("a b").ids


def test_models_that_do_not_fit_are_refused(index, models):
    with pytest.raises(DataError, match="fit it first"):
        SearchPipeline(index, FEATURES, podium.LambdaMART())
    with pytest.raises(DataError, match="but got str"):
        SearchPipeline(index, FEATURES, "model.podium")
    with pytest.raises(DataError, match=r"lacks the model's feature 'bm25' \(6 in all\)"):
        SearchPipeline(index, ["bm25(title)"], models["trees"])
    with pytest.raises(DataError, match="expects 1 features, but the feature set has 7"):
        SearchPipeline(index, FEATURES, podium.models.LinearModel(np.ones(1), np.zeros(1)))
    with pytest.raises(DataError, match="no text field 'headline'"):
        SearchPipeline(index, ["bm25(headline)"], podium.models.LinearModel(np.ones(1), np.zeros(1)))
    with pytest.raises(DataError, match="candidates"):
        SearchPipeline(index, FEATURES, models["trees"], 0)
    with pytest.raises(DataError, match="no feature 'nonsense'"):
        SearchPipeline(index, FEATURES, models["trees"], by="nonsense")
    with pytest.raises(DataError, match="k must be"):
        SearchPipeline(index, FEATURES, models["trees"]).search("a", 0)


def test_extra_features_and_another_order_are_accepted(index, models):
    wider = FeatureSet(["idf", *reversed(FEATURES)])
    one, other = (SearchPipeline(index, features, models["trees"]).search("a b dd") for features in (FEATURES, wider))
    assert (one.ids, one.scores.tolist()) == (other.ids, other.scores.tolist())


@pytest.mark.parametrize("name", ["trees", "linear", "normalized"])
def test_an_explanation_adds_up(index, models, name):
    pipeline = SearchPipeline(index, FEATURES, models[name], 30)
    hits = pipeline.search("a runs 東京 runs", 30, features=True)
    for place in (0, 7):
        explanation = pipeline.explain("a runs 東京 runs", hits.ids[place])
        assert explanation.document == hits.ids[place]
        assert explanation.score == hits.scores[place]
        assert explanation.base + sum(row[2] for row in explanation.features.rows) == pytest.approx(
            explanation.score, abs=1e-9
        )
        values = dict(zip(FEATURES.names, hits.features[place].tolist(), strict=True))
        for feature in ("bm25", "bm25(title)"):
            assert sum(explanation.feature_terms[feature].values()) == values[feature]
        text = index.text(int(hits.rows[place]))
        analyzer = index.fields["title"].analyzer
        for term, field, count, n in explanation.terms.rows:
            assert count == analyzer.terms(text[field]).count(term)
            assert n == sum(term in analyzer.terms(index.text(row)[field]) for row in range(len(index)))
        assert {row[0] for row in explanation.terms.rows} <= {"a", "run", "東京"}
        content = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
        assert content["score"] == explanation.score
        assert explanation.document in str(explanation)
        assert "bm25(title)" in str(explanation)


def test_why_one_document_is_above_another(index, models):
    for name in ("trees", "normalized"):
        pipeline = SearchPipeline(index, FEATURES, models[name])
        hits = pipeline.search("a b dd", 5)
        pair = pipeline.why("a b dd", hits.ids[0], hits.ids[4])
        assert (pair.a, pair.b) == (hits.ids[0], hits.ids[4])
        assert (pair.score_a, pair.score_b) == (hits.scores[0], hits.scores[4])
        assert math.fsum(row[-1] for row in pair.rows) == pytest.approx(pair.gap, abs=1e-9)
    with pytest.raises(DataError, match="no document 'nobody'"):
        pipeline.why("a", "nobody", hits.ids[0])


def test_models_without_names_are_explained_by_the_names_of_the_features(index):
    model = podium.models.LinearModel(np.arange(1.0, 8.0), np.zeros(7))
    pipeline = SearchPipeline(index, FEATURES, model)
    explanation = pipeline.explain("a b", "d0")
    contributions = {row[0]: row[2] for row in explanation.features.rows}
    values = dict(zip(FEATURES.names, FEATURES.rows(index, "a b", index.rows(["d0"]))[0], strict=True))
    assert contributions["stream_length(title)"] == 5 * values["stream_length(title)"]
    assert set(contributions) == set(FEATURES.names)
    assert {row[0] for row in pipeline.why("a b", "d0", "d1").rows} == set(FEATURES.names)


def test_any_document_can_be_explained(index, models):
    """This includes documents that are not candidates."""
    pipeline = SearchPipeline(index, FEATURES, models["normalized"], candidates=3)
    candidates = pipeline.search("a", 3).ids
    other = next(document for document in index.ids if document not in candidates)
    assert pipeline.explain("a", other).document == other


def judgements_of(index):
    """A grade for some candidates of each query: long titles are better."""
    rows_of_query = {query: index.search(text, 5).rows.tolist() for query, text in QUERIES.items()}
    lengths = index.fields["title"].lengths
    return {query: {index.ids[row]: float(lengths[row]) for row in rows} for query, rows in rows_of_query.items()}


def test_training_is_compute_and_fit_on_what_the_pipeline_retrieves(index):
    judgements, by = judgements_of(index), "bm25(body)"
    estimator = podium.LambdaMART(n_trees=8, n_leaves=4, min_documents_in_leaf=2)
    pipeline = SearchPipeline.train(index, QUERIES, judgements, estimator, FEATURES, candidates=7, by=by)
    data = FEATURES.compute(index, QUERIES, judgements, f"{by} top 7")
    model = podium.LambdaMART(n_trees=8, n_leaves=4, min_documents_in_leaf=2).fit(data).model_
    assert np.array_equal(pipeline.model.predict(data), model.predict(data))
    assert (pipeline.candidates, pipeline.by, pipeline.features) == (7, by, FEATURES)
    validated = podium.LambdaMART(n_trees=8, n_leaves=4, min_documents_in_leaf=2, patience=2)
    SearchPipeline.train(index, QUERIES, judgements, validated, FEATURES, valid=(QUERIES, judgements))
    assert validated.history_
    pipeline = SearchPipeline.train(index, QUERIES, judgements, podium.LinearRanker())
    assert pipeline.features == default(index)
    assert pipeline.search("a b").ids


def test_the_command_trains_a_pipeline(index, tmp_path):
    index.save(tmp_path / "index")
    rows = [{"id": query, "text": text} for query, text in QUERIES.items()]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [
        f"{query} 0 {key} {grade:g}\n" for query, one in judgements_of(index).items() for key, grade in one.items()
    ]
    (tmp_path / "qrels.txt").write_text("".join(lines))
    (tmp_path / "small.toml").write_text("n_trees = 5\nmin_documents_in_leaf = 2\n")
    judged = ("queries.jsonl", "qrels.txt")
    words = ("pipeline", "index", *judged, "-o", "shop", "--model", "lambdamart", "--config", "small.toml",
             "-f", "bm25", "-f", "bm25(title)", "--candidates", 20, "--valid", *judged, "--test", *judged)  # fmt: skip
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "shop: <SearchPipeline: 60 documents, 2 features" in done.stdout
    assert all(word in done.stdout for word in ("ndcg@10", "lambdamart", "p (random)"))
    estimator = podium.LambdaMART(n_trees=5, min_documents_in_leaf=2)
    files = [tmp_path / name for name in judged]
    expected = SearchPipeline.train(index, *files, estimator, ["bm25", "bm25(title)"], 20, valid=tuple(files))
    hits = SearchPipeline.load(tmp_path / "shop").search("a b", 5)
    assert (hits.ids, hits.scores.tolist()) == (
        expected.search("a b", 5).ids,
        expected.search("a b", 5).scores.tolist(),
    )
    again = run(*words, cwd=tmp_path)
    assert (again.returncode, "--overwrite" in again.stderr) == (1, True)
    wrong = run("pipeline", "index", *judged, "-o", "other", "--model", "lambdamrt", cwd=tmp_path)
    assert "did you mean 'lambdamart'" in wrong.stderr
    assert not (tmp_path / "other").exists()


def test_the_command_searches_a_pipeline(index, models, tmp_path):
    pipeline = SearchPipeline(index, FEATURES, models["trees"])
    pipeline.save(tmp_path / "shop")
    done = run("search", tmp_path / "shop", "a b dd", "-k", 4, "--json")
    hits = pipeline.search("a b dd", 4)
    assert [(one["id"], one["score"]) for one in json.loads(done.stdout)] == list(
        zip(hits.ids, hits.scores.tolist(), strict=True)
    )
    done = run("search", tmp_path / "shop", "a b dd", "-k", 4, "--by", "bm25", "--json")
    assert [one["id"] for one in json.loads(done.stdout)] == index.search("a b dd", 4).ids
    done = run("search", tmp_path / "shop", "a b dd", "--explain", hits.ids[0])
    assert done.stdout == f"{pipeline.explain('a b dd', hits.ids[0])}\n"
    index.save(tmp_path / "index")
    done = run("search", tmp_path / "index", "a", "--explain", "d1")
    assert done.returncode == 1
    assert "pass the folder of a search pipeline" in done.stderr


def test_the_default_features_work(index):
    features = default(index)
    model = podium.models.LinearModel(np.ones(len(features)), np.zeros(len(features)), feature_names=features.names)
    assert len(SearchPipeline(index, features, model).search("a b").ids) == 10
