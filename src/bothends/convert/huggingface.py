"""From a Hugging Face directory: Marian, BART, mBART, M2M-100 (and NLLB), Pegasus.

The five are one network with different settings. The settings of each family are data here; the
names of the tensors are in `huggingface_names`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bothends import __version__
from bothends.convert import huggingface_names as names
from bothends.convert.huggingface_config import Family, Settings
from bothends.convert.huggingface_vocabulary import ForeignText, read_text
from bothends.convert.options import ConvertOptions
from bothends.convert.result import FORBIDDEN, ConvertedModel
from bothends.convert.tensors import ForeignTensors
from bothends.convert.to_marian import PRECISION, SINUSOID
from bothends.convert.width import interleaved_to_halves, renumber_width
from bothends.errors import BothendsError
from bothends.model.config import ModelConfig, TextFrame
from bothends.model.directory import Description
from bothends.model.spec import Network
from bothends.order import GenerationOrder
from bothends.storage.checked import CheckError
from bothends.text.vocabulary import SpecialTokens


@dataclass(frozen=True)
class Layout:
    """What distinguishes the network of a family."""

    norm: Literal["pre", "post"]
    embedding_norm: bool
    positions: Literal["halves", "tensor2tensor", "learned"]
    #: rows of the table of learned positions before position 0
    first_row: int = 0
    task: str = "translation"


LAYOUTS: dict[Family, Layout] = {
    "marian": Layout("post", False, "halves"),
    "bart": Layout("post", True, "learned", first_row=2, task="summarization"),
    "mbart": Layout("pre", True, "learned", first_row=2),
    "m2m_100": Layout("pre", False, "tensor2tensor"),
    "pegasus": Layout("pre", False, "halves", task="summarization"),
}


def convert_huggingface(directory: Path, options: ConvertOptions) -> ConvertedModel:
    """The model in `directory` as one of ours."""
    settings = Settings(directory)
    layout = LAYOUTS[settings.family]
    tensors = ForeignTensors(directory)
    text = read_text(directory, settings, options)
    embeddings = _Embeddings.read(tensors, settings)
    try:
        config = _config(settings, layout, text, embeddings)
    except CheckError as error:
        raise BothendsError(f"{settings.path}: {error}") from None
    weights = _weights(tensors, config, layout, embeddings)
    if (
        settings.family == "marian" and settings.text(SINUSOID) == "interleaved"
    ):  # it was a model of ours before
        order = np.argsort(interleaved_to_halves(config.width))
        weights = renumber_width(Network.of(config, GenerationOrder()), weights, order)
        config = replace(config, sinusoid="interleaved")
    stored = settings.text(PRECISION)
    if settings.family == "marian" and stored in ("float16", "bfloat16"):
        config = replace(config, sinusoid_precision=stored)  # type: ignore[arg-type]
    description = Description(
        model=config,
        task=layout.task,
        source_language=options.source_language or text.source_language,
        target_language=options.target_language or text.target_language,
        provenance={
            "converted_from": {
                "format": "huggingface",
                "family": settings.family,
                "forbidden_tokens": embeddings.forbidden,
            },
            "versions": {"bothends": __version__},
        },
    )
    return ConvertedModel(description, weights, text.vocabularies(config))


@dataclass(frozen=True)
class _Embeddings:
    """The matrices and the vector as large as a vocabulary."""

    source: NDArray[np.float32]
    target: NDArray[np.float32]
    #: its own, unless tied
    output: NDArray[np.float32] | None
    #: none where it is all zeros
    bias: NDArray[np.float32] | None
    #: tokens that are never generated, and the bias that they had
    forbidden: dict[str, float]

    @classmethod
    def read(cls, tensors: ForeignTensors, settings: Settings) -> _Embeddings:
        words, width = settings.whole("vocab_size"), settings.whole("d_model")
        target_words = settings.whole("decoder_vocab_size", default=words)
        source_name = tensors.first_of(names.SOURCE_EMBEDDING, names.SHARED)
        target_name = tensors.first_of(names.TARGET_EMBEDDING, names.SHARED)
        source = tensors.read(source_name, (words, width))
        target = tensors.read(target_name, (target_words, width))
        output = None
        if names.OUTPUT in tensors and not settings.flag("tie_word_embeddings", True):
            output = tensors.read(names.OUTPUT, target.shape)
            if np.array_equal(output, target):
                output = None
        bias = np.zeros(len(target), np.float32)
        # Marian's is trained; in other families it is there to be there, and may be left out.
        if names.OUTPUT_BIAS in tensors or settings.family == "marian":
            bias = tensors.read(names.OUTPUT_BIAS, (1, len(target)))[0]
        forbidden = {}
        for token in settings.forbidden:
            if token < len(bias):
                forbidden[str(token)] = float(bias[token])
                bias[token] = FORBIDDEN
        return cls(source, target, output, bias if bias.any() else None, forbidden)

    @property
    def shared(self) -> bool:
        return np.array_equal(self.source, self.target)


def _config(
    settings: Settings, layout: Layout, text: ForeignText, embeddings: _Embeddings
) -> ModelConfig:
    pad = settings.required_token("pad_token_id")
    learned = layout.positions == "learned"
    positions: dict[str, Any] = {"sinusoid": "halves" if learned else layout.positions}
    if learned:
        positions["learned_positions"] = settings.whole("max_position_embeddings")
    elif layout.positions == "tensor2tensor":
        positions["position_offset"] = pad + 1
    sizes: dict[str, Any] = {"vocabulary_size": len(embeddings.source)}
    if len(embeddings.target) != len(embeddings.source):
        sizes["target_vocabulary_size"] = len(embeddings.target)
    return ModelConfig(
        **sizes,
        **positions,
        encoder_layers=settings.whole("encoder_layers"),
        decoder_layers=settings.whole("decoder_layers"),
        width=settings.whole("d_model"),
        heads=settings.whole("encoder_attention_heads", "decoder_attention_heads"),
        feed_forward=settings.whole("encoder_ffn_dim", "decoder_ffn_dim"),
        activation=settings.activation,
        norm=layout.norm,
        embedding_norm=layout.embedding_norm,
        share_embeddings=embeddings.shared,
        tie_output=embeddings.output is None,
        output_bias=embeddings.bias is not None,
        embedding_scale=settings.flag("scale_embedding", False),
        special=SpecialTokens(
            pad=pad,
            unknown=text.unknown,
            start=text.start,
            end=settings.required_token("eos_token_id"),
        ),
        frame=TextFrame(
            source_prefix=text.source_prefix,
            source_suffix=text.source_suffix,
            prompt=text.prompt,
        ),
    )


def _weights(
    tensors: ForeignTensors, config: ModelConfig, layout: Layout, embeddings: _Embeddings
) -> dict[str, NDArray[np.float32]]:
    network = Network.of(config, GenerationOrder())
    weights = {
        network.source_embedding.weight.name: embeddings.source,
        network.target_embedding.weight.name: embeddings.target,
    }
    if embeddings.output is not None:
        weights[network.output_weight.name] = embeddings.output
    if network.output_bias and embeddings.bias is not None:
        weights[network.output_bias.name] = embeddings.bias
    for positions, name in (
        (network.source_positions, names.SOURCE_POSITIONS),
        (network.target_positions, names.TARGET_POSITIONS),
    ):
        if positions:
            rows, width = positions.weight.shape
            table = tensors.read(name, (layout.first_row + rows, width))
            weights[positions.weight.name] = table[layout.first_row :]
    for tensor, parts in names.stack_places(network):
        height = tensor.shape[0] // len(parts)
        shape = (height, *tensor.shape[1:])
        weights[tensor.name] = np.concatenate([tensors.read(part, shape) for part in parts])
    return weights
