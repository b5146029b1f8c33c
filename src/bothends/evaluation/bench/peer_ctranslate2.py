"""CTranslate2 as a peer: our weights in its format, measured as its users would run it.

CTranslate2 is the fast runtime that people have for these models, so it is the yardstick. The same
weights go through its own specification, quantised by its own code, and the suite checks that its
greedy output is ours, token for token: what is compared is speed and nothing else. It generates
from left to right, one token at a time, so it is given the weights of a `1x1` model.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bothends.evaluation.bench.systems import Label, Request, Threads, TimedOutcome, arrangements
from bothends.model.config import ModelConfig
from bothends.model.shortlist import Shortlist
from bothends.model.sinusoid import position_encodings
from bothends.model.spec import DecoderLayer, EncoderLayer, Network, Norm, Projection
from bothends.model.weights import Weights
from bothends.order import GenerationOrder, IntArray
from bothends.text.vocabulary import SpecialTokens

#: Positions in the table that the converted model carries.
POSITIONS = 1024


#: What holds it, and the libraries of products inside it, to an instruction set.
LIMITS = ("CT2_FORCE_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")


def hold_to(instruction_set: str | None) -> str:
    """Hold it to what our own kernels are held to, as far as it can be; what it may use.

    Its own variable is not enough: the libraries that multiply for it ask the processor
    themselves. All of them are read when they first compute, so this comes before.
    """
    if instruction_set == "avx2":
        for name in LIMITS:
            os.environ.setdefault(name, "AVX2")
    limits = [f"{name}={value}" for name in LIMITS if (value := os.environ.get(name))]
    return ",".join(limits) or "all"


def convert(
    config: ModelConfig,
    weights: Weights,
    precision: str,
    directory: Path,
    shortlist: Shortlist | None = None,
) -> None:
    """Write the model that CTranslate2 loads from `directory`."""
    with _no_torch():
        from ctranslate2 import specs
        from ctranslate2.specs.common_spec import Activation

    # Its quantisation works in place, and the caller's weights serve other peers too.
    weights = {name: array.copy() for name, array in weights.items()}
    activations = {"relu": Activation.RELU, "gelu": Activation.GELU, "silu": Activation.SWISH}
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        activation=activations[config.activation],
    )
    table = position_encodings(np.arange(POSITIONS), config).astype(np.float32)
    network = Network.of(config, GenerationOrder())
    spec.encoder.embeddings[0].weight = weights[network.source_embedding.weight.name]
    spec.decoder.embeddings.weight = weights[network.target_embedding.weight.name]
    for stack, ours in zip((spec.encoder, spec.decoder), network.stacks, strict=True):
        stack.scale_embeddings = config.embedding_scale
        stack.position_encodings.encodings = table
        if ours.norm:
            _set_norm(stack.layer_norm, weights, ours.norm)
        for theirs, layer in zip(stack.layer, ours.layers, strict=True):
            _set_layer(theirs, weights, layer)
    spec.decoder.projection.weight = weights[network.output_weight.name]
    if network.output_bias:
        spec.decoder.projection.bias = weights[network.output_bias.name]

    # Its words are text; ours are the numbers of the words, written out.
    spec.register_source_vocabulary(_words(config.vocabulary_size))
    spec.register_target_vocabulary(_words(config.target_size))
    special = config.special
    spec.config.unk_token = str(special.unknown)
    spec.config.bos_token = spec.config.decoder_start_token = str(special.start)
    spec.config.eos_token = str(special.end)
    spec.config.layer_norm_epsilon = 1e-5

    spec.validate()
    spec.optimize(quantization=precision)
    directory.mkdir(parents=True, exist_ok=True)
    if shortlist is not None:
        mapping = directory / "shortlist.txt"
        _write_vocabulary_map(shortlist, mapping)
        spec.register_vocabulary_mapping(str(mapping))
    spec.save(str(directory))


def _write_vocabulary_map(shortlist: Shortlist, path: Path) -> None:
    """A shortlist in its format: a source word, a tab, target words; no source word is always."""
    first, words = shortlist.first.tolist(), shortlist.words.tolist()
    with open(path, "w", encoding="utf-8") as file:
        file.write("\t" + " ".join(map(str, shortlist.always.tolist())) + "\n")
        for source, (begin, end) in enumerate(pairwise(first)):
            if end > begin:
                file.write(f"{source}\t" + " ".join(map(str, words[begin:end])) + "\n")


def _set_layer(spec: Any, weights: Weights, layer: EncoderLayer | DecoderLayer) -> None:
    attention = layer.self_attention
    _set_linear(spec.self_attention.linear[0], weights, attention.query_key_value)
    _set_linear(spec.self_attention.linear[1], weights, attention.output)
    _set_norm(spec.self_attention.layer_norm, weights, layer.self_attention_norm)
    if isinstance(layer, DecoderLayer):
        _set_linear(spec.attention.linear[0], weights, layer.cross_attention.query)
        _set_linear(spec.attention.linear[1], weights, layer.cross_attention.key_value)
        _set_linear(spec.attention.linear[2], weights, layer.cross_attention.output)
        _set_norm(spec.attention.layer_norm, weights, layer.cross_attention_norm)
    _set_linear(spec.ffn.linear_0, weights, layer.feed_forward.inner)
    _set_linear(spec.ffn.linear_1, weights, layer.feed_forward.outer)
    _set_norm(spec.ffn.layer_norm, weights, layer.feed_forward_norm)


def _set_linear(spec: Any, weights: Weights, ours: Projection) -> None:
    spec.weight, spec.bias = weights[ours.weight.name], weights[ours.bias.name]


def _set_norm(spec: Any, weights: Weights, ours: Norm) -> None:
    spec.gamma, spec.beta = weights[ours.gain.name], weights[ours.shift.name]


def _words(size: int) -> list[str]:
    return [str(number) for number in range(size)]


@contextmanager
def _no_torch() -> Iterator[None]:
    """Keep PyTorch out of a process that does not have it yet.

    CTranslate2's specifications import it where it is installed and do without it elsewhere. Ours
    are NumPy arrays, so it would only cost start-up time and memory, next to what is measured.
    """
    hidden = "torch" not in sys.modules
    if hidden:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hidden:
            del sys.modules["torch"]


class CTranslate2:
    """A converted model in `directory`."""

    def __init__(self, label: Label, special: SpecialTokens, directory: Path) -> None:
        self.label = label
        self._special = special
        # One translator for each arrangement of threads: a translator cannot change its own.
        self._translator = lru_cache(maxsize=None)(
            lambda threads: _load(directory, label.precision, threads)
        )

    def arrangements(self, cores: int) -> list[Threads]:
        return arrangements(cores)

    def translate(
        self, sources: Sequence[IntArray], request: Request, threads: Threads
    ) -> TimedOutcome:
        results = self._translator(threads).translate_batch(
            [[str(token) for token in source.tolist()] for source in sources],
            # 0: the whole batch at once; else shares for the workers, which it sorts itself.
            max_batch_size=0 if threads.workers == 1 else -(-len(sources) // threads.workers),
            beam_size=request.beam,
            # Its penalty divides by `len^penalty`, ours by `((5 + len) / 6)^penalty`: the nearest.
            length_penalty=request.options.length_penalty,
            min_decoding_length=request.min_length,
            # Its limit counts the end symbol, ours does not: both take the same number of steps.
            max_decoding_length=request.max_length + 1,
            max_input_length=0,
            use_vmap=self.label.shortlist,
        )
        tokens = [[int(token) for token in result.hypotheses[0]] for result in results]
        # One step for each token, and one for the end symbol where there was room for it.
        steps = [min(len(each), request.max_length) + 1 for each in tokens]
        return TimedOutcome(tokens, steps, parts=None)


def _load(directory: Path, precision: str, threads: Threads) -> Any:
    import ctranslate2

    return ctranslate2.Translator(
        str(directory),
        compute_type=precision,
        inter_threads=threads.workers,
        intra_threads=threads.each,
    )
