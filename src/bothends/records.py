"""Values that come from files: strict, versioned, and with one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from bothends.errors import BothendsError


class Strict(BaseModel):
    """A value object: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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


def first_problem(error: ValidationError) -> str:
    """The first complaint of a pydantic validation, in one line."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
