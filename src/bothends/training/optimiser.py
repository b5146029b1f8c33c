"""How gradients change weights: Adam, or Muon for the matrices of the layers and Adam for the rest.

Muon (Jordan et al., 2024) makes the momentum of a matrix almost orthogonal before it is subtracted:
every direction moves equally far, also those that Adam neglects because their gradients are small.
Its steps are scaled to the size of Adam's, so that both go by one learning rate. Embeddings, whose
rows have nothing to do with each other, biases and norms stay with Adam.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from bothends.errors import BothendsError
from bothends.model.torch.transformer import Transformer
from bothends.training.recipe import Optimiser

#: What Adam and Muon remember of a parameter.
_ADAM = ("step", "exp_avg", "exp_avg_sq")
_MUON = ("momentum_buffer",)


class WeightOptimiser:
    """Changes the parameters of a model that learn."""

    def __init__(self, model: Transformer, settings: Optimiser) -> None:
        self.trained = {
            name: parameter
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        }
        matrices = [
            name
            for name, parameter in self.trained.items()
            if settings.matrices == "muon" and parameter.dim() == 2 and ".layers." in name
        ]
        self._matrices = frozenset(matrices)
        adams = [p for name, p in self.trained.items() if name not in self._matrices]
        self._parts: list[torch.optim.Optimizer] = []
        if adams:
            betas = (settings.beta1, settings.beta2)
            self._parts.append(
                torch.optim.Adam(adams, betas=betas, eps=settings.epsilon, fused=True)
            )
        if matrices:
            self._parts.append(
                torch.optim.Muon(
                    [self.trained[name] for name in matrices],
                    weight_decay=0.0,
                    adjust_lr_fn="match_rms_adamw",
                )
            )

    def step(self, rate: float) -> None:
        """Subtract what the gradients say, at this learning rate, and forget them."""
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = rate
            part.step()
            part.zero_grad(set_to_none=True)

    def moments(self) -> dict[str, Tensor]:
        """What is remembered, by the names of the parameters."""
        return {
            f"{kind}.{name}": value
            for name, parameter in self.trained.items()
            for part in self._parts
            for kind, value in part.state.get(parameter, {}).items()
        }

    def restore(self, moments: Mapping[str, Tensor], place: Path) -> None:
        """Put back what `moments` gave; `place` is the file that it was read from."""
        for name, parameter in self.trained.items():
            in_muon = name in self._matrices
            state = {}
            for kind in _MUON if in_muon else _ADAM:
                value = moments.get(f"{kind}.{name}")
                if value is None or (kind != "step" and value.shape != parameter.shape):
                    raise BothendsError(f"{place}: no {kind} that fits {name}")
                state[kind] = value.to(parameter.device)
            self._parts[-1 if in_muon else 0].state[parameter] = state
