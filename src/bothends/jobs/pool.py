"""A pool of workers behind a small protocol: tasks in, results out as they are finished.

Work is a value that can be sent to another process; there, `start` loads what all tasks need, a
model for example, and gives the function that does one task. A worker holds one task at a time and
the pool asks for the next one when a worker is free. So memory does not grow with the number of
tasks, and a slow worker keeps nobody waiting but at the very end.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from bothends.errors import BothendsError, UsageError
from bothends.jobs.lifetime import end_with_parent

Task = TypeVar("Task")
Result = TypeVar("Result")
_Task = TypeVar("_Task", contravariant=True)
_Result = TypeVar("_Result", covariant=True)


class Work(Protocol[_Task, _Result]):
    """What workers do. It is pickled, and so are tasks and results."""

    def start(self) -> Callable[[_Task], _Result]:
        """Load what all tasks need; the function that does one task."""
        ...


class Pool(Protocol):
    """Workers that share tasks."""

    def run(self, work: Work[Task, Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Do all tasks; results come in the order in which they are finished.

        A BothendsError of a worker ends the run and is raised here.
        """
        ...


class InThisProcess:
    """The pool of one: tasks are done here, one after the other."""

    def run(self, work: Work[Task, Result], tasks: Iterable[Task]) -> Iterator[Result]:
        do = work.start()
        for task in tasks:
            yield do(task)


@dataclass(frozen=True)
class ProcessPool:
    """Workers on this machine, a process each."""

    processes: int

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise UsageError(f"processes must be at least 1, but are {self.processes}")

    def run(self, work: Work[Task, Result], tasks: Iterable[Task]) -> Iterator[Result]:
        remaining = iter(tasks)
        workers: dict[Connection, BaseProcess] = {}
        try:
            for _, task in zip(range(self.processes), remaining, strict=False):
                connection, worker = _start_worker(work)
                workers[connection] = worker
                _send(task, connection, worker)
            busy = set(workers)
            while busy:
                for ready in wait(list(busy)):
                    assert isinstance(ready, Connection)
                    yield _receive(ready, workers[ready])
                    following = next(remaining, _NONE)
                    if following is _NONE:
                        busy.remove(ready)
                    else:
                        _send(following, ready, workers[ready])
        finally:
            # Workers that are still busy are not needed: somebody failed, or Ctrl-C was pressed.
            for process in workers.values():
                process.kill()
                process.join()


def pool_of(processes: int) -> Pool:
    """A pool with this number of processes; a single one does without another process."""
    return InThisProcess() if processes == 1 else ProcessPool(processes)


#: Stands for "no more tasks": None may be a task.
_NONE: Any = object()


def _start_worker(work: Work[Any, Any]) -> tuple[Connection, BaseProcess]:
    # Not forked: a runtime's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=_serve, args=(work, theirs), daemon=True)
    worker.start()
    theirs.close()  # the worker has the only other end: its death is the end of the pipe
    return ours, worker


def _send(task: object, connection: Connection, worker: BaseProcess) -> None:
    try:
        connection.send(task)
    except ConnectionError:
        _receive(connection, worker)  # the worker has gone, and may have said why
        raise


def _receive(connection: Connection, worker: BaseProcess) -> Any:
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
    return answer


def _serve(work: Work[Any, Any], connection: Connection) -> None:
    """A worker's life: one task after the other, until it is ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which ends us
    end_with_parent()
    try:
        do = work.start()
        while True:
            connection.send(do(connection.recv()))
    except BothendsError as error:
        connection.send(error)
    except (EOFError, ConnectionError):
        pass  # nobody is there any more
