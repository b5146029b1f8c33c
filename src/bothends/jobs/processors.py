"""Kinds of processors: two of one kind compute with the same kernels, and so to the same bit."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

#: What ONNX Runtime, PyTorch and the native engine choose their kernels by, of x86 and of Arm.
_FEATURES = (
    *("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni"),
    *("avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"),
    *("asimd", "asimddp", "fphp", "i8mm", "bf16", "sve", "sve2"),
)


@cache
def processor_kind() -> str:
    """The architecture and the instruction sets that decide kernels, such as `x86_64 avx avx2`."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux: the processor's name has to do
        return " ".join(filter(None, (platform.machine(), platform.processor())))
    return " ".join([platform.machine(), *features_in(text)])


def features_in(cpuinfo: str) -> list[str]:
    """The instruction sets that Linux lists for the first processor."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            there = set(value.split())
            return [feature for feature in _FEATURES if feature in there]
    return []
