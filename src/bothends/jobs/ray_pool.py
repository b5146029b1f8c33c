"""Workers on a cluster: Ray's actors, one for each core, behind the protocol of a pool.

Ray moves tasks and results, starts workers where they are wanted, and says when a worker or its
node is gone. Which tasks there are, what a result is and what is done already stays with the
caller: shards are files that workers write, so all nodes must see one directory or store.

A worker gets its first task when it has loaded what tasks need, so that a node which is slow to
begin, or whose cores others have, keeps no task waiting. Each worker has one task at a time. A node
on which nothing can be written is left out, and its tasks are done elsewhere.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from bothends.errors import BothendsError
from bothends.jobs.pool import ATTEMPTS, NodeError, Pool, Result, Task, TellLost, Work
from bothends.jobs.whereabouts import name_node

#: Seconds between two looks for nodes that joined late.
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

    def alone(self) -> Pool:
        return replace(self, attempts=1, workers=1)

    def run(
        self, work: Work[Task, Result], tasks: Iterable[Task], lost: TellLost[Task] = None
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


@dataclass
class _Member:
    """A worker of ours, and the task that it has."""

    actor: Any
    node: str
    #: None while it loads, and when there was nothing left for it to do
    task: Any = None
    attempt: int = 0


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
        self._actor = ray.remote(num_cpus=1, max_restarts=0)(_Actor)
        self._tasks = tasks
        self._lost = lost
        #: tasks at hand, such as those whose workers were lost, with the number of the attempt
        self._at_hand: list[tuple[Any, int]] = []
        #: answers that are awaited
        self._awaited: dict[Any, _Member] = {}
        #: workers that found no task; one may come back to them
        self._idle: list[_Member] = []
        self._ended = False
        #: workers that were lost before they could begin, by node
        self._stillborn: Counter[str] = Counter()
        #: nodes that are left out, and why
        self._excluded: dict[str, NodeError] = {}
        #: when nodes were looked at, and whether a worker was lost since
        self._looked, self._lost_some = 0.0, True

    def results(self) -> Iterator[Any]:
        try:
            self._start_workers()
            while self._is_busy():
                if not self._awaited:  # no node is there: one may come
                    time.sleep(_PATIENCE)
                ready, _ = self._ray.wait(list(self._awaited), timeout=_PATIENCE)
                for answer in ready:
                    yield from self._take(answer)
                self._start_workers()  # for nodes that joined, and for those that were lost
        finally:
            for member in [*self._awaited.values(), *self._idle]:
                self._ray.kill(member.actor)

    def _is_busy(self) -> bool:
        """Whether somebody has a task, or a task is left; loading alone is no work."""
        if any(member.attempt for member in self._awaited.values()):
            return True
        return self._look_ahead()

    def _look_ahead(self, wanted: int = 1) -> bool:
        """Have so many tasks at hand; False if there are not so many left."""
        while len(self._at_hand) < wanted and not self._ended:
            for task in self._tasks:
                self._at_hand.append((task, 1))
                break
            else:
                self._ended = True
        return len(self._at_hand) >= wanted

    def _start_workers(self) -> None:
        while self._idle and (following := self._following()):
            self._hand_over(self._idle.pop(), *following)
        if not self._lost_some and time.monotonic() - self._looked < _PATIENCE:
            return  # asking the cluster after every task would be too often
        self._lost_some, self._looked = False, time.monotonic()
        places = [node for node in self._ray.nodes() if node["Alive"]]
        members = [*self._awaited.values(), *self._idle]
        there = Counter(member.node for member in members)
        room = (self._pool.workers or sys.maxsize) - len(members)
        loading = sum(not member.attempt for member in self._awaited.values())
        usable = [node for node in places if node["NodeID"] not in self._excluded]
        if not usable and self._excluded:
            raise next(iter(self._excluded.values()))
        for node in usable:
            cores = int(node["Resources"].get("CPU", 0))
            for _ in range(min(room, cores - there[node["NodeID"]])):
                if not self._look_ahead(loading + 1):
                    return  # as many workers as there are tasks
                self._begin(node["NodeID"])
                room, loading = room - 1, loading + 1

    def _begin(self, node: str) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        worker = self._actor.options(scheduling_strategy=here).remote(self._work, node)
        self._awaited[worker.begin.remote()] = _Member(worker, node)

    def _hand_over(self, member: _Member, task: Any, attempt: int) -> None:
        member.task, member.attempt = task, attempt
        self._awaited[member.actor.do.remote(task)] = member

    def _following(self) -> tuple[Any, int] | None:
        return self._at_hand.pop() if self._look_ahead() else None

    def _take(self, answer: Any) -> Iterator[Any]:
        member = self._awaited.pop(answer)
        exceptions = self._ray.exceptions
        try:
            result = self._ray.get(answer)
        except exceptions.RayTaskError as error:
            self._ray.kill(member.actor)
            self._fail(member, error)
            return
        except (
            exceptions.RayActorError,
            exceptions.ActorUnschedulableError,
            exceptions.NodeDiedError,
            exceptions.OutOfMemoryError,  # Ray's own monitor has killed it
        ) as error:
            self._lose(member, error)
            return
        self._stillborn.pop(member.node, None)
        if member.attempt:
            yield result
        if following := self._following():
            self._hand_over(member, *following)
        else:
            member.task, member.attempt = None, 0
            self._idle.append(member)

    def _fail(self, member: _Member, error: Any) -> None:
        """A worker's own error ends the run, unless it is the node's: then others go on."""
        self._lost_some = True
        cause = error.cause
        if not isinstance(cause, NodeError):
            raise (cause if isinstance(cause, BothendsError) else error) from None
        if member.node not in self._excluded:
            self._excluded[member.node] = cause
            _warn(f"{cause}; node {member.node[:8]} is left out from here on")
        if member.attempt:  # not the task's fault, so it is no attempt
            self._at_hand.append((member.task, member.attempt))

    def _lose(self, member: _Member, error: Exception) -> None:
        self._lost_some = True
        reason = str(error).strip().splitlines()[0]
        if not member.attempt:  # it had no task yet; its node may be gone
            self._stillborn[member.node] += 1
            if self._stillborn[member.node] >= self._pool.attempts + 2:
                self._excluded[member.node] = NodeError(
                    f"workers on node {member.node[:8]} are lost before they begin ({reason})"
                )
            return
        if member.attempt < self._pool.attempts:
            text = f"a worker was lost; attempt {member.attempt + 1} of {self._pool.attempts}"
            _warn(text)
            self._at_hand.append((member.task, member.attempt + 1))
        elif self._lost is not None:
            self._lost(member.task)
        else:
            raise BothendsError(
                f"a worker was lost {member.attempt} times ({reason}); the same command goes on"
            )


class _Actor:
    """An actor: what `work` needs is loaded once."""

    def __init__(self, work: Work[Any, Any], node: str) -> None:
        import socket

        name_node(f"{socket.gethostname()}-{node[:6]}")  # a machine may be several nodes
        self._context = work.start()
        self._do: Callable[[Any], Any]

    def begin(self) -> None:
        """Load it: here and not when the actor is made, so that errors are those of a call."""
        # Ray sets this by the cores of an actor; libraries must not take more, whatever it is.
        os.environ["OMP_NUM_THREADS"] = "1"
        self._do = self._context.__enter__()

    def do(self, task: Any) -> Any:
        return self._do(task)


def _warn(text: str) -> None:
    print(f"bothends: warning: {text}", file=sys.stderr, flush=True)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise BothendsError("--workers ray needs Ray: pip install 'bothends[cluster]'") from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    # Nothing of ours is sent anywhere.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    settings: dict[str, Any] = {"address": address}
    if address is None:  # a cluster of its own, whatever else runs on this machine or has run there
        settings = {"address": "local", "include_dashboard": False}
    try:
        ray.init(log_to_driver=True, logging_level="ERROR", **settings)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        reason = str(error).strip().splitlines()[0]
        raise BothendsError(f"--workers ray:{address}: cannot connect ({reason})") from None
