"""`bothends.jobs`: what is up to date, by digests; tasks that a pool of workers shares."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bothends.errors import BothendsError, UsageError
from bothends.jobs.digests import file_digest, settings_digest
from bothends.jobs.pool import InThisProcess, Pool, ProcessPool
from bothends.jobs.stages import Stage, StageGraph, StaleOutputError
from killed_writes import Killed, killed_at_write


@pytest.fixture
def stages(tmp_path: Path) -> list[Stage]:
    """A directory, and a file that is made from it."""
    return [
        Stage("flour", tmp_path / "flour", "sack", {"grain": "rye"}),
        Stage("bread", tmp_path / "bread", None, {"minutes": 50}, ("flour",)),
    ]


def graph_of(stages: list[Stage]) -> StageGraph:
    return StageGraph(stages, stages[0].output.with_name("records"))


def make_all(stages: list[Stage], adopt: bool = False) -> list[str]:
    """Make what is not up to date; the names of what was made."""
    graph, made = graph_of(stages), []

    def make(stage: Stage, path: Path) -> None:
        made.append(stage.name)
        (path / (stage.completion_marker or "")).write_text(stage.name)

    for stage in stages:
        graph.ensure(stage, lambda path, stage=stage: make(stage, path), adopt)  # type: ignore[misc]
        assert graph.state(stage) == "done"
    return made


def test_what_is_up_to_date_is_not_made_again(stages: list[Stage]) -> None:
    assert make_all(stages) == ["flour", "bread"]
    assert make_all(stages) == []
    # Times of files do not matter: a copy has other ones.
    os.utime(stages[0].output / "sack")
    assert make_all(stages) == []
    stages[1].output.unlink()
    assert make_all(stages) == ["bread"]


def test_a_change_is_noticed_in_all_that_follows(stages: list[Stage]) -> None:
    make_all(stages)
    flour, bread = stages
    assert make_all([flour, replace(bread, settings={"minutes": 60})]) == ["bread"]
    wheat = [replace(flour, settings={"grain": "wheat"}), bread]
    with pytest.raises(StaleOutputError, match="flour: made with another grain than now"):
        graph_of(wheat).state(wheat[0])
    with pytest.raises(StaleOutputError, match="bread: made from another output of flour"):
        graph_of(wheat).state(bread)
    assert make_all(wheat) == ["flour", "bread"]


def test_an_output_without_a_record_is_adopted_on_request(stages: list[Stage]) -> None:
    stages[0].output.mkdir()
    (stages[0].output / "sack").touch()
    stages[1].output.touch()
    assert [graph_of(stages).state(stage) for stage in stages] == ["found", "found"]
    assert make_all(stages, adopt=True) == []
    for record in stages[0].output.with_name("records").iterdir():
        record.unlink()
    assert make_all(stages) == ["flour", "bread"]


@pytest.mark.parametrize("function", ["fsync", "replace", "rename"])
def test_an_old_output_is_never_taken_for_a_new_one(stages: list[Stage], function: str) -> None:
    make_all(stages)
    changed = [replace(stages[0], settings={"grain": "oats"}), stages[1]]

    with killed_at_write(1, [function]), pytest.raises(Killed):
        make_all(changed)
    assert make_all(changed) == ["flour", "bread"]


def test_a_failure_leaves_what_was_there(stages: list[Stage]) -> None:
    make_all(stages)
    graph = graph_of([stages[0], replace(stages[1], settings={})])
    with pytest.raises(BothendsError, match="burnt"), graph.making(stages[1]):
        raise BothendsError("burnt")
    assert stages[1].output.read_text() == "bread"
    assert make_all(stages) == []


def test_digests_are_of_content(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert file_digest(tmp_path / "empty").startswith("e3b0c44298fc1c14")
    assert settings_digest({"a": 1, "b": [2]}) == settings_digest({"b": [2], "a": 1})
    assert settings_digest({"a": 1}) != settings_digest({"a": "1"})


@dataclass(frozen=True)
class Square:
    """Work that needs nothing loaded; a few tasks are special."""

    @contextmanager
    def start(self) -> Iterator[Callable[[int], int]]:
        def square(task: int) -> int:
            if task == 13:
                raise BothendsError("13 is unlucky")
            if task == 99:
                os.kill(os.getpid(), signal.SIGKILL)
            if task == 50:
                time.sleep(600)
            return task * task

        yield square


@pytest.mark.parametrize("pool", [InThisProcess(), ProcessPool(1), ProcessPool(3)], ids=str)
def test_every_task_is_done_once(pool: Pool) -> None:
    assert sorted(pool.run(Square(), range(10))) == [n * n for n in range(10)]
    assert list(pool.run(Square(), [])) == []


@pytest.mark.parametrize("pool", [InThisProcess(), ProcessPool(2)], ids=str)
def test_an_error_of_a_worker_is_raised_here(pool: Pool) -> None:
    with pytest.raises(BothendsError, match="13 is unlucky"):
        list(pool.run(Square(), [1, 2, 13, 4]))


class Together:
    """Work whose workers load until all of them are there."""

    def __init__(self, place: Path, workers: int) -> None:
        self.place, self.workers = place, workers

    @contextmanager
    def start(self) -> Iterator[Callable[[bytes], int]]:
        (self.place / str(os.getpid())).touch()
        patience = time.monotonic() + 60
        while len(list(self.place.iterdir())) < self.workers:
            if time.monotonic() > patience:
                raise BothendsError("the others did not come")
            time.sleep(0.01)
        yield len


def test_workers_load_at_the_same_time_whatever_their_tasks_size(tmp_path: Path) -> None:
    tasks = [bytes(4 << 20)] * 4  # more than a pipe holds
    assert list(ProcessPool(2).run(Together(tmp_path, 2), tasks)) == [4 << 20] * 4


def test_a_killed_worker_is_an_error_and_the_others_are_ended() -> None:
    started = time.monotonic()
    with pytest.raises(BothendsError, match="a worker process ended with status -9"):
        list(ProcessPool(2).run(Square(), [50, 99]))  # the first would take ten minutes
    assert time.monotonic() - started < 120


def test_ctrl_c_is_not_for_a_worker_that_is_still_starting() -> None:
    def tasks() -> Iterator[int]:
        yield 2
        for worker in multiprocessing.active_children():  # that has the first task, or will have
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGINT)
        yield 3

    # A suite in the background of a shell hands on that Ctrl-C is to be ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert sorted(ProcessPool(2).run(Square(), tasks())) == [4, 9]
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_tasks_are_asked_for_when_somebody_is_free() -> None:
    asked: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(100):
            asked.append(number)
            yield number

    for pool, ahead in ((InThisProcess(), 1), (ProcessPool(2), 2)):
        asked.clear()
        results = pool.run(Square(), tasks())
        next(results)
        assert len(asked) <= ahead
        results.close()  # type: ignore[attr-defined]


def test_a_pool_has_a_worker() -> None:
    with pytest.raises(UsageError, match="processes must be at least 1, but are 0"):
        ProcessPool(0)
