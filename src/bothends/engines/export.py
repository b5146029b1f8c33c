"""From weights to the two graphs of the runtime. Needs `onnx` and `safetensors`, no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bothends.engines.onnx_engine import GRAPH_VERSION
from bothends.engines.onnx_graph import GraphWriter
from bothends.engines.onnx_network import NetworkWriter
from bothends.engines.onnx_products import FloatProducts, Int8Products, Products
from bothends.model.config import ModelConfig
from bothends.model.directory import DECODER, ENCODER, write_atomically
from bothends.order import GenerationOrder

Precision = Literal["float32", "int8"]


def write_graphs(
    directory: Path,
    weights: Mapping[str, NDArray[np.floating]],
    config: ModelConfig,
    order: GenerationOrder,
    precision: Precision,
) -> None:
    """Write `encoder.onnx` and `decoder.onnx` for the weights, by the names of a model's state."""
    single = {name: np.asarray(array, np.float32) for name, array in weights.items()}
    metadata = {
        "graph_version": str(GRAPH_VERSION),
        "precision": precision,
        "order": str(order),
        "model": config.model_dump_json(),
    }
    contents = {}
    for file in (ENCODER, DECODER):
        graph = GraphWriter(file.removesuffix(".onnx"))
        products: Products[Any] = (
            Int8Products(graph) if precision == "int8" else FloatProducts(graph)
        )
        network = NetworkWriter(graph, products, config, single)
        if file == ENCODER:
            network.encoder()
        else:
            network.decoder(order)
        contents[file] = graph.model(metadata)
    Path(directory).mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        write_atomically(Path(directory) / file, content)
