"""To a Marian directory of Hugging Face, for 1x1 models that are such a network."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bothends.convert import huggingface_names as names
from bothends.convert.tensors import SAFETENSORS
from bothends.convert.width import interleaved_to_halves, renumber_width
from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.model.config import ModelConfig
from bothends.model.directory import Description
from bothends.model.sinusoid import sinusoid
from bothends.model.spec import Network
from bothends.model.weights import Weights
from bothends.order import GenerationOrder
from bothends.text.foreign import ForeignVocabulary
from bothends.text.vocabulary import TextVocabulary, Vocabularies

#: Positions in Marian's tables.
POSITIONS = 1024
#: Our key in `config.json`: how the width was ordered before.
SINUSOID = "bothends_sinusoid"
#: The same: what its sinusoids were rounded to. Marian's own are exact.
PRECISION = "bothends_sinusoid_precision"
#: Settings of a search, which have a file of their own.
_GENERATION = ("pad_token_id", "eos_token_id", "bos_token_id", "decoder_start_token_id")


def marian_state(config: ModelConfig, weights: Weights) -> Weights:
    """Our tensors under Marian's names; fused projections are taken apart."""
    network = Network.of(config, GenerationOrder())
    table = sinusoid(np.arange(POSITIONS), config.width, config.sinusoid).astype(np.float32)
    source = weights[network.source_embedding.weight.name]
    target = weights[network.target_embedding.weight.name]
    state = {
        names.SOURCE_EMBEDDING: source,
        names.TARGET_EMBEDDING: target,
        names.OUTPUT: target,
        names.SOURCE_POSITIONS: table,
        names.TARGET_POSITIONS: table,
        names.OUTPUT_BIAS: np.zeros((1, config.target_size), np.float32),
    }
    if config.share_embeddings:
        state[names.SHARED] = source
    if network.output_bias:
        state[names.OUTPUT_BIAS] = weights[network.output_bias.name][None]
    for tensor, parts in names.stack_places(network):
        state |= dict(zip(parts, np.split(weights[tensor.name], len(parts)), strict=True))
    return state


def write_marian(
    directory: Path, description: Description, weights: Weights, vocabularies: Vocabularies
) -> None:
    """Write the files that `transformers` loads as a `MarianMTModel` with its tokenizer."""
    from safetensors.numpy import save

    config = description.model
    _check(config)
    settings = _settings(config)
    if config.sinusoid_precision != "exact":
        settings[PRECISION] = config.sinusoid_precision
    if config.sinusoid == "interleaved":
        order = interleaved_to_halves(config.width)
        weights = renumber_width(Network.of(config, GenerationOrder()), weights, order)
        config = replace(config, sinusoid="halves")
        settings[SINUSOID] = "interleaved"
    state = marian_state(config, weights)
    forbidden = description.provenance.get("converted_from", {}).get("forbidden_tokens", {})
    if forbidden:  # as it was: by a setting of its search, and not by a bias
        bias = state[names.OUTPUT_BIAS] = state[names.OUTPUT_BIAS].copy()
        for token, value in forbidden.items():
            bias[0, int(token)] = value
        words = [[int(token)] for token in forbidden]
        generation = {name: settings[name] for name in _GENERATION}
        _write_json(directory / "generation_config.json", generation | {"bad_words_ids": words})
    del state[names.OUTPUT], state[names.SOURCE_POSITIONS], state[names.TARGET_POSITIONS]
    if config.share_embeddings:
        del state[names.SOURCE_EMBEDDING], state[names.TARGET_EMBEDDING]
    arrays = {name: np.ascontiguousarray(array) for name, array in state.items()}
    write_atomically(directory / SAFETENSORS, save(arrays, metadata={"format": "pt"}))
    _write_json(directory / "config.json", settings)
    _write_tokenizer(directory, config, vocabularies)


def _check(config: ModelConfig) -> None:
    """Refuse what Marian's network cannot compute."""
    ends = config.framed([]) == [config.special.end] and not config.frame.prompt
    for reason, wrong in (
        ("normalises before each sublayer", config.norm == "pre"),
        ("has an output layer of its own", not config.tie_output),
        ("has a norm on its embeddings", config.embedding_norm),
        ("has learned positions", bool(config.learned_positions)),
        ("has other sinusoids", config.sinusoid == "tensor2tensor" or config.position_offset > 0),
        ("has another epsilon in its norms", config.norm_epsilon != 1e-5),
        ("has other tokens around a text", not ends),
    ):
        if wrong:
            raise BothendsError(f"this model cannot become a Marian model: it {reason}")


def _settings(config: ModelConfig) -> dict[str, Any]:
    activations = {"silu": "swish", "gelu-tanh": "gelu_new"}
    special, rates = config.special, config.dropout
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "vocab_size": config.vocabulary_size,
        "decoder_vocab_size": config.target_size,
        "max_position_embeddings": POSITIONS,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.feed_forward,
        "decoder_ffn_dim": config.feed_forward,
        "d_model": config.width,
        "activation_function": activations.get(config.activation, config.activation),
        "dropout": rates.residual,
        "attention_dropout": rates.attention,
        "activation_dropout": rates.activation,
        "scale_embedding": config.embedding_scale,
        "share_encoder_decoder_embeddings": config.share_embeddings,
        "tie_word_embeddings": True,
        "pad_token_id": special.pad,
        "eos_token_id": special.end,
        "bos_token_id": special.start,
        "decoder_start_token_id": special.start,
        "forced_eos_token_id": None,
    }


def _write_tokenizer(directory: Path, config: ModelConfig, vocabularies: Vocabularies) -> None:
    for name, vocabulary in (
        ("source.spm", vocabularies.source),
        ("target.spm", vocabularies.target),
    ):
        write_atomically(directory / name, _sentencepiece(vocabulary))
    source, target = (
        vocabulary.pieces(range(vocabulary.size))
        for vocabulary in (vocabularies.source, vocabularies.target)
    )
    separate = source != target
    _write_json(directory / "vocab.json", {piece: i for i, piece in enumerate(source)})
    if separate:
        _write_json(directory / "target_vocab.json", {piece: i for i, piece in enumerate(target)})
    special = zip(("pad_token", "unk_token", "eos_token"), ("pad", "unknown", "end"), strict=True)
    spelled = {name: target[getattr(config.special, field)] for name, field in special}
    settings = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate, **spelled}
    _write_json(directory / "tokenizer_config.json", settings)


def _sentencepiece(vocabulary: TextVocabulary) -> bytes:
    if isinstance(vocabulary, ForeignVocabulary):
        if vocabulary.content.kind != "pieces":
            raise BothendsError(
                f"{vocabulary.path}: this model cannot become a Marian model: its text is not cut "
                "by SentencePiece"
            )
        return vocabulary.file
    return vocabulary.model


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
