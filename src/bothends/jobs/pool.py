"""A pool of workers behind a small protocol: tasks in, results out as they are finished.

Work is a value that can be sent to another process; there, `start` loads what all tasks need, a
model for example, and gives the function that does one task. A worker holds one task at a time, and
the pool asks for the next one when a worker is free. So memory does not grow with the number of
tasks, and a slow worker keeps nobody waiting but at the very end.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from bothends.errors import BothendsError, UsageError
from bothends.jobs.lifetime import end_with_parent

#: How often a task is handed out if the workers that have it are killed, unless told otherwise.
ATTEMPTS = 3

Task = TypeVar("Task")
Result = TypeVar("Result")
#: Is called with a task whose workers were killed again and again; None: that is an error.
TellLost = Callable[[Task], None] | None
_Task = TypeVar("_Task", contravariant=True)
_Result = TypeVar("_Result", covariant=True)


class NodeError(BothendsError):
    """The machine of a worker is at fault, not its task: its disk is full, for example.

    Where there are other machines, the task is theirs then.
    """


class Work(Protocol[_Task, _Result]):
    """What workers do. It is pickled, and so are tasks and results."""

    def start(self) -> AbstractContextManager[Callable[[_Task], _Result]]:
        """Load what all tasks need; the function that does one task."""
        ...


class Pool(Protocol):
    """Workers that share tasks."""

    def run(
        self, work: Work[Task, Result], tasks: Iterable[Task], lost: TellLost[Task] = None
    ) -> Iterator[Result]:
        """Do all tasks; results come in the order in which they are finished.

        A BothendsError of a worker ends the run and is raised here. So does the loss of a task
        whose workers were killed again and again, unless it is to be told to `lost`.
        """
        ...

    def alone(self) -> Pool:
        """A pool of the same kind, of a single worker, in which a task has a single attempt."""
        ...


class InThisProcess:
    """The pool of one: tasks are done here, one after the other."""

    def __str__(self) -> str:
        return "1 process"

    def run(
        self, work: Work[Task, Result], tasks: Iterable[Task], lost: TellLost[Task] = None
    ) -> Iterator[Result]:
        with work.start() as do:
            for task in tasks:
                yield do(task)

    def alone(self) -> Pool:
        return ProcessPool(1)


@dataclass(frozen=True)
class ProcessPool:
    """Workers on this machine, a process each."""

    processes: int
    #: how often a task is handed out if the worker that has it is killed
    attempts: int = 1

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise UsageError(f"processes must be at least 1, but are {self.processes}")

    def __str__(self) -> str:
        return f"{self.processes} {'process' if self.processes == 1 else 'processes'}"

    def run(
        self, work: Work[Task, Result], tasks: Iterable[Task], lost: TellLost[Task] = None
    ) -> Iterator[Result]:
        remaining = iter(tasks)
        workers: list[_Worker] = []
        try:
            for _, task in zip(range(self.processes), remaining, strict=False):
                workers.append(_Worker(work, self.attempts))
                workers[-1].send(task)
            busy = list(workers)
            while busy:
                ready = wait([worker.connection for worker in busy])
                for worker in [worker for worker in busy if worker.connection in ready]:
                    try:
                        answer = worker.receive()
                    except _LostError as error:
                        if lost is None:
                            raise BothendsError(str(error)) from None
                        lost(worker.task)
                        worker.start()
                    else:
                        if answer is _AGAIN:
                            continue
                        yield answer
                    following = next(remaining, _NONE)
                    if following is _NONE:
                        busy.remove(worker)
                    else:
                        worker.send(following)
            for worker in workers:
                worker.finish()
        finally:
            # Workers that are still busy are not needed: somebody failed, or Ctrl-C was pressed.
            for worker in workers:
                worker.end()

    def alone(self) -> Pool:
        return ProcessPool(1)


def parse_pool(text: str) -> Pool:
    """`4` is that many processes, `ray` or `ray:ADDRESS` the workers of a cluster."""
    if text.isdecimal() and int(text):
        return ProcessPool(int(text), ATTEMPTS)
    name, _, address = text.partition(":")
    if name == "ray":
        from bothends.jobs.ray_pool import RayPool

        return RayPool(address or None)
    raise UsageError(f"--workers {text}: expected a number of processes, ray or ray:ADDRESS")


#: Stand for "no more tasks" and "no result yet": None may be a task or a result.
_NONE: Any = object()
_AGAIN: Any = object()
#: Seconds that a worker has in order to leave.
_GRACE = 10.0


class _LostError(Exception):
    """The worker was killed, and so were those before it that had its task."""


class _Worker:
    """A process, the pipe to it and the task that it has; a new process if it is killed."""

    connection: Connection
    _process: BaseProcess

    def __init__(self, work: Work[Any, Any], attempts: int) -> None:
        self._work = work
        self._attempts = attempts
        self.task: Any = None
        self._attempt = 0
        self._loaded = False
        self.start()

    def start(self) -> None:
        """Start a process, in place of one that has ended."""
        # Not forked: a runtime's threads do not survive that.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._work, theirs), daemon=True)
        with _without_interrupts():
            self._process.start()
        self._loaded = False
        theirs.close()  # the worker has the only other end: its death is the end of the pipe

    def send(self, task: object) -> None:
        self.task, self._attempt = task, 1
        if self._loaded:
            self._hand_over()

    def _hand_over(self) -> None:
        # Only to one that has loaded: a task may be larger than the pipe, and others are waiting.
        # A worker that has gone may have said why: `receive` looks for that.
        with suppress(ConnectionError):
            self.connection.send(self.task)

    def receive(self) -> Any:
        """The result of the task; `_AGAIN` if there is none yet.

        Either the worker has loaded and gets its task only now, or it is lost and a new one has
        taken its place.
        """
        try:
            answer = self.connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            lost = f"a worker process ended with status {self._process.exitcode}"
            self.connection.close()
            if self._attempt >= self._attempts:
                raise _LostError(
                    f"{lost}; if memory ran out, use fewer --processes; the same command goes on"
                ) from None
            self._attempt += 1
            print(
                f"bothends: warning: {lost}; attempt {self._attempt} of {self._attempts}",
                file=sys.stderr,
                flush=True,
            )
            self.start()
            return _AGAIN
        if isinstance(answer, BothendsError):
            raise answer
        if not self._loaded:
            self._loaded = True
            self._hand_over()
            return _AGAIN
        return answer

    def finish(self) -> None:
        """Let the worker leave, as it does when no more tasks can come."""
        self.connection.close()
        self._process.join(_GRACE)

    def end(self) -> None:
        """End the worker; it has a moment to end what it has started."""
        self._process.terminate()
        self._process.join(1.0)
        self._process.kill()
        self._process.join()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started in this block does not hear of Ctrl-C; this process does, after it.

    A worker takes a while until it can say for itself that Ctrl-C is not for it.
    """
    if sys.platform == "win32":  # which has no masks
        yield
        return
    # A process that multiprocessing starts with the first of ours would end the block early.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave(*_: object) -> None:
    """End this worker, with `work` in good order."""
    # If a destructor is interrupted, nobody needs to read of it.
    sys.unraisablehook = lambda _: None
    sys.exit(1)


def _serve(work: Work[Any, Any], connection: Connection) -> None:
    """A worker's life: one task after the other, until no more can come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which ends us
    signal.signal(signal.SIGTERM, _leave)
    end_with_parent()
    try:
        with work.start() as do:
            connection.send(None)  # it has loaded
            while True:
                try:
                    task = connection.recv()
                except (EOFError, ConnectionError):
                    break  # there are no more
                connection.send(do(task))
    except BothendsError as error:
        connection.send(error)
    except ConnectionError:
        pass  # nobody is there any more
