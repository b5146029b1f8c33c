"""The reference engine, and the one for a GPU: a `Transformer` behind the engine protocol.

NumPy in, NumPy out. The vocabulary stays where the logits are: only the best words of each slot, or
the logprobs of the words asked for, come back from the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bothends.engines.protocol import FloatArray, TopK
from bothends.model.directory import read_description
from bothends.model.torch.transformer import BlockTensors, DecoderState, Transformer
from bothends.order import Block, IntArray

#: Slots whose logits are held at once in `force`: 128 MB for 32,000 words in float32.
FORCED_SLOTS = 1024


class TorchEngine:
    """Steps a `Transformer` on its device, in its precision. Implements `Engine[DecoderState]`."""

    def __init__(self, model: Transformer, device: str | torch.device = "cpu") -> None:
        self.model = model.to(device)
        self.device = torch.device(device)

    @torch.inference_mode()
    def encode(self, source: IntArray) -> DecoderState:
        # Here and not only in __init__: the engine may belong to a model that is being trained.
        self.model.eval()
        return self.model.start(self.model.encode(self._tensor(source)))

    @torch.inference_mode()
    def step(self, state: DecoderState, tokens: IntArray, block: Block, k: int) -> TopK:
        logits = self._logits(self._hidden(state, tokens, block))  # (R, Z, V)
        return _best(logits, logits.logsumexp(dim=-1, keepdim=True), k)

    @torch.inference_mode()
    def step_and_force(
        self, state: DecoderState, tokens: IntArray, block: Block, k: int, targets: IntArray
    ) -> tuple[TopK, FloatArray]:
        logits = self._logits(self._hidden(state, tokens, block))
        total = logits.logsumexp(dim=-1, keepdim=True)
        forced = logits.gather(-1, self._tensor(targets)[:, :, None]) - total
        return _best(logits, total, k), forced[:, :, 0].cpu().numpy()

    @torch.inference_mode()
    def select(self, state: DecoderState, rows: IntArray) -> DecoderState:
        return state.select(rows)

    @torch.inference_mode()
    def force(
        self, state: DecoderState, tokens: IntArray, block: Block, targets: IntArray
    ) -> FloatArray:
        hidden = self._hidden(state, tokens, block)
        logprobs = []
        # (S, T, D) -> (S * T, D), a bounded number of slots at a time
        for some, wanted in zip(
            torch.split(hidden.flatten(0, 1), FORCED_SLOTS),
            torch.split(self._tensor(targets).flatten(), FORCED_SLOTS),
            strict=True,
        ):
            logits = self._logits(some)
            chosen = logits.gather(-1, wanted[:, None]).squeeze(-1)
            logprobs.append(chosen - logits.logsumexp(dim=-1))
        result: FloatArray = torch.cat(logprobs).view(targets.shape).cpu().numpy()
        return result

    def _hidden(self, state: DecoderState, tokens: IntArray, block: Block) -> Tensor:
        return self.model.step(state, self._tensor(tokens), BlockTensors.of(block, self.device))

    def _logits(self, hidden: Tensor) -> Tensor:
        logits = self.model.logits(hidden)
        # A sum over the vocabulary in half precision would cost the logprob its digits.
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def _tensor(self, array: IntArray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(array), device=self.device)


def _best(logits: Tensor, total: Tensor, k: int) -> TopK:
    """The best words of each slot. The softmax of k words, not of all: `total` is its sum."""
    if k == 1:
        best, ids = logits.max(dim=-1, keepdim=True)
    else:
        best, ids = logits.topk(min(k, logits.shape[-1]), dim=-1)
    return TopK((best - total).cpu().numpy(), ids.cpu().numpy())


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Set PyTorch's number of threads inside the block, and restore it afterwards; None: unchanged.

    The number belongs to the whole process, and so to whoever else uses PyTorch in it.
    """
    before = torch.get_num_threads()
    if threads is None or threads == before:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def rounded_model(directory: Path) -> Transformer:
    """A model that has only its graphs, with the weights that these were rounded to."""
    # Needs the package onnx, which running a model does not.
    from bothends.engines.onnx.rounded import read_rounded_weights

    description = read_description(directory)
    weights = read_rounded_weights(directory, description)
    with torch.device("meta"):
        model = Transformer(description.model, description.order)
    state = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    model.load_state_dict(state, strict=True, assign=True)
    return model
