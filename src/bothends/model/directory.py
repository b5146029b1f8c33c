"""A model is a directory: what is in it, and how its description is read and written.

    config.json            architecture, order, languages or task, format version, provenance
    sentencepiece.model    the vocabulary (or sentencepiece.source.model and .target.model); a
                           converted model has vocabulary.json and vocabulary.model
    model.safetensors      weights, for training
    encoder.onnx, decoder.onnx   graphs, for the runtime; compressed, their names end in .gz
    shortlist.bin          which target words a source word may become, if that was learned
    digests.json           size and SHA-256 of all these
    README.md              the model card, which anybody may edit

No PyTorch here: the runtime reads these too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.model.config import ModelConfig
from bothends.model.graph_files import COMPRESSED_GRAPHS, GRAPHS
from bothends.model.hub import origin
from bothends.model.lengths import LengthStatistics
from bothends.model.shortlist import SHORTLIST
from bothends.order import GenerationOrder
from bothends.storage.checked import Checked, CheckError
from bothends.storage.digests import check_content, record_digests
from bothends.storage.records import parse_versioned, read_bounded
from bothends.text.vocabulary import (
    FOREIGN_FILES,
    SOURCE_VOCABULARY,
    TARGET_VOCABULARY,
    VOCABULARY,
)

FORMAT_VERSION = 1
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
CARD = "README.md"
VOCABULARIES = (VOCABULARY, SOURCE_VOCABULARY, TARGET_VOCABULARY, *FOREIGN_FILES)
#: What a model is made of, as far as it is there; `digests.json` describes these.
FILES = (CONFIG, *VOCABULARIES, WEIGHTS, *GRAPHS, *COMPRESSED_GRAPHS, SHORTLIST)


@dataclass(frozen=True, kw_only=True)
class Description(Checked):
    """The content of a model's `config.json`."""

    format_version: int = FORMAT_VERSION
    order: GenerationOrder = field(default_factory=GenerationOrder)
    model: ModelConfig
    task: str = "translation"
    source_language: str | None = None
    target_language: str | None = None
    #: of the text that the model learned from
    lengths: LengthStatistics | None = None
    #: where the weights come from: data, recipe, commit, parents
    provenance: dict[str, Any] = field(default_factory=dict)

    def dump(self) -> dict[str, Any]:
        """Without lengths where they are unknown, as models were described before they had any."""
        content = super().dump()
        if self.lengths is None:
            del content["lengths"]
        return content


def read_description(directory: Path) -> Description:
    """The description of the model in `directory`, or an error that says what is wrong with it.

    Of a model in the Hub's cache, the provenance says which commit it is.
    """
    path = Path(directory) / CONFIG
    if not Path(directory).is_dir():
        raise BothendsError(f"{directory}: no such model directory")
    if not path.is_file():
        raise BothendsError(f"{directory}: not a model directory, {CONFIG} is missing")
    try:
        text = read_bounded(path)
        content = parse_versioned(text, path, FORMAT_VERSION)
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise BothendsError(f"{path}: damaged, not a model's configuration ({error})") from None
    try:
        description = Description.read(content)
    except CheckError as error:
        raise BothendsError(f"{path}: {error}") from None
    check_content(path, text)
    downloaded_from = origin(directory)
    if downloaded_from is not None:
        known = {**description.provenance, "downloaded_from": str(downloaded_from)}
        description = replace(description, provenance=known)
    return description


def write_description(directory: Path, description: Description) -> None:
    """Write `config.json`, whole or not at all."""
    text = json.dumps(description.dump(), indent=2, ensure_ascii=False) + "\n"
    write_atomically(Path(directory) / CONFIG, text.encode())


def record_model(directory: Path, written: Iterable[str]) -> None:
    """Write down the digests of a model's files, of which those `written` are new."""
    there = [name for name in FILES if (Path(directory) / name).is_file()]
    record_digests(directory, there, written)
