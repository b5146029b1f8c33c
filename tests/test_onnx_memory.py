"""The memory that searches hand on: what one has written, no other sees or loses."""

from __future__ import annotations

import gc

import numpy as np

from bothends.engines.onnx.memory import FIRST_ENTRIES, ArrayPool, Cache, SourceMemory

ENTRY = (3, 2, 4)  # sentences, heads, head width


def filled(cache: Cache, lines: int, random: np.random.Generator) -> list[np.ndarray]:
    """Random numbers in all that a cache shows."""
    content = [random.standard_normal(cache.line(0).shape, np.float32) for _ in range(lines)]
    for number, values in enumerate(content):
        cache.line(number)[...] = values
    return content


def test_memory_is_used_again_when_its_user_is_gone() -> None:
    pool = ArrayPool()
    first = pool.lease(100)
    address = first.array.ctypes.data
    assert pool.lease(100).array.ctypes.data != address, "still in use"
    del first
    gc.collect()
    assert pool.lease(90).array.ctypes.data == address


def test_memory_that_is_too_small_is_let_go() -> None:
    pool = ArrayPool()
    pool.give_back(np.empty(10, np.float32))
    assert len(pool.lease(1000).array) >= 1000


def test_what_a_cache_shows_anew_is_zero_whoever_had_the_memory(
    random: np.random.Generator,
) -> None:
    pool, lines = ArrayPool(), 4
    used = Cache(pool, lines, ENTRY)
    used.grow(FIRST_ENTRIES)
    filled(used, lines, random)
    del used
    gc.collect()
    cache = Cache(pool, lines, ENTRY)
    cache.grow(8)
    assert all((cache.line(number) == 0).all() for number in range(lines))


def test_a_cache_that_outgrows_its_memory_keeps_its_entries(random: np.random.Generator) -> None:
    cache, lines = Cache(ArrayPool(), 4, ENTRY), 4
    cache.grow(8)
    content = filled(cache, lines, random)
    for window in (FIRST_ENTRIES, 10 * FIRST_ENTRIES):
        cache.grow(window)
        for number, values in enumerate(content):
            np.testing.assert_array_equal(cache.line(number)[:8], values)
            assert (cache.line(number)[8:] == 0).all()


def test_sentences_that_stay_keep_their_keys_and_values(random: np.random.Generator) -> None:
    cache, lines, stay = Cache(ArrayPool(), 4, ENTRY), 4, np.array([2, 0])
    cache.grow(8)
    content = filled(cache, lines, random)
    selected = cache.select(stay, entries=5)
    for number, values in enumerate(content):
        np.testing.assert_array_equal(selected.line(number)[:5], values[:5, stay])
        assert (selected.line(number)[5:] == 0).all()

    memory = SourceMemory(ArrayPool(), (4, *ENTRY))
    memory.array[...] = random.standard_normal(memory.array.shape)
    np.testing.assert_array_equal(memory.select(stay).array, memory.array[:, stay])
