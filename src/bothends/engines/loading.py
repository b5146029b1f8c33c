"""From a model directory to an engine that runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from bothends.engines.protocol import Engine
from bothends.errors import BothendsError, UsageError
from bothends.model.directory import DECODER, ENCODER, WEIGHTS

EngineName = Literal["onnx", "torch"]
Precision = Literal["float32", "int8"]


def load_onnx_engine(directory: Path, precision: Precision | None = None) -> Engine[Any]:
    """The exported graphs, each run on one core. `precision`, if given, must be theirs."""
    missing = [name for name in (ENCODER, DECODER) if not (directory / name).is_file()]
    if missing:
        hint = (
            f"write them with `bothends export {directory}`"
            if (directory / WEIGHTS).is_file()
            else "the model is not complete"
        )
        raise BothendsError(f"{directory}: no {' and no '.join(missing)}; {hint}")
    from bothends.engines.onnx_engine import OnnxEngine

    engine = OnnxEngine.load(directory)
    if precision is not None and engine.precision != precision:
        raise BothendsError(
            f"{directory}: exported in {engine.precision}, not in {precision}; "
            f"to change it, `bothends export {directory} --precision {precision}`"
        )
    return engine


def load_torch_engine(
    directory: Path, precision: Precision | None = None, threads: int | None = None
) -> Engine[Any]:
    """The model's weights in PyTorch, on a GPU where there is one."""
    if precision not in (None, "float32"):
        raise UsageError(f"the torch engine computes in float32, not in {precision}: use onnx")
    try:
        import torch
    except ImportError:
        raise BothendsError(
            "the torch engine needs PyTorch: pip install 'bothends[train]', or use onnx"
        ) from None
    from bothends.engines.torch_engine import TorchEngine
    from bothends.model.checkpoint import load_model

    if threads is not None:
        torch.set_num_threads(threads)
    model, _ = load_model(directory)
    return TorchEngine(model, "cuda" if torch.cuda.is_available() else "cpu")
