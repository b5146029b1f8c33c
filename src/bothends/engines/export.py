"""From weights to the two graphs of the runtime. Needs `onnx` and `safetensors`, no PyTorch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bothends.engines.onnx.graph import GraphWriter, WrittenGraph
from bothends.engines.onnx.metadata import GRAPH_VERSION
from bothends.engines.onnx.network import NetworkWriter
from bothends.engines.onnx.products import FloatProducts, Int8Products, Products
from bothends.engines.registry import Precision
from bothends.errors import BothendsError, UsageError
from bothends.files import is_new, new_directory, real_path, write_atomically
from bothends.model.config import ModelConfig
from bothends.model.directory import (
    CARD,
    CONFIG,
    FILES,
    VOCABULARIES,
    WEIGHTS,
    read_description,
    record_model,
    write_description,
)
from bothends.model.graph_files import (
    COMPRESSED,
    COMPRESSED_GRAPHS,
    DECODER,
    ENCODER,
    GRAPHS,
    compress,
)
from bothends.model.hub import origin
from bothends.model.shortlist import SHORTLIST
from bothends.model.weights import in_float32, read_weights
from bothends.order import GenerationOrder
from bothends.storage.digests import check_file


def export_model(
    directory: Path, precision: Precision, output: Path, *, compressed: bool = False
) -> None:
    """Write the graphs of the model in `directory` to `output`, which may be the same.

    Another directory also gets everything else that the runtime needs. It may hold an earlier
    export of this model, but not another model: the two would be mixed.
    """
    directory, output = Path(directory), Path(output)
    elsewhere = real_path(output) != real_path(directory)
    description = read_description(directory)
    if elsewhere and _is_another_model(output, directory):
        raise BothendsError(f"{output}: exists and is a model of its own; name a new directory")
    weights = read_weights(directory, description)
    with new_directory(output) if is_new(output) else nullcontext(output) as target:
        shape = description.model, description.order
        write_graphs(target, weights, *shape, precision, compressed=compressed)
        if elsewhere:
            _copy_rest(directory, target)
        record_model(target, FILES if elsewhere else (*GRAPHS, *COMPRESSED_GRAPHS))


def _copy_rest(directory: Path, output: Path) -> None:
    """Copy what the runtime needs besides the graphs."""
    for name in (*VOCABULARIES, CONFIG, SHORTLIST, CARD):
        if (directory / name).is_file():
            if name != CARD:
                check_file(directory / name)
            write_atomically(output / name, (directory / name).read_bytes())
    if origin(directory):  # write down which commit it was
        write_description(output, read_description(directory))


def _is_another_model(output: Path, directory: Path) -> bool:
    if (output / WEIGHTS).exists():
        return True
    if origin(directory) and (output / CONFIG).exists():
        return read_description(output) != read_description(directory)
    config = output / CONFIG
    return config.exists() and config.read_bytes() != (directory / CONFIG).read_bytes()


def write_graphs(
    directory: Path,
    weights: Mapping[str, NDArray[np.floating]],
    config: ModelConfig,
    order: GenerationOrder,
    precision: Precision,
    *,
    compressed: bool = False,
) -> None:
    """Write `encoder.onnx` and `decoder.onnx` for the weights, by the names of a model's state.

    Compressed, they end in `.gz`; graphs of the other kind, which they replace, are removed.
    """
    if compressed and precision != "int8":
        raise UsageError(f"only graphs in int8 are compressed, not those in {precision}")
    single = in_float32(weights)
    metadata = {
        "graph_version": str(GRAPH_VERSION),
        "precision": precision,
        "order": str(order),
        "model": json.dumps(config.dump_for_graphs(), separators=(",", ":")),
        # Two graphs of one export: a step of one must not follow another's encoder.
        "weights": _fingerprint(single),
    }
    graphs: list[WrittenGraph] = []
    for file in (DECODER, ENCODER):
        graph = GraphWriter(file.removesuffix(".onnx"))
        products: Products[Any] = (
            Int8Products(graph) if precision == "int8" else FloatProducts(graph)
        )
        network = NetworkWriter(graph, products, config, order, single)
        if file == ENCODER:
            network.encoder()
        else:
            network.decoder()
        # The encoder points to an embedding that the decoder has too.
        graphs.append(graph.write(file, metadata, beside=graphs[0] if graphs else None))
    # Nothing is written before both are complete.
    Path(directory).mkdir(parents=True, exist_ok=True)
    for written in graphs:
        if compressed:
            name, content = written.file + COMPRESSED, compress(written.content)
        else:
            name, content = written.file, written.content
        write_atomically(Path(directory) / name, content)
    for name in GRAPHS if compressed else COMPRESSED_GRAPHS:
        (Path(directory) / name).unlink(missing_ok=True)


def _fingerprint(weights: Mapping[str, NDArray[np.float32]]) -> str:
    digest = sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(weights[name]).data)
    return digest.hexdigest()
