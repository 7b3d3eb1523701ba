"""An ONNX graph in the making: what its operations are called, its constants, and the features that it begins with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.encoding import Encoding
from podium.errors import MissingExtraError

MAIN, IR = 21, 10  # versions of the operators, and of the file
ML, ML_DOMAIN = 5, "ai.onnx.ml"


def load_onnx() -> Any:
    """The package `onnx`, which is an extra."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "the ONNX format") from None
    return onnx


class Graph:
    """Operations from one input, `X`, to one output, `score`; doubles, unless another type is asked for."""

    def __init__(self, n_features: int, *, single: bool = False) -> None:
        self.onnx = load_onnx()
        self.n_features = n_features
        self.kind = self.onnx.TensorProto.FLOAT if single else self.onnx.TensorProto.DOUBLE
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation; the name of what it gives."""
        return self.add_several(1, operation, *inputs, **attributes)[0]

    def add_several(self, n_outputs: int, operation: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operation that gives several tensors; their names."""
        names = [f"{operation.lower()}_{len(self.nodes)}_{k}" for k in range(n_outputs)]
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), names, **attributes))
        return names

    def constant(self, values: NDArray[Any] | float) -> str:
        """The name of an array that does not change."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def cast(self, tensor: str, *kinds: int) -> str:
        """A tensor as one type after another."""
        for kind in kinds:
            tensor = self.add("Cast", tensor, to=kind)
        return tensor

    def rounded(self, tensor: str) -> str:
        """Doubles as the float32 numbers next to them, held as doubles."""
        return self.cast(tensor, self.onnx.TensorProto.FLOAT, self.onnx.TensorProto.DOUBLE)

    def features(self, encoding: Encoding) -> str:
        """X as Podium computes it: shifted as in training, then rounded to float32."""
        values = "X"
        if encoding.shifts:
            shifts = np.array([float(encoding.shifts.get(k, 0.0)) for k in range(self.n_features)])
            values = self.add("Sub", values, self.constant(shifts))
        return self.rounded(values)

    def content(
        self, versions: dict[str, int] | None = None, ir_version: int = IR, metadata: dict[str, str] | None = None
    ) -> bytes:
        """The file; the last operation gives the score."""
        helper = self.onnx.helper
        self.nodes[-1].output[0] = "score"
        graph = helper.make_graph(
            self.nodes, "podium", [helper.make_tensor_value_info("X", self.kind, [None, self.n_features])],
            [helper.make_tensor_value_info("score", self.kind, [None, 1])], self.constants,
        )  # fmt: skip
        if versions is None:
            uses_ml = any(node.domain == ML_DOMAIN for node in self.nodes)
            versions = {"": MAIN} | ({ML_DOMAIN: ML} if uses_ml else {})
        opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, producer_name="podium")
        helper.set_model_props(model, metadata or {})
        self.onnx.checker.check_model(model)
        content: bytes = model.SerializeToString()
        return content
