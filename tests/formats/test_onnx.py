"""ONNX graphs against ONNX Runtime: nets with the scales of their inputs, linear models, and sums of several kinds."""

import copy
import time
from dataclasses import replace

import numpy as np
import pytest

import podium
from podium.data.encoding import Encoding
from podium.errors import DataError, FileFormatError
from podium.formats import export_model, import_model
from tests.formats.data import N_FEATURES, QID, UNUSED, X, Y, random_rows

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
torch = pytest.importorskip("torch")
neural = pytest.importorskip("podium.neural")


def training_rows():
    """Return features of all sizes: normal, log-normal and tiny values, categories, a constant."""
    rows = random_rows(1200, 5)
    rows[:, 2], rows[:, 4] = np.exp(3 * rows[:, 2]), 1e-9 * rows[:, 4]
    return rows


def odd_rows():
    """Return rows that reveal wrong scaling: missing, infinite, 0, −0, huge, tiny, and values of the training data."""
    rows = np.concatenate([training_rows()[:500], 5 * training_rows()[:500]])
    rows[::7, 0], rows[::9, 2], rows[::11], rows[::13] = np.inf, -np.inf, 0.0, -0.0
    rows[::17], rows[::19], rows[::23] = 3e38, 1e-40, np.nan
    return rows


def scores_of(path, rows):
    return onnxruntime.InferenceSession(path).run(None, {"X": rows.astype(np.float64)})[0].ravel()


def net_of(module, kind):
    return neural.Net(module, neural.Inputs.fitted(training_rows(), kind))


def seeded(make, *arguments):
    torch.manual_seed(3)
    return make(*arguments).requires_grad_(False)


KINDS = ("standard", "log", "quantile", "none")


class TestNets:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(("hidden", "activation"), [(10, "tanh"), ((8, 3), "relu"), (4, "sigmoid"), ((), "tanh")])
    def test_layers(self, kind, hidden, activation, tmp_path):
        net = net_of(seeded(neural.Layers, N_FEATURES, hidden, activation), kind)
        written = export_model(net, tmp_path / "m.onnx")
        rows = odd_rows()
        scores = scores_of(tmp_path / "m.onnx", rows)
        inputs = net.inputs(rows)
        in_double = copy.deepcopy(net.module).double()(torch.from_numpy(inputs).double()).numpy()
        assert np.allclose(scores, in_double, rtol=1e-12, atol=1e-12)
        size = 1 + np.abs(inputs.astype(np.float64)).max(axis=1)  # of what Podium adds in float32
        is_finite = size < 1e37  # without scaling, the sums of larger inputs become infinite
        assert (np.abs(scores - net.predict(rows))[is_finite] <= 1e-6 * size[is_finite]).all()
        assert is_finite.all() or kind == "none"
        assert ("count as 0" if kind == "none" else "count as the mean") in written.missing

    @pytest.mark.parametrize("kind", KINDS)
    def test_lists(self, kind, tmp_path):
        net = net_of(seeded(neural.ListTransformer, N_FEATURES, 8, 2, 2), kind)
        written = export_model(net, tmp_path / "m.onnx")
        assert any("all documents of one query" in note for note in written.notes)
        rows = odd_rows()
        rows = rows[(np.abs(np.nan_to_num(rows, posinf=0, neginf=0)) < 100).all(axis=1)][:60]
        for query in (rows[:37], rows[37:], rows[:1]):
            scores = scores_of(tmp_path / "m.onnx", query)
            in_double = copy.deepcopy(net.module).double()
            expected = in_double(torch.from_numpy(net.inputs(query)).double(), torch.tensor([0, len(query)])).numpy()
            assert np.allclose(scores, expected, rtol=1e-9, atol=1e-9)
            data = podium.RankingData(query, qid=np.zeros(len(query)))
            if kind in ("quantile", "log"):  # others let inputs be a thousand deviations large
                assert np.allclose(scores, net.predict(data), rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("estimator", [podium.RankNet, podium.LambdaRank])
    def test_trained_nets(self, estimator, tmp_path):
        ranker = estimator(hidden=5, epochs=2, n_threads=1).fit(X, Y, qid=QID)
        ranker.export(tmp_path / "m.onnx")
        assert np.allclose(scores_of(tmp_path / "m.onnx", X), ranker.predict(X), rtol=1e-6, atol=1e-6)

    def test_values_at_and_next_to_quantiles(self, tmp_path):
        net = net_of(seeded(neural.Layers, N_FEATURES, (), "tanh"), "quantile")
        export_model(net, tmp_path / "m.onnx")
        grid = net.inputs.grid.T.astype(np.float32)
        for rows in (grid, np.nextafter(grid, np.float32(np.inf)), np.nextafter(grid, np.float32(-np.inf))):
            assert np.allclose(scores_of(tmp_path / "m.onnx", rows), net.predict(rows), rtol=1e-6, atol=1e-6)

    def test_custom_nets_are_refused(self, tmp_path):
        with pytest.raises(DataError, match="Sequential is your own module"):
            export_model(net_of(torch.nn.Sequential(torch.nn.Linear(N_FEATURES, 1)), "none"), tmp_path / "m.onnx")

    def test_other_formats_refuse_nets(self, tmp_path):
        net = net_of(seeded(neural.Layers, N_FEATURES), "none")
        for name in ("lightgbm", "ranklib", "solr", "opensearch"):
            with pytest.raises(DataError, match="holds trees, but"):
                export_model(net, tmp_path / "m", format=name)

    def test_nets_cannot_be_imported(self, tmp_path):
        export_model(net_of(seeded(neural.Layers, N_FEATURES), "log"), tmp_path / "m.onnx")
        with pytest.raises(FileFormatError, match="can be exported to ONNX, not imported"):
            import_model(tmp_path / "m.onnx")


def linear():
    return podium.models.LinearModel(np.arange(1.0, N_FEATURES + 1), np.linspace(-1, 1, N_FEATURES), 0.3)


class TestLinear:
    @pytest.mark.parametrize("shifts", [{}, {1: 1e9}])
    def test_podiums_exports_can_be_imported(self, shifts, tmp_path):
        model = replace(linear(), encoding=Encoding(shifts=shifts))
        export_model(model, tmp_path / "m.onnx")
        again = import_model(tmp_path / "m.onnx")
        assert again.digest() == model.digest()
        assert np.allclose(
            scores_of(tmp_path / "m.onnx", X), again.predict(X.astype(np.float64)), rtol=1e-12, atol=1e-12
        )

    @pytest.mark.parametrize("change", ["Sub", "Where", "a constant", "external"])
    def test_graphs_that_only_look_like_podiums_are_refused(self, change, tmp_path):
        export_model(linear(), tmp_path / "m.onnx")
        model = onnx.load(tmp_path / "m.onnx")
        node = {node.op_type: node for node in model.graph.node}.get(change)
        if node is not None:
            node.input[0], node.input[1] = node.input[1], node.input[0]
        elif change == "a constant":  # what missing values count as
            model.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(np.array(1.0), "constant_1"))
        else:
            model.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(FileFormatError, match="stored in another file" if change == "external" else "0 tree ens"):
            import_model(tmp_path / "m.onnx")

    def test_linear_regressors(self, tmp_path):
        helper, rows = onnx.helper, np.nan_to_num(X)

        def write(**attributes):
            node = helper.make_node("LinearRegressor", ["X"], ["y"], domain="ai.onnx.ml", **attributes)
            graph = helper.make_graph(
                [node], "g", [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, N_FEATURES])],
                [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, 1])],
            )  # fmt: skip
            opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)]
            onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "m.onnx")

        weights = np.linspace(-1, 2, N_FEATURES).tolist()
        write(coefficients=weights, intercepts=[0.5])
        scores = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"X": rows})[0].ravel()
        assert np.allclose(import_model(tmp_path / "m.onnx").predict(rows), scores, rtol=1e-5, atol=1e-5)
        for wrong in ({"targets": 2}, {"post_transform": "LOGISTIC"}):
            write(coefficients=weights, **wrong)
            with pytest.raises(FileFormatError, match="several outputs, or transforms"):
                import_model(tmp_path / "m.onnx")


def trees():
    return podium.LambdaMART(n_trees=3, n_leaves=5).fit(X, Y, qid=QID).model_


class TestSums:
    def test_several_kinds(self, tmp_path):
        net = net_of(seeded(neural.Layers, N_FEATURES), "quantile")
        inner = podium.models.Combined((trees(), linear()), (0.5, -2.0))
        for model, tolerance in ((inner, 1e-12), (podium.models.Combined((net, inner), (3.0, 1.5)), 1e-6)):
            written = export_model(model, tmp_path / "m.onnx")
            assert np.allclose(scores_of(tmp_path / "m.onnx", X), model.predict(X), rtol=tolerance, atol=tolerance)
            assert "NaN goes to the side" in written.missing
            assert "NaN and infinities count as the mean" in written.missing

    def test_parts_that_read_features_differently_are_refused(self, tmp_path):
        named = podium.models.LinearModel(np.ones(N_FEATURES), np.zeros(N_FEATURES), 0.0, tuple("abcdef"))
        other = podium.models.LinearModel(np.ones(N_FEATURES), np.zeros(N_FEATURES), 0.0, tuple("fedcba"))
        with pytest.raises(DataError, match="read their features differently"):
            export_model(podium.models.Combined((named, other), (1.0, 1.0)), tmp_path / "m.onnx")

    def test_version_3_is_for_trees(self, tmp_path):
        with pytest.raises(DataError, match="holds trees, but LinearModel"):
            export_model(podium.models.Combined((trees(), linear()), (1.0, 1.0)), tmp_path / "m.onnx", version=3)


class TestShifts:
    """Time stamps, which float32 cannot distinguish: Podium subtracts a constant first."""

    def data(self):
        rows = np.nan_to_num(X).astype(np.float64)
        rows[:, UNUSED] = 1.7e9 + np.arange(len(rows)) / 16
        return podium.RankingData(rows, Y, qid=QID), rows

    def test_linear_models_and_nets(self, tmp_path):
        data, rows = self.data()
        assert data.encoding.shifts
        for ranker, tolerance in (
            (podium.LinearRanker(), 1e-12), (podium.RankNet(hidden=3, epochs=1, n_threads=1), 1e-6)
        ):  # fmt: skip
            model = ranker.fit(data).model_
            export_model(model, tmp_path / "m.onnx")
            expected = model.predict(data)
            assert np.allclose(scores_of(tmp_path / "m.onnx", rows), expected, rtol=tolerance, atol=tolerance)

    @pytest.mark.parametrize("name", ["ranklib", "solr", "elasticsearch-plugin", "opensearch"])
    def test_formats_of_float32_refuse_them(self, name, tmp_path):
        weights = np.ones(N_FEATURES)
        model = podium.models.LinearModel(weights, np.zeros(N_FEATURES), encoding=self.data()[0].encoding)
        with pytest.raises(DataError, match="cannot distinguish"):
            export_model(model, tmp_path / "m", format=name)


class TestHostileFiles:
    """Damage that random bytes are unlikely to cause."""

    def changed(self, path, change, version=5):
        export_model(trees(), path, version=version)
        model = onnx.load(path)
        change(model, {attribute.name: attribute for attribute in model.graph.node[0].attribute})
        path.write_bytes(model.SerializeToString())
        return path

    def test_other_files_are_not_read(self, tmp_path):
        secret = tmp_path / "secret"
        secret.write_bytes(bytes(1 << 12))

        def point(model, attributes):
            tensor = attributes["leaf_weights"].t
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.ClearField("double_data")
            tensor.external_data.add(key="location", value=str(secret))

        with pytest.raises(FileFormatError, match="stored in another file"):
            import_model(self.changed(tmp_path / "m.onnx", point))

    def test_a_node_of_many_trees(self, tmp_path):
        def repeat(model, attributes):
            attributes["tree_roots"].ints.extend([0] * 100_000)

        with pytest.raises(FileFormatError, match="reached twice"):
            import_model(self.changed(tmp_path / "m.onnx", repeat))

    @pytest.mark.parametrize("version", [3, 5])
    def test_too_many_features(self, version, tmp_path):
        def widen(model, attributes):
            model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1 << 60

        with pytest.raises(FileFormatError, match="more than Podium accepts"):
            import_model(self.changed(tmp_path / "m.onnx", widen, version))

    def test_shapes_larger_than_their_content(self, tmp_path):
        def widen(model, attributes):
            attributes["leaf_weights"].t.dims[0] = 1 << 60

        with pytest.raises(FileFormatError, match="not a valid onnx model"):
            import_model(self.changed(tmp_path / "m.onnx", widen))

    @pytest.mark.parametrize(("version", "name"), [(3, "target_ids"), (5, "leaf_targetids")])
    def test_other_outputs(self, version, name, tmp_path):
        def move(model, attributes):
            attributes[name].ints[0] = 1

        with pytest.raises(FileFormatError, match="several outputs"):
            import_model(self.changed(tmp_path / "m.onnx", move, version))

    def test_two_nodes_with_the_same_number(self, tmp_path):
        def repeat(model, attributes):
            attributes["nodes_nodeids"].ints[1] = 0

        with pytest.raises(FileFormatError, match="two nodes with the number 0"):
            import_model(self.changed(tmp_path / "m.onnx", repeat, 3))

    def test_casts_that_lose_digits(self, tmp_path):
        def cast(model, attributes):
            model.graph.node[0].output[0] = "long"
            model.graph.node.append(onnx.helper.make_node("Cast", ["long"], ["score"], to=onnx.TensorProto.FLOAT16))

        with pytest.raises(FileFormatError, match="casts to a type"):
            import_model(self.changed(tmp_path / "m.onnx", cast))

    def test_many_trees_of_version_3_take_little_time(self, tmp_path):
        model = podium.models.Ensemble.of_trees([trees().tree(0)] * 2000, N_FEATURES)
        export_model(model, tmp_path / "m.onnx", version=3)
        started = time.perf_counter()
        assert import_model(tmp_path / "m.onnx").n_trees == 2000
        assert time.perf_counter() - started < 5
