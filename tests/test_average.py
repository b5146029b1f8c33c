"""Averaging checkpoints: the mean of every tensor, and what cannot be averaged."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bothends.cli import run as run_command
from bothends.errors import BothendsError
from bothends.model.torch.averaging import average_models
from bothends.model.torch.checkpoint import load_model
from bothends.storage.digests import DIGESTS
from bothends.text.vocabulary import Vocabularies
from bothends.training.loop import train
from bothends.training.run import RunDirectory
from command_line import error_line
from training_data import tiny_recipe


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("average")
    train(tiny_recipe(directory, "checkpoints={every: 1, keep: 4}", "validation.every=0"))
    return directory / "run"


def test_the_average_of_the_last_checkpoints(run: Path, tmp_path: Path) -> None:
    output = tmp_path / "averaged"
    assert run_command(["average", str(run), "--last", "3", "--output", str(output)]) == 0
    model, description = load_model(output)
    parts = [load_model(path)[0].state_dict() for path in RunDirectory(run).complete()[-3:]]
    for name, tensor in model.state_dict().items():
        expected = torch.stack([part[name].double() for part in parts]).mean(0)
        assert torch.equal(tensor, expected.float()), name
    names = ["update-00000004", "update-00000005", "update-00000006"]
    assert description.provenance["average_of"] == names
    Vocabularies.load(output)


def test_the_checkpoint_of_an_interruption_does_not_count(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy, symlinks=True)
    progress = copy / "checkpoints" / "update-00000006" / "training.json"
    progress.write_text(progress.read_text().replace('"scheduled": true', '"scheduled": false'))
    names = [path.name for path in RunDirectory(copy).scheduled()]
    assert names == ["update-00000003", "update-00000004", "update-00000005"]


def test_the_best_checkpoint_does_not_count_if_it_is_an_old_one(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy, symlinks=True)
    checkpoints = copy / "checkpoints"
    shutil.copytree(checkpoints / "update-00000003", checkpoints / "update-00000001")
    assert len(RunDirectory(copy).scheduled()) == 5
    # Even if the run went on with more to keep, as the message says.
    recipe = copy / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("keep: 4", "keep: 9"))
    arguments = ["average", str(copy), "--last", "5", "--output", str(tmp_path / "out")]
    status, message = error_line(arguments, capsys)
    assert status == 1
    assert "keeps 4 checkpoints, fewer than the 5 to average" in message


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["{run}", "--last", "9"], "keeps 4 checkpoints, fewer than the 9 to average"),
        (["{run}/checkpoints"], "not a run of bothends train"),
        (["{tmp}/nothing"], "not a run of bothends train"),
    ],
)
def test_what_cannot_be_averaged(
    run: Path,
    tmp_path: Path,
    arguments: Sequence[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    filled = [argument.format(run=run, tmp=tmp_path) for argument in arguments]
    status, message = error_line(["average", *filled, "--output", str(tmp_path / "out")], capsys)
    assert status == 1
    assert expected in message


def test_an_output_that_is_not_empty_is_left_alone(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("x")
    _, message = error_line(["average", str(run), "--last", "2", "--output", str(tmp_path)], capsys)
    assert "exists and is not empty" in message


@pytest.mark.parametrize("room", range(4))
def test_a_disk_that_is_full_after_some_files_does_not_block_a_rerun(
    room: int, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Vocabulary, weights, configuration, digests: so many are written, the next one is not."""
    output, synced, sync = tmp_path / "averaged", iter(range(4)), os.fsync

    def fill(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and next(synced) == room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    command = ["average", str(run), "--last", "2", "--output", str(output)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fill)
        status, message = error_line(command, capsys)
    assert (status, "No space left on device" in message) == (1, True)
    assert not list(tmp_path.iterdir())
    assert run_command(command) == 0
    load_model(output)


def test_models_of_different_shape(run: Path, tmp_path: Path) -> None:
    other = train(tiny_recipe(tmp_path / "other", "model.width=32", "training.updates=1"))
    with pytest.raises(BothendsError, match="another shape or order"):
        average_models([other.checkpoint, RunDirectory(run).complete()[-1]], tmp_path / "out")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ("missing", "is missing"),
        ("shape", "has shape"),
        ("bytes", "damaged"),
        ("file", "no weights"),
    ],
)
def test_damaged_weights(run: Path, tmp_path: Path, damage: str, expected: str) -> None:
    good = RunDirectory(run).complete()[-1]
    bad = tmp_path / "bad"
    shutil.copytree(good, bad)
    (bad / DIGESTS).unlink()  # as of an older bothends: they would tell, and not what is wrong
    path = bad / "model.safetensors"
    weights = load_file(path)
    name = "source_embedding.weight"
    if damage == "missing":
        del weights[name]
        save_file(weights, path)
    elif damage == "shape":
        save_file({**weights, name: torch.zeros(2, 2)}, path)
    elif damage == "bytes":
        path.write_bytes(b"nonsense")
    else:
        path.unlink()
    with pytest.raises(BothendsError, match=expected):
        average_models([bad, good], tmp_path / "out")
