"""Whether the matrix products of a training step are in bfloat16.

Weights, sums of their gradients, norms, residual sums, the softmax over the vocabulary and the
optimiser are in float32 either way. A GPU is several times faster for it, and so is a CPU with
units for such products (AMX); other CPUs are slower.
"""

from __future__ import annotations

import subprocess
import sys

import torch

from bothends.errors import BothendsError

_PRODUCT = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); torch.mm(x, x)"


def trains_in_bfloat16(precision: str, device: torch.device) -> bool:
    """What a recipe's `precision` means on a device."""
    if precision == "auto":
        return device.type == "cuda"
    if precision == "bfloat16" and device.type == "cpu":
        _check_cpu()
    return precision == "bfloat16"


def _check_cpu() -> None:
    """Try a product in a process of its own: under some virtual machines it is no instruction.

    They offer AMX and withhold how large its tiles are, and PyTorch's products die of it.
    """
    tried = subprocess.run([sys.executable, "-c", _PRODUCT], capture_output=True)
    if tried.returncode:
        raise BothendsError(
            "precision: PyTorch cannot multiply in bfloat16 on this machine; set precision=float32"
        )
