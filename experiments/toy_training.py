"""The smallest model and training loop, for toys that are learned in seconds."""

from __future__ import annotations

from collections.abc import Callable

import torch

from bothends.model.config import Dropout, ModelConfig
from bothends.model.torch.transformer import Transformer


def toy_config(words: int) -> ModelConfig:
    """One layer a side, no dropout; `words` with the four special tokens."""
    return ModelConfig(
        vocabulary_size=words,
        encoder_layers=1,
        decoder_layers=1,
        width=64,
        heads=4,
        feed_forward=128,
        norm="pre",
        dropout=Dropout(residual=0, attention=0, activation=0, embedding=0),
    )


def train_toy(model: Transformer, loss: Callable[[], torch.Tensor], updates: int) -> None:
    """Adam with a learning rate that rises for fifty updates and then falls to 0.

    `loss` is that of the next batch.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda update: min((update + 1) / 50, 1) * (1 - update / updates)
    )
    model.train()
    for _ in range(updates):
        optimizer.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
