"""A chain whose teacher was trained elsewhere: convert, distill, student, export, in miniature."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import bothends.training.loop
import foreign_models
from bothends.chain.recipe import load_chain
from bothends.chain.stages import stages_of
from bothends.cli import run
from bothends.errors import UsageError
from bothends.model.directory import read_description
from corpus_data import make_sentences, write_lines
from training_data import TINY, write_recipe


def chain_of(model: str, references: int) -> dict[str, Any]:
    return {
        "directory": "runs",
        "corpus": {
            "source": "train.source",
            "target": "train.target",
            "valid_source": "valid.source",
            "valid_target": "valid.target",
        },
        "convert": {"model": model, "precision": "float32"},
        "distill": {"beam": 1},
        "students": {
            "2x1": {
                "recipe": "student.yaml",
                "average": 1,
                "order": "2x1",
                "precision": "float32",
                "references": references,
            }
        },
        "evaluation": {"source": "valid.source", "reference": "valid.target", "beams": [1]},
    }


@pytest.mark.parametrize(
    ("family", "references"), [("marian", 1), ("bart", 0)], ids=["marian", "bart"]
)
def test_from_a_converted_teacher_to_a_student(
    family: str, references: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands: list[str] = []

    def run_here(arguments: list[str], processes: int) -> int:
        commands.append(arguments[0])
        return run(arguments)

    monkeypatch.setattr("bothends.chain.run.run_command", run_here)
    monkeypatch.setattr(bothends.training.loop, "draw_curves", lambda log: log)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(foreign_models, family)(Path("original"))
    for name, count in (("train", 40), ("valid", 6)):
        lines = make_sentences(count, seed=count, words=20)
        write_lines(Path(f"{name}.source"), lines)
        write_lines(Path(f"{name}.target"), lines[::-1])
    training = {**TINY, "model": {"decoder_layers": 1}, "data": {"prepared": "unused"}}
    training["training"] = {"updates": 2}
    write_recipe(Path("student.yaml"), training)
    write_recipe(Path("chain.yaml"), chain_of("original", references))

    assert run(["chain", "chain.yaml"]) == 0
    assert commands[:2] == ["convert", "export"]
    assert ("prepare" in commands[2:3]) == bool(references)
    teacher = read_description(Path("runs/teacher-converted")).model
    student = read_description(Path("runs/2x1-exported"))
    assert str(student.order) == "2x1"
    assert (student.model.width, student.model.decoder_layers) == (teacher.width, 1)
    assert student.model.learned_positions == teacher.learned_positions
    assert len(json.loads(Path("runs/evaluation-beam-1/evaluation.json").read_text())) > 0

    commands.clear()
    assert run(["chain", "chain.yaml"]) == 0
    assert commands == []  # nothing has changed
    before = stages_of(load_chain(Path("chain.yaml")), Path())[0].settings
    (Path("original") / "generation_config.json").unlink()
    assert stages_of(load_chain(Path("chain.yaml")), Path())[0].settings != before


def test_a_chain_has_one_teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    both = {**chain_of("x", 0), "teacher": {"recipe": "student.yaml"}}
    for content in (
        both,
        {key: value for key, value in both.items() if key not in ("teacher", "convert")},
    ):
        write_recipe(Path("chain.yaml"), content)
        with pytest.raises(UsageError, match="give either teacher or convert"):
            load_chain(Path("chain.yaml"))
    write_recipe(Path("chain.yaml"), chain_of("x", 0))
    write_recipe(Path("student.yaml"), {**TINY, "data": {"prepared": "unused"}})
    stages = [stage.name for stage in stages_of(load_chain(Path("chain.yaml")), Path())]
    assert stages[:3] == ["teacher-convert", "teacher-export", "distill"]
    assert "prepare" not in stages
