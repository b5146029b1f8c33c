"""One forward pass of a micro-batch: arrays to tensors, tensors to a loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bothends.model.torch.transformer import BlockTensors, Transformer
from bothends.text.vocabulary import SpecialTokens
from bothends.training.batches import Arrays
from bothends.training.loss import smoothed_cross_entropy


@dataclass(frozen=True)
class Tensors:
    """A micro-batch on the device of the model."""

    source: Tensor  # (S, N)
    tokens: Tensor  # (S, T)
    block: BlockTensors  # T slots
    #: where the real slots are among all S * T, and what they should be
    slots: Tensor  # (n,)
    targets: Tensor  # (n,)

    @property
    def count(self) -> int:
        """Real target slots, end symbols included."""
        return self.targets.shape[0]

    @classmethod
    def of(cls, arrays: Arrays, special: SpecialTokens, device: torch.device) -> Tensors:
        flat = arrays.targets.ravel()
        # Found here and not on the device, which would have to be waited for.
        slots = (flat != special.pad).nonzero()[0]

        def move(array: object) -> Tensor:
            return torch.as_tensor(array, device=device)

        return cls(
            source=move(arrays.source),
            tokens=move(arrays.tokens),
            block=BlockTensors.of(arrays.block, device),
            slots=move(slots),
            targets=move(flat[slots]),
        )


def summed_loss(model: Transformer, batch: Tensors, smoothing: float) -> Tensor:
    """The label-smoothed loss of a micro-batch, summed over its real slots."""
    # Only real slots meet the last feed-forward layer and the vocabulary: (n, D)
    real = model.hidden(batch.source, batch.tokens, batch.block, batch.slots)
    weight, bias = model.output_parameters()
    return smoothed_cross_entropy(real, weight, bias, batch.targets, smoothing)
