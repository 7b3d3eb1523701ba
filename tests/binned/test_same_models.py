"""A folder of bins gives the same models as the same files in memory, to the bit."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium import PodiumWarning, RankingData
from podium.binned import binning_files
from podium.boosting import Checkpoint, LineSearch
from podium.trees import find_bins
from tests.binned.conftest import SMALL

CSV = {"categorical": ["brand"]}
CASES = {
    "train.txt": {}, "mixed-train.txt": {}, "mixed-train.txt.gz": {"absent": "missing"}, "train.csv": CSV,
    "mixed-train.csv": CSV, "mixed-train.parquet": CSV, "mixed-valid.txt": {"normalize": "zscore"},
    "train.parquet": CSV | {"normalize": "minmax"}, "mixed-valid.csv": CSV | {"normalize": "minmax", "unlabelled": 2.0},
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(binning_files, "ROWS", 37)


def read(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)  # about scattered queries
        return podium.read(path, **options)


def digest(data, valid=None, **parameters):
    return podium.LambdaMART(**SMALL | parameters).fit(data, valid=valid).digest()


def assert_same(binned, data, max_bins=255):
    """Assert that the folder has the same content as the data, query by query."""
    order = data.order
    categorical = tuple(data.encoding.categories)
    bins = find_bins(data.features, max_bins, categorical)
    assert binned.binned.bins.equal(bins)
    assert binned.feature_names == data.feature_names
    assert binned.encoding == data.encoding
    assert binned.reading == data.reading
    assert str(binned.absent_value) == str(data.absent_value)
    assert np.array_equal(binned.query_ids, data.query_ids)
    assert binned.qid.tolist() == data.qid[order].tolist()
    assert np.array_equal(binned.row_hashes, data.row_hashes[order])
    assert np.array_equal(order[binned.canonical_order], data.canonical_order)
    assert list(binned.labels) == list(data.labels)
    for source, labels in data.labels.items():
        assert np.array_equal(binned.labels[source], labels[order], equal_nan=True)
    for name in ("document_weights", "positions"):
        expected = getattr(data, name)
        assert np.array_equal(getattr(binned, name), None if expected is None else expected[order])
    assert np.array_equal(binned.query_weights, data.query_weights)
    assert binned.summary() == data.summary()


@pytest.mark.parametrize("name", CASES)
def test_a_folder_has_all_of_the_data(files, name, tmp_path):
    options = CASES[name]
    binned = podium.bin_files(files / name, tmp_path / "bins", **options)
    data = read(files / name, **options)
    assert_same(binned, data)
    assert ("grouping" in binned.seconds) == name.startswith("mixed")
    assert digest(binned) == digest(data)
    again = podium.open_binned(tmp_path / "bins")
    assert_same(again, data)
    assert {path.name for path in (tmp_path / "bins").iterdir()} == {
        "podium-bins.json", "columns.npy", "rows.npy", "entries.npy", "starts.npy", "layout.npz", "bins.npz",
        "documents.npz", "hashes.npy", "query_ids.json",
    }  # fmt: skip


def test_order_of_rows_does_not_matter(files, tmp_path):
    digests = {
        digest(podium.bin_files(files / name, tmp_path / name, **CSV), document_fraction=0.7, n_threads=threads)
        for name, threads in (("train.csv", 1), ("mixed-train.csv", 2))
    }
    assert digests == {digest(read(files / "train.csv", **CSV), document_fraction=0.7)}


@given(seed=st.integers(0, 2**32 - 1), n_features=st.sampled_from([1, 5, 17]), max_bins=st.integers(2, 9))
@settings(max_examples=12)
def test_any_text_gives_the_model_of_memory(tmp_path_factory, seed, n_features, max_bins):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("any")
    n = int(rng.integers(2, 60))
    x = rng.choice([0.0, 0.5, -3.0, 1e-3, 7.0], (n, n_features)) * rng.integers(1, 4, (n, n_features))
    qid, labels = rng.integers(0, 6, n), rng.integers(0, 3, n)
    with (folder / "a.txt").open("w") as file:
        for k in range(n):
            pairs = " ".join(f"{j}:{value}" for j, value in enumerate(x[k], 1))
            file.write(f"{labels[k]} qid:{qid[k]} {pairs}\n")
    settings_ = {"max_bins": max_bins, "n_trees": 2, "min_documents_in_leaf": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)  # of constant models
        binned = podium.bin_files(folder / "a.txt", folder / "bins", max_bins=max_bins)
        assert digest(binned, **settings_) == digest(podium.read(folder / "a.txt"), **settings_)


@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet"])
def test_validation_data_has_the_bins_of_training(files, suffix, tmp_path):
    options = CSV if suffix != "txt" else {}
    train = podium.bin_files(files / f"train.{suffix}", tmp_path / "train", **options)
    valid = podium.bin_files(files / f"mixed-valid.{suffix}", tmp_path / "valid", like=tmp_path / "train", **options)
    assert valid.binned.bins.equal(train.binned.bins)
    assert not (tmp_path / "valid" / "rows.npy").exists()
    in_memory = [read(files / f"{name}.{suffix}", **options) for name in ("train", "mixed-valid")]
    ranker = podium.LambdaMART(**SMALL | {"n_trees": 12}, patience=3)
    expected = podium.LambdaMART(**ranker.get_params()).fit(in_memory[0], valid=in_memory[1])
    for valid_data in (valid, in_memory[1]):
        assert ranker.fit(train, valid=valid_data).digest() == expected.digest()
        assert ranker.history_ == expected.history_


def test_validation_features_may_be_in_another_order(files, tmp_path):
    """Validation files are matched by name, as data in memory is."""
    table = podium.data.io.parquet.import_pyarrow().parquet.read_table(files / "valid.parquet")
    names = table.column_names
    turned = table.select(names[::-1])
    podium.data.io.parquet.import_pyarrow().parquet.write_table(turned, tmp_path / "turned.parquet")
    train = podium.bin_files(files / "train.parquet", tmp_path / "train", **CSV)
    valid = [
        podium.bin_files(path, tmp_path / f"bins-{path.stem}", like=train, **CSV)
        for path in (files / "valid.parquet", tmp_path / "turned.parquet")
    ]
    assert np.array_equal(valid[0].binned.columns, valid[1].binned.columns)


def test_every_boosted_estimator_trains_on_bins(files, tmp_path):
    options = {"n_leaves": 4, "min_documents_in_leaf": 3}
    rankers = [
        podium.LambdaMART(3, step=LineSearch(), **options), podium.RankNetTrees(3, **options),
        podium.MART(3, **options), podium.McRank(2, **options), podium.OrdinalMART(2, **options),
        podium.AdditiveGroves(2, n_trees_in_grove=1, alpha=0.3),
        podium.LambdaMART(3, split_fraction=0.4, query_fraction=0.5, feature_fraction=0.5, **options),
    ]  # fmt: skip
    binned, data = podium.bin_files(files / "mixed-train.txt", tmp_path / "bins"), read(files / "mixed-train.txt")
    for ranker in rankers:
        assert ranker.fit(binned).digest() == ranker.fit(data).digest(), ranker
        assert np.array_equal(ranker.predict(binned), ranker.predict(data)[data.order]), ranker
        assert ranker.score(binned) == ranker.score(data)
    two = data.replace(relevance=np.minimum(data.relevance, 1))
    classifier = podium.MARTClassifier(2, **options)
    fitted = classifier.fit(binned.replace(relevance=np.minimum(binned.relevance, 1))).digest()
    assert fitted == classifier.fit(two).digest()


def test_committees_weigh_members_by_bins(files, tmp_path):
    binned, data = podium.bin_files(files / "mixed-train.txt", tmp_path / "bins"), read(files / "mixed-train.txt")
    valid = podium.bin_files(files / "mixed-valid.txt", tmp_path / "valid", like=binned)
    committee = podium.Committee(n_trees=2, n_leaves=4)
    fitted = [committee.fit(a, valid=b).digest() for a, b in ((binned, valid), (data, read(files / "mixed-valid.txt")))]
    assert fitted[0] == fitted[1]


def test_a_run_resumes_from_its_checkpoint(files, tmp_path):
    binned = podium.bin_files(files / "mixed-train.csv", tmp_path / "bins", **CSV)
    valid = podium.bin_files(files / "valid.csv", tmp_path / "valid", like=binned, **CSV)
    checkpoint = Checkpoint(tmp_path / "run", every=1)
    podium.LambdaMART(**SMALL | {"n_trees": 2}).fit(binned, valid=valid, checkpoint=checkpoint)
    data = read(files / "train.csv", **CSV)  # the same documents, so the same run
    resumed = podium.LambdaMART(**SMALL).fit(data, valid=read(files / "valid.csv", **CSV), checkpoint=checkpoint)
    again = podium.LambdaMART(**SMALL | {"n_trees": 6}).fit(binned, valid=valid, checkpoint=checkpoint)
    assert again.history_["valid/ndcg@10"][:4] == resumed.history_["valid/ndcg@10"]
    assert again.digest() == podium.LambdaMART(**SMALL | {"n_trees": 6}).fit(binned, valid=valid).digest()


def test_categorical_features_of_text_and_rare_ones(files, tmp_path):
    options = {"max_bins": 4, "categorical": [3, 0]}
    binned = podium.bin_files(files / "mixed-train.txt", tmp_path / "bins", max_bins=4, categorical=["4", 0])
    assert sorted(binned.binned.bins.categories) == [0, 3]
    assert binned.binned.bins.rare
    assert digest(binned, **options) == digest(read(files / "train.txt"), **options)
    scores = podium.LambdaMART(**SMALL | options).fit(binned).predict(binned)
    data = read(files / "mixed-train.txt")
    model = podium.LambdaMART(**SMALL | options).fit(data)
    assert np.array_equal(scores, model.predict(data)[data.order])


def test_preferences_are_kept(tmp_path):
    data = podium.artificial(6, features=3)
    order = np.random.default_rng(0).permutation(len(data))
    data = data.take(order)
    first = np.array([data.rows(q)[0] for q in range(6)])
    second = np.array([data.rows(q)[1] for q in range(6)])
    data = data.replace(preferences=(first, second, np.full(6, 0.8)))
    data.write(tmp_path / "a.parquet")
    binned = podium.bin_files(tmp_path / "a.parquet", tmp_path / "bins")
    assert sorted(zip(data.order[binned.preferences.i], data.order[binned.preferences.j], strict=True)) == sorted(
        zip(data.preferences.i, data.preferences.j, strict=True)
    )
    ranker = podium.LambdaMART(**SMALL, objective="preferences")
    assert ranker.fit(binned).digest() == ranker.fit(data).digest()


def test_data_with_values_works_like_data_in_memory(files, tmp_path):
    data = read(files / "mixed-train.txt")
    binned = podium.bin_files(files / "mixed-train.txt", tmp_path / "bins", keep_values=True)
    assert np.array_equal(binned.features, data.features[data.order])
    assert not binned.features.flags.writeable
    model = podium.LambdaMART(**SMALL).fit(data)
    assert np.array_equal(model.predict(binned), model.predict(data)[data.order])
    assert model.score(binned) == model.score(data)
    linear = podium.LinearRanker(n_iterations=3)
    assert linear.fit(binned).digest() == linear.fit(data).digest()
    assert binned.summary() == data.summary()
    scaled = podium.bin_files(files / "mixed-train.txt", tmp_path / "more", keep_values=True, normalize="sum")
    assert np.array_equal(scaled.features, data.normalized("sum").features[data.order])


def test_parts_and_copies_give_the_same_models(files, tmp_path):
    binned = podium.bin_files(files / "mixed-train.csv", tmp_path / "bins", **CSV)
    data = read(files / "mixed-train.csv", **CSV)
    queries = np.arange(0, binned.n_queries, 3)
    part, same = binned.select(queries), data.select(queries)
    assert np.array_equal(part.row_hashes, same.row_hashes[same.order])
    assert np.array_equal(part.labels["clicks"], same.labels["clicks"][same.order], equal_nan=True)
    assert part.binned.bins is binned.binned.bins
    assert digest(part) == digest(part.select(range(part.n_queries)))
    other = binned.replace(document_weights=None, labels={})
    assert other.document_weights is None
    assert list(other.labels) == ["relevance"]
    assert np.array_equal(other.relevance, binned.relevance)
    for data_ in (binned, part, other.with_reading(columns={"qid": "qid"})):
        copy = pickle.loads(pickle.dumps(data_))
        assert np.array_equal(copy.binned.columns, data_.binned.columns)
        assert list(copy.labels) == list(data_.labels)
        assert copy.reading == data_.reading
        assert digest(copy) == digest(data_)
    plain = binned.replace(features=np.ones((len(binned), 2)), feature_names=None, encoding=None)
    assert type(plain) is RankingData
    train, valid = binned.split(0.7, 0.3)
    assert train.n_queries + valid.n_queries == binned.n_queries
    podium.LambdaMART(**SMALL).fit(train, valid=valid)
    assert podium.fit_many([podium.LambdaMART(**SMALL)], binned)[0].digest() == digest(data)


def test_documents_without_weight_are_left_out_of_pointwise_losses(files, tmp_path):
    binned = podium.bin_files(files / "train.txt", tmp_path / "bins")
    weights = (np.arange(len(binned)) % 3 > 0).astype(np.float32)
    weighted = binned.replace(document_weights=weights)
    rows = np.flatnonzero(weights)
    assert podium.MART(3).fit(weighted).digest() == podium.MART(3).fit(weighted.take(rows)).digest()


def test_missing_values_are_scored_by_bins(tmp_path):
    """A split that separates missing values from all others has the threshold infinity, which is not a cut."""
    data = podium.artificial(40, documents=20, features=3)
    features = data.features.copy()
    features[np.random.default_rng(0).random(features.shape) < 0.4] = np.nan
    features[::7, 1] = np.inf
    data = podium.RankingData(features, np.where(np.isnan(features[:, 0]), 3, data.relevance), qid=data.qid)
    data.write(tmp_path / "train.parquet")
    binned = podium.bin_files(tmp_path / "train.parquet", tmp_path / "bins")
    few = {"n_trees": 4, "n_leaves": 6}
    trees = podium.LambdaMART(**few).fit(data).model_
    assert np.isinf(trees.arrays["threshold"]).any()
    base_scores = np.arange(float(len(data)))
    on_base_scores = podium.LambdaMART(**few, submodel=base_scores, submodel_scale=1.0).fit(data).model_
    for model in (trees, podium.McRank(**few).fit(data).model_, podium.models.Combined((trees, trees), (1.0, 2.0))):
        assert np.array_equal(model.predict(binned), model.predict(data))
    options = {"base_scores": base_scores}
    assert np.array_equal(on_base_scores.predict(binned, **options), on_base_scores.predict(data, **options))
    members = [("xendcg", 1), ("lambda(ndcg)", 1)]
    for ranker in (podium.OrdinalMART(**few), podium.LambdaMART(**few, submodel=trees)):
        assert ranker.fit(binned).digest() == ranker.fit(data).digest()
    committee = podium.Committee(members=members, n_trees=2)
    assert committee.fit(binned, valid=binned).digest() == committee.fit(data, valid=data).digest()


def test_base_scores_of_many_rows_are_added_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr("podium.models.base.ROWS_OF_BINS", 100)
    data = podium.artificial(15, documents=20, features=3)
    data.write(tmp_path / "train.parquet")
    binned = podium.bin_files(tmp_path / "train.parquet", tmp_path / "bins")
    scores = np.arange(float(len(data)))
    model = podium.LambdaMART(2, submodel=scores, submodel_scale=1.0).fit(data).model_
    assert np.array_equal(model.predict(binned, base_scores=scores), model.predict(data, base_scores=scores))
