"""From somebody else's model to a student of another order, in miniature."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import foreign_models
from bothends.convert.options import ConvertOptions
from bothends.convert.source import convert_model
from bothends.data.preparation import Preparation, TextFiles, prepare
from bothends.engines.export import export_model
from bothends.model.directory import read_description
from bothends.model.torch.checkpoint import load_model, transfer_weights
from bothends.model.torch.transformer import Transformer
from bothends.order import GenerationOrder
from bothends.text.vocabulary import Vocabularies
from bothends.training.loop import train
from bothends.training.recipe_file import load_recipe
from bothends.training.setup import Setup
from bothends.translator import Translator
from corpus_data import make_sentences, write_lines
from test_convert_ctranslate2 import argos_package
from training_data import TINY, write_recipe

FAMILIES: dict[str, Callable[[Path], Any]] = {
    "marian": foreign_models.marian,
    "marian-separate": lambda path: foreign_models.marian(path, separate=True),
    "bart": foreign_models.bart,
    "nllb": foreign_models.nllb,
    "m2m": foreign_models.m2m,
    "mbart": foreign_models.mbart,
    "mbart50": lambda path: foreign_models.mbart(path, fifty=True),
    "pegasus": foreign_models.pegasus,
    # A package is a file.
    "argos": lambda path: argos_package(path.with_suffix(".argosmodel"), path, "int8_float16"),
}


def converted(name: str, directory: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FAMILIES[name](directory / "original")
    package = directory / "original.argosmodel"
    source = package if package.exists() else directory / "original"
    convert_model(source, ConvertOptions()).write(directory / "teacher")
    return directory / "teacher"


def prepared_with(teacher: Path, directory: Path) -> Path:
    """A corpus in the vocabulary of a converted model."""

    def text(name: str, count: int) -> TextFiles:
        lines = make_sentences(count, seed=count, words=30)
        return TextFiles(
            (write_lines(directory / f"{name}.source", lines),),
            (write_lines(directory / f"{name}.target", lines[::-1]),),
        )

    prepare(
        Preparation(
            train=text("train", 60),
            valid=text("valid", 6),
            output=directory / "prepared",
            vocabulary=teacher,
        )
    )
    return directory / "prepared"


@pytest.mark.parametrize(
    ("name", "order"), [(name, ("2x1", "2x2")[i % 2]) for i, name in enumerate(FAMILIES)]
)
def test_a_student_begins_with_a_converted_teacher(name: str, order: str, tmp_path: Path) -> None:
    teacher = converted(name, tmp_path)
    corpus = prepared_with(teacher, tmp_path)
    recipe = load_recipe(
        write_recipe(tmp_path / "student.yaml", {**TINY, "model": {"decoder_layers": 1}}),
        [
            f"data.prepared={corpus}",
            f"run={tmp_path / 'run'}",
            f"init={teacher}",
            f"order={order}",
            "training.updates=2",
            "optimiser.learning_rate=1e-5",
        ],
    )
    setup = Setup.of(recipe)
    theirs, ours = read_description(teacher).model, setup.description.model
    kept = ["width", "heads", "norm", "activation", "sinusoid", "embedding_norm", "output_bias"]
    kept += ["sinusoid_precision", "position_offset", "learned_positions"]
    assert [getattr(ours, each) for each in kept] == [getattr(theirs, each) for each in kept]
    assert (ours.decoder_layers, theirs.decoder_layers) == (1, 2)
    assert ours.frame.source_prefix == theirs.frame.source_prefix
    assert ours.special.start == (theirs.special.start, *theirs.frame.prompt)[-1]

    student = setup.new_model(1)
    transfer_weights(teacher, student)
    weights = load_model(teacher)[0].state_dict()
    assert torch.equal(
        student.state_dict()["source_embedding.weight"], weights["source_embedding.weight"]
    )

    run = train(recipe)
    export_model(run.checkpoint, "float32", tmp_path / "exported")
    translator = Translator.load(tmp_path / "exported", threads=1)
    assert str(translator.description.order) == order
    lines = make_sentences(3, seed=1, words=30)
    assert all(each.steps for each in translator.translate(lines, max_length=10))
    # A run goes on without the model that it began with.
    (tmp_path / "teacher").rename(tmp_path / "elsewhere")
    assert (
        train(
            recipe.model_copy(
                update={"training": recipe.training.model_copy(update={"updates": 3})}
            )
        ).update
        == 3
    )


def test_signed_positions_begin_with_the_given_ones(tmp_path: Path) -> None:
    teacher, description = load_model(converted("bart", tmp_path))
    given = teacher.target_positions.weight.detach()
    torch.manual_seed(0)
    student = Transformer(description.model, GenerationOrder.parse("2x2"))
    mark = student.target_positions.weight.detach()[0].clone()
    transfer = transfer_weights(teacher, student)
    table = student.target_positions.weight.detach()
    limit = description.model.learned_positions
    assert table.shape == (2 * limit + 1, description.model.width)
    assert torch.equal(table[limit : 2 * limit], given)  # positions 0, 1, 2, ...
    for position in (1, 2, limit - 1):
        assert torch.equal(table[limit - position], given[position] + mark)
    assert not torch.equal(table[limit - 1], table[limit + 1])
    assert "target_positions.weight" in transfer.taken


def test_marian_shares_its_ids_between_two_ways_of_cutting(tmp_path: Path) -> None:
    vocabularies = Vocabularies.load(converted("marian", tmp_path))
    assert not vocabularies.joint
    assert vocabularies.same_ids
