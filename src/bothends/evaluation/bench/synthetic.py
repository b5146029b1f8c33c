"""Models to measure that nobody has trained: a shape, random weights, and no way to stop.

Speed depends on the shape of a network and on how much it writes, not on what its weights say. So
the weights are drawn at random, and made such that the end symbol is never among the best words:
then every system, ours or not, writes exactly as many tokens as it is allowed, and an order that
writes two at a time needs half the steps. Needs neither PyTorch nor data.
"""

from __future__ import annotations

import numpy as np

from bothends.errors import UsageError, nearest
from bothends.model.config import ModelConfig, preset
from bothends.model.weights import Weights
from bothends.order import GenerationOrder, IntArray

#: Words of the vocabulary that each preset is measured with.
VOCABULARY_SIZES = {"base": 32000, "small": 8000, "tiny": 1000}


def synthetic_config(name: str) -> ModelConfig:
    """The shape measured under a preset's name."""
    if name not in VOCABULARY_SIZES:
        raise UsageError(f"unknown preset {name!r}; {nearest(name, VOCABULARY_SIZES)}")
    return preset(name, vocabulary_size=VOCABULARY_SIZES[name])


def random_weights(config: ModelConfig, order: GenerationOrder, seed: int) -> Weights:
    """Weights of every tensor in the network, by the names of a model's state.

    Biases and norms are random too, so that a conversion that confuses two of them shows. Two
    orders of one seed share all weights but the direction embedding, which only some have.
    """
    random, width = np.random.default_rng(seed), config.width
    weights: Weights = {}

    def draw(name: str, *shape: int, spread: float, centre: float = 0.0) -> None:
        weights[name] = spread * random.standard_normal(shape, np.float32) + np.float32(centre)

    def linear(name: str, outputs: int, inputs: int) -> None:
        draw(f"{name}.weight", outputs, inputs, spread=inputs**-0.5)
        draw(f"{name}.bias", outputs, spread=0.1)

    def norm(name: str) -> None:
        draw(f"{name}.weight", width, spread=0.1, centre=1.0)
        draw(f"{name}.bias", width, spread=0.1)

    draw("source_embedding.weight", config.vocabulary_size, width, spread=width**-0.5)
    if not config.share_embeddings:
        draw("target_embedding.weight", config.target_size, width, spread=width**-0.5)
    if not config.tie_output:
        draw("output.weight", config.target_size, width, spread=width**-0.5)
    if config.output_bias:
        draw("output_bias", config.target_size, spread=0.1)
    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for layer in range(layers):
            prefix = f"{stack}.layers.{layer}"
            linear(f"{prefix}.self_attention.query_key_value", 3 * width, width)
            linear(f"{prefix}.self_attention.output", width, width)
            norm(f"{prefix}.self_attention_norm")
            if stack == "decoder":
                linear(f"{prefix}.cross_attention.query", width, width)
                linear(f"{prefix}.cross_attention.key_value", 2 * width, width)
                linear(f"{prefix}.cross_attention.output", width, width)
                norm(f"{prefix}.cross_attention_norm")
            linear(f"{prefix}.feed_forward.inner", config.feed_forward, width)
            linear(f"{prefix}.feed_forward.outer", width, config.feed_forward)
            norm(f"{prefix}.feed_forward_norm")
        if config.norm == "pre":
            norm(f"{stack}.norm")
    # Last, so that the draws before it do not depend on the order.
    if order.uses_direction_embedding:
        draw("direction_embedding.weight", order.directions, width, spread=width**-0.5)
    return weights


def never_ending(weights: Weights, config: ModelConfig) -> Weights:
    """The same weights, with an end symbol that is never written.

    The last norm of the decoder adds a constant vector of signs, and the end symbol's row of the
    output layer points the other way: its logit is about -32, where the others are within a few
    units of 0. A bias on the output layer would do as well, but costs an addition that the presets
    do not have; a minimal length would be checked at every step.
    """
    last_norm = (
        "decoder.norm"
        if config.norm == "pre"
        else f"decoder.layers.{config.decoder_layers - 1}.feed_forward_norm"
    )
    output = output_name(config)
    signs = np.where(np.arange(config.width) % 2, 1, -1).astype(np.float32)
    changed = dict(weights)
    changed[f"{last_norm}.bias"] = signs
    changed[output] = weights[output].copy()
    changed[output][config.special.end] = -32 / config.width * signs
    return changed


def output_name(config: ModelConfig) -> str:
    """The tensor that holds the output layer: its own, or that of the embedding it is tied to."""
    if not config.tie_output:
        return "output.weight"
    return "source_embedding.weight" if config.share_embeddings else "target_embedding.weight"


def random_sources(config: ModelConfig, sentences: int, length: int, seed: int) -> list[IntArray]:
    """Source sentences of `length` tokens each, the end symbol among them."""
    random = np.random.default_rng(seed)
    text = np.setdiff1d(np.arange(config.vocabulary_size), [token for _, token in config.special])
    drawn = random.choice(text, size=(sentences, length)).astype(np.int64)
    drawn[:, -1] = config.special.end
    return list(drawn)
