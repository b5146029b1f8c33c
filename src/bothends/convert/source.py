"""Which kind of model a directory or package holds, and which converter reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bothends.convert.argos import convert_argos
from bothends.convert.ctranslate2 import MODEL, convert_ctranslate2
from bothends.convert.huggingface import convert_huggingface
from bothends.convert.huggingface_config import Settings, read_json
from bothends.convert.options import ConvertOptions
from bothends.convert.result import ConvertedModel
from bothends.errors import BothendsError
from bothends.model.directory import CONFIG
from bothends.model.hub import HubName, download, is_hub_name, origin

_SUPPORTED = (
    "supported are Hugging Face directories (Marian, BART, mBART, M2M-100, NLLB, Pegasus), "
    "CTranslate2 directories and .argosmodel packages"
)
#: What we read of a repository besides weights: settings and all kinds of vocabularies.
_SMALL_FILES = ("*.json", "*.spm", "*.model", "*.txt")
_SAFE_WEIGHTS = "*.safetensors"
#: Weights that are only wanted where there are no safe ones: CTranslate2's own, and PyTorch's.
_OTHER_WEIGHTS = (MODEL, "pytorch_model*.bin")


def convert_model(source: Path, options: ConvertOptions) -> ConvertedModel:
    """The model in a directory, package or repository of another library, as one of ours."""
    try:
        return _convert(source, options)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A foreign file can be wrong in more ways than a reader can name: a setting that is not a
        # number, a table without rows. What was said about it is still of use.
        raise BothendsError(
            f"{source}: damaged, cannot be converted ({type(error).__name__}: {error})"
        ) from error


def _convert(source: Path, options: ConvertOptions) -> ConvertedModel:
    if is_hub_name(source):
        return _convert_repository(HubName.parse(str(source)), options)
    if source.is_file() and source.suffix in (".argosmodel", ".zip"):
        return convert_argos(source, options)
    if not source.is_dir():
        what = "not a model" if source.exists() else "no such file or directory"
        raise BothendsError(f"{source}: {what}; {_SUPPORTED}")
    if (source / MODEL).is_file():
        return convert_ctranslate2(source, options)
    if (source / CONFIG).is_file():
        _check_config(source, str(source))
        return convert_huggingface(source, options)
    raise BothendsError(f"{source}: neither {MODEL} nor {CONFIG} is there; {_SUPPORTED}")


def _convert_repository(name: HubName, options: ConvertOptions) -> ConvertedModel:
    directory = download(name, [CONFIG])
    if (directory / CONFIG).is_file():
        _check_config(directory, str(name))  # before gigabytes are downloaded in vain
    # By its commit: a branch may move between two downloads.
    fixed = HubName(name.repository, directory.name)
    wanted = [*_SMALL_FILES, _SAFE_WEIGHTS]
    directory = download(fixed, wanted)
    if not any(directory.glob(_SAFE_WEIGHTS)):
        directory = download(fixed, [*wanted, *_OTHER_WEIGHTS])
    model = convert_model(directory, options)
    description = model.description
    converted = {**description.provenance["converted_from"], "repository": str(origin(directory))}
    known = {**description.provenance, "converted_from": converted}
    return replace(model, description=replace(description, provenance=known))


def _check_config(directory: Path, name: str) -> None:
    """Complain about a model that is ours already, or of a kind that is not supported."""
    content = read_json(directory / CONFIG)
    if "format_version" in content and "model_type" not in content:
        raise BothendsError(
            f"{name}: a model of bothends already; name it as it is, or add --to for another format"
        )
    if "model_type" in content:
        _ = Settings(directory).family
