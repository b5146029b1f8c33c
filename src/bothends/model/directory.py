"""A model is a directory: what is in it, and how its description is read and written.

    config.json            architecture, order, languages or task, format version, provenance
    sentencepiece.model    the vocabulary (or sentencepiece.source.model and .target.model)
    model.safetensors      weights, for training
    encoder.onnx, decoder.onnx   graphs, for the runtime
    README.md              the model card

No PyTorch here: the runtime reads these too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_serializer, field_validator

from bothends.errors import BothendsError, UsageError
from bothends.model.config import ModelConfig, Strict
from bothends.order import GenerationOrder

FORMAT_VERSION = 1
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
ENCODER = "encoder.onnx"
DECODER = "decoder.onnx"
VOCABULARY = "sentencepiece.model"
SOURCE_VOCABULARY = "sentencepiece.source.model"
TARGET_VOCABULARY = "sentencepiece.target.model"
CARD = "README.md"


class Description(Strict):
    """What `config.json` says of a model."""

    format_version: int = FORMAT_VERSION
    order: GenerationOrder = GenerationOrder()
    model: ModelConfig
    task: str = "translation"
    source_language: str | None = None
    target_language: str | None = None
    #: where the weights come from: data, recipe, commit, parents
    provenance: dict[str, Any] = Field(default_factory=dict)

    @field_validator("order", mode="before")
    @classmethod
    def _parse_order(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return GenerationOrder.parse(value)
        except UsageError as error:
            raise ValueError(str(error)) from None  # pydantic says where it stands

    @field_serializer("order")
    def _print_order(self, order: GenerationOrder) -> str:
        return str(order)


def read_description(directory: Path) -> Description:
    """The description of the model in `directory`, or an error that says what is wrong with it."""
    path = Path(directory) / CONFIG
    if not Path(directory).is_dir():
        raise BothendsError(f"{directory}: no such model directory")
    if not path.is_file():
        raise BothendsError(f"{directory}: not a model directory, {CONFIG} is missing")
    try:
        content = parse_versioned(path.read_bytes(), path, FORMAT_VERSION)
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise BothendsError(f"{path}: damaged, not a model's configuration ({error!r})") from None
    try:
        return Description.model_validate(content)
    except ValidationError as error:
        raise BothendsError(f"{path}: {first_problem(error)}") from None


def write_description(directory: Path, description: Description) -> None:
    """Write `config.json`, whole or not at all."""
    text = json.dumps(description.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    write_atomically(Path(directory) / CONFIG, text.encode())


def parse_versioned(text: bytes, path: Path, newest: int) -> dict[str, Any]:
    """The JSON object of a file that names the version of its format; a ValueError if it is none.

    A version after `newest` is an error of its own: nothing is wrong with the file.
    """
    content = json.loads(text)
    if not isinstance(content, dict) or not isinstance(content.get("format_version"), int):
        raise ValueError("no format_version")
    version = content["format_version"]
    if version > newest:
        raise BothendsError(
            f"{path}: format version {version}, but this bothends reads up to {newest}; "
            "a newer bothends is needed"
        )
    return content


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that a reader sees whole or not at all, even if the machine stops."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BothendsError(f"{path}: cannot be written ({error.strerror})") from None


def first_problem(error: ValidationError) -> str:
    """The first complaint of a pydantic validation, in one line."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
