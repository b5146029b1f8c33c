"""A model of ours in the format of another library, so that nobody is locked in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bothends.convert.to_ctranslate2 import write_ctranslate2
from bothends.convert.to_marian import write_marian
from bothends.errors import BothendsError
from bothends.files import new_directory
from bothends.model.directory import read_description
from bothends.model.weights import in_float32, read_weights
from bothends.order import GenerationOrder
from bothends.text.vocabulary import Vocabularies

Format = Literal["marian", "ctranslate2"]


def export_foreign(directory: Path, to: Format, output: Path) -> None:
    """Write the 1x1 model in `directory` for another library to `output`."""
    description = read_description(directory)
    if description.order != GenerationOrder():
        raise BothendsError(
            f"{directory}: its order is {description.order}, and {to} generates from left to "
            "right: only 1x1 models can be converted to it"
        )
    weights = in_float32(read_weights(directory, description))
    vocabularies = Vocabularies.load(directory, description.model.special)
    writers = {"marian": write_marian, "ctranslate2": write_ctranslate2}
    with new_directory(output) as scratch:
        writers[to](scratch, description, weights, vocabularies)
