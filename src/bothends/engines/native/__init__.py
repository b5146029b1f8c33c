"""The native engine: an int8 network and the whole search in compiled code (C++ in `csrc/`).

It is optional: an installation without a C++ compiler has none, and ONNX Runtime serves.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def extension() -> Any | None:
    """The compiled module, or None where it was not built or cannot be loaded."""
    try:
        return import_module("bothends.engines.native._native")
    except ImportError:
        return None


def is_built() -> bool:
    return extension() is not None


def instruction_sets() -> list[str]:
    """Names of the instruction sets that the engine can use here, slowest first."""
    compiled = extension()
    return [] if compiled is None else compiled.instruction_sets()


def describe() -> str:
    """One line for `bothends --version`."""
    if not is_built():
        why = "no C++ compiler at installation, or it failed"
        return f"native engine: not built ({why}); ONNX Runtime serves"
    return f"native engine: built, instruction sets {', '.join(instruction_sets())}"
