"""Muon for the matrices of layers, Adam for the rest: who moves what, and how a run resumes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from bothends.errors import BothendsError
from bothends.model.config import preset
from bothends.model.torch.transformer import Transformer
from bothends.order import GenerationOrder
from bothends.training.loop import train
from bothends.training.optimiser import WeightOptimiser
from bothends.training.recipe import Optimiser
from bothends.training.run import OPTIMISER
from training_data import tiny_recipe

MUON = "optimiser.matrices=muon"


def small_model() -> Transformer:
    torch.manual_seed(0)
    shape = dict(encoder_layers=1, decoder_layers=1, width=16, heads=2, feed_forward=24)
    return Transformer(preset("tiny", vocabulary_size=30, **shape), GenerationOrder())


def step(optimiser: WeightOptimiser, rate: float) -> dict[str, Tensor]:
    """How far each parameter moves when its gradient is random."""
    before = {name: each.detach().clone() for name, each in optimiser.trained.items()}
    for parameter in optimiser.trained.values():
        parameter.grad = torch.randn_like(parameter)
    optimiser.step(rate)
    return {name: before[name] - each.detach() for name, each in optimiser.trained.items()}


def test_muon_moves_the_matrices_of_layers_alone() -> None:
    moments: dict[str, set[str]] = {}
    optimiser = WeightOptimiser(small_model(), Optimiser(matrices="muon"))
    step(optimiser, 0.01)
    for key in optimiser.moments():
        kind, name = key.split(".", 1)
        moments.setdefault(kind, set()).add(name)
    names = optimiser.trained
    matrices = {name for name in names if ".layers." in name and names[name].dim() == 2}
    assert len(matrices) == 4 + 7  # self-attention 2, cross-attention 3, feed-forward 2
    assert moments["momentum_buffer"] == matrices
    assert moments["exp_avg"] == names.keys() - matrices


def test_a_step_of_muon_is_as_large_as_one_of_adam_and_goes_equally_far_everywhere() -> None:
    steps = step(WeightOptimiser(small_model(), Optimiser(matrices="muon")), 0.01)
    change = steps["encoder.layers.0.feed_forward.inner.weight"]  # (24, 16)
    # Adam's is `rate` for each weight at most, and about a fifth of it on average over a run.
    assert 0.001 < change.square().mean().sqrt() < 0.004
    sizes = torch.linalg.svdvals(change)
    assert sizes.max() < 2.5 * sizes.min()  # of a random matrix it would be ten times


def test_adam_moves_everything_where_a_recipe_says_nothing() -> None:
    model = small_model()
    optimiser = WeightOptimiser(model, Optimiser())
    step(optimiser, 0.01)
    kinds = {key.split(".")[0] for key in optimiser.moments()}
    assert kinds == {"step", "exp_avg", "exp_avg_sq"}
    assert "matrices" not in Optimiser().model_dump()
    assert Optimiser(matrices="muon").model_dump()["matrices"] == "muon"


def test_a_resumed_run_with_muon_is_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = train(tiny_recipe(tmp_path / "whole", MUON))
    train(tiny_recipe(tmp_path / "parts", MUON, "training.updates=4"))
    resumed = train(tiny_recipe(tmp_path / "parts", MUON))
    for name in ("model.safetensors", OPTIMISER):
        first, second = (load_file(each.checkpoint / name) for each in (whole, resumed))
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first)


def test_a_run_with_muon_learns(tmp_path: Path) -> None:
    length = ("training.updates=60", "validation.every=20")
    outcome = train(tiny_recipe(tmp_path, MUON, *length))
    assert outcome.best_value is not None
    assert outcome.best_value > train(tiny_recipe(tmp_path / "short", MUON)).best_value  # type: ignore[operator]


def test_moments_of_adam_are_none_of_muon(tmp_path: Path) -> None:
    model = small_model()
    adam = WeightOptimiser(model, Optimiser())
    step(adam, 0.01)
    with pytest.raises(BothendsError, match=r"x: no momentum_buffer that fits encoder\.layers"):
        WeightOptimiser(model, Optimiser(matrices="muon")).restore(adam.moments(), Path("x"))
