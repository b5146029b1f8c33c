"""The shape of the network, as data: validated once, saved with every model. No PyTorch here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from typing_extensions import Self

from bothends.errors import UsageError, nearest
from bothends.storage.schemas import Strict
from bothends.text.vocabulary import SpecialTokens

#: Most weights of all layers; more is surely a typing error.
MOST_WEIGHTS = 100_000_000_000


class Dropout(Strict):
    """Dropout probabilities, one per kind."""

    #: on the output of each sublayer, before it is added to the residual
    residual: float = Field(0.1, ge=0.0, lt=1.0)
    #: on the attention weights
    attention: float = Field(0.1, ge=0.0, lt=1.0)
    #: inside the feed-forward layer, after the activation
    activation: float = Field(0.0, ge=0.0, lt=1.0)
    #: on the sum of token embedding and position
    embedding: float = Field(0.1, ge=0.0, lt=1.0)


class Architecture(Strict):
    """The settings of a network in a recipe. The defaults are the paper's (Transformer base)."""

    encoder_layers: int = Field(6, ge=1, le=512)
    decoder_layers: int = Field(6, ge=1, le=512)
    width: int = Field(512, ge=2, le=1 << 16)
    heads: int = Field(8, ge=1, le=1024)
    feed_forward: int = Field(2048, ge=1, le=1 << 20)
    #: `gelu-tanh` is the approximation of `gelu` that some models were trained with
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "relu"
    #: where layer normalisation stands: before a sublayer, or after its residual sum
    norm: Literal["pre", "post"] = "post"
    dropout: Dropout = Dropout()
    #: one embedding matrix for source and target
    share_embeddings: bool = True
    #: the output layer is the target embedding
    tie_output: bool = True
    #: multiply embeddings by sqrt(width)
    embedding_scale: bool = True
    output_bias: bool = False
    #: sine and cosine side by side, or all sines before all cosines, or the latter as tensor2tensor
    #: and fairseq compute it, with wavelengths that end at 10000 and not before it
    sinusoid: Literal["interleaved", "halves", "tensor2tensor"] = "interleaved"
    #: what sinusoids are rounded to, as in a converted model that was stored so
    sinusoid_precision: Literal["exact", "float16", "bfloat16"] = "exact"
    #: how far positions are from where the sinusoid begins to count
    position_offset: int = Field(0, ge=0, le=1 << 20)
    #: positions with learned vectors, which bound the length of a text; 0 for sinusoids
    learned_positions: int = Field(0, ge=0, le=1 << 20)
    #: a norm on the sum of token embedding and position
    embedding_norm: bool = False
    #: what layer norms add to the variance
    norm_epsilon: float = Field(1e-5, gt=0.0)

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.width % 2:
            raise ValueError(f"width {self.width} is odd, and a sinusoid needs pairs")
        attentions = self.encoder_layers + 2 * self.decoder_layers
        layers = self.encoder_layers + self.decoder_layers
        weights = self.width * (4 * self.width * attentions + 2 * self.feed_forward * layers)
        if weights > MOST_WEIGHTS:
            raise ValueError(
                f"layers of these sizes have {weights:,} weights; expected at most {MOST_WEIGHTS:,}"
            )
        return self

    @property
    def head_width(self) -> int:
        return self.width // self.heads


class TextFrame(Strict):
    """The tokens around a text, as the model has seen them in training."""

    source_prefix: tuple[int, ...] = ()
    #: `None` is the end symbol
    source_suffix: tuple[int, ...] | None = None
    #: what the decoder has written before the text begins, such as the target language
    prompt: tuple[int, ...] = ()

    def suffix(self, special: SpecialTokens) -> tuple[int, ...]:
        """What follows the text of a source."""
        return (special.end,) if self.source_suffix is None else self.source_suffix


class ModelConfig(Architecture):
    """An encoder-decoder Transformer: its architecture, and what comes from its vocabulary."""

    vocabulary_size: int = Field(32000, ge=1, le=1 << 24)
    #: only where source and target have vocabularies of their own
    target_vocabulary_size: int | None = Field(None, ge=1, le=1 << 24)
    special: SpecialTokens = SpecialTokens()
    frame: TextFrame = TextFrame()

    @model_validator(mode="after")
    def _fits_the_vocabulary(self) -> Self:
        if self.share_embeddings and self.target_vocabulary_size not in (
            None,
            self.vocabulary_size,
        ):
            raise ValueError("share_embeddings needs one vocabulary for source and target")
        smallest = min(self.vocabulary_size, self.target_size)
        if not all(0 <= token < smallest for _, token in self.special):
            raise ValueError(f"a special token is outside the vocabulary of {smallest}")
        for side, tokens, size in (
            ("source", (*self.frame.source_prefix, *self.source_suffix), self.vocabulary_size),
            ("target", self.frame.prompt, self.target_size),
        ):
            if not all(0 <= token < size for token in tokens):
                raise ValueError(f"a token of the frame is outside the {side} vocabulary of {size}")
        return self

    @model_serializer(mode="wrap")
    def _sizes_first(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As in every file so far: the vocabulary's sizes, the architecture, the special tokens.

        Settings that came later are written where they differ from their default. So models that
        do without them can still be read by versions that do not know them.
        """
        content = write(self)
        names = [*_SIZES, *(name for name in content if name not in _SIZES)]
        return {
            name: content[name]
            for name in names
            if name in content
            and (name not in _LATER or getattr(self, name) != type(self).model_fields[name].default)
        }

    @property
    def target_size(self) -> int:
        """Words that the decoder can produce."""
        return self.target_vocabulary_size or self.vocabulary_size

    @property
    def source_suffix(self) -> tuple[int, ...]:
        """What follows the text of a source."""
        return self.frame.suffix(self.special)

    def framed(self, source: Sequence[int] | NDArray[np.int64]) -> list[int]:
        """The ids of a source text with what stands around it."""
        return [*self.frame.source_prefix, *source, *self.source_suffix]

    def unframed(self, source: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids of a source text, without what stands around it."""
        return source[len(self.frame.source_prefix) : len(source) - len(self.source_suffix)]

    @property
    def longest_source(self) -> int | None:
        """Tokens of text that a source may have; `None` if positions set no limit."""
        if not self.learned_positions:
            return None
        return self.learned_positions - len(self.framed([]))

    @property
    def longest_target(self) -> int | None:
        """Tokens of text that a target may have, its end symbol excluded."""
        if not self.learned_positions:
            return None
        return self.learned_positions - len(self.frame.prompt) - 1


#: Settings that a graph does not depend on.
NOT_IN_GRAPHS = {"dropout", "frame"}
#: Settings that models have not always had.
_LATER = {
    "sinusoid_precision",
    "position_offset",
    "learned_positions",
    "embedding_norm",
    "norm_epsilon",
    "frame",
}
#: Settings that recipes have not always had; a recipe that does not set them is written as before.
LATER_SETTINGS = frozenset({"sinusoid", *_LATER})
_SIZES = ("vocabulary_size", "target_vocabulary_size")


#: Named shapes; the vocabulary's size comes from the data.
PRESETS: dict[str, dict[str, Any]] = {
    "base": {},
    "small": dict(encoder_layers=3, decoder_layers=3, width=256, heads=4, feed_forward=1024),
    "tiny": dict(encoder_layers=2, decoder_layers=2, width=64, heads=4, feed_forward=256),
}


def preset(name: str, **changes: Any) -> ModelConfig:
    """The preset `name` with some settings changed, e.g. `preset("small", decoder_layers=1)`."""
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name!r}; {nearest(name, PRESETS)}")
    return ModelConfig(**{**PRESETS[name], **changes})
