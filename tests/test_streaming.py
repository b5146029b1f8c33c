"""Windows, batches and order, with a function that is not a network."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.translating.streaming import (
    FIRST_WINDOW,
    HEAVIEST_WINDOW,
    LARGEST_WINDOW,
    PendingResult,
    WindowTasks,
    Workers,
    in_order,
    split_into_batches,
    split_into_windows,
    submit_in_batches,
)

lengths_strategy = st.lists(st.integers(1, 60), max_size=80)


class Doubler:
    """Doubles numbers in batches on a pool; a number is also its own length and its own delay."""

    def __init__(self, pool: ThreadPoolExecutor, batch_tokens: int = 50) -> None:
        self.pool = pool
        self.batch_tokens = batch_tokens

    def __call__(self, window: Sequence[int]) -> list[PendingResult[int]]:
        def double(batch: list[int]) -> list[int]:
            time.sleep(window[batch[0]] % 3 * 1e-4)  # batches overtake each other
            return [2 * window[index] for index in batch]

        return submit_in_batches(self.pool, 2, [*window], self.batch_tokens, double)


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


@settings(deadline=None, max_examples=50)
@given(
    items=st.lists(st.one_of(st.integers(1, 60), st.none())),
    first=st.integers(1, 9),
    largest=st.integers(1, 30),
    batch_tokens=st.integers(1, 200),
    ahead=st.integers(1, 3),
)
def test_results_come_in_the_order_of_the_input(
    pool: ThreadPoolExecutor,
    items: list[int | None],
    first: int,
    largest: int,
    batch_tokens: int,
    ahead: int,
) -> None:
    windows = split_into_windows(items, first, largest)
    results = list(in_order(windows, Doubler(pool, batch_tokens), ahead))
    assert results == [2 * item for item in items if item is not None]


@given(lengths=lengths_strategy, tokens=st.integers(1, 200), workers=st.integers(1, 4))
def test_batches(lengths: list[int], tokens: int, workers: int) -> None:
    batches = split_into_batches(lengths, tokens, workers)
    indices = [index for batch in batches for index in batch]
    assert sorted(indices) == list(range(len(lengths)))
    by_length = [lengths[index] for index in indices]
    assert by_length == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens


@pytest.mark.parametrize(
    ("lengths", "tokens", "workers", "sizes"),
    [
        ([10], 100, 2, [1]),
        ([10, 10], 100, 2, [1, 1]),  # fits into one batch, but two workers are there
        ([10, 10, 10], 100, 2, [2, 1]),
        ([10] * 33, 1000, 2, [17, 16]),
        ([10] * 33, 1000, 1, [33]),
        ([10] * 30, 100, 2, [8, 8, 8, 6]),  # three full ones would leave a worker idle
        ([50, 2, 2, 2], 100, 2, [1, 3]),
        ([], 100, 2, []),
    ],
)
def test_workers_share_a_window(
    lengths: list[int], tokens: int, workers: int, sizes: list[int]
) -> None:
    assert [len(batch) for batch in split_into_batches(lengths, tokens, workers)] == sizes


def test_windows_grow_up_to_a_limit() -> None:
    sizes = [len(window) for window in split_into_windows(range(1, 10001))]
    assert sizes == [32, 128, 512, 2048, 2048, 2048, 2048, 1136]
    assert (FIRST_WINDOW, LARGEST_WINDOW) == (32, 2048)


def test_a_pause_closes_a_window() -> None:
    items = [None, 1, 2, None, None, 3, None]
    assert list(split_into_windows(items)) == [[], [1, 2], [], [], [3], []]


def test_memory_is_flat(pool: ThreadPoolExecutor) -> None:
    """What is read but not handed over yet stays below two of the largest windows."""
    read = handed_over = most = 0

    def numbers() -> Iterator[int]:
        nonlocal read
        for number in range(40_000):
            read += 1
            yield number % 7 + 1

    for _ in in_order(split_into_windows(numbers()), Doubler(pool, 5000)):
        most = max(most, read - handed_over)
        handed_over += 1
    assert handed_over == 40_000
    assert LARGEST_WINDOW < most <= 2 * LARGEST_WINDOW


def test_the_first_lines_do_not_wait_for_many(pool: ThreadPoolExecutor) -> None:
    source = iter(range(1, 100_000))
    results = in_order(split_into_windows(source), Doubler(pool))
    assert next(results) == 2
    results.close()
    assert next(source) <= 200


def test_all_is_handed_over_before_a_pause(pool: ThreadPoolExecutor) -> None:
    got: list[int] = []
    seen_at_pause: list[list[int]] = []

    def numbers() -> Iterator[int | None]:
        for end in (3, 200, 201):
            yield from range(len(got) + 1, end + 1)
            yield None
            seen_at_pause.append(got.copy())

    for result in in_order(split_into_windows(numbers()), Doubler(pool)):
        got.append(result)
    assert seen_at_pause == [[2 * n for n in range(1, end + 1)] for end in (3, 200, 201)]


@pytest.mark.parametrize("count", [0, 1, 13, 14, 50])
def test_what_was_read_before_an_error_is_handed_over_first(
    pool: ThreadPoolExecutor, count: int
) -> None:
    def numbers() -> Iterator[int]:
        yield from range(1, count + 1)
        raise ValueError("the next line")

    results = in_order(split_into_windows(numbers(), 7, 7), Doubler(pool))
    assert list(islice(results, count)) == [2 * number for number in range(1, count + 1)]
    with pytest.raises(ValueError, match="the next line"):
        next(results)


def test_who_leaves_early_leaves_no_work_behind() -> None:
    futures: list[Future[list[int]]] = []

    def submit(window: Sequence[int]) -> list[PendingResult[int]]:
        futures.extend(Future() for _ in window)
        if not futures[0].done():
            futures[0].set_result([0])
        return [PendingResult(future, 0) for future in futures[-len(window) :]]

    results = in_order([[1, 2], [3, 4], [5, 6]], submit)
    assert next(results) == 0
    results.close()
    assert [future.cancelled() for future in futures] == [False, True, True, True]


def test_an_error_in_a_batch_reaches_the_caller(pool: ThreadPoolExecutor) -> None:
    def divide(number: int) -> list[int]:
        return [1 // (number - 2)]

    def submit(window: Sequence[int]) -> list[PendingResult[int]]:
        return [PendingResult(pool.submit(divide, number), 0) for number in window]

    results = in_order([[1], [2], [3]], submit)
    assert next(results) == -1
    with pytest.raises(ZeroDivisionError):
        next(results)


class Words:
    """A job: each item is some numbers, each of which is doubled; an item's result is their sum."""

    def prepare(self, window: Sequence[list[int]]) -> WindowTasks[int]:
        numbers = sorted({number for item in window for number in item})
        tasks_of_item = [[numbers.index(number) for number in item] for item in window]
        return WindowTasks(numbers, numbers, tasks_of_item)

    def run(self, tasks: Sequence[int]) -> list[int]:
        return [2 * task for task in tasks]

    def join(self, results: Sequence[int]) -> int:
        return sum(results)


@given(
    items=st.lists(st.lists(st.integers(1, 20), max_size=3), max_size=60),
    batch_size=st.integers(1, 60),
)
def test_items_of_none_or_several_tasks(items: list[list[int]], batch_size: int) -> None:
    workers = Workers(2)
    advanced: list[int] = []
    windows = split_into_windows(items, 3, 20)
    results = list(workers.stream(windows, Words(), batch_size, advanced.append))
    workers.close()
    assert results == [2 * sum(item) for item in items]
    assert sum(advanced) == len(items)


@given(item=st.lists(st.integers(1, 20), max_size=30), batch_size=st.integers(1, 60))
def test_the_tasks_of_a_submitted_item_are_batched(item: list[int], batch_size: int) -> None:
    batches: list[Sequence[int]] = []

    class Watched(Words):
        def run(self, tasks: Sequence[int]) -> list[int]:
            batches.append(tasks)
            return super().run(tasks)

    workers = Workers(1)
    assert workers.submit(Watched(), item, batch_size).result() == 2 * sum(item)
    workers.close()
    assert all(len(batch) == 1 or len(batch) * max(batch) <= batch_size for batch in batches)


def test_progress_comes_batch_by_batch_before_the_results() -> None:
    """The first result of a window may be that of its last batch."""
    workers = Workers(1)
    advanced: list[int] = []
    items = [[number] for number in range(1, 41)]
    results = workers.stream([items], Words(), 40, advanced.append)
    assert next(results) == 2  # the smallest, which was in the last batch
    assert sum(advanced) == 40
    assert max(advanced) < 10
    results.close()
    workers.close()


def test_heavy_items_make_small_windows() -> None:
    heavy = HEAVIEST_WINDOW // 2
    sizes = [len(window) for window in split_into_windows([heavy] * 5, weigh=lambda item: item)]
    assert sizes == [2, 2, 1]
