"""Signed sinusoids: the formula written out, negative arguments, and the two layouts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothends.model.config import ModelConfig
from bothends.model.sinusoid import Stored, position_encodings, sinusoid

WIDTHS = st.integers(1, 32).map(lambda half: 2 * half)
POSITIONS = st.lists(st.integers(-1000, 1000), max_size=8).map(np.array)


@pytest.mark.parametrize("position", [0, 1, 7, -1, -256])
def test_pairs_are_sine_and_cosine(position: int) -> None:
    found = sinusoid(np.array([position]), 8, "interleaved")[0]
    for i in range(4):
        angle = position / 10000 ** (2 * i / 8)
        assert found[2 * i] == pytest.approx(math.sin(angle), abs=1e-15)
        assert found[2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-15)


@given(POSITIONS, WIDTHS)
def test_a_negative_position_turns_the_sines_only(positions: np.ndarray, width: int) -> None:
    there, back = (sinusoid(p.astype(int), width, "halves") for p in (positions, -positions))
    half = width // 2
    np.testing.assert_array_equal(there[:, :half], -back[:, :half])
    np.testing.assert_array_equal(there[:, half:], back[:, half:])


@given(POSITIONS, WIDTHS)
def test_layouts_hold_the_same_numbers(positions: np.ndarray, width: int) -> None:
    pairs = sinusoid(positions.astype(int), width, "interleaved")
    halves = sinusoid(positions.astype(int), width, "halves")
    assert pairs.shape == halves.shape == (len(positions), width)
    assert pairs.dtype == np.float64
    np.testing.assert_array_equal(pairs[:, 0::2], halves[:, : width // 2])
    np.testing.assert_array_equal(pairs[:, 1::2], halves[:, width // 2 :])


def test_shape_follows_the_positions() -> None:
    assert sinusoid(np.arange(6).reshape(2, 3), 4, "interleaved").shape == (2, 3, 4)


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_encodings_are_rounded_as_they_were_stored(precision: Stored) -> None:
    torch = pytest.importorskip("torch")
    positions = np.arange(-400, 401)  # among them 355, nearly a multiple of pi: a tiny sine
    exact = position_encodings(positions, ModelConfig(width=16))
    found = position_encodings(positions, ModelConfig(width=16, sinusoid_precision=precision))
    stored = torch.from_numpy(exact).float().to(getattr(torch, precision))
    np.testing.assert_array_equal(found, stored.double().numpy())
    assert not np.array_equal(found, exact)
