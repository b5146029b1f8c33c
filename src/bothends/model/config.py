"""The shape of the network, as data: validated once, saved with every model. No PyTorch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bothends.errors import UsageError, nearest
from bothends.storage.checked import Bounds, Checked, CheckError
from bothends.text.vocabulary import SpecialTokens

#: Most weights of all layers; more is surely a typing error.
MOST_WEIGHTS = 100_000_000_000

Probability = Annotated[float, Bounds(least=0, below=1)]
Layers = Annotated[int, Bounds(least=1, most=512)]
Words = Annotated[int, Bounds(least=1, most=1 << 24)]


@dataclass(frozen=True, kw_only=True)
class Dropout(Checked):
    """Dropout probabilities, one per kind."""

    #: on the output of each sublayer, before it is added to the residual
    residual: Probability = 0.1
    #: on the attention weights
    attention: Probability = 0.1
    #: inside the feed-forward layer, after the activation
    activation: Probability = 0.0
    #: on the sum of token embedding and position
    embedding: Probability = 0.1


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The settings of a network that a recipe chooses, checked by the classes that inherit them.

    The defaults are the paper's (Transformer base).
    """

    encoder_layers: Layers = 6
    decoder_layers: Layers = 6
    width: Annotated[int, Bounds(least=2, most=1 << 16)] = 512
    heads: Annotated[int, Bounds(least=1, most=1024)] = 8
    feed_forward: Annotated[int, Bounds(least=1, most=1 << 20)] = 2048
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
    position_offset: Annotated[int, Bounds(least=0, most=1 << 20)] = 0
    #: positions with learned vectors, which bound the length of a text; 0 for sinusoids
    learned_positions: Annotated[int, Bounds(least=0, most=1 << 20)] = 0
    #: a norm on the sum of token embedding and position
    embedding_norm: bool = False
    #: what layer norms add to the variance
    norm_epsilon: Annotated[float, Bounds(above=0)] = 1e-5

    def check(self) -> None:
        """Refuse sizes that do not go together."""
        if self.width % self.heads:
            raise CheckError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.width % 2:
            raise CheckError(f"width {self.width} is odd, and a sinusoid needs pairs")
        attentions = self.encoder_layers + 2 * self.decoder_layers
        layers = self.encoder_layers + self.decoder_layers
        weights = self.width * (4 * self.width * attentions + 2 * self.feed_forward * layers)
        if weights > MOST_WEIGHTS:
            raise CheckError(
                f"layers of these sizes have {weights:,} weights; expected at most {MOST_WEIGHTS:,}"
            )

    @property
    def head_width(self) -> int:
        return self.width // self.heads


@dataclass(frozen=True, kw_only=True)
class TextFrame(Checked):
    """The tokens around a text, as the model has seen them in training."""

    source_prefix: tuple[int, ...] = ()
    #: `None` is the end symbol
    source_suffix: tuple[int, ...] | None = None
    #: what the decoder has written before the text begins, such as the target language
    prompt: tuple[int, ...] = ()

    def suffix(self, special: SpecialTokens) -> tuple[int, ...]:
        """What follows the text of a source."""
        return (special.end,) if self.source_suffix is None else self.source_suffix


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Architecture, Checked):
    """An encoder-decoder Transformer: its architecture, and what comes from its vocabulary."""

    vocabulary_size: Words = 32000
    #: only where source and target have vocabularies of their own
    target_vocabulary_size: Words | None = None
    special: SpecialTokens = field(default_factory=SpecialTokens)
    frame: TextFrame = TextFrame()

    def check(self) -> None:
        super().check()
        if self.share_embeddings and self.target_vocabulary_size not in (
            None,
            self.vocabulary_size,
        ):
            raise CheckError("share_embeddings needs one vocabulary for source and target")
        smallest = min(self.vocabulary_size, self.target_size)
        if not all(0 <= token < smallest for token in self.special.ids):
            raise CheckError(f"a special token is outside the vocabulary of {smallest}")
        for side, tokens, size in (
            ("source", (*self.frame.source_prefix, *self.source_suffix), self.vocabulary_size),
            ("target", self.frame.prompt, self.target_size),
        ):
            if not all(0 <= token < size for token in tokens):
                raise CheckError(f"a token of the frame is outside the {side} vocabulary of {size}")

    def dump(self) -> dict[str, Any]:
        """As in every file so far: the vocabulary's sizes, the architecture, the special tokens.

        Settings that came later are written where they differ from their default. So models that
        do without them can still be read by versions that do not know them.
        """
        content = super().dump()
        names = [*_SIZES, *(name for name in content if name not in _SIZES)]
        defaults = {each.name: each.default for each in fields(self)}
        return {
            name: content[name]
            for name in names
            if name not in _LATER or getattr(self, name) != defaults[name]
        }

    def dump_for_graphs(self) -> dict[str, Any]:
        """What an exported graph depends on: not dropout and frame, which may change later."""
        content = self.dump()
        return {name: content[name] for name in content if name not in ("dropout", "frame")}

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
