"""Batches: every pair once an epoch, within the budget, and resumable at any place."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bothends.order import GenerationOrder
from bothends.text.vocabulary import SpecialTokens
from bothends.training.batches import BatchStream, Mixture, Position, collate, cut
from bothends.training.distributed import Processes
from bothends.training.recipe import Batch
from bothends.training.shuffle import RandomOrder
from conftest import ALL_ORDERS


class Lengths:
    """Pairs that have lengths and, as tokens, their own number."""

    def __init__(self, source: NDArray[np.integer], target: NDArray[np.integer]) -> None:
        self.source_lengths, self.target_lengths = source, target

    def __len__(self) -> int:
        return len(self.source_lengths)

    def __getitem__(self, index: int) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        return (
            np.full(self.source_lengths[index], 4 + index),
            np.full(self.target_lengths[index], 4 + index),
        )


def make_stream(
    pairs: int = 1000, seed: int = 1, window: int = 256, **settings: int
) -> BatchStream:
    random = np.random.default_rng(3)
    source = random.integers(1, 41, pairs).astype(np.int32)
    target = np.clip(source + random.integers(-4, 5, pairs), 1, 40).astype(np.int32)
    chosen = {"tokens": 600, "micro_tokens": 200, **settings}
    batch = Batch(**{"max_source_length": 40, "max_target_length": 40, **chosen})
    return BatchStream(Mixture([lambda: Lengths(source, target)]), batch, seed, 16, window)


def epoch_of(stream: BatchStream, epoch: int) -> list[list[int]]:
    return [
        batch.pairs.tolist()
        for window in range(stream.windows)
        for batch in stream.micro_batches(epoch, window)
    ]


@given(size=st.integers(1, 3000), key=st.tuples(st.integers(0, 2**32), st.integers(0, 9)))
def test_a_random_order_is_a_permutation(size: int, key: tuple[int, int]) -> None:
    assert sorted(RandomOrder(size, key)(np.arange(size))) == list(range(size))


def test_a_random_order_looks_random() -> None:
    size = 100_000
    places = np.arange(size)
    first, second = RandomOrder(size, (1, 0))(places), RandomOrder(size, (1, 1))(places)
    # The correlation of independent orders has a standard deviation of 1 / sqrt(size) = 0.003.
    for left, right in ((places, first), (first, second), (first[:-1], first[1:])):
        assert abs(np.corrcoef(left, right)[0, 1]) < 0.02
    # One fixed point and one pair that stays together are expected; ten would be suspicious.
    assert (first == places).sum() < 10
    assert (np.diff(first) == 1).sum() < 10


@pytest.mark.parametrize("pairs", [1, 15, 16, 17, 255, 1000])
def test_an_epoch_has_every_pair_once(pairs: int) -> None:
    seen = [pair for batch in epoch_of(make_stream(pairs), 0) for pair in batch]
    assert sorted(seen) == list(range(pairs))


def test_epochs_and_seeds_differ_and_repeat() -> None:
    stream = make_stream()
    assert epoch_of(stream, 0) == epoch_of(make_stream(), 0)
    assert epoch_of(stream, 0) != epoch_of(stream, 1)
    assert epoch_of(stream, 0) != epoch_of(make_stream(seed=2), 0)


def test_micro_batches_are_within_the_budget_and_well_filled() -> None:
    stream = make_stream()
    special, order = SpecialTokens(), GenerationOrder()
    padded = real = 0
    for pairs in epoch_of(stream, 0):
        arrays = collate([stream.pairs[i] for i in pairs], order, special)
        width = max(arrays.source.shape[1], arrays.targets.shape[1])
        assert len(pairs) * width <= 200
        padded += arrays.targets.size
        real += int((arrays.targets != special.pad).sum())
    # Sorting by length is what batches are bucketed for: unsorted, half would be padding.
    assert real / padded > 0.9


def test_an_update_is_about_as_large_as_asked_and_stays_in_its_epoch() -> None:
    stream = make_stream()
    updates = list(islice(stream.updates(Position()), 60))
    for update in updates[:-1]:
        if update.next.epoch == update.epoch:
            assert abs(update.target_tokens - 600) <= 100  # half a micro-batch
    first_epoch = [update for update in updates if update.epoch == 0]
    pairs = [p for update in first_epoch for batch in update.micro_batches for p in batch.pairs]
    assert sorted(pairs) == list(range(1000))


def test_the_stream_goes_on_at_any_place() -> None:
    stream = make_stream(300)
    updates = list(islice(stream.updates(Position()), 40))
    assert updates[-1].epoch > 1
    for i, update in enumerate(updates[:-1]):
        again = next(make_stream(300).updates(update.next))
        assert again.next == updates[i + 1].next
        expected = [batch.pairs.tolist() for batch in updates[i + 1].micro_batches]
        assert [batch.pairs.tolist() for batch in again.micro_batches] == expected


def test_too_long_pairs_are_counted_and_left_out_whole() -> None:
    stream = make_stream(max_source_length=30, max_target_length=25)
    source, target = stream.pairs.lengths(np.arange(1000))
    too_long = stream.too_long()
    assert too_long.source == (source > 30).sum()
    assert too_long.target == ((source <= 30) & (target > 25)).sum()
    seen = [pair for batch in epoch_of(stream, 0) for pair in batch]
    assert sorted(seen) == np.flatnonzero((source <= 30) & (target <= 25)).tolist()
    assert too_long.pairs + len(seen) == 1000


def test_memory_is_that_of_a_window() -> None:
    """No array that the stream holds or makes grows with the corpus, but for the corpus's own."""
    stream = make_stream(5000)
    assert stream.windows == 20
    assert max(len(stream._window(0, window)) for window in range(20)) <= 256


def test_a_mixture_reads_each_corpus_as_often_as_asked() -> None:
    one, two = np.array([1, 2, 3]), np.array([7, 8])
    mixture = Mixture([lambda: Lengths(one, one + 1), lambda: Lengths(two, two + 1)], [1, 2])
    source, target = mixture.lengths(np.arange(len(mixture)))
    assert source.tolist() == [1, 2, 3, 7, 8, 7, 8]
    assert target.tolist() == [2, 3, 4, 8, 9, 8, 9]
    assert [len(mixture[i][0]) for i in range(7)] == source.tolist()


@pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
def test_collate_lays_targets_out_as_the_order_says(order: GenerationOrder) -> None:
    special = SpecialTokens()
    pairs = [(np.arange(4, 4 + n), np.arange(10, 10 + m)) for n, m in ((3, 5), (1, 1), (2, 9))]
    arrays = collate(pairs, order, special)
    assert arrays.source.tolist() == [[4, 5, 6, 3], [4, 3, 0, 0], [4, 5, 3, 0]]
    for row, (_, target) in enumerate(pairs):
        (expected,) = order.target_slots([target.tolist()], special.end, special.pad)
        assert arrays.targets[row, : len(expected)].tolist() == expected.tolist()
        assert not arrays.targets[row, len(expected) :].any()
    slots = arrays.targets.shape[1]
    assert slots % order.block_size == 0
    z = order.block_size
    assert (arrays.tokens[:, :z] == special.start).all()
    assert np.array_equal(arrays.tokens[:, z:], arrays.targets[:, :-z])
    assert np.array_equal(arrays.block.positions, order.positions(slots))
    assert np.array_equal(arrays.block.directions, order.direction_ids(slots))
    assert np.array_equal(arrays.block.mask, order.mask(slots))


@given(widths=st.lists(st.integers(1, 90), max_size=40), budget=st.integers(1, 200))
def test_rows_are_cut_into_stretches_that_fit(widths: list[int], budget: int) -> None:
    stretches = list(cut(np.array(widths, dtype=np.int64), budget))
    assert [row for start, end in stretches for row in range(start, end)] == [*range(len(widths))]
    for start, end in stretches:
        # One row has to fit, however long it is.
        assert end - start == 1 or (end - start) * max(widths[start:end]) <= budget
        assert end > start
        wider = max(widths[start : end + 1])
        assert end == len(widths) or (end + 1 - start) * wider > budget


def test_lanes_are_stretches_of_the_corpus_that_one_process_reads() -> None:
    stream = make_stream(lanes=4)
    plain = sorted(pair for batch in epoch_of(make_stream(), 0) for pair in batch)
    assert sorted(pair for batch in epoch_of(stream, 0) for pair in batch) == plain
    owners: dict[int, set[int]] = {}
    for epoch in (0, 1):
        for window in range(stream.windows):
            for batch in stream.micro_batches(epoch, window):
                for pair in batch.pairs.tolist():
                    owners.setdefault(pair // 16, set()).add(batch.lane)  # blocks of 16
    # A block is of one lane in every epoch, and lanes are stretches one after the other.
    assert all(len(lanes) == 1 for lanes in owners.values())
    in_order = [min(owners[block]) for block in sorted(owners)]
    assert in_order == sorted(in_order)
    assert set(in_order) == {0, 1, 2, 3}
    for update in islice(stream.updates(Position()), 12):
        lanes = [batch.lane for batch in update.micro_batches]
        shares = [Processes(rank, 2, torch.device("cpu")).share_by_lane(lanes) for rank in (0, 1)]
        assert sorted(shares[0] + shares[1]) == list(range(len(lanes)))
        assert {lanes[number] % 2 for number in shares[1]} <= {1}
