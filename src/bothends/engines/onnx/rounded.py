"""The weights of a model that has only its graphs: read back from int8, as they were rounded.

The package and most downloads have no other weights. They are good enough to begin a training with:
each is at most 1/128 of the largest weight of its row away from what it was.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from bothends.engines.onnx.initialisers import MEMORY, bias_of, scales_of
from bothends.engines.onnx.metadata import check_metadata, check_same_export
from bothends.engines.onnx.network import query_scales
from bothends.errors import BothendsError
from bothends.model.directory import Description
from bothends.model.graph_files import GraphFile, readable_graphs
from bothends.model.spec import LookupTable, Network, Norm, Projection, parts_of
from bothends.model.weights import Weights, weight_shapes

Arrays = dict[str, NDArray[Any]]


def read_rounded_weights(directory: Path, description: Description) -> Weights:
    """The tensors of the graphs in `directory`, by their names in the model, in float32."""
    with readable_graphs(Path(directory)) as files:
        graphs = [_load(file, description) for file in files]
    properties = [{each.key: each.value for each in graph.metadata_props} for graph in graphs]
    check_same_export(Path(directory), *properties)
    arrays: Arrays = {}
    for graph in graphs:
        arrays |= {each.name: numpy_helper.to_array(each) for each in graph.graph.initializer}
    try:
        weights = _weights(description, arrays)
    except KeyError as error:
        raise BothendsError(f"{directory}: its graphs lack the array {error}") from None
    for name, shape in weight_shapes(description.model, description.order).items():
        if weights[name].shape != shape:
            raise BothendsError(
                f"{directory}: its graphs have {name} of shape {weights[name].shape}, not {shape}"
            )
    return weights


def _load(file: GraphFile, description: Description) -> Any:
    try:
        graph = onnx.load(file.path)
    except Exception as error:  # whatever a damaged file makes of its parser
        raise BothendsError(f"{file.stored}: cannot be read ({error})") from None
    properties = {each.key: each.value for each in graph.metadata_props}
    check_metadata(file.stored, properties, description)
    return graph


def _weights(description: Description, arrays: Arrays) -> Weights:
    network = Network.of(description.model, description.order)
    weights: Weights = {}

    def vector(name: str) -> NDArray[np.float32]:
        return np.asarray(arrays[name], np.float32)

    def matrix(name: str) -> NDArray[np.float32]:
        values = vector(name)
        scales = arrays.get(scales_of(name))  # none in float32
        return values if scales is None else values * scales[:, None]

    # Keys and values of the source are one product for all layers, in the encoder's graph.
    memory = [layer.cross_attention.key_value for layer in network.decoder.layers]
    for projection in parts_of(network, Projection):
        if projection not in memory:
            scale = query_scales(projection, description.model)
            weights[projection.weight.name] = matrix(projection.name) / scale[:, None]
            weights[projection.bias.name] = vector(bias_of(projection.name)) / scale
    parts = np.split(matrix(MEMORY), len(memory)), np.split(vector(bias_of(MEMORY)), len(memory))
    for projection, weight, bias in zip(memory, *parts, strict=True):
        weights[projection.weight.name], weights[projection.bias.name] = weight, bias
    for norm in parts_of(network, Norm):
        for tensor in (norm.gain, norm.shift):
            weights[tensor.name] = vector(tensor.name)
    for table in parts_of(network, LookupTable):
        weights[table.weight.name] = matrix(table.weight.name)
    output = network.output_weight.name
    weights[output] = matrix(output)
    if network.output_bias is not None:
        weights[network.output_bias.name] = vector(bias_of(output))
    return weights
