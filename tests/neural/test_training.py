"""Nets on λ: the factored step equals the pairwise one; training is a function of data and seed."""

import itertools
import logging
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import podium
from podium import DataError, LambdaMART, LambdaRank, RankingData, RankNet
from podium.boosting import Checkpoint
from podium.measures import Ranking
from podium.neural import Layers, ListTransformer, NetTraining, padded
from podium.neural.modules import NumpyLayers
from podium.neural.optimizers import OPTIMIZERS, Weights
from podium.objectives import (
    Anneal,
    Debiased,
    Lambda,
    LinearGrowth,
    ListNet,
    Local,
    Logistic,
    Pairwise,
    Preferences,
    Tiers,
)

FAST = {"epochs": 6, "n_threads": 1}


def weights(ranker):
    return nn.utils.parameters_to_vector(ranker.model_.module.parameters()).detach().numpy()


def one_step(kind, train, **settings):
    """The change of the weights by one step over all queries, for a rate of 1."""
    net = Layers(train.n_features, 4)
    before = nn.utils.parameters_to_vector(net.parameters()).detach().clone()
    ranker = kind(net=net, optimizer="sgd", learning_rate=1.0, batch_queries=None, epochs=1, **settings).fit(train)
    return net, ranker, weights(ranker) - before.numpy()


def pair_by_pair(net, ranker, train, weigh):
    """The gradient of Σ weight · log(1 + e^{−(s_i − s_j)}) by autograd, a forward pass for each document of a pair."""
    inputs = torch.from_numpy(ranker.model_.inputs(train.features))
    total = torch.zeros(())
    for q in range(train.n_queries):
        rows = train.rows(q)
        for i, j in itertools.permutations(rows, 2):
            if train.relevance[i] > train.relevance[j]:
                apart = net(inputs[i : i + 1]) - net(inputs[j : j + 1])
                total = total + weigh(q, i, j) * nn.functional.softplus(-apart).sum()
    (total / train.n_queries).backward()
    return -nn.utils.parameters_to_vector([p.grad for p in net.parameters()]).numpy()


def test_the_factored_step_of_ranknet_is_the_pairwise_one(parts):
    train = parts[0].select(range(8))
    net, ranker, change = one_step(RankNet, train)
    assert np.abs(change).max() > 0.1
    assert np.allclose(change, pair_by_pair(net, ranker, train, lambda *_: 1.0), rtol=1e-4, atol=1e-5)


def test_the_step_of_lambdarank_holds_the_deltas_fixed(parts):
    train = parts[0].select(range(6))
    net, ranker, change = one_step(partial(LambdaRank, normalize=False), train)
    with torch.no_grad():
        scores = net(torch.from_numpy(ranker.model_.inputs(train.features))).double().numpy()

    def delta(q, i, j):
        swapped = scores.copy()
        swapped[[i, j]] = swapped[[j, i]]
        values = [podium.NDCG().values(Ranking(train, s))[q] for s in (scores, swapped)]
        return abs(values[0] - values[1])

    assert np.allclose(change, pair_by_pair(net, ranker, train, delta), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("kind", [RankNet, LambdaRank])
def test_training_learns_and_depends_on_the_seed_alone(kind, parts, shuffled):
    train, valid, test = parts
    model = kind(epochs=30, n_threads=1).fit(train, valid=valid)
    assert model.score(test) > 0.7  # by chance: about .45
    again = kind(epochs=30, n_threads=1).fit(train, valid=valid)
    assert model.digest() == again.digest()
    rows, mixed = shuffled
    moved = kind(epochs=30, n_threads=1).fit(mixed, valid=valid)
    assert model.digest() == moved.digest()
    assert np.allclose(model.predict(train)[rows], moved.predict(mixed), atol=1e-6)
    assert kind(epochs=30, n_threads=1, random_state=1).fit(train, valid=valid).digest() != model.digest()


def test_nets_restore_the_state_of_torch(parts, tmp_path):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    threads = torch.get_num_threads()
    LambdaRank(**FAST).fit(parts[0])
    with pytest.raises(DataError, match="not finite"):
        RankNet(learning_rate=1e37, optimizer="sgd", epochs=5).fit(parts[0])
    LambdaRank(**FAST).fit(parts[0]).save(tmp_path / "net.podium")
    net = podium.models.load_model(tmp_path / "net.podium")
    net.importance()
    assert all(tensor.grad is None for tensor in net.module.parameters())
    assert torch.equal(torch.rand(2), expected)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("batch", [1, 7, None])
def test_batches_never_split_queries(batch, parts):
    seen = []

    class Watching(Layers):
        def forward(self, documents):
            if self.training:
                seen.append(len(documents))
            return super().forward(documents)

    RankNet(net=Watching, batch_queries=batch, epochs=1).fit(parts[0])
    queries = -(-80 // (batch or 80))
    assert len(seen) == queries
    assert all(size % 12 == 0 for size in seen)
    assert sum(seen) == len(parts[0])


def test_supported_and_unsupported_objectives(parts):
    train = parts[0]
    for objective in ("lambda(err)", "lambda(ap)", ListNet(), Local("ndcg"),
                      Anneal(Lambda("ndcg"), Local("ndcg"), LinearGrowth(0.1, 0.1)), "query_regression"):  # fmt: skip
        model = LambdaRank(objective=objective, epochs=15, n_threads=1).fit(train)
        assert model.score(train) > 0.6, objective
    log = podium.data.datasets.simulate_clicks(train, users=3, seed=1)
    biased = Debiased(Lambda("cndcg"))
    with pytest.raises(DataError, match="batch_queries=None"):
        LambdaRank("cndcg", objective=biased, **FAST).fit(log)
    LambdaRank("cndcg", objective=biased, batch_queries=None, **FAST).fit(log)
    with pytest.raises(DataError, match="one score for each document"):
        LambdaRank(objective="multiclass", **FAST).fit(train)


def test_a_batch_keeps_what_depends_on_all_data(parts):
    """ERR's highest label is that of all queries, not of the batch."""
    train = parts[0]
    low = train.replace(
        labels={"relevance": np.where(np.arange(len(train)) < 480, train.relevance, train.relevance > 0)}
    )
    objective = Tiers(Lambda("err"), Lambda("err"), weights=(0.5, 0.5))
    assert objective.fixed(low).tiers[0].measure.max_label == 4
    assert Anneal(Lambda("err"), Local("err")).fixed(low).after.measure.max_label == 4
    scores = np.random.default_rng(0).normal(size=len(low))
    whole = objective.bind(low).gradients(scores)[0]
    part = objective.fixed(low).bind(low.select(range(40, 80))).gradients(scores[480:])[0]
    assert np.array_equal(whole[480:], part)
    assert not np.allclose(objective.bind(low.select(range(40, 80))).gradients(scores[480:])[0], part)


def test_preferences_need_no_labels():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 4))
    truth = X[:, 0] + 0.5 * X[:, 1]
    start = 30 * rng.integers(0, 20, 4000)
    i, j = start + rng.integers(0, 30, 4000), start + rng.integers(0, 30, 4000)
    i, j = i[i != j], j[i != j]
    preferred = rng.random(len(i)) < 1 / (1 + np.exp(-2 * (truth[i] - truth[j])))
    data = RankingData(X, qid=np.arange(600) // 30, preferences=(i, j, preferred.astype(float)))
    model = LambdaRank(objective=Preferences(), epochs=20, batch_queries=4, n_threads=1).fit(data)
    assert model.best_iteration_ == int(np.argmax(model.history_["train/preferences"]))
    assert np.corrcoef(model.predict(X), truth)[0, 1] > 0.95


def test_weights_of_queries_and_documents_count(parts):
    train = parts[0]
    settings = {"batch_queries": None, "epochs": 3, "n_threads": 1, "inputs": "none", "optimizer": "sgd"}
    torch.manual_seed(0)  # with some first weights float32 differs by more than the tolerance
    net = Layers(6)
    heavy = train.replace(query_weights=np.where(np.arange(80) < 40, 1.0, 0.0))
    weighted = RankNet(net=net, learning_rate=0.02, **settings).fit(heavy)
    selected = RankNet(net=net, learning_rate=0.01, **settings).fit(train.select(range(40)))
    assert np.allclose(weights(weighted), weights(selected), atol=1e-4)  # a mean over 80 queries, or over 40
    has_weight = np.arange(len(train)) % 3 > 0
    light = train.replace(document_weights=np.where(has_weight, 4.0, 0.0))
    weighted = RankNet(net=net, learning_rate=0.01, **settings).fit(light)
    few = RankingData(train.features[has_weight], train.relevance[has_weight], qid=train.qid[has_weight])
    selected = RankNet(net=net, learning_rate=0.04, **settings).fit(few)
    assert np.allclose(weights(weighted), weights(selected), atol=1e-4)  # a pair counts √(d_i d_j) times


@pytest.mark.parametrize("objective", [
    Lambda("err"), Pairwise(), ListNet(), "query_regression", "regression", "logistic(balanced=true)",
    Tiers(Lambda("ndcg"), Lambda("err")),
], ids=str)  # fmt: skip
def test_queries_without_labels_and_batches_of_one(objective, parts):
    """All that training needs of the data is looked at once: a batch may have no labels, no pairs, one class."""
    train = parts[0]
    labels = train.relevance.copy()
    labels[train.rows(3)] = np.nan
    labels[train.rows(4)] = 0.0
    labels[train.rows(5)[1:]] = np.nan
    model = LambdaRank(objective=objective, batch_queries=1, epochs=8, n_threads=1)
    assert model.fit(train.replace(labels={"relevance": labels})).score(parts[2]) > 0.5
    if not isinstance(objective, Tiers):
        with pytest.raises(DataError, match="needs labels"):
            model.fit(train.replace(labels={"relevance": np.full(len(train), np.nan)}))


def test_a_balanced_batch_counts_the_classes_of_all(parts):
    train = parts[0]
    objective = Logistic(balanced=True, above=1.0)
    scores = np.random.default_rng(0).normal(size=len(train))
    whole = objective.bind(train).gradients(scores)[0]
    part = objective.fixed(train).bind(train.select(range(3))).gradients(scores[:36])[0]
    assert np.allclose(whole[:36], part)


def test_the_rate_is_halved_and_ends_training(parts, caplog):
    rates = []
    model = LambdaRank(epochs=500, halve_after=1, learning_rate=0.02, smallest_rate=1e-3, n_threads=1)
    model.fit(parts[0], valid=parts[1], observers=[lambda epoch: rates.append(epoch.learning_rate)])
    assert len(rates) < 500
    assert sorted(set(rates), reverse=True) == [0.02, 0.01, 0.005, 0.0025, 0.00125]
    assert rates == sorted(rates, reverse=True)
    history = model.history_["valid/ndcg@10"]
    assert model.best_iteration_ == int(np.argmax(history))
    assert model.score(parts[1]) == pytest.approx(max(history), abs=1e-12)
    patient = LambdaRank(epochs=500, patience=3, n_threads=1).fit(parts[0], valid=parts[1])
    assert len(patient.history_["valid/ndcg@10"]) - 1 - patient.best_iteration_ == 3
    with caplog.at_level(logging.INFO, "podium"):
        RankNet(epochs=1).fit(parts[0])
    assert "epoch 0: rate 0.01" in caplog.text


def test_a_resumed_run_gives_the_same_bits(parts, tmp_path):
    train, valid, _ = parts
    path = tmp_path / "net.checkpoint"

    def run(epochs, **options):
        settings = {
            "epochs": epochs,
            "measure": "ndcg@3>ap~0.01",
            "net": lambda n: ListTransformer(n, 8),
            "halve_after": 2,
        }
        return LambdaRank(n_threads=1, **settings).fit(train, valid=valid, **options)

    whole = run(7)
    run(4, checkpoint=Checkpoint(path, 2))
    assert run(7, checkpoint=Checkpoint(path, 2)).digest() == whole.digest()
    assert run(7, checkpoint=Checkpoint(path, 2)).history_ == whole.history_
    with pytest.raises(DataError, match="other data or other settings"):
        LambdaRank(n_threads=1, epochs=9).fit(train, valid=valid, checkpoint=Checkpoint(path))
    with pytest.raises(DataError, match="the checkpoint already has 6 epochs, but epochs=3"):
        run(3, checkpoint=Checkpoint(path, 2))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(podium.FileFormatError, match="not a checkpoint of a net"):
        run(7, checkpoint=Checkpoint(path, 2))


def test_a_damaged_checkpoint_is_refused(parts, tmp_path):
    """A flipped bit anywhere: in the names, in what is said of the run, in the weights."""
    path, data = tmp_path / "net.checkpoint", parts[0].select(range(4))

    def run(epochs):
        return RankNet(epochs=epochs, hidden=2, n_threads=1).fit(data, checkpoint=Checkpoint(path, 1))

    run(1)
    content = path.read_bytes()
    for bit in np.random.default_rng(0).integers(0, 8 * len(content), 25).tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(podium.PodiumError):
            run(2)


def test_a_checkpoint_keeps_what_the_objective_learnt_and_knows_the_activation(parts, tmp_path):
    log = podium.data.datasets.simulate_clicks(parts[0], users=3, seed=1)
    objective = Debiased(Lambda("cndcg"))

    def run(epochs, **options):
        settings = {"batch_queries": None, "n_threads": 1, "optimizer": "sgd", "learning_rate": 0.1}
        return LambdaRank("cndcg", objective=objective, epochs=epochs, **settings).fit(log, **options)

    whole = run(6)
    run(3, checkpoint=Checkpoint(tmp_path / "a", 3))
    assert run(6, checkpoint=Checkpoint(tmp_path / "a", 3)).digest() == whole.digest()
    RankNet(epochs=1, activation="relu").fit(parts[0], checkpoint=Checkpoint(tmp_path / "b", 1))
    with pytest.raises(DataError, match="other data or other settings"):
        RankNet(epochs=2, activation="tanh").fit(parts[0], checkpoint=Checkpoint(tmp_path / "b", 1))


def test_an_interrupted_run_keeps_the_best_epoch(parts):
    def stop(epoch):
        if epoch.iteration == 3:
            raise KeyboardInterrupt

    with pytest.warns(podium.PodiumWarning, match="interrupted after 4 epochs"):
        model = RankNet(n_threads=1).fit(parts[0], observers=[stop])
    assert len(model.history_["train/ndcg@10"]) == 4
    assert model.score(parts[0]) == pytest.approx(max(model.history_["train/ndcg@10"]), abs=1e-9)
    assert not model.model_.module.training


def test_custom_modules(parts):
    train = parts[0]
    module = nn.Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 1))
    before = [p.clone() for p in module.parameters()]
    model = LambdaRank(net=module, **FAST).fit(train)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))  # a copy is trained
    assert model.predict(train).shape == (len(train),)
    ranker = LambdaRank(net=lambda n: nn.Sequential(nn.Dropout(0.2), nn.Linear(n, 1)), **FAST)
    assert ranker.fit(train).digest() == ranker.fit(train).digest()
    with pytest.raises(DataError, match="does not accept 6 features"):
        LambdaRank(net=nn.Linear(5, 1), **FAST).fit(train)
    with pytest.raises(DataError, match=r"one score for each of \d+ documents, but returned \(\d+, 2\)"):
        LambdaRank(net=nn.Linear(6, 2), **FAST).fit(train)
    with pytest.raises(DataError, match="all of them float32"):
        LambdaRank(net=nn.Linear(6, 1).double(), **FAST).fit(train)
    with pytest.raises(DataError, match="must be a torch module"):
        LambdaRank(net=lambda n: "net", **FAST).fit(train)


def test_a_net_that_sees_lists(parts, shuffled):
    train, valid, test = parts
    model = LambdaRank(net=lambda n: ListTransformer(n, 16), epochs=12, n_threads=1).fit(train, valid=valid)
    assert model.score(test) > 0.6
    scores = model.predict(train)
    rows, mixed = shuffled
    assert np.allclose(scores[rows], model.predict(mixed), atol=1e-5)  # how rows come does not matter
    assert np.allclose(scores, model.predict(train.features, qid=train.qid), atol=1e-5)
    first = train.rows(0)
    alone = RankingData(train.features[first[:6]], train.relevance[first[:6]], qid=[0] * 6)
    assert not np.allclose(scores[first[:6]], model.predict(alone), atol=1e-3)  # the rest of the list counts
    with pytest.raises(DataError, match="scores whole lists"):
        model.predict(train.features)
    assert len(podium.explain.permutation_importance(model, test, repeats=1).rows) == 6
    named = train.replace(feature_names=list("abcdef"))
    trees = LambdaMART(5, submodel=model).fit(named)
    turned = named.replace(features=named.features[:, ::-1], feature_names=list("fedcba"))
    assert np.allclose(trees.predict(turned), trees.predict(named), atol=1e-5)
    trees = LambdaMART(5, submodel=model).fit(train)
    assert np.allclose(trees.predict(mixed), trees.predict(train)[rows], atol=1e-5)
    both = podium.combine(trees, model, valid)
    assert both.value >= max(both.values)
    assert both.model.sees_lists
    assert np.allclose(both.model.predict(mixed), both.model.predict(train)[rows], atol=1e-5)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
@pytest.mark.parametrize("hidden", [(), 7, (5, 4)])
def test_layers_in_numpy_equal_those_of_torch(hidden, activation):
    net = Layers(3, hidden, activation)
    documents, push = torch.randn(40, 3), torch.randn(40)
    scores = net(documents)
    scores.backward(push)
    gradients = [torch.zeros_like(p) for p in net.parameters()]
    by_numpy = NumpyLayers(net, gradients)
    assert np.allclose(by_numpy.scores(documents.numpy()), scores.detach(), atol=1e-5)
    by_numpy.backward(push.numpy())
    for gradient, tensor in zip(gradients, net.parameters(), strict=True):
        assert np.allclose(gradient, tensor.grad, atol=1e-4)


@pytest.mark.parametrize(("name", "theirs"), [("adam", torch.optim.Adam), ("sgd", torch.optim.SGD)])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_optimizers_equal_those_of_torch(name, theirs, l2):
    nets = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    weights = Weights(nets[0])
    optimizer, reference = OPTIMIZERS[name](weights, l2), theirs(nets[1].parameters(), lr=0.02, weight_decay=l2)
    for _ in range(20):
        documents, push = torch.randn(10, 3), torch.randn(10, 1)
        for net in nets:
            net(documents).backward(push)
        optimizer.step(0.02)
        reference.step()
        reference.zero_grad()
    weights.release()
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)
        assert a.grad is None


def test_padding_is_undone():
    documents = torch.arange(12.0).reshape(6, 2)
    lists, present = padded(documents, torch.tensor([0, 2, 2, 6]))
    assert lists.shape == (2, 4, 2)
    assert torch.equal(lists[present], documents)
    assert torch.equal(lists[0, 2:], torch.zeros(2, 2))


def test_parameters(parts):
    train = parts[0]
    model = clone(LambdaRank("ap", hidden=[4, 3], activation="relu", truncation=5))
    assert model.get_params()["hidden"] == [4, 3]
    of_lambda = {"objective", "truncation", "pair_truncation", "normalize"}
    assert set(RankNet().get_params()) | of_lambda == set(LambdaRank().get_params())
    assert repr(model.fit(train.select(range(20))).model_) == "Net(Layers, 47 weights)"
    for settings, text in (
        ({"epochs": 0}, "epochs must be"), ({"optimizer": "lbfgs"}, "optimizer must be 'adam' or 'sgd'"),
        ({"hidden": 0}, "hidden must be"), ({"activation": "gelu"}, "activation must be"), ({"l2": -1}, "l2 must"),
        ({"learning_rate": 0.0}, "learning_rate must"), ({"batch_queries": 0}, "batch_queries must"),
        ({"inputs": "rank"}, "inputs must"), ({"random_state": -1}, "random_state must"),
        ({"halve_after": 0}, "halve_after"),
        ({"smallest_rate": 0}, "smallest_rate must"), ({"learning_rate": 5e-6}, "is below smallest_rate"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=text):
            RankNet(**settings).fit(train)
    with pytest.raises(DataError, match="not finite"):
        RankNet(learning_rate=1e37, optimizer="sgd", epochs=5).fit(train)
    with pytest.raises(DataError, match="evaluation set 'valid' does not fit the training data: X has 4 features"):
        RankNet(epochs=1).fit(train, valid=podium.artificial(5, features=4))
    with pytest.raises(DataError, match="the training data has no documents"):
        NetTraining().fit(RankingData(np.empty((0, 3)), [], qid=[]))


def test_linear_nets_and_importance(parts):
    model = RankNet(hidden=(), epochs=20, n_threads=1).fit(parts[0])
    slopes = np.abs(model.model_.module.layers[0].weight.detach().numpy()[0])
    assert np.allclose(model.feature_importances_, slopes / slopes.sum(), atol=1e-5)


def test_everything_else_works_without_torch():
    code = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("torch", "safetensors"):
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import podium
data = podium.artificial(5, documents=5, features=3)
podium.LinearRanker(n_iterations=2).fit(data)
try:
    podium.RankNet().fit(data)
except podium.errors.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install '.[neural]'" in done.stdout, done.stderr
