"""Properties that all click models share."""

import math
import zipfile

import numpy as np
import pytest

import podium
from podium.clicks import DBN, Cascade, ClickLog, ClickModel, DependentClicks, PositionBased, UserBrowsing
from podium.core.threads import at_most_threads
from podium.errors import DataError, FileFormatError
from podium.models.archive import open_archive, write_archive
from podium.objectives import Debiased, Lambda
from tests.clicks.sessions import Session, log_of, random_sessions

MODELS = [
    PositionBased(), PositionBased(by="intervention"), Cascade(), DependentClicks(), DBN(), DBN(simplified=True),
    UserBrowsing(),
]  # fmt: skip


@pytest.fixture(params=MODELS, ids=repr)
def model(request):
    return request.param


def parts(model):
    return {name: values.tobytes() for name, values in model.parameters.items()} | {"unknown": model.fitted_.unknown}


def test_order_and_threads_do_not_change_a_bit(model, monkeypatch):
    monkeypatch.setattr("podium.core.threads.MIN_PARALLEL_WORK", 1)
    monkeypatch.setattr("podium.clicks.click_model.n_threads_for", lambda n: podium.core.threads.thread_count(5))
    sample = random_sessions(3000, n_documents=30, longest=6)
    log = log_of(sample)
    with at_most_threads(1):
        alone = parts(model.fit(log))
        values = model.log_likelihood(log) if not isinstance(model, Cascade) else None, model.perplexity(log).overall
    mixed = log_of([sample[k] for k in np.random.default_rng(0).permutation(len(sample))])
    assert parts(model.fit(mixed)) == alone
    assert values == (
        model.log_likelihood(mixed) if not isinstance(model, Cascade) else None, model.perplexity(mixed).overall
    )  # fmt: skip


def test_part_of_a_log_is_a_log(model):
    sample = random_sessions(60)
    part = log_of(sample).select(np.arange(20))
    whole = log_of(sample[:20])
    table = model.fit(part).attractiveness
    assert parts(model) == parts(model.fit(whole))
    assert (table.query == model.attractiveness.query).all()
    assert (table.document == model.attractiveness.document).all()


def test_the_table_has_names_and_impressions():
    table = (
        Cascade()
        .fit(log_of([Session("tea", ("b", "a"), (False, True)), Session("tea", ("b",), (True,))]))
        .attractiveness
    )
    assert (table.query.tolist(), table.document.tolist()) == (["tea", "tea"], ["a", "b"])
    assert table.impressions.tolist() == [1, 2]


def test_unknown_pairs_get_the_mean(model):
    log = log_of(random_sessions(50))
    unknown = log_of(
        [Session("other", ("x",), (True,)), Session("q0", ("x",), (True,)), Session("other", ("d0",), (True,))]
    )
    model.fit(log)
    assert np.unique(model.click_probabilities(unknown)).tolist() == [model.fitted_.unknown["attraction"]]


def test_perplexity_is_that_of_its_definition(model):
    log = log_of(random_sessions(100))
    perplexity, chances = model.fit(log).perplexity(log), model.click_probabilities(log)
    by_position = []
    for position in (1, 2, 3):
        here = log.position == position
        logs = [math.log2(p if c else 1 - p) for p, c in zip(chances[here], log.clicked[here], strict=True)]
        by_position.append(2 ** (-sum(logs) / len(logs)))
    np.testing.assert_allclose(perplexity.by_position, by_position, rtol=1e-12)
    assert perplexity.overall == pytest.approx(sum(by_position) / 3)


def test_positions_that_were_not_shown_have_no_perplexity_and_no_propensity(model):
    log = log_of(random_sessions(100))
    gap = ClickLog.from_arrays(query=["q0", "q0"], document=["d0", "d1"], position=[1, 3], clicked=[True, False])
    perplexity = model.fit(log).perplexity(gap)
    assert np.isnan(perplexity.by_position).tolist() == [False, True, False]
    assert np.isfinite(perplexity.overall)
    with pytest.raises(DataError, match="none of its rows has position 2"):
        model.propensities(gap)


def test_labels_are_attractiveness_times_satisfaction(model):
    log = log_of(random_sessions(60))
    table = model.fit(log).attractiveness
    value = dict(zip(zip(table.query, table.document, strict=True), table.value, strict=True))
    if isinstance(model, DBN):
        for query, document, satisfied in zip(*model.satisfaction[:3], strict=True):
            value[query, document] *= satisfied
    expected = [
        value[log.queries[log.pair_queries[pair]], log.documents[log.pair_documents[pair]]] for pair in log.pairs
    ]  # fmt: skip
    assert model.labels(log).tolist() == expected


def test_propensities_are_for_measures_and_objectives(model):
    log = log_of(random_sessions(200))
    propensities = model.fit(log).propensities(log)
    assert len(propensities) == 3
    assert max(propensities) == 1
    data = podium.RankingData(
        np.arange(len(log), dtype=float)[:, None], log.clicked, qid=log.impression, positions=log.position,
        labels={"clicks": model.labels(log)},
    )  # fmt: skip
    ranker = podium.LambdaMART(2, 4, objective=Debiased(Lambda("ndcg"), propensities=propensities)).fit(data)
    measure = podium.measures.PropensityNDCG(10, propensities=propensities)
    assert 0 < podium.evaluate(data, ranker.predict(data), measure).means[measure] <= 1


def test_saved_and_loaded(model, tmp_path):
    log = log_of(random_sessions(60))
    model.fit(log).save(tmp_path / "model")
    loaded = ClickModel.load(tmp_path / "model")
    assert loaded == model
    assert type(loaded) is type(model)
    assert parts(loaded) == parts(model)
    assert loaded.describe() == model.describe()
    assert loaded.click_probabilities(log).tobytes() == model.click_probabilities(log).tobytes()
    assert (loaded.attractiveness.query == model.attractiveness.query).all()


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "model"
    model = DBN().fit(log_of(random_sessions(10)))
    model.save(path)
    types = {"queries": np.uint8, "documents": np.uint8, "query": np.int32, "document": np.int32}
    names = ["queries", "query_starts", "documents", "document_starts", "query", "document", "impressions",
             *(f"parameter_{name}" for name in model.parameters)]  # fmt: skip
    with open_archive(str(path)) as (header, array):
        arrays = {
            name: array(name, types.get(name, np.float64 if name.startswith("parameter") else np.int64))
            for name in names
        }
    header = {key: value for key, value in header.items() if key != "sha256"}
    changes = [
        ({}, {"query": arrays["query"] + np.int32(100)}, "names of its pairs are missing"),
        ({}, {"parameter_attraction": arrays["parameter_attraction"][:-1]}, "lacks attraction for some pairs"),
        ({}, {"parameter_attraction": arrays["parameter_attraction"] + 1}, "not between 0 and 1"),
        ({}, {"parameter_attraction": arrays["parameter_attraction"] * np.nan}, "not between 0 and 1"),
        ({}, {"parameter_continuation": np.empty(0)}, "lacks continuation"),
        ({}, {"query_starts": arrays["query_starts"] + 1}, "codes of its names"),
        ({}, {"impressions": arrays["impressions"][1:]}, "impressions of its pairs are missing"),
        ({"model": "other"}, {}, "damaged"),
        ({"settings": {"smoothing": -1}}, {}, "smoothing must be positive"),
        ({"kind": "podium trees"}, {}, "not a click model"),
    ]
    for new_header, new_arrays, problem in changes:
        write_archive(path, header | new_header, arrays | new_arrays)
        with pytest.raises(DataError, match=problem):
            ClickModel.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        ClickModel.load(path)


def test_files_hold_no_pickles(tmp_path):
    DBN().fit(log_of(random_sessions(10))).save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert {name.rsplit(".", 1)[1] for name in archive.namelist()} == {"json", "npy"}


def test_models_must_be_fitted(model):
    log = log_of(random_sessions(3))
    new = type(model)()
    for ask in (new.describe, lambda: new.attractiveness, lambda: new.examination(log), lambda: new.save("x")):
        with pytest.raises(DataError, match="not fitted: call fit"):
            ask()


def test_empty_logs_are_refused(model):
    log = log_of(random_sessions(3))
    with pytest.raises(DataError, match="no rows"):
        model.fit(log.select([]))


def test_impressions_without_rows_do_not_matter(model):
    from dataclasses import replace

    log = log_of(random_sessions(40))
    starts = np.insert(log.starts, [0, 5, len(log.starts)], [0, log.starts[5], log.starts[-1]])
    extra = {
        name: np.zeros(len(starts) - 1, getattr(log, name).dtype) for name in ("times", "query", "user", "session")
    }
    alone = parts(model.fit(log))
    assert parts(model.fit(replace(log, starts=starts, **extra))) == alone


def test_positions_must_increase(model):
    from dataclasses import replace

    log = log_of([Session("q", ("a", "b"), (True, False))])
    with pytest.raises(DataError, match="row 1, in impression 0, has position 1"):
        model.fit(replace(log, position=np.array([1, 1], np.int32)))
    with pytest.raises(DataError, match="row 0, in impression 0, has position 0"):
        model.fit(replace(log, position=np.array([0, 1], np.int32)))


def test_logs_with_no_click_and_with_every_click(model):
    documents = ("a", "b", "c")
    for click in (False, True):
        orders = [documents, documents[1:] + documents[:1], documents[2:] + documents[:2]]
        log = log_of([Session("q", order, (click,) * 3) for order in orders * 5])
        values = model.fit(log).click_probabilities(log)
        assert ((values > 0) & (values < 1)).all()
