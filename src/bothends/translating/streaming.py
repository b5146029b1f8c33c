"""A stream of items on several workers: results in order, in constant memory.

Items are read in windows. A window's items become tasks, tasks of similar size are batched, batches
run on worker threads, and results are handed over in the order of the input. Two windows are under
way at any time: one whose results are being handed over, and one that keeps the workers busy
meanwhile. Nothing here knows what an item is: `Workers.stream` is given a `StreamJob`, which does.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from bothends.errors import UsageError

Item = TypeVar("Item")
Task = TypeVar("Task")
Result = TypeVar("Result")
Item_contra = TypeVar("Item_contra", contravariant=True)

#: Lines of the first window and of the largest. Small at first, for an early answer; each window is
#: four times the one before it, for batches with little padding.
FIRST_WINDOW = 32
LARGEST_WINDOW = 2048
#: And characters of one: 2,048 lines of 2,048 characters each.
HEAVIEST_WINDOW = 1 << 22

#: Windows under way. More would only hold more lines: workers wait for none of them.
WINDOWS_AHEAD = 2


@dataclass(frozen=True)
class WindowTasks(Generic[Task]):
    """What there is to do for a window of items."""

    tasks: Sequence[Task]
    #: by which tasks are batched, e.g. in tokens
    sizes: Sequence[int]
    #: for each item, the numbers of the tasks that answer it: none, one or several
    tasks_of_item: Sequence[Sequence[int]]


class StreamJob(Protocol[Item_contra, Task, Result]):
    """How items become results: what `Workers` are given to do."""

    def prepare(self, window: Sequence[Item_contra]) -> WindowTasks[Task]:
        """The tasks of a window."""
        ...

    def run(self, tasks: Sequence[Task]) -> list[Result]:
        """The results of one batch. Called by several threads at once."""
        ...

    def join(self, results: Sequence[Result]) -> Result:
        """The result of an item from those of its tasks."""
        ...


@dataclass(frozen=True)
class PendingResult(Generic[Result]):
    """Where a task's result will be found: in which batch, and where in it."""

    batch: Future[list[Result]]
    index: int

    def result(self) -> Result:
        """The result, as soon as its batch is done."""
        return self.batch.result()[self.index]

    def cancel(self) -> None:
        """Nobody will ask for it."""
        self.batch.cancel()


@dataclass(frozen=True)
class JoinedResults(Generic[Result]):
    """Where the results of all tasks of an item will be found."""

    places: Sequence[PendingResult[Result]]
    join: Callable[[Sequence[Result]], Result]

    def result(self) -> Result:
        return self.join([place.result() for place in self.places])

    def cancel(self) -> None:
        for place in self.places:
            place.cancel()


AnyPending = PendingResult[Result] | JoinedResults[Result]


def split_into_windows(
    items: Iterable[Item | None],
    first: int = FIRST_WINDOW,
    largest: int = LARGEST_WINDOW,
    weigh: Callable[[Item], int] | None = None,
) -> Iterator[list[Item]]:
    """Growing windows of the items, whose sizes depend on nothing but the items.

    With `weigh`, e.g. the characters of a line, a window also ends where it has `HEAVIEST_WINDOW`
    of them: a few huge items are as many as memory should hold.

    `None` among the items says that the input pauses, i.e. that asking for the next one may take
    long. It closes the window; an empty window then passes the message on.
    """
    window: list[Item] = []
    size, weight = min(first, largest), 0
    try:
        for item in items:
            if item is None:
                if window:
                    yield window
                yield []
                window, weight = [], 0
                continue
            window.append(item)
            weight += 0 if weigh is None else weigh(item)
            if len(window) == size or weight >= HEAVIEST_WINDOW:
                yield window
                window, size, weight = [], min(4 * size, largest), 0
    except Exception:
        if window:  # what was read before reading failed
            yield window
        raise
    if window:
        yield window


def split_into_batches(lengths: Sequence[int], tokens: int, workers: int) -> list[list[int]]:
    """Indices of a window's lines, in batches of similar length: the longest lines first.

    A batch has at most `tokens` tokens, padding included, or is a single line. All workers get the
    same number of batches and of tokens, as nearly as lines allow, so that they finish together:
    a window that would fit into one batch is shared out as well.
    """
    total = sum(lengths)
    rounds = max(1, -(-total // (tokens * workers)))  # batches for each worker
    share = total / (rounds * workers)
    batches: list[list[int]] = []
    longest = filled = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        # The first line of a batch is its longest: all others are padded to it.
        if not batches or filled >= share or (len(batches[-1]) + 1) * longest > tokens:
            batches.append([])
            longest, filled = lengths[index], 0
        batches[-1].append(index)
        filled += lengths[index]
    return batches


def submit_in_batches(
    pool: ThreadPoolExecutor,
    workers: int,
    lengths: Sequence[int],
    tokens: int,
    run: Callable[[list[int]], list[Result]],
) -> list[PendingResult[Result]]:
    """Have the workers of `pool` call `run` with the indices of each batch of a window."""
    places: dict[int, PendingResult[Result]] = {}
    for batch in split_into_batches(lengths, tokens, workers):
        future = pool.submit(run, batch)
        for position, index in enumerate(batch):
            places[index] = PendingResult(future, position)
    return [places[index] for index in range(len(lengths))]


def in_order(
    windows: Iterable[Sequence[Item]],
    submit: Callable[[Sequence[Item]], Sequence[AnyPending[Result]]],
    ahead: int = WINDOWS_AHEAD,
) -> Generator[Result, None, None]:
    """Hand every window to `submit`, and yield the results in the order of the lines.

    A window is asked for only when fewer than `ahead` are under way. An empty window says that the
    input pauses: all that is under way is then yielded before the next window is asked for. If
    reading or `submit` fails, the results of the windows before come first. Whoever leaves early
    (closes the iterator) leaves no work behind but the batches that are running.
    """
    source = iter(windows)
    under_way: deque[Sequence[AnyPending[Result]]] = deque()
    failure: BaseException | None = None
    reading = True
    try:
        while reading or under_way:
            paused = False
            while reading and not paused and len(under_way) < ahead:
                try:
                    window = next(source)
                    if window:
                        under_way.append(submit(window))
                except StopIteration:
                    reading = False
                except Exception as error:
                    failure, reading = error, False
                else:
                    paused = not window
            while under_way:
                for place in under_way[0]:
                    yield place.result()
                under_way.popleft()
                if not paused:
                    break
        if failure is not None:
            raise failure
    finally:
        for window_places in under_way:
            for place in window_places:
                place.cancel()


class Workers:
    """Threads that share the batches of all jobs given to them, each of which runs on one core."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._closed = False
        self._start()

    def stream(
        self,
        windows: Iterable[Sequence[Item]],
        job: StreamJob[Item, Task, Result],
        batch_size: int,
        advance: Callable[[int], None] | None = None,
    ) -> Generator[Result, None, None]:
        """The results of all items, in order; a batch has tasks of at most `batch_size` in all.

        `advance` is called by the workers with the number of items that a batch answers, long
        before the results of a window are handed over.
        """
        self.check_open()
        submit = partial(self._submit_window, job, batch_size, advance or _ignore)
        return self._while_open(in_order(windows, submit))

    def submit(
        self, job: StreamJob[Item, Task, Result], item: Item, batch_size: int
    ) -> Future[Result]:
        """A future of one item's result; one worker prepares it and runs its batches in turn."""
        self.check_open()

        def run() -> Result:
            work = job.prepare([item])
            results: dict[int, Result] = {}
            for batch in split_into_batches(work.sizes, batch_size, workers=1):
                found = job.run([work.tasks[number] for number in batch])
                results.update(zip(batch, found, strict=True))
            return job.join([results[number] for number in work.tasks_of_item[0]])

        return self._pool.submit(run)

    def close(self) -> None:
        """End the threads. Batches that run are waited for, those that wait are cancelled."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _while_open(self, results: Generator[Result, None, None]) -> Generator[Result, None, None]:
        """The results; to close the workers meanwhile is an error that says so."""
        try:
            yield from results
        except (CancelledError, RuntimeError):  # what a pool that is shut down says
            self.check_open()
            raise

    def _start(self) -> None:
        # Its threads start with the first batches and end with it.
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="bothends")
        self._process = os.getpid()

    def _submit_window(
        self,
        job: StreamJob[Item, Task, Result],
        batch_size: int,
        advance: Callable[[int], None],
        window: Sequence[Item],
    ) -> Sequence[JoinedResults[Result]]:
        self.check_open()
        work = job.prepare(window)
        # An item counts as answered with its first task, or at once if it has none.
        items = Counter(numbers[0] for numbers in work.tasks_of_item if numbers)
        advance(len(window) - items.total())

        def run(batch: list[int]) -> list[Result]:
            results = job.run([work.tasks[number] for number in batch])
            advance(sum(items[number] for number in batch))
            return results

        places = submit_in_batches(self._pool, self.threads, work.sizes, batch_size, run)
        return [
            JoinedResults([places[number] for number in numbers], job.join)
            for numbers in work.tasks_of_item
        ]

    def check_open(self) -> None:
        """Complain if the workers are closed."""
        if self._closed:
            raise UsageError("the translator is closed; load it again")
        if self._process != os.getpid():  # a fork, which has inherited the pool but no threads
            self._start()


def _ignore(items: int) -> None: ...
