"""A linear layer that is fast in bfloat16 on a CPU.

oneDNN, which multiplies for PyTorch there, compiles a program for every new shape, and takes as
long for it as for a product or two. There are almost as many sizes as batches. So rows are padded
with zeros to a multiple of 64, in the pass that converts them to bfloat16, and a few shapes come
again and again. Everywhere else this is PyTorch's layer.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

_MULTIPLE = 64


class Linear(nn.Linear):
    """A linear layer with a bias."""

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
            return super().forward(x)
        return cast(Tensor, _PaddedLinear.apply(x, self.weight, self.bias))  # type: ignore[no-untyped-call]


def pad_rows(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows (n, D) in another precision, and rows of zeros up to a whole multiple."""
    count = x.shape[0]
    if not count % _MULTIPLE:
        return x.to(dtype)
    padded = x.new_empty((-(-count // _MULTIPLE) * _MULTIPLE, x.shape[1]), dtype=dtype)
    padded[:count] = x
    padded[count:] = 0
    return padded


class _PaddedLinear(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        dtype = torch.get_autocast_dtype("cpu")
        rows = x.reshape(-1, x.shape[-1])
        padded, matrix = pad_rows(rows, dtype), weight.to(dtype)
        ctx.save_for_backward(padded, matrix)
        ctx.shape, ctx.dtype = x.shape, x.dtype
        product = torch.addmm(bias.to(dtype), padded, matrix.t())
        # Without the padding, and no view of it, which activations could not change in place.
        product.resize_(rows.shape[0], matrix.shape[0])
        return product.view(*x.shape[:-1], -1) if x.dim() > 2 else product

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        padded, matrix = ctx.saved_tensors
        grad = pad_rows(grad.reshape(-1, grad.shape[-1]), padded.dtype)
        count = ctx.shape[:-1].numel()
        d_x = torch.mm(grad, matrix)[:count].to(ctx.dtype).view(ctx.shape)
        # A sum over rows; `sum` would first copy all of them to float32.
        d_bias = torch.mm(grad.new_ones(1, len(grad)), grad).view(-1)
        return d_x, torch.mm(grad.t(), padded).float(), d_bias.float()
