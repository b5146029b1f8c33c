"""From a model directory to an engine that runs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, get_args

from bothends.engines.prompt import with_prompt
from bothends.engines.protocol import Engine
from bothends.errors import BothendsError, UsageError, nearest
from bothends.model.directory import WEIGHTS, Description, read_description
from bothends.model.graph_files import DECODER, is_compressed, missing_graphs, stored_graph
from bothends.model.hub import origin, shown

EngineName = Literal["native", "onnx", "torch"]
Precision = Literal["float32", "int8"]


def load_engine(
    name: EngineName,
    directory: Path,
    precision: Precision | None = None,
    device: str | None = None,
    description: Description | None = None,
    cores: int = 1,
) -> Engine[Any]:
    """The engine called `name` for the model in `directory`; pass its description if you have it.

    `native` runs exported int8 models in compiled code, and `onnx` runs exported graphs, both a
    batch on one core; `precision`, if given, must be theirs. A search of `native` that runs alone
    may take as many as `cores`. `torch` runs the weights on `device`, by default the CPU.
    """
    for value, known in ((name, EngineName), (precision, Precision)):
        if value is not None and value not in get_args(known):
            what = "engine" if known is EngineName else "precision"
            raise UsageError(f"unknown {what} {value!r}; {nearest(value, get_args(known))}")
    if name == "torch":
        engine = _load_torch_engine(directory, precision, device or "cpu")
    elif device not in (None, "cpu"):
        raise UsageError(f"the {name} engine runs on the CPU, not on {device}: use torch")
    elif name == "native":
        engine = _load_native_engine(directory, precision, description, cores)
    else:
        engine = _load_onnx_engine(directory, precision, description)
    description = description or read_description(directory)
    return with_prompt(engine, description.model, description.order)


def default_engine(
    directory: Path, precision: Precision | None = None, description: Description | None = None
) -> EngineName:
    """`native` where it is built and the model is in int8 and one that it runs, else `onnx`."""
    from bothends.engines.native import extension

    compiled = extension()
    if compiled is None or precision == "float32":
        return "onnx"
    decoder = stored_graph(directory, DECODER)
    if not is_compressed(decoder):  # only int8 is compressed
        try:
            metadata = compiled.read_metadata(os.fsencode(decoder))
        except ValueError:  # missing or damaged: ONNX Runtime reports it
            return "onnx"
        if metadata.get("precision") != "int8":
            return "onnx"
    from bothends.engines.native.engine import unsupported

    model = (description or read_description(directory)).model
    # A prompt is fed by steps, which a search in one call does not have.
    return "onnx" if model.frame.prompt or unsupported(model) else "native"


def _load_native_engine(
    directory: Path, precision: Precision | None, description: Description | None, cores: int
) -> Engine[Any]:
    if precision not in (None, "int8"):
        raise UsageError(f"the native engine computes in int8, not in {precision}: use onnx")
    _check_exported(directory)
    from bothends.engines.native.engine import NativeEngine

    return NativeEngine.load(directory, description=description, cores=cores)


def _check_exported(directory: Path) -> None:
    if missing := missing_graphs(directory):
        hint = "the model is not complete"
        if name := origin(directory):  # its weights may be there, and were not asked for
            hint = f"it was not exported; `bothends export {name} --output DIR`, then use DIR"
        elif (directory / WEIGHTS).is_file():
            hint = f"write them with `bothends export {directory}`"
        raise BothendsError(f"{shown(directory)}: no {' and no '.join(missing)}; {hint}")


def _load_onnx_engine(
    directory: Path, precision: Precision | None, description: Description | None
) -> Engine[Any]:
    _check_exported(directory)
    from bothends.engines.onnx.engine import OnnxEngine

    engine = OnnxEngine.load(directory, description=description)
    if precision is not None and engine.precision != precision:
        hint = "and it has no weights to export again"
        if name := origin(directory):
            hint = f"try `bothends export {name} --precision {precision} --output DIR`"
        elif (directory / WEIGHTS).is_file():
            hint = f"to change it, `bothends export {directory} --precision {precision}`"
        raise BothendsError(
            f"{shown(directory)}: exported in {engine.precision}, not in {precision}; {hint}"
        )
    return engine


def _load_torch_engine(directory: Path, precision: Precision | None, device: str) -> Engine[Any]:
    if precision not in (None, "float32"):
        raise UsageError(f"the torch engine computes in float32, not in {precision}: use onnx")
    try:
        import torch
    except ImportError:
        raise BothendsError(
            "the torch engine needs PyTorch: pip install 'bothends[train]', or use onnx"
        ) from None
    from bothends.engines.torch import TorchEngine
    from bothends.model.torch.checkpoint import load_model

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where PyTorch has no such backend
        reason = str(error).splitlines()[0] if str(error) else "not available"
        raise UsageError(f"device {device!r}: PyTorch cannot use it ({reason})") from None
    if not (directory / WEIGHTS).is_file():
        raise BothendsError(
            f"{shown(directory)}: the torch engine needs {WEIGHTS}, which is missing; an exported "
            "model runs with native or onnx"
        )
    model, _ = load_model(directory)
    return TorchEngine(model, device)
