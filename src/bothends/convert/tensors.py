"""The tensors of a Hugging Face directory, one at a time: safetensors, or old `.bin` files.

A `.bin` file is a pickle. PyTorch's weights-only loader reads it, which makes tensors and runs
nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bothends.errors import BothendsError
from bothends.model.weights import TensorFile
from bothends.storage.records import parse_json

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"


class ForeignTensors:
    """The weights in a directory, in one file or in several."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory)
        self._safe: dict[str, TensorFile] = {}
        self._pickled: dict[str, NDArray[Any]] = {}
        for name in (SAFETENSORS, PICKLE):
            if files := _files(self.directory, name):
                break
        else:
            raise BothendsError(
                f"{directory}: no weights, neither {SAFETENSORS} nor {PICKLE} is there"
            )
        #: the file that errors name
        self.path = files[0] if len(files) == 1 else self.directory
        for path in files:
            if path.suffix == ".bin":
                self._pickled |= _read_pickle(path)
            else:
                file = TensorFile(path)
                self._safe |= dict.fromkeys(file.names, file)

    def __contains__(self, name: str) -> bool:
        return name in self._safe or name in self._pickled

    def first_of(self, *names: str) -> str:
        """The first of these names that is there."""
        for name in names:
            if name in self:
                return name
        raise BothendsError(f"{self.path}: tensor {' or '.join(names)} is missing")

    def read(self, name: str, shape: tuple[int, ...] | None = None) -> NDArray[np.float32]:
        """A tensor in float32, which must have this shape if one is given."""
        if name in self._pickled:
            array = self._pickled[name]
        elif name in self._safe:
            array = self._safe[name].read(name)
        else:
            raise BothendsError(f"{self.path}: tensor {name} is missing")
        if shape is not None and array.shape != shape:
            raise BothendsError(
                f"{self.path}: tensor {name} has shape {array.shape}, but config.json asks for "
                f"{shape}"
            )
        if array.dtype.kind != "f":
            raise BothendsError(
                f"{self.path}: tensor {name} is in {array.dtype}; supported are float16, bfloat16, "
                "float32 and float64: a quantised model has to be saved in one of them first"
            )
        return finite(self.path, f"tensor {name}", array.astype(np.float32))


def finite(path: Path, name: str, array: NDArray[np.float32]) -> NDArray[np.float32]:
    """The array, if all of it are numbers that can be computed with."""
    if not np.isfinite(array).all():
        raise BothendsError(f"{path}: {name} has values that are infinite or not a number")
    return array


def _files(directory: Path, name: str) -> list[Path]:
    """The files that a model of this name is in: one, or those of an index."""
    path, index = directory / name, directory / f"{name}.index.json"
    if path.is_file():
        return [path]
    if not index.is_file():
        return []
    try:
        names = sorted(set(parse_json(index.read_bytes())["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BothendsError(f"{index}: damaged, not an index of files ({error!r})") from None
    for each in names:
        if not isinstance(each, str) or Path(each).name != each:
            raise BothendsError(f"{index}: {each!r} is not a file of this directory")
        if not (directory / each).is_file():
            raise BothendsError(f"{directory}: {each}, which {index.name} names, is missing")
    return [directory / each for each in names]


def _read_pickle(path: Path) -> dict[str, NDArray[Any]]:
    try:
        import torch
    except ImportError:
        raise BothendsError(
            f"{path}: to read this file, pip install 'bothends[train]', or save the model as "
            "safetensors"
        ) from None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        tensors = {
            name: tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()
            for name, tensor in content.items()
        }
    except Exception as error:  # an unpickler fails in many ways
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        reason = reason.partition(". ")[0]  # what follows is advice for its programmers
        raise BothendsError(f"{path}: damaged, or not only weights ({reason})") from None
    return tensors
