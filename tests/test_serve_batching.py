"""Batches that clients share: a lone item waits for nobody, and nobody waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from unittest.mock import Mock

import pytest

from bothends.serve.batching import Batcher, BatchRecord, Outcome, settle
from bothends.serve.translating import TranslateBatch
from bothends.translating.translation import TranslationOptions
from bothends.translator import Translator


@dataclass(frozen=True)
class Recorded:
    """Doubles numbers, and writes down its batches; 13 is bad luck."""

    name: str = "double"
    batches: list[list[int]] = field(default_factory=list, compare=False)
    gate: threading.Event = field(default_factory=threading.Event, compare=False)
    begun: threading.Event = field(default_factory=threading.Event, compare=False)

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        self.begun.set()
        assert self.gate.wait(10)
        if 13 in items:
            raise ValueError("bad luck")
        return [2 * item for item in items]


def held_up(batcher: Batcher, kind: Recorded) -> None:
    """Keep the only worker busy until the gate opens, so that what comes now is queued."""
    batcher.submit(kind, [0], [1], "first")
    assert kind.begun.wait(10)


def test_what_waits_shares_a_batch_by_size() -> None:
    batcher, kind = Batcher(1, batch_size=12), Recorded()
    held_up(batcher, kind)
    futures = batcher.submit(kind, [1, 2, 3, 4, 5], [3, 10, 3, 9, 4], "client")
    kind.gate.set()
    assert [future.result(10) for future in futures] == [2, 4, 6, 8, 10]
    # 3 + 3 + 4 fit, as three times the longest; 10 and 9 do not fit together
    assert kind.batches == [[0], [1, 3, 5], [2], [4]]
    batcher.close()


def test_a_sentence_that_must_become_long_takes_more_of_a_batch() -> None:
    line = "Where is the nearest station?"
    usual, long = (
        TranslateBatch(Mock(spec=Translator), TranslationOptions(min_length=least))
        for least in (0, 300)
    )
    assert usual.size(line) < 20
    assert long.size(line) > 300


def test_a_lone_item_waits_for_nobody() -> None:
    batcher, kind = Batcher(2), Recorded()
    kind.gate.set()
    begin = time.monotonic()
    assert batcher.submit(kind, [4], [1])[0].result(10) == 8
    assert time.monotonic() - begin < 5
    batcher.close()


def test_a_client_with_much_work_delays_another_by_a_batch_at_most() -> None:
    batcher, kind = Batcher(1, batch_size=4), Recorded()
    held_up(batcher, kind)
    batcher.submit(kind, range(100, 200), [2] * 100, "greedy")
    batcher.submit(kind, [1, 2], [2, 2], "modest")
    kind.gate.set()
    batcher.close()
    assert {1, 2} <= set(kind.batches[1] + kind.batches[2])


def test_idle_workers_share_what_there_is() -> None:
    batcher, kind = Batcher(2, batch_size=100), Recorded()
    futures = batcher.submit(kind, [1, 2, 3, 4], [5, 5, 5, 5])
    while len(kind.batches) < 2:  # both have begun
        time.sleep(0.001)
    kind.gate.set()
    assert [future.result(10) for future in futures] == [2, 4, 6, 8]
    assert sorted(map(len, kind.batches)) == [2, 2]
    batcher.close()


def test_kinds_do_not_mix() -> None:
    batcher, kind, other = Batcher(1), Recorded(), Recorded("other")
    held_up(batcher, kind)
    batcher.submit(kind, [1], [1])
    batcher.submit(other, [2], [1])
    batcher.submit(Recorded(batches=kind.batches, gate=kind.gate), [3], [1])  # equal to `kind`
    kind.gate.set()
    other.gate.set()
    batcher.close()
    assert kind.batches == [[0], [1, 3]]
    assert other.batches == [[2]]


def test_only_the_item_at_fault_fails() -> None:
    batcher, kind = Batcher(1), Recorded()
    held_up(batcher, kind)
    futures = batcher.submit(kind, [12, 13, 14], [1, 1, 1])
    kind.gate.set()
    assert futures[0].result(10) == 24
    with pytest.raises(ValueError, match="bad luck"):
        futures[1].result(10)
    assert futures[2].result(10) == 28
    batcher.close()


def test_what_is_cancelled_is_not_run() -> None:
    batcher, kind = Batcher(1), Recorded()
    held_up(batcher, kind)
    futures = batcher.submit(kind, [1, 2, 3], [1, 1, 1])
    assert futures[1].cancel()
    kind.gate.set()
    batcher.close()
    assert kind.batches == [[0], [1, 3]]


def test_a_batch_is_delivered_at_once() -> None:
    """An event loop is woken up once for a batch."""
    delivered: list[list[Outcome]] = []

    def deliver(outcomes: Sequence[Outcome]) -> None:
        delivered.append(list(outcomes))
        settle(outcomes)

    batcher, kind = Batcher(1, deliver=deliver), Recorded()
    held_up(batcher, kind)
    first = batcher.submit(kind, [1], [1], "a")
    second = batcher.submit(kind, [2, 3], [1, 1], "b")
    second[0].cancel()
    kind.gate.set()
    assert (first[0].result(10), second[1].result(10)) == (2, 6)
    batcher.close()
    assert [len(outcomes) for outcomes in delivered] == [1, 2]


def test_who_does_not_wait_any_more_is_left_alone() -> None:
    batcher, kind = Batcher(1), Recorded()
    (running,) = batcher.submit(kind, [1], [1])
    assert kind.begun.wait(10)
    assert running.cancel()
    (after,) = batcher.submit(kind, [2], [1])
    kind.gate.set()
    assert after.result(10) == 4
    batcher.close()


def test_closing_runs_what_waits_and_takes_no_more() -> None:
    batcher, kind = Batcher(1, batch_size=2), Recorded()
    held_up(batcher, kind)
    futures = batcher.submit(kind, range(10), [1] * 10)
    kind.gate.set()
    batcher.close()
    assert [future.result(0) for future in futures] == [2 * item for item in range(10)]
    with pytest.raises(RuntimeError):
        batcher.submit(kind, [1], [1])


def test_batches_are_reported() -> None:
    records: list[BatchRecord] = []
    batcher, kind = Batcher(1, observe=records.append), Recorded()
    kind.gate.set()
    batcher.submit(kind, [1, 2], [3, 4])[1].result(10)
    batcher.close()
    assert [(record.items, record.size) for record in records] == [(2, 7)]


def test_every_item_is_answered_with_its_own_result_under_load() -> None:
    batcher = Batcher(3, batch_size=30)
    kind = Recorded()
    kind.gate.set()
    wrong: list[int] = []

    def ask(client: int) -> None:
        for number in range(50):
            item = 1000 * client + number + 100
            if batcher.submit(kind, [item], [1 + item % 7], str(client))[0].result(10) != 2 * item:
                wrong.append(item)

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    batcher.close()
    assert wrong == []
    assert sum(map(len, kind.batches)) == 400
