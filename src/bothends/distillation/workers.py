"""Shards translated by several processes at once, or by this one.

The first process reads the text and hands out shards; a worker holds one shard at a time. So memory
does not grow with the corpus, and a slow worker keeps nobody waiting but at the very end.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from bothends.distillation.job import Job, Teacher
from bothends.distillation.shard_file import translate_lines, write_shard
from bothends.errors import BothendsError
from bothends.translator import Translator


@dataclass(frozen=True)
class Shard:
    """Source lines to be translated, by their place in the corpus."""

    number: int
    lines: list[str]


@dataclass(frozen=True)
class Assignment:
    """What all shards have in common."""

    teacher: Teacher
    job: Job
    #: where shards are written
    directory: Path

    def do(self, translator: Translator, shard: Shard) -> int:
        """Translate and write a shard; the number of its lines."""
        records = translate_lines(translator, self.teacher.options, shard.lines)
        write_shard(self.directory, self.job, shard.number, shard.lines, records)
        return len(shard.lines)


def translate_shards(
    assignment: Assignment, shards: Iterable[Shard], processes: int
) -> Iterator[int]:
    """Translate all shards; yields the number of lines of each as soon as it is written."""
    if processes == 1:
        translator = assignment.teacher.load()
        return (assignment.do(translator, shard) for shard in shards)
    return _share_out(assignment, iter(shards), processes)


def _share_out(assignment: Assignment, shards: Iterator[Shard], processes: int) -> Iterator[int]:
    # Not forked: a runtime's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, BaseProcess] = {}
    try:
        for _, shard in zip(range(processes), shards, strict=False):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(assignment, theirs), daemon=True)
            workers[ours] = worker
            worker.start()
            theirs.close()  # the worker has the only other end: its death is the end of the pipe
            _hand_over(shard, ours, worker)
        busy = set(workers)
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                yield _answer(connection, workers[connection])
                following = next(shards, None)
                if following is None:
                    busy.remove(connection)
                else:
                    _hand_over(following, connection, workers[connection])
    finally:
        # Those that are still at work were not needed: somebody failed, or Ctrl-C was pressed.
        for process in workers.values():
            process.kill()
            process.join()


def _hand_over(shard: Shard, connection: Connection, worker: BaseProcess) -> None:
    try:
        connection.send(shard)
    except ConnectionError:
        _answer(connection, worker)  # it has gone, and may have said why
        raise


def _answer(connection: Connection, worker: BaseProcess) -> int:
    try:
        answer = connection.recv()
    except (EOFError, ConnectionError):
        worker.join()
        raise BothendsError(
            f"a worker process ended with status {worker.exitcode}; if memory ran out, use fewer "
            "--processes; the same command goes on"
        ) from None
    if isinstance(answer, BothendsError):
        raise answer
    assert isinstance(answer, int)
    return answer


def _work(assignment: Assignment, connection: Connection) -> None:
    """A worker's life: one shard after the other, until it is ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        translator = assignment.teacher.load()
        while True:
            connection.send(assignment.do(translator, connection.recv()))
    except BothendsError as error:
        connection.send(error)
    except (EOFError, ConnectionError):
        pass  # nobody is there any more


def _end_with_parent() -> None:
    """End this process with the one that started it, even if that was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
