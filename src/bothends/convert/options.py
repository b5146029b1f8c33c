"""Options of a converter: facts that the model's files do not hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ConvertOptions:
    #: of a multilingual model, in its own spelling: `en`, `eng_Latn`, `en_XX`
    source_language: str | None = None
    target_language: str | None = None
    #: SentencePiece models of a CTranslate2 model whose directory has none
    source_sentencepiece: Path | None = None
    target_sentencepiece: Path | None = None
    #: whether a source ends with the end symbol, where CTranslate2's settings do not say so
    source_end: bool | None = None
    #: a token that a CTranslate2 model is given before the translation, such as its language
    target_prefix: str | None = None
