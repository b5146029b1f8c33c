"""Dynamic batching: items of many clients share batches, in a fair order.

Workers take from one queue. A worker that is free takes what waits, at once, so a lone item waits
for nobody. Only while other batches run does a worker linger a few milliseconds for more items:
their clients are about to send the next ones.

The order is that of start-time fair queueing (Goyal et al. 1996): an item's tag is the work that
its client had been given before it, so a client with a thousand items delays one with a single item
by a batch at most. The item with the least tag leads the next batch, which is filled with items of
the same kind whose size is nearest to it. Every item leads a batch sooner or later.
"""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

#: Tokens of a batch, padding included, and items that are looked at to fill it.
BATCH_SIZE = 512
LOOKAHEAD = 512
#: Seconds for which a worker waits for more items while others are at work.
LINGER = 0.003


class Kind(Hashable, Protocol):
    """What runs a batch. Items whose kinds are equal may share one."""

    def __call__(self, items: Sequence[Any]) -> Sequence[Any]:
        """The results of the items, in order."""
        ...


@dataclass(eq=False)
class Waiting:
    """An item in the queue."""

    item: Any
    size: int
    kind: Kind
    tag: float
    future: Future[Any] = field(default_factory=Future)


@dataclass(frozen=True)
class BatchRecord:
    """What is told of a batch that was run."""

    items: int
    size: int
    seconds: float


class Batcher:
    """A fair queue and the threads that run it. Any thread may submit."""

    def __init__(
        self,
        workers: int,
        *,
        batch_size: int = BATCH_SIZE,
        linger: float = LINGER,
        observe: Callable[[BatchRecord], None] = lambda record: None,
    ) -> None:
        self.batch_size = batch_size
        self.linger = linger
        self._observe = observe
        self._changed = threading.Condition()
        self._queue: list[Waiting] = []  # sorted by tag
        self._time = 0.0  # the tag of the newest batch's leader
        self._given: dict[str, float] = {}  # by client: the tag of its next item
        self._idle = workers
        self._running = 0
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
        with self._changed:
            if self._closed:
                raise RuntimeError("the batcher is closed")
            tag = max(self._time, self._given.get(client, 0.0))
            added = []
            for item, size in zip(items, sizes, strict=True):
                waiting = Waiting(item, size, kind, tag)
                insort(self._queue, waiting, key=lambda each: each.tag)
                added.append(waiting)
                tag += size
            self._given[client] = tag
            self._changed.notify_all()
        return [waiting.future for waiting in added]

    def close(self) -> None:
        """Run all that waits, then end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                batch = self._next_batch()
                if batch is None:
                    return
                self._running += 1
            try:
                self._run(batch)
            finally:
                with self._changed:
                    self._running -= 1
                    self._idle += 1

    def _next_batch(self) -> list[Waiting] | None:
        """Wait for items and take a batch of them; None when there will be no more."""
        while True:
            while not self._queue:
                if self._closed:
                    return None
                self._changed.wait()
            if self._running and not self._closed:
                self._linger()
            batch = self._take()
            if batch:
                self._idle -= 1
                return batch

    def _linger(self) -> None:
        """Give others a moment to fill the batch."""
        end = time.monotonic() + self.linger
        while self._queue and sum(each.size for each in self._queue) < self.batch_size:
            remaining = end - time.monotonic()
            if remaining <= 0 or not self._running:
                return
            self._changed.wait(remaining)

    def _take(self) -> list[Waiting]:
        queue = [each for each in self._queue if not each.future.cancelled()]
        self._queue = queue
        if not queue:
            self._given.clear()
            return []
        leader = queue[0]
        self._time = leader.tag
        # Idle workers share what there is: two half batches on two cores beat a whole one on one.
        share = sum(each.size for each in queue) / max(1, self._idle)
        candidates = [each for each in queue[:LOOKAHEAD] if each.kind == leader.kind]
        candidates.sort(key=lambda each: abs(each.size - leader.size))  # stable: the leader first
        batch: list[Waiting] = []
        longest = filled = 0
        for each in candidates:
            longest = max(longest, each.size)
            if batch and ((len(batch) + 1) * longest > self.batch_size or filled >= share):
                break
            batch.append(each)
            filled += each.size
        taken = set(map(id, batch))
        self._queue = [each for each in queue if id(each) not in taken]
        if not self._queue:
            # Nobody waits, so nobody is behind: old clients need not be remembered.
            self._given.clear()
        return [each for each in batch if each.future.set_running_or_notify_cancel()]

    def _run(self, batch: Sequence[Waiting]) -> None:
        begin = time.perf_counter()
        try:
            results = batch[0].kind([each.item for each in batch])
            if len(results) != len(batch):
                raise RuntimeError(f"{len(results)} results for {len(batch)} items")
        except Exception as error:
            if len(batch) == 1:
                batch[0].future.set_exception(error)
            else:
                for each in batch:  # only the item that is at fault is to fail
                    self._run([each])
            return
        self._observe(
            BatchRecord(len(batch), sum(each.size for each in batch), time.perf_counter() - begin)
        )
        for each, result in zip(batch, results, strict=True):
            each.future.set_result(result)
