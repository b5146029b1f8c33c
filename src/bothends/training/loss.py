"""Label-smoothed cross-entropy of the real target slots, together with the output layer.

The loss is where a training step meets the whole vocabulary, and most of its memory traffic. So the
output product, the softmax and all gradients are computed here in one pass over chunks of rows, and
what happens to logits over a few rows that fit the cache: the logits of a batch never exist as a
whole, and their gradient takes their place.

With hidden states `h`, output matrix `W`, smoothing `e` and vocabulary size `V`, the loss of a slot
with target `y` is

    lse - (1 - e) * logits[y] - e / V * sum(logits),      lse = log(sum(exp(logits)))

and its gradient by the logits is `softmax(logits) - (1 - e) * onehot(y) - e / V`. The sum of the
logits is `h . sum(W)`, and the constant `e / V` adds a constant vector to the gradients, so that
neither needs a pass over the vocabulary.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from bothends.model.torch.linear import pad_rows

#: Rows of a matrix product: large enough for it to be fast, small enough for the memory.
CHUNK = 512
#: Rows whose logits fit the cache of a CPU's core.
FEW = 64


def smoothed_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
) -> Tensor:
    """The summed loss of hidden states `(n, D)` against targets `(n,)`, for an output `(V, D)`."""
    learning = torch.is_grad_enabled()
    loss = _OutputLoss.apply(hidden, weight, bias, targets, smoothing, learning)  # type: ignore[no-untyped-call]
    return cast(Tensor, loss)


class _OutputLoss(Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        learning: bool,
    ) -> Tensor:
        vocabulary = weight.shape[0]
        wanted = [learning and needed for needed in ctx.needs_input_grad]
        # Under autocast the three products are in bfloat16, everything else is not.
        device = hidden.device.type
        autocast = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if autocast else hidden.dtype
        with torch.autocast(device, enabled=False):
            count = len(hidden)
            # On a CPU, bfloat16 has shapes that come again: zeros are rows that nobody learns from.
            rows = pad_rows(hidden, dtype) if autocast and device == "cpu" else hidden.to(dtype)
            matrix = weight.to(dtype)
            mean_weight = weight.mean(0, dtype=torch.float32 if autocast else None)  # (D,)
            exact = mean_weight.dtype
            total = hidden.sum(0, dtype=exact)  # (D,)
            loss = -smoothing * (total @ mean_weight)
            if bias is not None:
                loss -= smoothing * count * bias.mean()
            d_hidden = torch.empty_like(hidden, dtype=exact)
            d_weight = torch.zeros_like(weight) if wanted[1] else None
            d_bias = torch.zeros_like(bias) if bias is not None and wanted[2] else None
            few = FEW if device == "cpu" else CHUNK
            for chunk, words, d_chunk in zip(
                *(torch.split(x, CHUNK) for x in (rows, targets[:, None], d_hidden)), strict=True
            ):
                logits = torch.mm(chunk, matrix.t())  # (c, V)
                real = logits[: len(words)]
                for part, word in zip(*(torch.split(x, few) for x in (real, words)), strict=True):
                    scores = part.to(exact)  # `part` itself, if it is exact
                    if bias is not None:
                        scores += bias
                    loss += _to_gradient(scores, word, smoothing)
                    if d_bias is not None:
                        d_bias += scores.sum(0)
                    if scores.dtype != dtype:
                        part.copy_(scores)
                if any(wanted[:3]):
                    d_chunk.copy_(torch.mm(logits, matrix)[: len(words)])
                if d_weight is not None:
                    _add_product(d_weight, logits.t(), chunk)
            d_hidden -= smoothing * mean_weight
            if d_weight is not None:
                d_weight -= total * (smoothing / vocabulary)
            if d_bias is not None:
                d_bias -= count * smoothing / vocabulary
        ctx.save_for_backward(d_hidden, d_weight, d_bias)
        ctx.dtype = hidden.dtype
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        # The gradients are this node's own: scaled in place, they are handed on without a copy.
        d_weight, d_bias = (d if d is None else d.mul_(grad) for d in (d_weight, d_bias))
        return (d_hidden.mul_(grad).to(ctx.dtype), d_weight, d_bias, None, None, None)


def _to_gradient(logits: Tensor, words: Tensor, smoothing: float) -> Tensor:
    """Replace logits (c, V) by their gradient but for its constant; the loss but for their sum."""
    chosen = logits.gather(1, words).squeeze(1)
    highest = logits.amax(1)
    torch.softmax(logits, 1, out=logits)
    # log(sum(exp)) from the most probable word, whose probability cannot underflow
    log_sum = highest - logits.amax(1).log()
    logits.scatter_add_(1, words, logits.new_full(words.shape, smoothing - 1.0))
    return (log_sum - (1.0 - smoothing) * chosen).sum()


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total += torch.mm(left, right)
