"""From a CTranslate2 directory: Transformer encoder-decoders in any of its storage types.

Whatever its converters made of OpenNMT, Marian, fairseq and Hugging Face models, and so Argos
packages too. What our network cannot say (relative positions, gated layers, ...) is refused by the
name of its variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bothends import __version__
from bothends.convert import ctranslate2_names as names
from bothends.convert.ctranslate2_file import ModelFile
from bothends.convert.ctranslate2_text import TokenLists
from bothends.convert.options import ConvertOptions
from bothends.convert.result import FORBIDDEN, ConvertedModel
from bothends.convert.tensors import finite
from bothends.errors import BothendsError
from bothends.model.config import ModelConfig, TextFrame
from bothends.model.directory import Description
from bothends.model.sinusoid import Layout, Stored, rounded, sinusoid
from bothends.model.spec import Network
from bothends.order import GenerationOrder
from bothends.storage.checked import CheckError
from bothends.text.foreign import ForeignVocabulary, VocabularyContent
from bothends.text.vocabulary import Side, SpecialTokens, Vocabularies, vocabulary_name

MODEL = "model.bin"
#: Specifications that are an encoder-decoder Transformer, and the heads of those that do not say.
_HEADS = {"TransformerSpec": None, "TransformerBase": 8, "TransformerBig": 16}
ACTIVATIONS: dict[int, Literal["relu", "gelu", "gelu-tanh", "silu"]] = {
    0: "relu",
    1: "gelu-tanh",
    2: "silu",
    3: "gelu",
}
#: Settings that change nothing here at these values.
_NEUTRAL: dict[str, tuple[int, ...]] = {
    "alibi": (0,),
    "alibi_use_positive_positions": (0, 1),
    "scale_alibi": (0, 1),
    "multi_query_attention": (0,),
    "embeddings_merge": (0, 1),
}
_IGNORED = ("alignment_layer", "alignment_heads")
#: How far a stored table of sinusoids may be from the formula: it may have been half precision.
_TOLERANCE = 2e-3


def convert_ctranslate2(directory: Path, options: ConvertOptions) -> ConvertedModel:
    """The model in `directory` as one of ours."""
    file = ModelFile.read(directory / MODEL)
    if file.name not in _HEADS:
        raise BothendsError(
            f"{file.path}: a model of kind {file.name}; supported are encoder-decoders "
            "(TransformerSpec)"
        )
    return _Converter(file, options).convert(directory)


@dataclass(frozen=True)
class _Matrices:
    """The matrices with a row for each word."""

    source: NDArray[np.float32]
    target: NDArray[np.float32]
    output: NDArray[np.float32]
    bias: NDArray[np.float32] | None

    def with_zero_row(self) -> _Matrices:
        """One word more, of zeros, which is never written: Marian's decoder starts from it."""
        bias = np.zeros(len(self.target), np.float32) if self.bias is None else self.bias
        return _Matrices(
            _with_zero(self.source),
            _with_zero(self.target),
            _with_zero(self.output),
            np.append(bias, FORBIDDEN),
        )


class _Converter:
    """Reads variables one by one, and knows at the end which it has not read."""

    def __init__(self, file: ModelFile, options: ConvertOptions) -> None:
        self.file = file
        self.options = options
        self._read: set[str] = set()

    def convert(self, directory: Path) -> ConvertedModel:
        new = names.SOURCE_EMBEDDING in self.file.variables
        matrices = _Matrices(
            self._embedding(names.SOURCE_EMBEDDING if new else names.OLD_SOURCE_EMBEDDING),
            self._embedding(names.TARGET_EMBEDDING),
            self._embedding(names.OUTPUT),
            self._optional(names.OUTPUT_BIAS),
        )
        sizes = len(matrices.source), len(matrices.target)
        tokens = TokenLists.read(directory, sizes, self.options)
        starts_from_zero = bool(self._setting("decoder", "start_from_zero_embedding", 0))
        if starts_from_zero:
            matrices = matrices.with_zero_row()
        try:
            config = self._config(tokens, matrices, starts_from_zero)
        except CheckError as error:
            raise BothendsError(f"{self.file.path}: {error}") from None
        weights = self._weights(config, matrices)
        self._check_all_read()
        description = Description(
            model=config,
            source_language=self.options.source_language,
            target_language=self.options.target_language,
            provenance={
                "converted_from": {"format": "ctranslate2", "kind": self.file.name},
                "versions": {"bothends": __version__},
            },
        )
        return ConvertedModel(description, weights, _vocabularies(directory, tokens, config))

    # --- variables ---

    def _floats(self, name: str, shape: tuple[int, ...] | None = None) -> NDArray[np.float32]:
        if name not in self.file.variables:
            raise BothendsError(f"{self.file.path}: variable {name} is missing")
        self._read |= {name, f"{name}_scale"}
        array = finite(self.file.path, f"variable {name}", self.file.floats(name))
        if shape is not None and array.shape != shape:
            raise BothendsError(
                f"{self.file.path}: variable {name} has shape {array.shape}, expected {shape}"
            )
        return array

    def _embedding(self, name: str) -> NDArray[np.float32]:
        array = self._floats(name)
        if array.ndim != 2:
            raise BothendsError(f"{self.file.path}: variable {name} should be a matrix")
        return array

    def _optional(self, name: str) -> NDArray[np.float32] | None:
        return self._floats(name) if name in self.file.variables else None

    def _setting(self, stack: str, name: str, default: float) -> float:
        variable = f"{stack}/{name}"
        if variable not in self.file.variables:
            return default
        self._read.add(variable)
        array = self.file.variables[variable]
        if array.size != 1:
            raise BothendsError(f"{self.file.path}: variable {variable} should be one number")
        return float(array.reshape(-1)[0])

    def _shared_setting(self, name: str, default: float) -> float:
        """A setting that must be the same in encoder and decoder."""
        first, second = (self._setting(stack, name, default) for stack in ("encoder", "decoder"))
        if first != second:
            raise BothendsError(
                f"{self.file.path}: {name} of encoder ({first:g}) and decoder ({second:g}) differ, "
                "and our network has one for both"
            )
        return first

    def _check_all_read(self) -> None:
        for name in sorted(self.file.variables):
            if name in self._read:
                continue
            setting = name.rpartition("/")[2]
            value = self.file.variables[name]
            if setting in _IGNORED or (
                value.size == 1 and int(value.reshape(-1)[0]) in _NEUTRAL.get(setting, ())
            ):
                continue
            raise BothendsError(
                f"{self.file.path}: variable {name} belongs to a network that is not supported "
                "(supported: Transformer encoder-decoders with absolute positions)"
            )

    # --- the network ---

    def _config(
        self, tokens: TokenLists, matrices: _Matrices, starts_from_zero: bool
    ) -> ModelConfig:
        source, target = matrices.source, matrices.target
        width = source.shape[1]
        heads = self._shared_setting("num_heads", _HEADS[self.file.name] or 8)
        number = int(self._shared_setting("activation", 0))
        if number not in ACTIVATIONS:
            raise BothendsError(f"{self.file.path}: activation {number} is not supported")
        special, frame = self._tokens(tokens, len(source), starts_from_zero)
        sizes: dict[str, Any] = {"vocabulary_size": len(source)}
        if len(target) != len(source):
            sizes["target_vocabulary_size"] = len(target)
        feed_forward = "encoder/layer_0/ffn/linear_0/weight"
        return ModelConfig(
            **sizes,
            **self._positions(width),
            encoder_layers=self._layers("encoder"),
            decoder_layers=self._layers("decoder"),
            width=width,
            heads=int(heads),
            feed_forward=len(self._floats(feed_forward)),
            activation=ACTIVATIONS[number],
            norm="pre" if self._shared_setting("pre_norm", 1) else "post",
            embedding_norm="encoder/layernorm_embedding/gamma" in self.file.variables,
            norm_epsilon=tokens.settings.get("layer_norm_epsilon") or 1e-5,
            share_embeddings=np.array_equal(source, target),
            tie_output=np.array_equal(target, matrices.output),
            output_bias=matrices.bias is not None,
            embedding_scale=self._is_scaled(width),
            special=special,
            frame=frame,
        )

    def _layers(self, stack: str) -> int:
        count = 0
        while f"{stack}/layer_{count}/ffn/linear_0/weight" in self.file.variables:
            count += 1
        return count

    def _is_scaled(self, width: int) -> bool:
        scale = self._shared_setting("scale_embeddings", 1)
        stored = self.file.variables.get("encoder/scale_embeddings")
        if stored is None or stored.dtype.kind == "i":
            return bool(scale)
        if scale not in (1.0, float(np.float32(width**0.5)), width**0.5):
            raise BothendsError(f"{self.file.path}: embeddings are scaled by {scale:g}")
        return scale != 1.0

    def _positions(self, width: int) -> dict[str, Any]:
        """Which sinusoids the stored tables are, or how many positions were learned."""
        if names.SOURCE_POSITIONS not in self.file.variables:
            return {"sinusoid": "tensor2tensor", "position_offset": 1}
        source = self._floats(names.SOURCE_POSITIONS)
        target = self._floats(names.TARGET_POSITIONS)
        layouts: tuple[Layout, ...] = ("interleaved", "halves", "tensor2tensor")
        for layout in layouts:
            for offset in (0, 1, 2):
                tables = [
                    sinusoid(np.arange(len(table)) + offset, width, layout).astype(np.float32)
                    for table in (source, target)
                ]
                if all(
                    table.shape == exact.shape and np.abs(table - exact).max() < _TOLERANCE
                    for table, exact in zip((source, target), tables, strict=True)
                ):
                    precision = _precision(max(source, target, key=len), max(tables, key=len))
                    return {
                        "sinusoid": layout,
                        "sinusoid_precision": precision,
                        "position_offset": offset,
                    }
        if len(source) != len(target):
            raise BothendsError(
                f"{self.file.path}: {len(source)} learned positions in the encoder and "
                f"{len(target)} in the decoder, and our network has one number for both"
            )
        return {"learned_positions": len(source)}

    def _tokens(
        self, tokens: TokenLists, words: int, starts_from_zero: bool
    ) -> tuple[SpecialTokens, TextFrame]:
        prefix, suffix = tokens.source_frame(self.options)
        begin = tokens.token("bos_token", "<s>")
        end = tokens.target_id(tokens.token("eos_token", "</s>") or "</s>")
        unknown = tokens.target_id(tokens.token("unk_token", "<unk>") or "<unk>")
        prompt: tuple[int, ...] = ()
        if self.options.target_prefix:
            prompt = (tokens.target_id(self.options.target_prefix),)
        if starts_from_zero:
            start = pad = words - 1
        else:
            name = tokens.token("decoder_start_token", begin)
            if name is None:  # the first token of the prefix, as its users give it
                if not prompt:
                    raise BothendsError(
                        f"{self.file.path.parent}: decoding starts with a token that its users "
                        "give, such as the target language; name it with --target-prefix"
                    )
                start, prompt = prompt[0], ()
            else:
                start = tokens.target_id(name)
            pad = self._pad(tokens, begin, {*prefix, *suffix})
        special = SpecialTokens(pad=pad, unknown=unknown, start=start, end=end)
        return special, TextFrame(source_prefix=prefix, source_suffix=suffix, prompt=prompt)

    def _pad(self, tokens: TokenLists, begin: str | None, used: set[int]) -> int:
        """A token that no source has."""
        for name in ("<blank>", "<pad>", begin):
            if name in tokens.source:
                token = tokens.source.index(name)
                if token not in used and token < len(tokens.target):
                    return token
        raise BothendsError(
            f"{tokens.path}: no token is left for padding (<blank>, <pad> or {begin})"
        )

    def _weights(self, config: ModelConfig, matrices: _Matrices) -> dict[str, NDArray[np.float32]]:
        network = Network.of(config, GenerationOrder())
        weights = {
            network.source_embedding.weight.name: matrices.source,
            network.target_embedding.weight.name: matrices.target,
            network.output_weight.name: matrices.output,
        }
        if network.output_bias and matrices.bias is not None:
            weights[network.output_bias.name] = matrices.bias
        for positions, name in (
            (network.source_positions, names.SOURCE_POSITIONS),
            (network.target_positions, names.TARGET_POSITIONS),
        ):
            if positions:
                weights[positions.weight.name] = self._floats(name, positions.weight.shape)
        for tensor, name in names.stack_places(network):
            weights[tensor.name] = self._floats(name, tensor.shape)
        return weights


def _precision(stored: NDArray[np.float32], exact: NDArray[np.float32]) -> str:
    """What a table of sinusoids was rounded to before it was stored."""
    precisions: tuple[Stored, ...] = ("bfloat16", "float16")
    for precision in precisions:
        if np.array_equal(stored, rounded(stored, precision)) and not np.array_equal(
            exact, rounded(exact, precision)
        ):
            return precision
    return "exact"


def _with_zero(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.concatenate([matrix, np.zeros((1, matrix.shape[1]), np.float32)])


def _vocabularies(directory: Path, tokens: TokenLists, config: ModelConfig) -> Vocabularies:
    unknown = tokens.token("unk_token", "<unk>") or "<unk>"
    named = [tokens.token("bos_token", "<s>"), tokens.token("eos_token", "</s>"), unknown]
    named += ["<blank>", "<pad>", tokens.token("decoder_start_token", None)]

    def side(name: Side, entries: tuple[str, ...], file: bytes, size: int) -> ForeignVocabulary:
        silent = {number for number, entry in enumerate(entries) if entry in named}
        content = VocabularyContent(
            kind="pieces" if file else "words",
            special=replace(config.special, unknown=entries.index(unknown)),
            size=size,
            entries=entries,
            silent=tuple(sorted(silent | set(range(len(entries), size)))),
        )
        return ForeignVocabulary(directory / vocabulary_name(name), content, file)

    source = side("source", tokens.source, tokens.source_sentencepiece, config.vocabulary_size)
    target = side("target", tokens.target, tokens.target_sentencepiece, config.target_size)
    if source.content == target.content and source.file == target.file:
        return Vocabularies(source, source)
    return Vocabularies(source, target)
