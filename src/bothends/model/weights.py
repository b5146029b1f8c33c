"""The weights of a model directory as NumPy arrays, checked. One reader for everybody.

The format is safetensors: a table of contents in JSON, and the bytes of every tensor. Reading it
runs no code, needs no PyTorch, and can take one tensor at a time. Nothing is guessed: the tensors
in the file are those that `config.json` asks for, by name, shape and one precision, or there is a
one-line error that names the first one that is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.model.config import ModelConfig
from bothends.model.directory import CONFIG, WEIGHTS, Description
from bothends.model.spec import Network
from bothends.order import GenerationOrder
from bothends.storage.digests import check_file
from bothends.storage.records import parse_json

Weights = dict[str, NDArray[np.float32]]

#: NumPy's type for each of the format's that a weight may have. It has none for bfloat16.
_TYPES: dict[str, str] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}
#: No table of contents is longer; a length beyond it is that of another kind of file.
_LONGEST_HEADER = 100_000_000


class TensorFile:
    """A file of tensors that are read one by one."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        try:
            self._bytes: NDArray[np.uint8] = np.memmap(self.path, np.uint8, "r")
            self._entries = self._read_header()
        except FileNotFoundError:
            raise BothendsError(
                f"{self.path.parent}: no weights, {self.path.name} is missing"
            ) from None
        except (OSError, ValueError) as error:
            raise BothendsError(f"{self.path}: damaged, not a file of weights ({error})") from None

    def _read_header(self) -> dict[str, tuple[str, tuple[int, ...], int, int]]:
        """Type, shape, first byte and end of each tensor; a ValueError if the file is damaged."""
        if len(self._bytes) < 8:
            raise ValueError("shorter than its header")
        length = int.from_bytes(self._bytes[:8].tobytes(), "little")
        if length > min(len(self._bytes) - 8, _LONGEST_HEADER):
            raise ValueError("shorter than its header")
        header = parse_json(self._bytes[8 : 8 + length].tobytes())
        if not isinstance(header, dict):
            raise ValueError("its header is no table of contents")
        header.pop("__metadata__", None)
        return {name: self._entry(name, entry, 8 + length) for name, entry in header.items()}

    def _entry(self, name: str, entry: Any, start: int) -> tuple[str, tuple[int, ...], int, int]:
        try:
            kind, shape, (first, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"its entry for tensor {name} is damaged") from None
        numbers = [*shape, first, end] if isinstance(shape, list) else [None]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"its entry for tensor {name} is damaged")
        if kind not in _TYPES:
            raise ValueError(f"tensor {name} has the unknown type {kind}")
        size = np.dtype(_TYPES[kind]).itemsize
        for length in shape:
            size *= length
        if end - first != size:
            raise ValueError(f"tensor {name} has {end - first} bytes, and its shape {size}")
        if start + end > len(self._bytes):
            raise ValueError(f"ends within tensor {name}")
        return kind, tuple(shape), start + first, start + end

    @property
    def names(self) -> list[str]:
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name][1]

    def precision(self, name: str) -> str:
        """The type of a tensor in NumPy's words, `float32` for one; or `bfloat16`."""
        kind = self._entries[name][0]
        return "bfloat16" if kind == "BF16" else np.dtype(_TYPES[kind]).name

    def read(self, name: str) -> NDArray[Any]:
        """A tensor in its own precision; bfloat16 comes as float32, which holds it exactly."""
        if name not in self._entries:
            raise BothendsError(f"{self.path}: tensor {name} is missing")
        kind, shape, first, end = self._entries[name]
        array: NDArray[Any] = np.frombuffer(self._bytes[first:end].tobytes(), _TYPES[kind])
        if kind == "BF16":
            array = (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return array.reshape(shape).copy()  # of its own, and writable


def open_weights(directory: Path, description: Description) -> TensorFile:
    """The file of weights in `directory`, which has exactly the tensors of the model described."""
    check_file(Path(directory) / WEIGHTS)
    file = TensorFile(Path(directory) / WEIGHTS)
    expected = weight_shapes(description.model, description.order)
    _check_names(file.path, expected, dict.fromkeys(file.names))
    for name in file.names:
        if file.shape(name) != expected[name]:
            raise BothendsError(
                f"{file.path}: tensor {name} has shape {file.shape(name)}, "
                f"but {CONFIG} asks for {expected[name]}"
            )
    precisions = sorted({file.precision(name) for name in file.names})
    if len(precisions) > 1 or "float" not in precisions[0]:
        raise BothendsError(
            f"{file.path}: expected tensors of one floating-point type, "
            f"found {', '.join(precisions)}"
        )
    return file


def read_weights(directory: Path, description: Description) -> dict[str, NDArray[np.floating]]:
    """The tensors in `directory`, in the precision in which they were saved."""
    file = open_weights(directory, description)
    return {name: file.read(name) for name in file.names}


def write_weights(directory: Path, weights: Mapping[str, NDArray[np.floating]]) -> None:
    """Write the file of weights, whole or not at all."""
    try:
        from safetensors.numpy import save
    except ImportError:
        raise BothendsError(f"{directory}: to write weights, pip install safetensors") from None
    contiguous = {name: np.ascontiguousarray(array) for name, array in weights.items()}
    write_atomically(Path(directory) / WEIGHTS, save(contiguous, metadata={"format": "pt"}))


def weight_shapes(config: ModelConfig, order: GenerationOrder) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor of a network."""
    return {tensor.name: tensor.shape for tensor in Network.of(config, order).tensors()}


def in_float32(weights: Mapping[str, NDArray[np.floating]]) -> Weights:
    """The weights in the precision that runtimes compute in."""
    return {name: np.asarray(array, np.float32) for name, array in weights.items()}


def _check_names(path: Path, expected: Mapping[str, object], found: Mapping[str, object]) -> None:
    for problem, names in (
        ("is missing", [name for name in expected if name not in found]),
        (f"is not one that {CONFIG} asks for", sorted(found.keys() - expected.keys())),
    ):
        if names:
            more = f" ({len(names)} such tensors)" if len(names) > 1 else ""
            raise BothendsError(f"{path}: tensor {names[0]} {problem}{more}")
