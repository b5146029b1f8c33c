"""How a stream of lines keeps several workers busy and still comes out in order, in flat memory.

Lines are read in windows. Inside a window they are sorted into batches of similar length, batches
run on worker threads, and results are handed over in the order of the input. Two windows are under
way at any time: one whose results are being handed over, and one that keeps the workers busy
meanwhile. Nothing here knows what a line is translated to, or that it is translated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Lines of the first window and of the largest. Small at first, for an early answer; each window is
#: four times the one before it, for batches with little padding.
FIRST_WINDOW = 32
LARGEST_WINDOW = 2048

#: Windows under way. More would only hold more lines: workers wait for none of them.
WINDOWS_AHEAD = 2


@dataclass(frozen=True)
class Place(Generic[Result]):
    """Where a line's result will be found: in which batch, and where in it."""

    batch: Future[list[Result]]
    index: int

    def result(self) -> Result:
        """The result, as soon as its batch is done."""
        return self.batch.result()[self.index]


def split_into_windows(
    items: Iterable[Item | None], first: int = FIRST_WINDOW, largest: int = LARGEST_WINDOW
) -> Iterator[list[Item]]:
    """Growing windows of the items, whose sizes depend on nothing but the items.

    `None` among the items says that the input pauses, i.e. that asking for the next one may take
    long. It closes the window; an empty window then passes the message on.
    """
    window: list[Item] = []
    size = min(first, largest)
    try:
        for item in items:
            if item is None:
                if window:
                    yield window
                yield []
                window = []
                continue
            window.append(item)
            if len(window) == size:
                yield window
                window, size = [], min(4 * size, largest)
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
) -> list[Place[Result]]:
    """Have the workers of `pool` call `run` with the indices of each batch of a window."""
    places: dict[int, Place[Result]] = {}
    for batch in split_into_batches(lengths, tokens, workers):
        future = pool.submit(run, batch)
        for position, index in enumerate(batch):
            places[index] = Place(future, position)
    return [places[index] for index in range(len(lengths))]


def in_order(
    windows: Iterable[Sequence[Item]],
    submit: Callable[[Sequence[Item]], list[Place[Result]]],
    ahead: int = WINDOWS_AHEAD,
) -> Generator[Result, None, None]:
    """Hand every window to `submit`, and yield the results in the order of the lines.

    A window is asked for only when fewer than `ahead` are under way. An empty window says that the
    input pauses: all that is under way is then yielded before the next window is asked for. If
    reading or `submit` fails, the results of the windows before come first. Whoever leaves early
    (closes the iterator) leaves no work behind but the batches that are running.
    """
    source = iter(windows)
    under_way: deque[list[Place[Result]]] = deque()
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
                place.batch.cancel()
