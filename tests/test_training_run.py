"""Pull the plug: whatever stops a run, it goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bothends.training.loop
from bothends.cli import run as run_command
from bothends.errors import BothendsError
from bothends.model.torch.checkpoint import load_model
from bothends.text.vocabulary import Vocabularies
from bothends.training.loop import RunEnd, train
from bothends.training.recipe import Recipe
from bothends.training.run import OPTIMISER, PROGRESS, Progress, RunDirectory
from bothends.training.schedule import learning_rate
from bothends.training.step import summed_loss
from training_data import tiny_corpus, tiny_recipe

DROPOUT = "model.dropout={residual: 0.1, attention: 0.1, embedding: 0.1}"


def result_of(outcome: RunEnd) -> dict[str, Any]:
    """Everything that a run leaves but its timings: weights, moments, place, and its log."""
    progress = json.loads((outcome.checkpoint / PROGRESS).read_bytes())
    log = [json.loads(line) for line in _log(outcome).read_text().splitlines()]
    for record in (progress, *log):
        for timing in ("seconds", "tokens_per_second", "log_bytes"):
            record.pop(timing, None)
    return {
        "weights": (outcome.checkpoint / "model.safetensors").read_bytes(),
        "moments": (outcome.checkpoint / OPTIMISER).read_bytes(),
        "progress": progress,
        "log": log,
    }


def _log(outcome: RunEnd) -> Path:
    return outcome.checkpoint.parent.parent / "log.jsonl"


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than training here."""
    monkeypatch.setattr(bothends.training.loop, "draw_curves", lambda log: log)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return result_of(train(tiny_recipe(tmp_path_factory.mktemp("whole"), DROPOUT)))


def killed(recipe: Recipe, arrange: Callable[[], None]) -> None:
    """Train in a process of its own that is killed by what `arrange` sets up."""
    child = os.fork()
    if child == 0:
        os.close(2)  # a run talks on stderr
        os.open(os.devnull, os.O_WRONLY)
        arrange()
        train(recipe)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the run ended before it could be killed"
    assert os.WTERMSIG(status) == signal.SIGKILL


def kill_at_call(number: int, *names: str) -> Callable[[], None]:
    """Kill this process just before the `number`-th call of any of some functions of `os`."""

    def arrange() -> None:
        calls = iter(range(1, number + 1))

        def guard(function: Callable[..., Any]) -> Callable[..., Any]:
            def guarded(*arguments: Any) -> Any:
                if next(calls) == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments)

            return guarded

        for name in names:
            setattr(os, name, guard(getattr(os, name)))

    return arrange


@pytest.mark.parametrize("update", [1, 2, 5])
def test_a_run_killed_between_updates_goes_on_bit_for_bit(
    tmp_path: Path, uninterrupted: dict[str, Any], update: int
) -> None:
    def arrange() -> None:

        def guarded(number: int, *arguments: Any) -> float:
            if number == update + 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return learning_rate(number, *arguments)

        setattr(bothends.training.loop, "learning_rate", guarded)  # noqa: B010 (not exported)

    recipe = tiny_recipe(tmp_path, DROPOUT)
    killed(recipe, arrange)
    assert result_of(train(recipe)) == uninterrupted


# A checkpoint makes about ten such calls, links and pruning included.
@pytest.mark.parametrize("call", [3, 6, 8, 10, 13, 17, 20, 29])
def test_a_run_killed_while_it_writes_goes_on_bit_for_bit(
    tmp_path: Path, uninterrupted: dict[str, Any], call: int
) -> None:
    recipe = tiny_recipe(tmp_path, DROPOUT)
    killed(recipe, kill_at_call(call, "fsync", "rename", "replace"))
    for checkpoint in RunDirectory(tmp_path / "run").complete():
        load_model(checkpoint)  # whatever has its final name is whole
        Vocabularies.load(checkpoint)
    assert result_of(train(recipe)) == uninterrupted
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_signal_ends_a_run_after_its_update(
    tmp_path: Path,
    uninterrupted: dict[str, Any],
    number: int,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = tiny_recipe(tmp_path, DROPOUT)
    arguments = ["train", str(tmp_path / "tiny.yaml"), f"data.prepared={tiny_corpus()}"]
    arguments += [f"run={tmp_path / 'run'}", DROPOUT]

    def interrupted(*given: Any) -> Any:
        if RunDirectory(tmp_path / "run").complete():  # in the first update after a checkpoint
            os.kill(os.getpid(), number)
            monkeypatch.setattr(bothends.training.loop, "summed_loss", summed_loss)
        return summed_loss(*given)

    monkeypatch.setattr(bothends.training.loop, "summed_loss", interrupted)
    assert run_command(arguments) == status
    said = capsys.readouterr().err
    assert f"stopped by {signal.Signals(number).name} after update 3" in said
    assert "the same command goes on" in said
    names = [path.name for path in RunDirectory(tmp_path / "run").complete()]
    assert names == ["update-00000002", "update-00000003"]
    outcome = train(recipe)
    assert result_of(outcome) == uninterrupted
    # The checkpoint of the interruption is no step of the run: it is gone.
    names = [path.name for path in RunDirectory(tmp_path / "run").complete()]
    assert "update-00000003" not in names or outcome.best_update == 3


def test_the_last_and_the_best_checkpoints_are_kept(tmp_path: Path) -> None:
    outcome = train(tiny_recipe(tmp_path, "validation.every=1", "checkpoints.every=1"))
    directory = tmp_path / "run"
    names = {path.name for path in RunDirectory(directory).complete()}
    best = f"update-{outcome.best_update:08}"
    assert names == {"update-00000005", "update-00000006", best}
    assert (directory / "last").resolve().name == "update-00000006"
    assert (directory / "best").resolve().name == best
    losses = {
        record["update"]: record["loss"]
        for record in map(json.loads, (directory / "log.jsonl").read_text().splitlines())
        if record["kind"] == "validation"
    }
    assert outcome.best_update == min(losses, key=losses.__getitem__)


def test_a_longer_run_goes_on_where_a_shorter_one_ended(
    tmp_path: Path, uninterrupted: dict[str, Any]
) -> None:
    train(tiny_recipe(tmp_path, DROPOUT, "training.updates=4"))
    result = result_of(train(tiny_recipe(tmp_path, DROPOUT)))
    assert result["weights"] == uninterrupted["weights"]
    assert result["moments"] == uninterrupted["moments"]


def test_a_complete_run_is_left_alone(tmp_path: Path) -> None:
    first = train(tiny_recipe(tmp_path))
    before = (first.checkpoint / PROGRESS).stat().st_mtime_ns
    assert train(tiny_recipe(tmp_path)) == first
    assert (first.checkpoint / PROGRESS).stat().st_mtime_ns == before


def test_links_that_a_killed_run_could_not_make_are_made_by_the_next(tmp_path: Path) -> None:
    checkpoint = train(tiny_recipe(tmp_path)).checkpoint
    links = [checkpoint.parents[1] / name for name in ("last", "best")]
    targets = [link.readlink() for link in links]
    for link in links:
        link.unlink()
    train(tiny_recipe(tmp_path))
    assert [link.readlink() for link in links] == targets


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("seed=2", "holds a run with seed=1, but this recipe has 2"),
        ("order=2x1", "holds a run with order=1x1, but this recipe has 2x1"),
        ("model.dropout.residual=0", "model.dropout.residual=0.1"),
    ],
)
def test_another_recipe_in_the_same_directory_is_refused(
    tmp_path: Path, override: str, expected: str
) -> None:
    train(tiny_recipe(tmp_path, "training.updates=2"))
    with pytest.raises(BothendsError, match=expected):
        train(tiny_recipe(tmp_path, "training.updates=2", override))


def test_another_corpus_under_the_same_name_is_refused(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(tiny_corpus(), corpus)
    recipe = tiny_recipe(tmp_path, f"data.prepared={corpus}", "training.updates=2")
    train(recipe)
    shutil.rmtree(corpus)
    shutil.copytree(tiny_corpus(seed=5), corpus)
    with pytest.raises(BothendsError, match=f"run: was begun with an earlier version of {corpus}"):
        train(recipe)


def test_a_run_that_is_under_way_is_left_alone(tmp_path: Path) -> None:
    with (
        RunDirectory(tmp_path / "run").locked(),
        pytest.raises(BothendsError, match="run: a training is running there"),
    ):
        train(tiny_recipe(tmp_path))
    train(tiny_recipe(tmp_path, "training.updates=1"))


def test_a_lost_log_and_files_of_others_do_not_matter(tmp_path: Path) -> None:
    train(tiny_recipe(tmp_path, "training.updates=4"))
    log = tmp_path / "run" / "log.jsonl"
    log.unlink()
    (tmp_path / "run" / "checkpoints" / ".DS_Store").touch()
    train(tiny_recipe(tmp_path))
    assert [json.loads(line)["update"] for line in log.read_text().splitlines()] == [6, 6]


def test_a_cosine_run_cannot_change_its_end(tmp_path: Path) -> None:
    cosine = "optimiser.schedule=cosine"
    train(tiny_recipe(tmp_path, cosine, "training.updates=5"))
    with pytest.raises(BothendsError, match=r"holds a run with training\.updates=5"):
        train(tiny_recipe(tmp_path, cosine, "training.updates=6"))


@pytest.mark.parametrize("name", [PROGRESS, OPTIMISER, "model.safetensors", "config.json"])
def test_a_damaged_checkpoint_is_named(tmp_path: Path, name: str) -> None:
    outcome = train(tiny_recipe(tmp_path, "training.updates=2"))
    (outcome.checkpoint / name).write_bytes(b"{")
    with pytest.raises(BothendsError, match=f"{name}: damaged"):
        train(tiny_recipe(tmp_path))


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    """Others may write to a shared directory, and know the number of the process."""
    directory, elsewhere = RunDirectory(tmp_path / "run"), tmp_path / "elsewhere"
    directory.checkpoints.mkdir(parents=True)
    elsewhere.mkdir()
    (directory.checkpoints / f".update-00000007.{os.getpid()}.partial").symlink_to(elsewhere)
    saved = directory.save(Progress(update=7), 1, lambda path: path.mkdir(exist_ok=True), {})
    assert {path.name for path in saved.iterdir()} >= {OPTIMISER, PROGRESS}
    assert not list(elsewhere.iterdir())
