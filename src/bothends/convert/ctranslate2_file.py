"""CTranslate2's `model.bin`: named arrays in a small binary format, read and written here.

    u32 version, string name, u32 revision
    u32 count, then for each variable: string name, u8 rank, u32 for each dimension,
        u8 type, u32 bytes, the bytes        (until version 3: u8 bytes of an item, u32 items)
    u32 count, then for each alias: string alias, string name of the variable     (from version 3)

A string is a u16 length that counts the zero byte at its end. Numbers are little-endian. A matrix
in int8 or int16 has a variable beside it, `..._scale`: the stored integers are the weights times
the scale, of each row or of all of them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bothends.errors import BothendsError

VERSION = 6
_TYPES = ("<f4", "|i1", "<i2", "<i4", "<f2", "bfloat16")
#: Of a variable; NumPy has a limit, too.
_MOST_DIMENSIONS = 8
#: Before version 4, only the size of an item is known.
_OLD_TYPES = {4: "<f4", 2: "<i2", 1: "|i1"}


@dataclass(frozen=True)
class ModelFile:
    """The content of a `model.bin`."""

    path: Path
    name: str
    revision: int
    variables: Mapping[str, NDArray[Any]]

    @classmethod
    def read(cls, path: Path) -> ModelFile:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise BothendsError(f"{path.parent}: {path.name} is missing") from None
        except OSError as error:
            raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
        reader = _Reader(path, content)
        version = reader.number("I")
        if not 2 <= version <= VERSION:
            raise BothendsError(
                f"{path}: not a CTranslate2 model, or of a version that is not supported "
                f"({version}; supported are 2 to {VERSION})"
            )
        name, revision = reader.string(), reader.number("I")
        variables = {}
        for _ in range(reader.number("I")):
            variable = reader.string()
            variables[variable] = reader.array(variable, version)
        if version >= 3:
            for _ in range(reader.number("I")):
                alias, original = reader.string(), reader.string()
                if original not in variables:
                    raise BothendsError(f"{path}: damaged, {alias} is an alias of nothing")
                variables[alias] = variables[original]
                if f"{original}_scale" in variables:  # shared with it, without a word
                    variables[f"{alias}_scale"] = variables[f"{original}_scale"]
        return cls(path, name, revision, variables)

    def floats(self, name: str) -> NDArray[np.float32]:
        """A variable in float32; integers are divided by their scale."""
        array = self.variables[name]
        if array.dtype.kind == "f":
            return array.astype(np.float32)
        scale = self.variables.get(f"{name}_scale")
        if scale is None:
            raise BothendsError(f"{self.path}: {name} is in {array.dtype} and has no scale")
        rows = np.asarray(scale, np.float32).reshape(-1, *[1] * (array.ndim - 1))
        if len(rows) not in (1, len(array)):
            raise BothendsError(f"{self.path}: {name} has {len(array)} rows and {len(rows)} scales")
        return (array / rows).astype(np.float32)


class _Reader:
    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        self._content = content
        self._place = 0

    def _take(self, size: int) -> bytes:
        end = self._place + size
        if end > len(self._content):
            raise BothendsError(f"{self.path}: damaged or truncated, it ends within a variable")
        part = self._content[self._place : end]
        self._place = end
        return part

    def number(self, kind: str) -> int:
        value: int = struct.unpack(f"<{kind}", self._take(struct.calcsize(f"<{kind}")))[0]
        return value

    def string(self) -> str:
        text = self._take(self.number("H"))
        try:
            return text.removesuffix(b"\0").decode()
        except UnicodeDecodeError:
            raise BothendsError(f"{self.path}: damaged, a name is not text") from None

    def array(self, name: str, version: int) -> NDArray[Any]:
        shape = [self.number("I") for _ in range(self.number("B"))]
        if version >= 4:
            number, size = self.number("B"), self.number("I")
            kind = _TYPES[number] if number < len(_TYPES) else None
        else:
            item = self.number("B")
            kind, size = _OLD_TYPES.get(item), item * self.number("I")
        if kind is None:
            raise BothendsError(f"{self.path}: {name} has a type that is not supported")
        stored_kind = np.dtype("<u2" if kind == "bfloat16" else kind)
        if size % stored_kind.itemsize or len(shape) > _MOST_DIMENSIONS:
            raise BothendsError(f"{self.path}: damaged, {name} has no sensible shape")
        stored = np.frombuffer(self._take(size), stored_kind)
        if kind == "bfloat16":
            stored = (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
        expected = 1
        for length in shape:
            expected *= length
        if stored.size != expected:
            raise BothendsError(f"{self.path}: {name} has {stored.size} items, not {expected}")
        return stored.reshape(shape)


def file_content(name: str, revision: int, variables: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a `model.bin`. The same array under two names is stored once."""
    parts = [struct.pack("<I", VERSION), _string(name), struct.pack("<I", revision)]
    first: dict[int, str] = {}
    aliases = {}
    for variable in sorted(variables):
        original = first.setdefault(id(variables[variable]), variable)
        if original != variable:
            aliases[variable] = original
    stored = [variable for variable in sorted(variables) if variable not in aliases]
    parts.append(struct.pack("<I", len(stored)))
    for variable in stored:
        array = variables[variable]
        kind = _TYPES.index(array.dtype.newbyteorder("<").str)
        parts += [_string(variable), struct.pack("<B", array.ndim)]
        parts += [struct.pack("<I", length) for length in array.shape]
        parts += [struct.pack("<BI", kind, array.nbytes), array.tobytes()]
    parts.append(struct.pack("<I", len(aliases)))
    parts += [_string(alias) + _string(original) for alias, original in aliases.items()]
    return b"".join(parts)


def _string(text: str) -> bytes:
    encoded = text.encode() + b"\0"
    return struct.pack("<H", len(encoded)) + encoded
