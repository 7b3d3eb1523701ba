"""Nets in model files: weights as data; a custom module must be passed."""

import hashlib
import json
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors
from torch import nn

import podium
from podium import DataError, FileFormatError, LambdaMART, LambdaRank, RankNet
from podium.models import load, save
from podium.neural import ListTransformer


class Own(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.one, self.two = nn.Linear(6, width), nn.Linear(width, 1)

    def forward(self, documents):
        return self.two(self.one(documents).relu())


@pytest.mark.parametrize("inputs", ["standard", "log", "quantile", "none"])
@pytest.mark.parametrize("net", [None, lambda n: ListTransformer(n, 8, depth=2)], ids=["layers", "lists"])
def test_a_net_survives_its_file(net, inputs, parts, tmp_path):
    train = parts[0].replace(feature_names=[f"f{k}" for k in range(6)])
    model = LambdaRank(net=net, inputs=inputs, epochs=2, n_threads=1).fit(train)
    model.save(tmp_path / "net.podium")
    loaded = load(tmp_path / "net.podium")
    assert loaded.digest() == model.digest()
    assert loaded.feature_names == train.feature_names
    assert loaded.info["parameters"]["epochs"] == 2
    assert np.array_equal(loaded.predict(train, n_threads=1), model.predict(train))
    turned = train.replace(features=train.features[:, ::-1], feature_names=list(train.feature_names[::-1]))
    assert np.allclose(loaded.predict(turned, n_threads=1), model.predict(train), atol=1e-5)
    with zipfile.ZipFile(tmp_path / "net.podium") as archive:
        tensors = load_tensors(archive.read("weights.safetensors"))
        assert json.loads(archive.read("header.json"))["format"] == "podium net"
    assert all(t.dtype == np.float32 for t in tensors.values())


def test_a_custom_module_must_be_passed(parts, tmp_path):
    model = RankNet(net=Own(), epochs=2).fit(parts[0])
    path = tmp_path / "own.podium"
    model.save(path)
    with pytest.raises(DataError, match=r"a custom net, Own: pass the net as well"):
        load(path)
    fresh = Own()
    assert np.array_equal(podium.load(path, module=fresh).predict(parts[0].features), model.predict(parts[0]))
    with pytest.raises(FileFormatError, match="not those of a Own of this shape"):
        load(path, module=Own(4))
    both = podium.combine(model, LambdaMART(3).fit(parts[0]), parts[1])
    save(both.model, tmp_path / "both.podium")
    again = load(tmp_path / "both.podium", module=fresh)
    assert again.digest() == both.model.digest()


def test_nets_serve_as_submodels_and_are_kept_in_the_file(parts, tmp_path):
    net = LambdaRank(epochs=3, n_threads=1).fit(parts[0])
    trees = LambdaMART(4, submodel=net, n_threads=1).fit(parts[0])
    trees.save(tmp_path / "both.podium")
    again = load(tmp_path / "both.podium")
    assert np.array_equal(again.predict(parts[1], n_threads=1), trees.predict(parts[1]))


def rewritten(path, change, weights=None):
    """The file with another header, its checksums made good."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    if weights is not None:
        members["weights.safetensors"] = weights
        header["sha256"]["weights.safetensors"] = hashlib.sha256(weights).hexdigest()
    change(header)
    members["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda h: h["net"].update(hidden=[1 << 40]), "description of its net"),
        (lambda h: h["net"].update(hidden=[60000]), "does not match the number of weights"),
        (lambda h: h["net"].update(hidden=[10] * 200), "description of its net"),
        (lambda h: h["net"].update(hidden="10"), "description of its net"),
        (lambda h: h["net"].update(activation="os.system"), "activation must be"),
        (lambda h: h["net"].update(net="pickle"), "description of its net"),
        (lambda h: h["net"].update(n_features=7), "description of its net"),
        (lambda h: h["net"].update(more=1), "description of its net"),
        (lambda h: h.update(net=None), "description of its net"),
        (lambda h: h["net"].update(net=[]), "description of its net"),
        (lambda h: h.update(inputs="minmax"), "scales of its inputs"),
        (lambda h: h.update(inputs="quantile"), "scales of its inputs"),
        (lambda h: h.update(n_features=3), "scales of its inputs"),
    ],
)
def test_crafted_files_are_refused(change, problem, parts, tmp_path):
    path = tmp_path / "net.podium"
    RankNet(epochs=1).fit(parts[0]).save(path)
    rewritten(path, change)
    with pytest.raises(FileFormatError, match=problem):
        load(path)


def test_damaged_weights_are_refused(parts, tmp_path):
    path = tmp_path / "net.podium"
    model = RankNet(epochs=1).fit(parts[0])
    model.save(path)
    rewritten(path, lambda h: None, b"\xff" * 64)
    with pytest.raises(FileFormatError, match="weights are damaged"):
        load(path)
    nn.init.constant_(model.model_.module.layers[0].weight, float("nan"))
    model.save(path)
    with pytest.raises(FileFormatError, match="not finite"):
        load(path)
