"""Weights read back from graphs, for a training that begins with a model without others."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bothends.engines.export import export_model, write_graphs
from bothends.engines.onnx.rounded import read_rounded_weights
from bothends.engines.registry import Precision
from bothends.engines.torch import rounded_model
from bothends.errors import BothendsError
from bothends.evaluation.bench.synthetic import random_weights
from bothends.model.directory import WEIGHTS, Description
from bothends.model.graph_files import DECODER, ENCODER
from bothends.model.torch.checkpoint import load_model
from bothends.order import GenerationOrder
from bothends.training.loop import train
from bothends.training.setup import Setup
from conftest import tiny_config
from test_export import CONFIGS
from tiny_model import tiny_model
from training_data import tiny_recipe


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("changes", CONFIGS, ids=lambda changes: "-".join(changes) or "plain")
def test_weights_come_back(changes: dict[str, Any], precision: Precision, tmp_path: Path) -> None:
    config, order = tiny_config(**changes), GenerationOrder.parse("4x1")
    given = random_weights(config, order, seed=1)
    write_graphs(tmp_path, given, config, order, precision)
    found = read_rounded_weights(tmp_path, Description(model=config, order=order))
    assert found.keys() == given.keys()
    for name, weight in given.items():
        # int8 is half a step away: the largest weight of a row is 64 steps. float32 is what it was,
        # but for queries, which were scaled and are scaled back.
        most = 0.5001 / 64 if precision == "int8" else 2e-7
        largest = np.abs(weight).max(axis=-1, keepdims=True)
        assert (np.abs(found[name] - weight) <= most * largest).all(), name


@pytest.mark.parametrize("compressed", [False, True])
def test_a_training_begins_with_a_model_without_weights(compressed: bool, tmp_path: Path) -> None:
    teacher = train(tiny_recipe(tmp_path / "teacher", "training.updates=2")).checkpoint
    exported = tmp_path / "exported"
    export_model(teacher, "int8", exported, compressed=compressed)
    assert not (exported / WEIGHTS).exists()
    recipe = tiny_recipe(tmp_path / "student", "order=2x1", f"init={exported}")
    setup = Setup.of(recipe)
    student = setup.new_model(recipe.seed)
    said = setup.begin_with(exported, student)
    assert "tensors as they were rounded" in said
    rounded = rounded_model(exported).state_dict()
    for name, tensor in student.state_dict().items():
        assert np.array_equal(tensor, rounded[name]), name
    assert train(recipe).update > 0


def test_graphs_of_two_exports_are_refused(tmp_path: Path) -> None:
    shutil.copytree(tiny_model("2x1", "int8"), tmp_path, dirs_exist_ok=True)
    (tmp_path / WEIGHTS).unlink()
    (tmp_path / "digests.json").unlink()
    model, description = load_model(tiny_model("2x1", None))
    weights = {name: 2 * tensor.numpy() for name, tensor in model.state_dict().items()}
    decoder = (tmp_path / DECODER).read_bytes()
    write_graphs(tmp_path, weights, description.model, description.order, "int8")
    (tmp_path / DECODER).write_bytes(decoder)
    with pytest.raises(BothendsError, match=f"{ENCODER} and {DECODER} were exported from diff"):
        rounded_model(tmp_path)


def test_a_damaged_graph_is_one_line(tmp_path: Path) -> None:
    shutil.copytree(tiny_model("2x1", "int8"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "digests.json").unlink()
    with (tmp_path / ENCODER).open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(BothendsError, match=f"{ENCODER}: cannot be read"):
        rounded_model(tmp_path)
