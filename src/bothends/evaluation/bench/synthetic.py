"""Models to measure that nobody has trained: a shape, random weights, and no way to stop.

Speed depends on the shape of a network and on how much it writes, not on what its weights say. So
the weights are drawn at random, and made such that the end symbol is never among the best words:
then every system, ours or not, writes exactly as many tokens as it is allowed, and an order that
writes two at a time needs half the steps. Needs neither PyTorch nor data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bothends.errors import UsageError, nearest
from bothends.model.config import ModelConfig, preset
from bothends.model.shortlist import Shortlist
from bothends.model.spec import Network, Tensor
from bothends.model.weights import Weights
from bothends.order import GenerationOrder, IntArray

#: Words of the vocabulary that each preset is measured with.
VOCABULARY_SIZES = {"base": 32000, "small": 8000, "tiny": 1000}


def synthetic_config(name: str) -> ModelConfig:
    """The shape measured under a preset's name; `base-1` is `base` with a decoder of one layer."""
    shape, dash, layers = name.partition("-")
    if shape not in VOCABULARY_SIZES:
        raise UsageError(f"unknown preset {name!r}; {nearest(name, VOCABULARY_SIZES)}")
    if dash and not (layers.isascii() and layers.isdecimal() and 0 < int(layers) < 100):
        raise UsageError(f"preset {name!r}: expected {shape}-1 for a decoder of one layer")
    config = preset(shape, vocabulary_size=VOCABULARY_SIZES[shape])
    return replace(config, decoder_layers=int(layers)) if dash else config


def random_shortlist(config: ModelConfig, words: int, length: int, seed: int) -> Shortlist:
    """A shortlist that allows about `words` words for a random source of `length` tokens.

    Half of them are always allowed, as in one that was learned.
    """
    random = np.random.default_rng(seed)
    text = np.setdiff1d(np.arange(config.target_size), [config.special.end])
    always = np.sort(random.choice(text, min(words // 2, len(text)), replace=False))
    each = max(1, (words - len(always)) // (length - 1))
    drawn = np.stack(
        [np.sort(random.choice(text, each, replace=False)) for _ in range(config.vocabulary_size)]
    )
    first = np.arange(config.vocabulary_size + 1) * each
    return Shortlist(config.vocabulary_size, config.target_size, always, first, drawn.ravel())


def random_weights(config: ModelConfig, order: GenerationOrder, seed: int) -> Weights:
    """Weights of every tensor in the network, by the names of a model's state.

    Biases and norms are random too, so that a conversion that confuses two of them shows. Two
    orders of one seed share all weights but the direction embedding, which only some have.
    """
    random = np.random.default_rng(seed)

    def draw(tensor: Tensor) -> NDArray[np.float32]:
        spread = tensor.shape[-1] ** -0.5 if tensor.kind in ("table", "matrix") else 0.1
        centre = np.float32(1 if tensor.kind == "gain" else 0)
        return spread * random.standard_normal(tensor.shape, np.float32) + centre

    # What depends on the order comes last, so that the draws before it do not.
    return {tensor.name: draw(tensor) for tensor in Network.of(config, order).tensors()}


def never_ending(weights: Weights, config: ModelConfig) -> Weights:
    """The same weights, with an end symbol that is never written.

    The last norm of the decoder adds a constant vector of signs, and the end symbol's row of the
    output layer points the other way: its logit is about -32, where the others are within a few
    units of 0. A bias on the output layer would do as well, but costs an addition that the presets
    do not have; a minimal length would be checked at every step.
    """
    network = Network.of(config, GenerationOrder())
    output = network.output_weight.name
    signs = np.where(np.arange(config.width) % 2, 1, -1).astype(np.float32)
    changed = dict(weights)
    changed[network.decoder.last_norm.shift.name] = signs
    changed[output] = weights[output].copy()
    changed[output][config.special.end] = -32 / config.width * signs
    return changed


def random_sources(config: ModelConfig, sentences: int, length: int, seed: int) -> list[IntArray]:
    """Source sentences of `length` tokens each, the end symbol among them."""
    random = np.random.default_rng(seed)
    text = np.setdiff1d(np.arange(config.vocabulary_size), config.special.ids)
    drawn = random.choice(text, size=(sentences, length)).astype(np.int64)
    drawn[:, -1] = config.special.end
    return list(drawn)
