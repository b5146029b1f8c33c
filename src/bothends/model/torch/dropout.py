"""Dropout that costs little on a CPU.

PyTorch draws one random number per element from a generator that takes seven nanoseconds for it: a
sixth of a training step. Here a faster generator fills a buffer with random bits, 16 of them decide
about an element, and the mask is applied in the same pass that adds the residual. The probability
is exact to 1/65536. The seed comes from PyTorch's generator, so that `torch.manual_seed` fixes this
dropout too. Other devices have fast generators of their own, and use PyTorch's dropout.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn
from torch.autograd import Function

_LEVELS = 1 << 16


class CheapDropout(nn.Module):
    """Dropout with probability `p` in training, nothing in evaluation."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.p:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        return x * dropout_mask(x, self.p)

    def add(self, residual: Tensor, x: Tensor) -> Tensor:
        """`residual + dropout(x)`, in one pass."""
        if not self.training or not self.p or x.device.type != "cpu":
            dropped: Tensor = self(x)
            return residual + dropped
        mask = dropout_mask(x, self.p)
        return cast(Tensor, _AddMasked.apply(residual, x, mask))  # type: ignore[no-untyped-call]


def dropout_mask(like: Tensor, p: float) -> Tensor:
    """A factor for every element of `like`: 0 with probability `p`, else `1 / (1 - p)`."""
    seed = int(torch.empty((), dtype=torch.int64).random_())
    count = like.numel()
    # Each 64-bit number is four of 16 bits; which byte comes first does not matter.
    bits = np.random.SFC64(seed).random_raw(-(-count // 4)).view(np.int16)[:count]
    dropped = round(p * _LEVELS)
    mask = torch.empty(like.shape, dtype=like.dtype)
    kept = torch.from_numpy(bits).view(like.shape)
    torch.ge(kept, dropped - _LEVELS // 2, out=mask)
    return mask.mul_(_LEVELS / (_LEVELS - dropped))


class _AddMasked(Function):
    """`residual + x * mask`, where the mask takes no gradient.

    Where `x` is in bfloat16, so is its product with the mask; the sum has the residual's precision.
    """

    @staticmethod
    def forward(ctx: Any, residual: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        if x.dtype != residual.dtype:
            return residual + x * mask  # `addcmul` would convert both factors first
        return torch.addcmul(residual, x, mask)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (mask,) = ctx.saved_tensors
        if mask.dtype != grad.dtype:
            return grad, grad.to(mask.dtype).mul_(mask), None
        return grad, grad * mask, None
