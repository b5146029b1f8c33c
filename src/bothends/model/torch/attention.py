"""Scaled dot-product attention: PyTorch's, and one for training on a CPU, where that is faster.

PyTorch's fast CPU kernel knows no dropout, and its general path copies every operand and draws its
random numbers slowly; in bfloat16 the gradient of the fast kernel takes ten times as long as its
result. The function here has its gradient written out, so that each of its six small products reads
its operands as they are and the softmax works in place.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from bothends.model.torch.dropout import dropout_mask


def attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, dropout: float) -> Tensor:
    """Attend from (B, H, L, d) to (B, H, K, d) where `mask`, broadcast to (B, H, L, K), is True."""
    learns_in_bfloat16 = query.dtype == torch.bfloat16 and torch.is_grad_enabled()
    if query.device.type != "cpu" or not (dropout or learns_in_bfloat16):
        return F.scaled_dot_product_attention(query, keys, values, mask, dropout)
    attended = _Attention.apply(query, keys, values, mask, dropout)  # type: ignore[no-untyped-call]
    return cast(Tensor, attended)


class _Attention(Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, dropout: float
    ) -> Tensor:
        scale = query.shape[3] ** -0.5
        shape = (*query.shape[:3], keys.shape[2])  # (B, H, L, K)
        # (B, H, L, d) -> (B * H, L, d); a copy, because heads lie side by side in a projection
        query, keys, values = (x.reshape(-1, *x.shape[2:]) for x in (query, keys, values))
        weights = torch.bmm(query, keys.transpose(1, 2)).view(shape)
        if weights.dtype == torch.bfloat16:
            weights = weights.float()  # a softmax over few numbers is slow in bfloat16
        forbidden = torch.zeros(mask.shape, dtype=weights.dtype).masked_fill_(~mask, -torch.inf)
        torch.add(forbidden, weights, alpha=scale, out=weights)
        torch.softmax(weights, -1, out=weights)
        kept = dropout_mask(weights, dropout) if dropout else None
        dropped = weights if kept is None else weights * kept
        dropped = dropped.view(-1, *shape[2:]).to(values.dtype)
        ctx.save_for_backward(query, keys, values, weights, kept, dropped)
        ctx.scale = scale
        return torch.bmm(dropped, values).view(*shape[:3], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, values, weights, kept, dropped = ctx.saved_tensors
        heads = weights.shape[:2]
        grad = grad.reshape(-1, *grad.shape[2:])  # (B, H, L, d) -> (B * H, L, d)
        d_values = torch.bmm(dropped.transpose(1, 2), grad)
        d_weights = torch.bmm(grad, values.transpose(1, 2)).view(weights.shape)
        d_weights = d_weights.to(weights.dtype)
        if kept is not None:
            d_weights.mul_(kept)
        d_scores = torch._softmax_backward_data(d_weights, weights, -1, weights.dtype)
        d_scores = d_scores.mul_(ctx.scale).view_as(dropped).to(dropped.dtype)
        d_query = torch.bmm(d_scores, keys)
        d_keys = torch.bmm(d_scores.transpose(1, 2), query)
        # (B * H, L, d) -> (B, H, L, d)
        gradients = (d.view(*heads, *d.shape[1:]) for d in (d_query, d_keys, d_values))
        return (*gradients, None, None)
