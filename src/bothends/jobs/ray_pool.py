"""Workers on a cluster: Ray's actors, one for each core, behind the protocol of a pool.

Ray moves tasks and results, starts workers where there are cores, and says when a worker or its
node is gone. Which tasks there are, what a result is and what is done already stays with the
caller: shards are files that workers write, so all nodes must see one directory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bothends.errors import BothendsError
from bothends.jobs.pool import ATTEMPTS, Result, Task, Work

#: Seconds between two looks for cores that joined late.
_PATIENCE = 2.0


@dataclass(frozen=True)
class RayPool:
    """A worker for each core of a Ray cluster; without an address, of this machine."""

    address: str | None = None
    #: how often a task is handed out if the worker that has it is lost
    attempts: int = ATTEMPTS
    #: at most; None is one for each core
    workers: int | None = None

    def __str__(self) -> str:
        return f"Ray at {self.address}" if self.address else "Ray on this machine"

    def run(
        self,
        work: Work[Task, Result],
        tasks: Iterable[Task],
        lost: Callable[[Task], None] | None = None,
    ) -> Iterator[Result]:
        ray = _import_ray()
        started = not ray.is_initialized()
        if started:
            _connect(ray, self.address)
        try:
            yield from _Run(ray, self, work, iter(tasks), lost).results()
        finally:
            if started:
                ray.shutdown()


class _Run:
    """The state of one run: which worker has which task."""

    def __init__(
        self,
        ray: Any,
        pool: RayPool,
        work: Work[Any, Any],
        tasks: Iterator[Any],
        lost: Callable[[Any], None] | None,
    ) -> None:
        self._ray = ray
        self._pool = pool
        self._work = ray.put(work)  # once, not with every worker
        self._actor = ray.remote(num_cpus=1, max_restarts=0)(_Worker)
        self._tasks = tasks
        self._lost = lost
        #: tasks whose workers were lost, with the number of the attempt to come
        self._again: list[tuple[Any, int]] = []
        #: answers that are awaited: worker, task, attempt
        self._awaited: dict[Any, tuple[Any, Any, int]] = {}
        self._next: list[tuple[Any, int]] = []

    def results(self) -> Iterator[Any]:
        try:
            self._start_workers()
            while self._awaited:
                ready, _ = self._ray.wait(list(self._awaited), timeout=_PATIENCE)
                for answer in ready:
                    yield from self._take(answer)
                self._start_workers()  # for nodes that joined, and for those that were lost
        finally:
            for worker, _, _ in self._awaited.values():
                self._ray.kill(worker)

    def _start_workers(self) -> None:
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        limit = min(cores, self._pool.workers or cores)
        while len(self._awaited) < max(1, limit) and (following := self._following()):
            worker = self._actor.remote(self._work)
            self._hand_over(worker, *following)

    def _hand_over(self, worker: Any, task: Any, attempt: int) -> None:
        self._awaited[worker.do.remote(task)] = (worker, task, attempt)

    def _following(self) -> tuple[Any, int] | None:
        if self._again:
            return self._again.pop()
        for task in self._tasks:
            return task, 1
        return None

    def _take(self, answer: Any) -> Iterator[Any]:
        worker, task, attempt = self._awaited.pop(answer)
        try:
            result = self._ray.get(answer)
        except self._ray.exceptions.RayActorError as error:
            self._lose(task, attempt, error)
            return
        except self._ray.exceptions.RayTaskError as error:
            self._ray.kill(worker)
            cause = error.cause
            raise (cause if isinstance(cause, BothendsError) else error) from None
        yield result
        if following := self._following():
            self._hand_over(worker, *following)
        else:
            self._ray.kill(worker)

    def _lose(self, task: Any, attempt: int, error: Exception) -> None:
        what = "a worker was lost"
        if attempt < self._pool.attempts:
            text = f"{what}; attempt {attempt + 1} of {self._pool.attempts}"
            print(f"bothends: warning: {text}", file=sys.stderr, flush=True)
            self._again.append((task, attempt + 1))
        elif self._lost is not None:
            self._lost(task)
        else:
            reason = str(error).splitlines()[0]
            raise BothendsError(f"{what} {attempt} times ({reason}); the same command goes on")


class _Worker:
    """An actor: what `work` needs is loaded once."""

    def __init__(self, work: Work[Any, Any]) -> None:
        self._context = work.start()
        self._do: Callable[[Any], Any] | None = None

    def do(self, task: Any) -> Any:
        if self._do is None:  # here and not at the start: its errors are those of a task
            self._do = self._context.__enter__()
        return self._do(task)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise BothendsError("--workers ray needs Ray: pip install 'bothends[cluster]'") from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    # Nothing of ours is sent anywhere.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    settings = {"include_dashboard": False} if address is None else {"address": address}
    try:
        ray.init(log_to_driver=True, logging_level="ERROR", **settings)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        reason = str(error).strip().splitlines()[0]
        raise BothendsError(f"--workers ray:{address}: cannot connect ({reason})") from None
