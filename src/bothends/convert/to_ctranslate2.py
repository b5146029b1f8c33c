"""To a CTranslate2 directory in float32, for 1x1 models. CTranslate2 itself is not needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bothends.convert import ctranslate2_names as names
from bothends.convert.ctranslate2 import ACTIVATIONS, MODEL
from bothends.convert.ctranslate2_file import file_content
from bothends.files import write_atomically
from bothends.model.config import ModelConfig
from bothends.model.directory import Description
from bothends.model.sinusoid import position_encodings
from bothends.model.spec import Network, Positions
from bothends.model.weights import Weights
from bothends.order import GenerationOrder
from bothends.text.foreign import ForeignVocabulary
from bothends.text.vocabulary import TextVocabulary, Vocabularies

#: Positions in a table of sinusoids.
POSITIONS = 1024
_REVISION = 7


def write_ctranslate2(
    directory: Path, description: Description, weights: Weights, vocabularies: Vocabularies
) -> None:
    """Write the files that `ctranslate2.Translator` loads."""
    config = description.model
    content = file_content("TransformerSpec", _REVISION, _variables(config, weights))
    write_atomically(directory / MODEL, content)
    lists = {
        "source": vocabularies.source.pieces(range(config.vocabulary_size)),
        "target": vocabularies.target.pieces(range(config.target_size)),
    }
    lists = {side: _distinct(tokens) for side, tokens in lists.items()}
    if lists["source"] == lists["target"]:
        _write_json(directory / "shared_vocabulary.json", lists["source"])
    else:
        for side, tokens in lists.items():
            _write_json(directory / f"{side}_vocabulary.json", tokens)
    special, target = config.special, lists["target"]
    suffix = config.source_suffix
    _write_json(
        directory / "config.json",
        {
            "add_source_bos": False,
            "add_source_eos": [lists["source"][token] for token in suffix] == [target[special.end]],
            "bos_token": target[special.start],
            "decoder_start_token": target[special.start],
            "eos_token": target[special.end],
            "layer_norm_epsilon": config.norm_epsilon,
            "multi_query_attention": False,
            "unk_token": target[special.unknown],
        },
    )
    for side, vocabulary in (("source", vocabularies.source), ("target", vocabularies.target)):
        if file := _sentencepiece(vocabulary):
            write_atomically(directory / f"{side}.spm", file)


def _variables(config: ModelConfig, weights: Weights) -> dict[str, NDArray[Any]]:
    network = Network.of(config, GenerationOrder())
    activation = next(number for number, name in ACTIVATIONS.items() if name == config.activation)
    variables: dict[str, NDArray[Any]] = {
        names.SOURCE_EMBEDDING: weights[network.source_embedding.weight.name],
        names.TARGET_EMBEDDING: weights[network.target_embedding.weight.name],
        names.OUTPUT: weights[network.output_weight.name],
    }
    if network.output_bias:
        variables[names.OUTPUT_BIAS] = weights[network.output_bias.name]
    sinusoids = position_encodings(np.arange(POSITIONS), config).astype(np.float32)

    def table(positions: Positions | None) -> NDArray[np.float32]:
        return sinusoids if positions is None else weights[positions.weight.name]

    variables[names.SOURCE_POSITIONS] = table(network.source_positions)
    variables[names.TARGET_POSITIONS] = table(network.target_positions)
    for tensor, name in names.stack_places(network):
        variables[name] = weights[tensor.name]
    for stack in network.stacks:
        variables |= {
            f"{stack.name}/num_heads": np.array(config.heads, np.int16),
            f"{stack.name}/pre_norm": np.array(config.norm == "pre", np.int8),
            f"{stack.name}/activation": np.array(activation, np.int8),
            f"{stack.name}/scale_embeddings": np.array(config.embedding_scale, np.int8),
        }
    variables |= {
        "encoder/embeddings_merge": np.array(0, np.int8),
        "encoder/multi_query_attention": np.array(0, np.int8),
        "decoder/alignment_heads": np.array(1, np.int16),
        "decoder/alignment_layer": np.array(-1, np.int16),
        "decoder/start_from_zero_embedding": np.array(0, np.int8),
    }
    flags = ("alibi", "alibi_use_positive_positions", "scale_alibi")
    return variables | {f"decoder/{flag}": np.array(0, np.int8) for flag in flags}


def _distinct(tokens: list[str]) -> list[str]:
    """Each token once: an id without an entry, or with one that is there twice, gets a name."""
    seen: set[str] = set()
    named = []
    for number, token in enumerate(tokens):
        name = token if token and token not in seen else f"<{number}>"
        seen.add(name)
        named.append(name)
    return named


def _sentencepiece(vocabulary: TextVocabulary) -> bytes:
    if isinstance(vocabulary, ForeignVocabulary):
        return vocabulary.file if vocabulary.content.kind == "pieces" else b""
    return vocabulary.model


def _write_json(path: Path, content: Any) -> None:
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
