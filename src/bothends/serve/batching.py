"""Dynamic batching: items of many clients share batches, in a fair order.

Workers take from one queue. A worker that is free takes what waits, at once: a lone request waits
for nobody, and what comes while all workers are busy becomes the next batches. Nobody waits for a
batch to fill up: measured with 64 clients, that won nothing that stood out from the noise.

The order is that of start-time fair queueing (Goyal et al. 1996): an item's tag is the work that
its client had been given before it, so a client with a thousand items delays one with a single item
by a batch at most. The item with the least tag leads the next batch, which is filled with items of
the same kind whose size is nearest to it. Every item leads a batch sooner or later.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from bisect import insort
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

#: Tokens of a batch, padding included, and items that are looked at to fill it.
BATCH_SIZE = 512
LOOKAHEAD = 512
#: How much lower the priority of workers is than that of the process.
NICE = 3


class Kind(Hashable, Protocol):
    """What runs a batch. Items whose kinds are equal may share one."""

    def __call__(self, items: Sequence[Any]) -> Sequence[Any]:
        """The results of the items, in order."""
        ...


class Promise(Protocol):
    """Where a result goes: a future of threads, or one of an event loop."""

    def cancelled(self) -> bool: ...

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, error: Any, /) -> None: ...


AnyPromise = TypeVar("AnyPromise", bound=Promise)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an item."""

    promise: Promise
    result: Any = None
    error: Exception | None = None


def settle(outcomes: Iterable[Outcome]) -> None:
    """Keep promises, but for those that nobody waits for any more."""
    for outcome in outcomes:
        if outcome.promise.done():
            continue
        with suppress(InvalidStateError):  # cancelled by another thread just now
            if outcome.error is None:
                outcome.promise.set_result(outcome.result)
            else:
                outcome.promise.set_exception(outcome.error)


@dataclass(eq=False, slots=True)
class Waiting:
    """An item in the queue."""

    item: Any
    size: int
    kind: Kind
    tag: float
    promise: Promise


@dataclass(frozen=True)
class BatchRecord:
    """Figures of a batch that was run."""

    items: int
    size: int
    seconds: float


class Batcher:
    """A fair queue and the threads that run it. Any thread may submit.

    `deliver` is called by a worker with all outcomes of a batch: an event loop is woken up once for
    a batch, not once for each of its items.
    """

    def __init__(
        self,
        workers: int,
        *,
        batch_size: int = BATCH_SIZE,
        deliver: Callable[[Sequence[Outcome]], None] = settle,
        observe: Callable[[BatchRecord], None] = lambda record: None,
    ) -> None:
        self.batch_size = batch_size
        self._deliver = deliver
        self._observe = observe
        self._changed = threading.Condition()
        self._queue: list[Waiting] = []  # sorted by tag
        self._queued = 0  # sum of the sizes in it
        self._time = 0.0  # the tag of the newest batch's leader
        self._given: dict[str, float] = {}  # by client: the tag of its next item
        self._idle = workers
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"bothends-batch-{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Items that no worker has taken yet."""
        return len(self._queue)

    def submit(
        self, kind: Kind, items: Sequence[Any], sizes: Sequence[int], client: str = ""
    ) -> list[Future[Any]]:
        """Futures of the items' results. One that is cancelled in time is never run."""
        return self.submit_promises(kind, items, sizes, client, [Future() for _ in items])

    def submit_promises(
        self,
        kind: Kind,
        items: Sequence[Any],
        sizes: Sequence[int],
        client: str,
        promises: list[AnyPromise],
    ) -> list[AnyPromise]:
        """As `submit`, with promises of any kind that `deliver` can keep."""
        with self._changed:
            if self._closed:
                raise RuntimeError("the batcher is closed")
            tag = max(self._time, self._given.get(client, 0.0))
            for item, size, promise in zip(items, sizes, promises, strict=True):
                waiting = Waiting(item, size, kind, tag, promise)
                insort(self._queue, waiting, key=_tag)
                self._queued += size
                tag += size
            self._given[client] = tag
            self._changed.notify_all()
        return promises

    def close(self) -> None:
        """Run all that waits, then end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        _yield_to_others()
        while True:
            with self._changed:
                batch = self._next_batch()
                if batch is None:
                    return
            try:
                self._run(batch)
            finally:
                with self._changed:
                    self._idle += 1

    def _next_batch(self) -> list[Waiting] | None:
        """Wait for items and take a batch of them; None when there will be no more."""
        while True:
            while not self._queue:
                if self._closed:
                    return None
                self._changed.wait()
            batch = self._take()
            if batch:
                self._idle -= 1
                return batch

    def _take(self) -> list[Waiting]:
        gone = [each for each in self._queue if each.promise.cancelled()]
        if gone:
            self._remove(gone)
        if not self._queue:
            self._given.clear()
            return []
        leader = self._queue[0]
        self._time = leader.tag
        # Idle workers share what there is: two half batches on two cores beat a whole one on one.
        share = self._queued / max(1, self._idle)
        candidates = [each for each in self._queue[:LOOKAHEAD] if each.kind == leader.kind]
        candidates.sort(key=lambda each: abs(each.size - leader.size))  # stable: the leader first
        batch: list[Waiting] = []
        longest = filled = 0
        for each in candidates:
            longest = max(longest, each.size)
            if batch and ((len(batch) + 1) * longest > self.batch_size or filled >= share):
                break
            batch.append(each)
            filled += each.size
        self._remove(batch)
        if not self._queue:
            # Nobody waits, so nobody is behind: old clients need not be remembered.
            self._given.clear()
        return batch

    def _remove(self, items: Sequence[Waiting]) -> None:
        removed = set(map(id, items))
        self._queue = [each for each in self._queue if id(each) not in removed]
        self._queued -= sum(each.size for each in items)

    def _run(self, batch: Sequence[Waiting]) -> None:
        begin = time.perf_counter()
        try:
            results = batch[0].kind([each.item for each in batch])
            if len(results) != len(batch):
                raise RuntimeError(f"{len(results)} results for {len(batch)} items")
        except Exception as error:
            if len(batch) == 1:
                self._deliver([Outcome(batch[0].promise, error=error)])
            else:
                for each in batch:  # only the item that is at fault is to fail
                    self._run([each])
            return
        self._observe(
            BatchRecord(len(batch), sum(each.size for each in batch), time.perf_counter() - begin)
        )
        self._deliver(
            [Outcome(each.promise, result) for each, result in zip(batch, results, strict=True)]
        )


def _yield_to_others() -> None:
    """Let the thread that talks to clients go first: it needs little, but at once.

    On Linux, where a thread has a priority of its own. Elsewhere it would be the whole process's.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            thread = threading.get_native_id()
            priority = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, min(19, priority + NICE))


def _tag(waiting: Waiting) -> float:
    return waiting.tag
