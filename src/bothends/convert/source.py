"""Which kind of model a directory or package holds, and which converter reads it."""

from __future__ import annotations

from pathlib import Path

from bothends.convert.argos import convert_argos
from bothends.convert.ctranslate2 import MODEL, convert_ctranslate2
from bothends.convert.huggingface import convert_huggingface
from bothends.convert.options import ConvertOptions
from bothends.convert.result import ConvertedModel
from bothends.errors import BothendsError

_SUPPORTED = (
    "supported are Hugging Face directories (Marian, BART, mBART, M2M-100, NLLB, Pegasus), "
    "CTranslate2 directories and .argosmodel packages"
)


def convert_model(source: Path, options: ConvertOptions) -> ConvertedModel:
    """The model in a directory or package of another library, as one of ours."""
    if source.is_file() and source.suffix in (".argosmodel", ".zip"):
        return convert_argos(source, options)
    if not source.is_dir():
        what = "not a model" if source.exists() else "no such file or directory"
        raise BothendsError(f"{source}: {what}; {_SUPPORTED}")
    if (source / MODEL).is_file():
        return convert_ctranslate2(source, options)
    if (source / "config.json").is_file():
        return convert_huggingface(source, options)
    raise BothendsError(f"{source}: neither {MODEL} nor config.json is there; {_SUPPORTED}")
