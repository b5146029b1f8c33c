"""Kernels of every instruction set that this processor has: same integers, same rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bothends.engines.native import extension

native: Any = extension()
if native is None:
    pytest.skip("the native engine is not built", allow_module_level=True)

INSTRUCTION_SETS: list[str] = native.instruction_sets()
if "avx512_vnni" in Path("/proc/cpuinfo").read_text():
    INSTRUCTION_SETS.append("amx-emulated")  # the same products, with tiles in plain memory
SHAPES = [
    (1, 1, 1),
    (1, 16, 64),
    (2, 24, 16),
    (3, 64, 65),
    (4, 65, 128),
    (5, 130, 100),
    (17, 70, 256),
    (40, 64, 64),
]


@pytest.fixture(params=INSTRUCTION_SETS)
def isa(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_are_exact(
    isa: str, shape: tuple[int, int, int], positive: bool, random: np.random.Generator
) -> None:
    rows, outputs, inputs = shape
    values = random.integers(0, 256, (rows, inputs)).astype(np.uint8)
    weights = random.integers(-64, 65, (outputs, inputs)).astype(np.int8)
    zero_point = 0 if positive else 128
    expected = (values.astype(np.int64) - zero_point) @ weights.astype(np.int64).T
    found = native.multiply(isa, values, weights, positive)
    assert abs(expected).max() < 2**24, "a float32 holds these integers exactly"
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weight", [-64, 64])
def test_the_largest_products_do_not_saturate(isa: str, weight: int) -> None:
    """255 * 64 twice is 32640, and an int16 ends at 32767."""
    values = np.full((3, 512), 255, np.uint8)
    weights = np.full((20, 512), weight, np.int8)
    np.testing.assert_array_equal(native.multiply(isa, values, weights, True), 255 * 512 * weight)


def test_weights_of_eight_bits_are_refused(isa: str) -> None:
    with pytest.raises(ValueError, match="seven bits"):
        native.multiply(isa, np.zeros((1, 4), np.uint8), np.full((1, 4), 65, np.int8), False)


@pytest.mark.parametrize("size", [1, 7, 16, 31, 64, 200])
@pytest.mark.parametrize("positive", [False, True])
def test_rounding_is_that_of_quantize_linear(
    isa: str, size: int, positive: bool, random: np.random.Generator
) -> None:
    row = random.normal(0, 3, size).astype(np.float32)
    limit, zero_point = (255, 0) if positive else (127, 128)
    largest = max(row.max(), np.float32(0)) if positive else abs(row).max()
    scale = largest * np.float32(1 / limit)
    expected = np.clip(np.rint(row / (scale or 1)) + zero_point, 0, 255)
    values, found = native.quantise(isa, row, positive)
    assert found == scale
    np.testing.assert_array_equal(values, expected)


def test_halves_are_rounded_to_even(isa: str) -> None:
    row = np.array([127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5], np.float32)
    values, scale = native.quantise(isa, row, False)
    assert scale == 1.0
    assert (values.astype(int) - 128).tolist() == [127, 0, 2, 2, 0, -2, -2]


def test_a_row_of_zeros_has_scale_zero(isa: str) -> None:
    for positive in (False, True):
        _, scale = native.quantise(isa, np.zeros(20, np.float32), positive)
        assert scale == 0.0
