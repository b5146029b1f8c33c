"""Writing an ONNX graph node by node: nothing is traced, so no PyTorch is needed to export.

A `GraphWriter` is a thin layer over `onnx.helper`: a node is written by a call that returns the
name of its output, so a network reads like the equations it implements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.external_data_helper import set_external_data

#: Operators of the standard used here, and the first version of the file format that has them.
OPSET = 21
IR_VERSION = 10
#: ONNX Runtime's own operators.
MICROSOFT = "com.microsoft"
#: Bytes from which on a tensor that another file has is not written again.
WORTH_SHARING = 1 << 12

Shape = Sequence[str | int]


class WrittenGraph(NamedTuple):
    """A graph as the content of a file, and its weights by name."""

    file: str
    content: bytes
    weights: Mapping[str, Any]


class GraphWriter:
    """Collects inputs, weights, nodes and outputs of one graph. A value is known by its name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._weights: dict[str, Any] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def input(self, name: str, dtype: type[np.generic], shape: Shape) -> str:
        self._inputs.append(_value(name, dtype, shape))
        return name

    def output(self, name: str, value: str, dtype: type[np.generic], shape: Shape) -> None:
        """Give `value` out under `name`."""
        for node in self._nodes:
            # Renamed where it is made and where it is read: an Identity would copy it.
            for names in (node.input, node.output):
                names[:] = [name if each == value else each for each in names]
        self._outputs.append(_value(name, dtype, shape))

    def weight(self, name: str, array: NDArray[Any]) -> str:
        """A named tensor of the file; asked for twice, it is stored once."""
        if name not in self._weights:
            self._weights[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def constant(self, value: Any, dtype: type[np.generic]) -> str:
        """A small unnamed constant; equal ones are stored once."""
        array = np.asarray(value, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.weight(f"constant_{len(self._constants)}", array)
        return self._constants[key]

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Write a node with one output. An input that is left out is an empty name."""
        return self.nodes(operator, *inputs, outputs=1, domain=domain, **attributes)[0]

    def nodes(
        self, operator: str, *inputs: str, outputs: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Write a node with several outputs."""
        label = f"{operator}_{len(self._nodes)}"
        names = [f"{label}_{number}" for number in range(outputs)]
        self._nodes.append(
            helper.make_node(operator, inputs, names, name=label, domain=domain, **attributes)
        )
        return names

    def write(
        self, file: str, metadata: Mapping[str, str], beside: WrittenGraph | None = None
    ) -> WrittenGraph:
        """The finished graph for `file`, checked against the standard.

        A large tensor that the graph `beside` has as well stays in that one's file.
        """
        graph = helper.make_graph(
            self._nodes,
            self._name,
            self._inputs,
            self._outputs,
            list(self._weights.values()),
        )
        model = helper.make_model(
            graph,
            producer_name="bothends",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)],
        )
        helper.set_model_props(model, dict(metadata))
        onnx.checker.check_model(model)
        for tensor in model.graph.initializer if beside else ():
            _leave_in(beside, tensor)
        return WrittenGraph(file, model.SerializeToString(), self._weights)


def _leave_in(other: WrittenGraph, tensor: Any) -> None:
    """Point to the bytes of a tensor in another file, if they are there and worth it."""
    there = other.weights.get(tensor.name)
    size = len(tensor.raw_data)
    if there is not None and size >= WORTH_SHARING and there.raw_data == tensor.raw_data:
        offset = other.content.index(tensor.raw_data)
        set_external_data(tensor, other.file, offset=offset, length=size)
        tensor.ClearField("raw_data")


def _value(name: str, dtype: type[np.generic], shape: Shape) -> Any:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, element, list(shape))
