"""The weights of a model directory as NumPy arrays, checked, without PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bothends.errors import BothendsError
from bothends.model.config import ModelConfig
from bothends.model.directory import CONFIG, WEIGHTS, Description
from bothends.order import GenerationOrder

Weights = dict[str, NDArray[np.float32]]


def read_weights(directory: Path, description: Description) -> Weights:
    """The tensors in `directory`, which are exactly those of the model described."""
    path = Path(directory) / WEIGHTS
    if not path.is_file():
        raise BothendsError(f"{directory}: no weights, {WEIGHTS} is missing")
    try:
        from safetensors.numpy import load_file
    except ImportError:
        raise BothendsError(f"{path}: to read it, pip install safetensors") from None
    try:
        found = load_file(path)
    except Exception as error:  # its exceptions have no common base of their own
        raise BothendsError(f"{path}: damaged, or of a type NumPy lacks ({error})") from None
    expected = weight_shapes(description.model, description.order)
    for name in expected.keys() - found.keys():
        raise BothendsError(f"{path}: tensor {name}, which {CONFIG} asks for, is missing")
    for name, tensor in found.items():
        shape = expected.get(name)
        if tensor.shape != shape:
            wanted = "no such tensor" if shape is None else f"shape {shape}"
            raise BothendsError(
                f"{path}: tensor {name} has shape {tensor.shape}, but {CONFIG} asks for {wanted}"
            )
    return {name: tensor.astype(np.float32) for name, tensor in found.items()}


def weight_shapes(config: ModelConfig, order: GenerationOrder) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor of a `Transformer`."""
    width, words = config.width, config.target_size
    shapes: dict[str, tuple[int, ...]] = {
        "source_embedding.weight": (config.vocabulary_size, width)
    }

    def add(name: str, outputs: int, *inputs: int) -> None:
        """A linear layer, or a norm where there are no inputs."""
        shapes[f"{name}.weight"] = (outputs, *inputs)
        shapes[f"{name}.bias"] = (outputs,)

    if not config.share_embeddings:
        shapes["target_embedding.weight"] = (words, width)
    if order.uses_direction_embedding:
        shapes["direction_embedding.weight"] = (order.directions, width)
    if not config.tie_output:
        shapes["output.weight"] = (words, width)
    if config.output_bias:
        shapes["output_bias"] = (words,)
    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for layer in range(layers):
            prefix = f"{stack}.layers.{layer}"
            add(f"{prefix}.self_attention.query_key_value", 3 * width, width)
            add(f"{prefix}.self_attention.output", width, width)
            add(f"{prefix}.self_attention_norm", width)
            if stack == "decoder":
                add(f"{prefix}.cross_attention.query", width, width)
                add(f"{prefix}.cross_attention.key_value", 2 * width, width)
                add(f"{prefix}.cross_attention.output", width, width)
                add(f"{prefix}.cross_attention_norm", width)
            add(f"{prefix}.feed_forward.inner", config.feed_forward, width)
            add(f"{prefix}.feed_forward.outer", width, config.feed_forward)
            add(f"{prefix}.feed_forward_norm", width)
        if config.norm == "pre":
            add(f"{stack}.norm", width)
    return shapes
