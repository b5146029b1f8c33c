"""Training in bfloat16 on a CPU: near what float32 computes, and refused where it would crash."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
import torch

import bothends.training.precision
from bothends.training.loop import train
from bothends.training.precision import trains_in_bfloat16
from command_line import error_line, python
from training_data import TINY, tiny_corpus, tiny_recipe, write_recipe

# Instructions that every machine with bfloat16 has; without AMX, which some virtual machines break.
SAFE = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("precision", "device", "expected"),
    [("auto", CPU, False), ("auto", GPU, True), ("float32", GPU, False), ("bfloat16", GPU, True)],
)
def test_what_a_precision_means(precision: str, device: torch.device, expected: bool) -> None:
    assert trains_in_bfloat16(precision, device) is expected


def test_a_cpu_that_cannot_is_told_from_one_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bothends.training.precision, "_PRODUCT", "pass")
    assert trains_in_bfloat16("bfloat16", CPU)
    dying = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    monkeypatch.setattr(bothends.training.precision, "_PRODUCT", dying)
    recipe = write_recipe(tmp_path / "tiny.yaml", TINY)
    settings = [f"data.prepared={tiny_corpus()}", f"run={tmp_path / 'run'}", "precision=bfloat16"]
    status, message = error_line(["train", str(recipe), *settings], capsys)
    assert status == 1
    assert "precision=float32" in message
    assert not (tmp_path / "run").exists()


# Ten slots a pair: a multiple of 64 rows, which are not padded, and one that is not.
@pytest.mark.parametrize(("norm", "pairs"), [("pre", 30), ("post", 32)])
@pytest.mark.slow
def test_gradients_are_near_those_of_float32(norm: str, pairs: int) -> None:
    """All of them, and in float32, with every kind of dropout: the same seed drops the same."""
    script = f"""
        import json, torch
        from bothends.model.config import Dropout, preset
        from bothends.model.torch.transformer import Transformer
        from bothends.order import GenerationOrder
        from bothends.training.batches import collate
        from bothends.training.step import Tensors, summed_loss
        import numpy as np

        rates = Dropout(residual=0.2, attention=0.1, embedding=0.1, activation=0.1)
        config = preset("tiny", vocabulary_size=90, dropout=rates, norm="{norm}")
        torch.manual_seed(0)
        model = Transformer(config, GenerationOrder.parse("2x1")).train()
        random = np.random.default_rng(0)
        pairs = [(random.integers(4, 90, 9), random.integers(4, 90, 9)) for _ in range({pairs})]
        arrays = collate(pairs, model.order, config.special)
        batch = Tensors.of(arrays, config.special, torch.device("cpu"))

        def gradients(bfloat16):
            model.zero_grad()
            torch.manual_seed(1)
            with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                loss = summed_loss(model, batch, 0.1) / batch.count
            loss.backward()
            assert all(p.grad.dtype == torch.float32 for p in model.parameters())
            return torch.cat([p.grad.flatten() for p in model.parameters()]), float(loss)

        (exact, loss), (near, near_loss) = gradients(False), gradients(True)
        print(json.dumps([float((near - exact).norm() / exact.norm()), near_loss / loss - 1]))
    """
    done = python("-c", textwrap.dedent(script), **SAFE)
    assert done.returncode == 0, done.stderr
    gradient_error, loss_error = json.loads(done.stdout)
    # Numbers of eight bits: a rounding is up to 0.4 %, and a gradient comes of a chain of them.
    assert 1e-4 < gradient_error < 0.05
    assert abs(loss_error) < 0.01


@pytest.mark.slow
def test_a_run_in_bfloat16_learns_as_in_float32(tmp_path: Path) -> None:
    settings = ["order=2x1", "training.updates=30", "validation.every=30"]
    train(tiny_recipe(tmp_path / "float32", *settings))
    recipe = write_recipe(tmp_path / "tiny.yaml", TINY)
    done = python(
        "-m", "bothends", "train", str(recipe), *settings, "precision=bfloat16",
        f"data.prepared={tiny_corpus()}", f"run={tmp_path / 'bfloat16' / 'run'}", **SAFE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 x cpu in bfloat16" in done.stderr

    def validation_loss(name: str) -> float:
        *_, last = (tmp_path / name / "run" / "log.jsonl").read_text().splitlines()
        loss: float = json.loads(last)["loss"]
        return loss

    assert validation_loss("bfloat16") != validation_loss("float32")
    assert validation_loss("bfloat16") == pytest.approx(validation_loss("float32"), rel=0.02)
