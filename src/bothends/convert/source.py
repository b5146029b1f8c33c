"""What a user hands over: which kind of model it is, and who converts it."""

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
    try:
        return _convert(source, options)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A foreign file can be wrong in more ways than a reader can name: a setting that is not a
        # number, a table without rows. What was said about it is still of use.
        raise BothendsError(
            f"{source}: damaged, cannot be converted ({type(error).__name__}: {error})"
        ) from error


def _convert(source: Path, options: ConvertOptions) -> ConvertedModel:
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
