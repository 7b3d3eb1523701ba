"""The sweep against brute force over all midpoints and crossings, and what is built on it."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium import DataError, LambdaMART, LinearRanker, RankingData, combine
from podium.boosting import LeafLineSearch, LineSearch, Newton
from podium.combining import Sweep
from podium.models import Combined, refit_weights

MEASURES = [
    "accuracy", "ndcg", "ndcg@2", "dcg@3", "err", "err@2", "ap", "ap@2", "rr", "precision@2", "rbp", "recall@2",
    "success@2", "pfound", "ap(norm=reachable)@2", "f1@2", "r_precision", "ndcg(discount=reciprocal)",
]  # fmt: skip
TIES = ["expected", "stable", "jitter", 0]


def brute_force(sweep, scores, slopes, low, high):
    """The mean at the midpoint of every interval between crossings, and the midpoints."""
    data, crossings_of_queries = sweep.data, []
    for q in range(data.n_queries):
        s, t = scores[data.rows(q)], slopes[data.rows(q)]
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = (s[:, None] - s[None, :]) / (t[None, :] - t[:, None])
        crossings_of_queries.append(crossings[np.isfinite(crossings) & (crossings > low) & (crossings < high)])
    edges = np.unique(np.concatenate([[low], *crossings_of_queries, [high]]))
    middles = edges[:-1] + 0.5 * np.diff(edges)
    middles = middles[np.diff(edges) > 1e-12 * np.maximum(1, np.abs(edges[1:]))]
    return middles, np.array([sweep.value(scores + alpha * slopes) for alpha in middles])


def at_crossings(sweep, scores, slopes, low, high):
    """The mean at every crossing that is a number of few digits, so that documents do meet there."""
    points = set()
    for q in range(sweep.data.n_queries):
        rows = sweep.data.rows(q)
        for i in rows:
            for j in rows:
                if slopes[i] != slopes[j]:
                    alpha = Fraction(scores[i] - scores[j]) / Fraction(slopes[j] - slopes[i])
                    points |= {float(alpha)} if low < alpha < high and Fraction(float(alpha)) == alpha else set()
    return [sweep.value(scores + alpha * slopes) for alpha in sorted(points)]


def small(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, 3)
    n = int(sizes.sum())
    labels = rng.integers(0, 3, n)
    labels[0] = 1
    data = RankingData(np.round(rng.normal(size=(n, 2)), 1), labels, qid=np.repeat(np.arange(3), sizes))
    return data, np.round(rng.normal(size=n) * 2) / 2, rng.integers(-2, 3, n).astype(float)


@settings(max_examples=400, deadline=None)
@given(
    st.integers(0, 100_000),
    st.sampled_from(MEASURES),
    st.sampled_from(TIES),
    st.sampled_from([(0, 1), (0.1, 5), (-1, 1)]),
)
def test_the_best_of_all(seed, name, ties, bounds):
    data, scores, slopes = small(seed)
    sweep = Sweep(data, name, ties)
    best = sweep.best(scores, slopes, *bounds)
    middles, values = brute_force(sweep, scores, slopes, *bounds)
    ends = [sweep.value(scores + end * slopes) for end in bounds]
    points = at_crossings(sweep, scores, slopes, *bounds) if ties == "expected" else []
    if best.interval[0] < best.interval[1] or best.alpha in bounds:
        assert best.value == pytest.approx(max(values.max(), *ends, *points), abs=1e-9)
    else:  # a crossing, which may be one where rounding decides who meets
        assert best.value > max(values.max(), *ends) + 1e-10
        assert best.value >= max(points, default=0.0) - 1e-9
    assert best.value == sweep.value(scores + best.alpha * slopes)
    assert bounds[0] <= best.alpha <= bounds[1]
    assert np.allclose(best.path.at(middles), values, atol=1e-9)


@pytest.mark.parametrize(
    ("measure", "value"),
    [("ndcg", (1 + 1 / np.log2(3) + 1 / 2) / 3), ("ap", 11 / 18), ("err", 11 / 36), ("rr", 11 / 18), ("ndcg@1", 1 / 3)],
)
@pytest.mark.parametrize("factor", [1, 3, 7, 2.0**-60])
def test_a_crossing_may_be_better_than_both_sides(measure, value, factor):
    """The relevant document is between the others on both sides, and one of three at the crossing."""
    data = RankingData(np.zeros((3, 1)), [0, 1, 0], qid=[0, 0, 0])
    first, second = np.array([2.0, 1.0, 0.0]), factor * np.array([0.0, 1.0, 2.0])
    best = combine(first, second, data, measure)
    assert best.value == pytest.approx(value)
    assert best.alpha == pytest.approx(1 / (1 + factor)) == best.interval[0] == best.interval[1]
    mixed = best.weights[0] * first + best.weights[1] * second
    assert podium.evaluate(data, mixed, measure).means[measure] == best.value
    if factor > 1e-9:
        swept = Sweep(data, measure).best(first, second - first, 0.0, 1.0)
        assert (swept.alpha, swept.value) == pytest.approx((best.alpha, value))
    assert combine(first, second, data, measure, ties="stable").value < value


def leaves_on_leaves(seed, n_queries=4, longest=14):
    """Scores and slopes of few values each: groups of documents that are tied for every α."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, n_queries)
    n = int(sizes.sum())
    data = RankingData(rng.normal(size=(n, 2)), rng.integers(0, 4, n), qid=np.repeat(np.arange(n_queries), sizes))
    return data, rng.choice([0.0, 0.25, 1.0], n), rng.choice([-1.0, 0.5, 2.0], n)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 100_000),
    st.sampled_from(["err", "err(max_label=5)", "ap", "ap(threshold=2)", "rr", "rr(threshold=3)", "ndcg", "rbp"]),
    st.sampled_from(["", "@1", "@3", "@20"]),
    st.sampled_from(["zero", "one", "skip"]),
)
def test_groups_of_ties_have_their_expected_value_along_the_whole_path(seed, name, cutoff, empty):
    data, scores, slopes = leaves_on_leaves(seed)
    measure = podium.measures.as_measure(name + cutoff).replace(empty=empty)
    if np.isnan(measure.fixed(data).values(podium.measures.Ranking(data, scores))).all():
        return
    sweep = Sweep(data, measure)
    path = sweep.best(scores, slopes, -1.0, 2.0).path
    middles, values = brute_force(sweep, scores, slopes, -1.0, 2.0)
    assert np.allclose(path.at(middles), values, atol=1e-11)


@pytest.mark.parametrize("name", ["err@10", "ap", "rr"])
def test_expected_ties_are_compiled(name, monkeypatch):
    """Python measures once, at the α that was found; it was once for each crossing (bench/combining.py has times)."""
    data = podium.artificial(40, documents=40, features=2)
    rng = np.random.default_rng(0)
    scores, slopes = rng.normal(size=(2, len(data)))
    results = {}
    for ties in ("stable", "expected"):
        sweep = Sweep(data, name, ties, n_threads=1)
        calls, values = [], type(sweep.measure).values
        monkeypatch.setattr(
            type(sweep.measure), "values", lambda self, ranking, c=calls, v=values: c.append(1) or v(self, ranking)
        )
        results[ties] = sweep.best(scores, slopes, 0.0, 5.0)
        monkeypatch.undo()
        assert len(calls) <= 10
        assert len(results[ties].path.values) > 100
    assert results["expected"].alpha == results["stable"].alpha
    assert np.array_equal(results["expected"].path.values, results["stable"].path.values)


@pytest.mark.parametrize("name", ["err", "ap@10", "rr"])
def test_neither_rows_nor_threads_change_groups_of_ties(name):
    data, scores, slopes = leaves_on_leaves(5, n_queries=90, longest=40)
    shuffle = np.random.default_rng(0).permutation(len(data))
    serial = Sweep(data, name, n_threads=1).best(scores, slopes, -1, 5)
    other = Sweep(data.take(shuffle), name, n_threads=3).best(scores[shuffle], slopes[shuffle], -1, 5)
    assert (serial.alpha, serial.value, serial.interval) == (other.alpha, other.value, other.interval)
    assert np.array_equal(serial.path.values, other.path.values)


@pytest.mark.parametrize("name", ["ndcg@5", "ndcg", "err", "ap"])
def test_longer_lists_with_leaves(name):
    rng = np.random.default_rng(1)
    data = podium.artificial(8, documents=40, features=2)
    leaves = rng.normal(size=6)[rng.integers(0, 6, len(data))]
    sweep = Sweep(data, name, "stable")
    scores = np.round(rng.normal(size=len(data)), 1)
    best = sweep.best(scores, leaves, 0.0, 3.0)
    middles, values = brute_force(sweep, scores, leaves, 0.0, 3.0)
    ends = [sweep.value(scores + end * leaves) for end in (0.0, 3.0)]
    assert best.value == pytest.approx(max(values.max(), *ends), abs=1e-9)
    assert np.allclose(best.path.at(middles), values, atol=1e-9)


def test_neither_rows_nor_threads_change_a_bit():
    data = podium.artificial(30, documents=20, features=4)
    rng = np.random.default_rng(0)
    scores, slopes = np.round(rng.normal(size=len(data)), 1), rng.normal(size=5)[rng.integers(0, 5, len(data))]
    shuffle = rng.permutation(len(data))
    for ties in ("expected", "jitter"):
        serial = Sweep(data, "ndcg@10", ties, n_threads=1).best(scores, slopes, 0, 5)
        other = Sweep(data.take(shuffle), "ndcg@10", ties, n_threads=3).best(scores[shuffle], slopes[shuffle], 0, 5)
        assert (serial.alpha, serial.value, serial.interval) == (other.alpha, other.value, other.interval)
        assert np.array_equal(serial.path.alphas, other.path.alphas)
        assert np.array_equal(serial.path.values, other.path.values)


def test_the_nearest_of_equal_intervals_wins():
    data = RankingData(np.eye(2), [1, 0], qid=[1, 1])
    sweep = Sweep(data, "ndcg")
    assert sweep.best(np.zeros(2), np.array([1.0, 0.0]), 0.0, 5.0).alpha == 1.0  # all alike: 1
    assert sweep.best(np.zeros(2), np.array([1.0, 0.0]), 2.0, 5.0).alpha == 3.5
    worse = sweep.best(np.array([1.0, 0.0]), np.array([-1.0, 0.0]), 0.0, 5.0)  # right before the crossing at 1
    assert worse.interval == (0.0, 1.0)


def test_invalid_arguments():
    data, scores, slopes = small(0)
    sweep = Sweep(data, "ndcg")
    with pytest.raises(DataError, match="must be finite and ascending"):
        sweep.best(scores, slopes, 1.0, 0.0)
    with pytest.raises(DataError, match="scores must be a finite number"):
        sweep.best(scores[1:], slopes, 0.0, 1.0)
    with pytest.raises(DataError, match="tau cannot be trained on"):
        Sweep(data, "tau", "stable")
    with pytest.raises(DataError, match="bounds must be two non-negative numbers"):
        LineSearch(bounds=(2, 1))
    with pytest.raises(DataError, match="needs validation data"):
        LambdaMART(2, step=LineSearch(on="valid")).fit(data)


@pytest.fixture(scope="module")
def parts():
    return [podium.artificial(80, documents=20, features=8, seed=4, part=part) for part in ("train", "valid", "test")]


class TestCombine:
    def test_never_worse_than_either(self, parts):
        train, valid, test = parts
        trees, linear = LambdaMART(20).fit(train), LinearRanker(n_iterations=10).fit(train)
        best = combine(trees, linear, valid, "ndcg@10")
        assert best.value >= max(best.values)
        mixed = (1 - best.alpha) * trees.predict(valid) + best.alpha * linear.predict(valid)
        assert Sweep(valid, "ndcg@10").value(mixed) == pytest.approx(best.value)
        assert np.allclose(best.model.predict(test.features), (1 - best.alpha) * trees.predict(test)
                           + best.alpha * linear.predict(test))  # fmt: skip
        assert f"α = {best.alpha:.4g}" in str(best)
        of_scores = combine(trees.predict(valid), linear.predict(valid), valid)
        assert of_scores.alpha == best.alpha
        assert of_scores.model is None

    def test_the_file(self, parts, tmp_path):
        train, valid, _ = parts
        trees, linear = LambdaMART(5).fit(train).model_, LinearRanker(n_iterations=3).fit(train).model_
        model = Combined((trees, Combined((linear, trees), (0.5, -1.0))), (0.25, 2.0), {"note": "mine"})
        podium.models.save(model, tmp_path / "m.podium")
        loaded = podium.load(tmp_path / "m.podium")
        assert loaded.digest() == model.digest()
        assert loaded.info == {"note": "mine"}
        assert np.array_equal(loaded.predict(valid.features), model.predict(valid.features))
        assert loaded.importance().shape == (8,)

    def test_incompatible_rankers(self, parts):
        train, valid, _ = parts
        model = LambdaMART(2).fit(train).model_
        other = LambdaMART(2).fit(podium.artificial(10, features=3)).model_
        with pytest.raises(DataError, match="but they have 8 and 3"):
            Combined((model, other), (1, 1))
        with pytest.raises(DataError, match="a finite number for each"):
            Combined((model,), (1, 2))
        with pytest.raises(DataError, match="a ranker must return a finite score"):
            combine(np.ones(3), model, valid)


class TestSeveral:
    def test_never_worse_than_any(self, parts):
        train, valid, test = parts
        rankers = [LambdaMART(8).fit(train), LinearRanker(n_iterations=5).fit(train), LambdaMART(3, 4).fit(train)]
        best = combine(*rankers, data=valid)
        assert best.value >= max(best.values)
        mixed = sum(w * r.predict(valid) for w, r in zip(best.weights, rankers, strict=True))
        assert Sweep(valid, "ndcg@10").value(mixed) == pytest.approx(best.value, abs=1e-3)
        assert best.model.predict(test.features).shape == (len(test),)
        assert combine(*(r.predict(valid) for r in rankers), valid).model is None
        with pytest.raises(DataError, match="at least two rankers"):
            combine(*rankers[:1], valid)

    def test_old_names_work_and_warn(self, parts):
        _, valid, _ = parts
        columns = [valid.feature(k) for k in range(3)]
        with pytest.warns(FutureWarning, match=r"use combine\(\*rankers, data=data\)"):
            old = podium.combine_all(columns, valid, cycles=1)
        assert old == combine(*columns, data=valid, cycles=1)
        with pytest.warns(FutureWarning), pytest.raises(DataError, match="at least two rankers"):
            podium.combine_all(columns[:1], valid)
        with pytest.warns(FutureWarning, match="use Combination"):
            assert isinstance(old, podium.Blend)
        assert old.alpha is old.path is None
        assert str(old).startswith("weights ")
        with pytest.raises(DataError, match="but this has 3"):
            old.plot()

    def test_call_forms(self, parts):
        _, valid, _ = parts
        a, b = valid.feature(0), valid.feature(1)
        best = combine(a, b, valid, "ap")
        for other in (combine(a, b, data=valid, measure="ap"), combine(a, b, valid, measure="ap")):
            assert (other.alpha, other.value, other.measure) == (best.alpha, best.value, best.measure)
        with pytest.raises(DataError, match="cycles only applies to three or more rankers"):
            combine(a, b, valid, cycles=2)
        with pytest.raises(DataError, match="pass rankers and the data"):
            combine(valid, "ap")

    def test_linear_ascent_raises_the_measure_itself(self, parts):
        train, valid, _ = parts
        model = LinearRanker("ndcg@10", method="ascent", n_iterations=3).fit(train)
        steps = model.history_["train/ndcg@10"]
        assert steps == sorted(steps)
        alone = max(
            Sweep(train, "ndcg@10").value(s * train.feature(k).astype(float)) for k in range(8) for s in (1, -1)
        )
        assert Sweep(train, "ndcg@10").value(model.predict(train)) > alone
        shuffle = np.random.default_rng(0).permutation(len(train))
        other = LinearRanker("ndcg@10", method="ascent", n_iterations=3, n_threads=1).fit(train.take(shuffle))
        assert other.digest() == model.digest()
        with pytest.raises(DataError, match="method must be"):
            LinearRanker(method="up").fit(train)
        with pytest.raises(DataError, match="omit objective and valid"):
            LinearRanker(method="ascent").fit(train, valid=valid)


class TestAdapt:
    def test_four_ways_are_compared(self, parts):
        train, valid, test = parts
        background = LinearRanker(n_iterations=5).fit(train)
        adaptation = podium.adapt(background, train, valid=valid, test=test, n_trees=20)
        assert set(adaptation.comparison.evaluations) == {"background", "in-domain", "interpolated", "adapted"}
        assert isinstance(adaptation.adapted.model_, Combined)
        assert adaptation.interpolated.value >= max(adaptation.interpolated.values)
        assert "adapted" in str(adaptation)
        few = podium.adapt({1: 1.0}, train, n_trees=3, measure="ndcg@10")  # which few trees leave
        assert few.adapted.n_trees_ <= 3


class TestLineSearch:
    def test_the_first_tree_has_weight_one_and_others_the_best(self, parts):
        train = parts[0]
        seen = []
        model = LambdaMART(6, 8, 1.0, step="line-search").fit(train, observers=[seen.append])
        assert seen[0].weights == (1.0,)
        assert all(0.1 <= round_.weights[0] <= 5 for round_ in seen)
        sweep = Sweep(train, "ndcg@10")
        for before, after in pairwise(seen):
            slope = (after.scores - before.scores) / after.weights[0]
            best = sweep.best(before.scores, slope, 0.1, 5.0)
            assert best.value == pytest.approx(sweep.value(after.scores), abs=1e-6)
        assert np.allclose(model.predict(train), seen[-1].scores)

    @pytest.mark.parametrize(
        "options", [{"on": "valid"}, {"values": Newton(l2=0.0)}, {"ties": "jitter", "measure": "err@5"}]
    )
    def test_options(self, parts, options):
        train, valid, _ = parts
        serial = LambdaMART(5, step=LineSearch(**options), n_threads=1).fit(train, valid=valid)
        shuffle = np.random.default_rng(0).permutation(len(train))
        other = LambdaMART(5, step=LineSearch(**options), n_threads=2).fit(train.take(shuffle), valid=valid)
        assert serial.digest() == other.digest()

    def test_leaf_by_leaf_is_at_least_as_good_as_one_weight(self, parts):
        train = parts[0]
        sweep = Sweep(train, "ndcg@10")
        first = LambdaMART(3, 8, 1.0, step="line-search").fit(train)
        values = {}
        for step in (LineSearch(), LeafLineSearch()):
            more = LambdaMART(1, 8, 1.0, step=step, submodel=first).fit(train)
            values[type(step).__name__] = sweep.value(more.predict(train))
        start = sweep.value(first.predict(train))
        assert values["LeafLineSearch"] > start
        assert values["LeafLineSearch"] >= values["LineSearch"] - 0.01

    def test_a_weight_of_zero_ends_training(self):
        data = RankingData(np.arange(8.0)[:, None], [0, 0, 1, 1] * 2, qid=np.repeat([1, 2], 4))
        against = data.replace(labels={"relevance": 1 - data.relevance})  # every order is better than the tree's
        step = LineSearch(bounds=(0, 5), on="valid")
        with pytest.warns(podium.PodiumWarning, match="tree 0 has weight 0"):
            model = LambdaMART(9, 2, 1.0, step=step, min_documents_in_leaf=1, split_fraction=1.0).fit(
                data, valid=against
            )
        assert model.n_trees_ == 1


def test_refitting_never_lowers_the_measure(parts):
    train, valid, _ = parts
    model = LambdaMART(12, 6).fit(train)
    for name in ("ndcg@10", "err", "ap"):
        sweep = Sweep(valid, name)
        before = sweep.value(model.predict(valid))
        refitted = refit_weights(model, valid, name, cycles=2)
        assert sweep.value(refitted.predict(valid.features)) >= before
        assert refitted.n_trees == 12
    assert sweep.value(refitted.predict(valid.features)) > before
    with pytest.raises(DataError, match="must be an ensemble of trees"):
        refit_weights(LinearRanker(n_iterations=2).fit(train), valid)


class TestSubmodel:
    """LambdaSMART: trees that go on from another model's scores ([W] §3)."""

    def test_training_continues_from_a_submodel(self, parts):
        train, valid, _ = parts
        whole = LambdaMART(10, split_fraction=1).fit(train)
        first = LambdaMART(4, split_fraction=1).fit(train)
        rest = LambdaMART(6, submodel=first).fit(train, valid=valid)
        more = LambdaMART(6, split_fraction=1, submodel_scale=1.0, submodel=podium.models.Ensemble.of_trees(
            [first.trees_.tree(k) for k in range(4)], 8)).fit(train)  # fmt: skip
        assert np.allclose(whole.predict(valid), more.predict(valid))
        assert rest.history_["valid/ndcg@10"][0] > 0.5
        assert isinstance(rest.model_, Combined)

    def test_features_with_weights(self, parts, tmp_path):
        train, valid, _ = parts
        names = [f"f{k}" for k in range(8)]
        named = train.replace(feature_names=names)
        for data, submodel in ((train, {2: 1.5}), (named, {"f2": 1.5})):
            model = LambdaMART(3, submodel=submodel).fit(data)
            start = model.submodel_scale_ * 1.5 * valid.features[:, 2].astype(float)
            assert np.allclose(model.predict(valid.features), start + model.trees_.predict(valid.features))
            model.save(tmp_path / "m.podium")
            assert np.array_equal(
                podium.load(tmp_path / "m.podium").predict(valid.features), model.predict(valid.features)
            )
        assert np.allclose(model.predict(valid.features, n_trees=0), start)
        assert np.allclose(list(model.staged_predict(valid.features))[-1], model.predict(valid.features))
        assert model.apply(valid.features).shape == (len(valid), 3)
        with pytest.raises(DataError, match="no feature named 'bm25'"):
            LambdaMART(3, submodel={"bm25": 1.0}).fit(named)

    def test_a_submodel_that_is_code_must_be_passed(self, parts, tmp_path):
        train, valid, _ = parts

        def mine(data):
            return np.asarray(getattr(data, "features", data))[:, 1].astype(float)

        class Foreign:
            def predict(self, data):
                return mine(data)

        for submodel in (mine, Foreign()):
            model = LambdaMART(3, submodel=submodel).fit(train, valid=valid)
            assert np.allclose(
                model.predict(valid), model.submodel_scale_ * mine(valid) + model.trees_.predict(valid.features)
            )
            model.save(tmp_path / "m.podium")
            loaded = podium.models.load_model(tmp_path / "m.podium")
            with pytest.raises(DataError, match=r"continues from the scores of (mine|Foreign) \(checksum"):
                loaded.predict(valid.features)
            assert np.array_equal(loaded.predict(valid.features, base_scores=mine(valid)), model.predict(valid))
            assert loaded.digest() == model.digest()
        column = LambdaMART(3, submodel=mine(train)).fit(train)
        assert column.trees_.digest() == model.trees_.digest()
        with pytest.raises(DataError, match="base_scores must be a number for each of the 5 rows"):
            column.predict(valid.features[:5])
        with pytest.raises(DataError, match="finite score for each"):
            LambdaMART(3, submodel=np.ones(3)).fit(train)


def test_powell_improves_where_single_weights_do_not(parts):
    """Four scores that are much alike: their best weights lie on a ridge across the axes."""
    train = parts[0]
    rng = np.random.default_rng(1)
    mixed = train.features @ (rng.normal(size=(8, 4)) + 2) + train.relevance[:, None] * rng.random(4)
    columns = list(mixed.T.astype(float))
    settings = {"cycles": 2, "bounds": (-2.0, 2.0)}
    results = {way: combine(*columns, train, "ndcg", method=way, **settings) for way in ("cycles", "powell")}
    assert all(blend.value >= max(blend.values) for blend in results.values())
    assert results["powell"].value > results["cycles"].value + 0.0005
    with pytest.raises(DataError, match="method must be 'cycles' or 'powell'"):
        combine(*columns, train, method="simplex")


def test_adaptation_interpolates_with_more_domains(parts):
    train, valid = parts[:2]
    measure = "ndcg@10"
    background, other = LambdaMART(3).fit(valid), LinearRanker(n_iterations=3).fit(valid)
    adaptation = podium.adapt(background, train, valid=valid, others={"linear": other}, n_trees=5, measure=measure)
    assert list(adaptation.comparison.evaluations) == ["background", "linear", "in-domain", "interpolated", "adapted"]
    means = {name: one.means[measure] for name, one in adaptation.comparison.evaluations.items()}
    assert means["interpolated"] >= max(means[name] for name in ("background", "linear", "in-domain")) - 1e-9
    assert len(adaptation.interpolated.weights) == 3
    with pytest.raises(DataError, match="must not be named"):
        podium.adapt(background, train, valid=valid, others={"adapted": other}, n_trees=5)
