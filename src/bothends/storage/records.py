"""Values read from files: strict, versioned, with errors of one line.

JSON is read here, YAML in `yaml_records`, and neither anywhere else, since both can be written to
bring a reader down: a hundred thousand brackets, an alias to itself, ten lines of aliases that
stand for a billion values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bothends.errors import BothendsError

#: Levels of brackets in each other. Ours have four or five, and Python's limit is some hundreds.
DEEPEST = 50
#: Bytes of a JSON file: the manifest of half a million shards.
LARGEST_JSON = 64 << 20
#: Bits of a whole number. Python cannot even print one of some ten thousand.
_LONGEST_NUMBER = 128


def read_bounded(path: Path, most: int = LARGEST_JSON) -> bytes:
    """The content of a file; an error if it is larger than `most` bytes."""
    with open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise BothendsError(f"{path}: more than {most:,} bytes; expected a small text file")
    return content


def parse_json(text: bytes, *, nul: bool = False) -> Any:
    """The value of a JSON text, or a ValueError."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"brackets more than {DEEPEST} levels deep") from None
    except UnicodeDecodeError as error:  # which carries all of the text
        raise ValueError(f"byte {error.start} is not {error.encoding}") from None
    check_value(value, most_values=len(text), nul=nul)
    return value


def read_foreign_json(path: Path) -> Any:
    """The value of another library's JSON file, whose tokens may be any text; or a ValueError."""
    return parse_json(read_bounded(path, LARGEST_JSON), nul=True)


def parse_versioned(text: bytes, path: object, newest: int) -> dict[str, Any]:
    """The JSON object of a file that names the version of its format; a ValueError if it is none.

    A version after `newest` is an error of its own: nothing is wrong with the file.
    """
    content = parse_json(text)
    if not isinstance(content, dict) or not isinstance(content.get("format_version"), int):
        raise ValueError("no format_version")
    version = content["format_version"]
    if version > newest:
        raise BothendsError(
            f"{path}: format version {version}, but this bothends reads up to {newest}; "
            "a newer bothends is needed"
        )
    return content


def check_value(value: Any, most_values: int, nul: bool = False) -> None:
    """Raise a ValueError for a value that is unsafe to print or to work with."""
    # Not recursive, so that nothing is too deep for it; what refers to itself has no end of levels.
    waiting, count = [(value, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} levels deep")
        if count > most_values:
            raise ValueError(f"aliases that stand for more than {most_values:,} values")
        if isinstance(value, dict):
            waiting += ((key, depth + 1) for key in value)
            waiting += ((inner, depth + 1) for inner in value.values())
        elif isinstance(value, (list, tuple)):
            waiting += ((inner, depth + 1) for inner in value)
        elif isinstance(value, int):
            if value.bit_length() > _LONGEST_NUMBER:
                raise ValueError(f"a number of more than {_LONGEST_NUMBER} bits")
        elif isinstance(value, str):
            if "\0" in value and not nul:
                raise ValueError("a text with a NUL in it")
            if not value.isascii():
                try:
                    value.encode()
                except UnicodeEncodeError:
                    raise ValueError("a text with half a surrogate pair") from None
