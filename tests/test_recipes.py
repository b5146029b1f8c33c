"""The recipes that come with the project: they load, and do what their table says."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from bothends.model.config import preset
from bothends.model.directory import Description
from bothends.model.torch.checkpoint import load_model, save_model
from bothends.model.torch.transformer import Transformer
from bothends.order import GenerationOrder
from bothends.text.vocabulary import SpecialTokens, Vocabularies
from bothends.training.loop import train
from bothends.training.recipe import Optimiser, Recipe
from bothends.training.recipe_file import load_recipe
from tiny_model import sentences, tiny_model
from training_data import tiny_corpus

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
PAPER = sorted((EXPERIMENTS / "recipes" / "paper").glob("*.yaml"))
MINI = sorted((EXPERIMENTS / "recipes" / "mini").glob("*.yaml"))
README = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")


def corpus_of(recipe: Recipe) -> str:
    (corpus,) = recipe.data.prepared
    return str(corpus.path)


def test_there_is_one_for_each_task() -> None:
    assert len(PAPER) == 7
    assert len(MINI) == 7


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_a_paper_recipe_has_the_papers_settings(path: Path) -> None:
    recipe = load_recipe(path)
    separate = recipe.model.share_embeddings is False
    config = recipe.model.config(32000, 32001 if separate else 32000, SpecialTokens())
    assert (config.width, config.encoder_layers, config.decoder_layers) == (512, 6, 6)
    assert (config.heads, config.feed_forward) == (8, 2048)
    assert recipe.optimiser == Optimiser()
    assert recipe.batch.tokens == 25000
    # The page has a command that makes exactly the directory that the recipe reads.
    assert f"--output {corpus_of(recipe)}\n" in README
    assert f"`{path.stem}`" in README


def test_english_russian_has_the_larger_vocabulary() -> None:
    (command,) = re.findall(r"bothends prepare (?:.*\\\n)*.*wmt18-en-ru\n", README)
    assert "--vocabulary-size 48000" in command


@pytest.mark.parametrize("path", MINI, ids=lambda path: path.stem)
def test_a_miniature_trains(path: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path)
    script = (EXPERIMENTS / "prepare_mini.sh").read_text(encoding="utf-8")
    assert corpus_of(recipe) == f"runs/data/{path.stem}"
    assert f"\nprepare {path.stem} " in script
    assert f"`{path.stem}`" in README
    smaller = ["model.preset=tiny", "model.encoder_layers=1", "model.decoder_layers=1"]
    smaller += ["batch.tokens=200", "training.updates=2", "optimiser.warmup=1", "order=2x1"]
    smaller += [f"data.prepared={tiny_corpus()}", f"run={tmp_path}", "validation.sentences=2"]
    assert train(load_recipe(path, smaller)).update == 2


def test_every_order_in_the_table_is_one() -> None:
    table = README.split("## Orders")[1].split("##")[0]
    orders = [text for text in re.findall(r"`([^`]+)`", table) if re.match(r"\dx\d", text)]
    assert {"1x1", "1x2", "1x4", "2x1", "2x2", "4x1", "2x1+autoregressive"} <= set(orders)
    for text in orders:
        assert str(GenerationOrder.parse(text)) == text


def test_a_layer_more_changes_little_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabularies = Vocabularies.load(tiny_model())
    config = preset("tiny", vocabulary_size=vocabularies.source.size)
    torch.manual_seed(1)
    order = GenerationOrder.parse("2x1")
    shallow = tmp_path / "shallow"
    shallow.mkdir()
    vocabularies.save(shallow)
    save_model(shallow, Transformer(config, order), Description(model=config, order=order))
    lines = sentences(60)
    text = tmp_path / "text"
    text.write_text("\n".join(lines) + "\n")
    script = runpy.run_path(str(EXPERIMENTS / "recipes" / "en-pt" / "deepen.py"))
    arguments = [str(shallow), f"--source={text}", f"--target={text}"]
    monkeypatch.setattr(sys, "argv", ["deepen", *arguments, f"--output={tmp_path / 'deeper'}"])
    script["main"]()
    model, description = load_model(tmp_path / "deeper")
    assert description.model.decoder_layers == config.decoder_layers + 1
    pairs = [
        (np.array(config.framed(ids)), np.array(ids))
        for ids in vocabularies.source.encode(lines[40:])
    ]
    before, after = (
        script["last_states"](each.eval(), pairs) for each in (load_model(shallow)[0], model)
    )
    assert (after - before).norm() < 0.2 * before.norm()
