"""Recipes: what they default to, how they are overridden, and every way to get one wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bothends.errors import UsageError
from bothends.training.recipe import Recipe
from bothends.training.recipe_file import known_keys, load_recipe
from training_data import write_recipe

SMALLEST = {"data": {"prepared": "corpus"}}


def test_the_defaults_are_the_papers() -> None:
    recipe = Recipe.model_validate(SMALLEST)
    model = recipe.model.config(32000, 32000, recipe.model.config(100, 100, _special()).special)
    assert (model.width, model.heads, model.feed_forward) == (512, 8, 2048)
    assert (model.encoder_layers, model.decoder_layers, model.norm) == (6, 6, "post")
    assert (model.dropout.residual, model.dropout.attention) == (0.1, 0.1)
    optimiser = recipe.optimiser
    assert (optimiser.beta1, optimiser.beta2, optimiser.warmup) == (0.9, 0.98, 4000)
    assert optimiser.schedule == "inverse-square-root"
    assert recipe.loss.label_smoothing == 0.1
    assert recipe.batch.tokens == 25000
    assert (recipe.checkpoints.keep, recipe.validation.beam) == (5, 4)


def _special() -> Any:
    from bothends.text.vocabulary import SpecialTokens

    return SpecialTokens()


def test_overrides_are_yaml_and_reach_every_depth(tmp_path: Path) -> None:
    path = write_recipe(tmp_path / "mine.yaml", SMALLEST)
    recipe = load_recipe(
        path,
        [
            "order=2x1",
            "model.decoder_layers=2",
            "model.dropout.residual=0.3",
            "optimiser.learning_rate=1e-3",
            "data.prepared=[one, {path: two, repeat: 3}]",
            "training={updates: null, epochs: 4}",
        ],
    )
    assert str(recipe.order) == "2x1"
    assert recipe.model.decoder_layers == 2
    assert recipe.model.dropout.residual == 0.3
    assert recipe.optimiser.learning_rate == 0.001
    assert [(str(corpus.path), corpus.repeat) for corpus in recipe.data.prepared] == [
        ("one", 1),
        ("two", 3),
    ]
    assert (recipe.training.updates, recipe.training.epochs) == (None, 4)
    assert recipe.run == Path("runs/mine-2x1")


def test_a_dumped_recipe_reads_back_as_itself(tmp_path: Path) -> None:
    path = write_recipe(tmp_path / "mine.yaml", SMALLEST)
    recipe = load_recipe(path, ["order=2x2+vanilla-mask", "init=model", "threads=2"])
    again = Recipe.model_validate(yaml.safe_load(yaml.safe_dump(recipe.dump())))
    assert again == recipe


def test_known_keys_are_dotted_leaves() -> None:
    keys = set(known_keys())
    assert {"order", "data.prepared", "model.dropout.residual", "training.minutes"} <= keys
    assert not {"model", "model.dropout", "data"} & keys


@pytest.mark.parametrize(
    ("content", "overrides", "expected"),
    [
        ({**SMALLEST, "ordr": "2x1"}, [], "unknown key 'ordr'; did you mean order?"),
        (
            {**SMALLEST, "model": {"decoder_layer": 2}},
            [],
            "unknown key 'model.decoder_layer'; did you mean model.decoder_layers?",
        ),
        (SMALLEST, ["model.widht=8"], "override: unknown key 'model.widht'; did you mean model.w"),
        (SMALLEST, ["seed"], "'seed': expected KEY=VALUE"),
        (SMALLEST, ["seed=[1"], "'seed=[1': the value is not YAML"),
        (SMALLEST, ["seed=first"], "override: seed: Input should be a valid integer"),
        (SMALLEST, ["seed=first"], "not 'first'"),
        ({}, [], "data: Field required"),
        ({"data": {}}, [], "data.prepared: Field required"),
        ({"data": {"prepared": []}}, [], "data.prepared: expected at least 1 item"),
        (
            {"data": {"prepared": [{"path": "x", "repeat": 0}]}},
            [],
            "data.prepared.0.repeat: Input should be greater than or equal to 1, not 0",
        ),
        (SMALLEST, ["order=3x1"], "order: bad generation order 3x1"),
        (SMALLEST, ["order=2"], "order: "),
        (SMALLEST, ["model.preset=large"], "unknown preset 'large'"),
        (SMALLEST, ["model.width=100"], "model: width 100 is not a multiple of heads 8"),
        (SMALLEST, ["model.dropout.residual=1.5"], "residual: Input should be less than 1"),
        (SMALLEST, ["model.dropout=0.1"], "model.dropout: "),
        (SMALLEST, ["model.norm=none"], "model.norm: Input should be 'pre' or 'post'"),
        (SMALLEST, ["batch.micro_tokens=100"], "micro_tokens 100 cannot hold the longest pair"),
        (SMALLEST, ["batch.tokens=0"], "batch.tokens: Input should be greater than or equal to 1"),
        (SMALLEST, ["loss.label_smoothing=1"], "label_smoothing: Input should be less than 1"),
        (SMALLEST, ["optimiser.learning_rate=0"], "learning_rate: Input should be greater than 0"),
        (SMALLEST, ["optimiser.beta2=1"], "beta2: Input should be less than 1"),
        (SMALLEST, ["optimiser.schedule=step"], "'inverse-square-root' or 'cosine'"),
        (
            SMALLEST,
            ["optimiser.schedule=cosine", "training.updates=4000"],
            "cosine needs more training.updates than the 4000 of optimiser.warmup",
        ),
        (
            SMALLEST,
            ["optimiser.schedule=cosine", "training={updates: null, epochs: 3}"],
            "cosine needs training.updates",
        ),
        (SMALLEST, ["training.updates=null"], "set updates, epochs or minutes"),
        (SMALLEST, ["validation.metric=bluerr"], "validation.metric: Input should be 'loss'"),
        (SMALLEST, ["validation.beam=0"], "validation.beam: Input should be greater"),
        (SMALLEST, ["checkpoints.keep=0"], "checkpoints.keep: Input should be greater"),
        (SMALLEST, ["run=2026-02-30"], "the value is not YAML"),
        (SMALLEST, ["device=tpu"], "device: Input should be 'auto', 'cpu' or 'cuda'"),
    ],
)
def test_errors_are_one_line_that_names_the_key(
    tmp_path: Path, content: Any, overrides: list[str], expected: str
) -> None:
    path = write_recipe(tmp_path / "mine.yaml", content)
    with pytest.raises(UsageError) as caught:
        load_recipe(path, overrides)
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message
    assert message.startswith((str(path), "override", "'"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"order: [", "line 1: not YAML"),
        (b"a: 1\nb: [2\nc: 3\n", "not YAML"),
        (
            b"model: {preset: tiny}\nmodel: {heads: 2}\n",
            "line 2: not YAML: model is there twice",
        ),
        (b"run: 2026-02-30\n", "not YAML: day is out of range"),
        (b"- one\n- two\n", "expected keys and values"),
        (b"", "expected keys and values"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_file_that_is_no_recipe(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=expected) as caught:
        load_recipe(path)
    assert str(path) in str(caught.value)


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such recipe"):
        load_recipe(tmp_path / "none.yaml")
