"""What several test files share: the orders to cover, tiny models, and the seed.

Tests draw the same random numbers each time. `pytest --fresh-seed` draws new ones, here and in
hypothesis, and prints the seed; `pytest --seed N` repeats such a run.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings

from bothends.errors import UsageError
from bothends.model.config import Dropout, ModelConfig
from bothends.model.torch.transformer import BlockTensors, Transformer
from bothends.order import VARIANTS, GenerationOrder, IntArray

# Tiny products are faster on one thread, and the suite shares its machine.
torch.set_num_threads(1)
# A property is about values: on a busy machine any example can take long.
settings.register_profile("fixed", deadline=None, derandomize=True, database=None)
settings.register_profile("fresh", deadline=None, print_blob=True)

FIXED_SEED = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed", type=int, default=FIXED_SEED, help="seed of random inputs (default: %(default)s)"
    )
    parser.addoption(
        "--fresh-seed", action="store_true", help="draw a seed, and print it at the end"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fresh-seed"):
        config.option.seed = secrets.randbelow(2**32)
    # Before tests are collected: their settings start from those of the profile.
    settings.load_profile("fixed" if config.getoption("--seed") == FIXED_SEED else "fresh")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seed = terminalreporter.config.getoption("--seed")
    if seed != FIXED_SEED:
        terminalreporter.write_line(f"random inputs: --seed {seed} repeats this run")


PLAIN_ORDERS = [
    GenerationOrder.parse(text)
    for text in ("1x1", "1x2", "1x4", "2x1", "2x2", "4x1", "4x2", "6x1", "8x1", "2x3")
]


def _variants(shape: str) -> Iterator[GenerationOrder]:
    for variant in VARIANTS:
        try:
            yield GenerationOrder.parse(f"{shape}+{variant}")
        except UsageError:  # this shape has no such variant
            continue


VARIANT_ORDERS = [order for shape in ("2x1", "2x2", "4x1") for order in _variants(shape)] + [
    GenerationOrder.parse("2x2+vanilla-mask+independent-directions"),
    GenerationOrder.parse("4x1+vanilla-positions+middle-to-side"),
]
ALL_ORDERS = PLAIN_ORDERS + VARIANT_ORDERS

MakeModel = Callable[..., Transformer]


def tiny_config(**changes: Any) -> ModelConfig:
    """Two layers of width 16, no dropout, 23 words; `changes` are fields of `ModelConfig`."""
    shape: dict[str, Any] = dict(
        vocabulary_size=23,
        encoder_layers=2,
        decoder_layers=2,
        width=16,
        heads=2,
        feed_forward=24,
        dropout=Dropout(residual=0, attention=0, activation=0, embedding=0),
    )
    return ModelConfig(**{**shape, **changes})


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> int:
    """The seed of this run, for PyTorch too; printed when a test fails."""
    value = int(pytestconfig.getoption("--seed"))
    print(f"--seed {value}")
    torch.manual_seed(value)
    return value


@pytest.fixture
def random(seed: int) -> np.random.Generator:
    """NumPy randomness from the seed of this run."""
    return np.random.default_rng(seed)


@pytest.fixture
def make_model(seed: int) -> MakeModel:
    """`make_model(order, **changes)`: a tiny random network in float64, ready for inference."""

    def make(order: GenerationOrder | str, **changes: Any) -> Transformer:
        order = GenerationOrder.parse(order) if isinstance(order, str) else order
        model = Transformer(tiny_config(**changes), order).double().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                # Biases and norms start at 0 and 1, where a mistake in using them would not show.
                if parameter.dim() == 1:
                    parameter.add_(0.3 * torch.randn_like(parameter))
        return model

    return make


def order_tensors(order: GenerationOrder, slots: int) -> BlockTensors:
    """So many slots as one block."""
    return BlockTensors.of(order.whole(slots))


def random_source(
    random: np.random.Generator, sentences: int, longest: int, words: int, *, padded: bool
) -> IntArray:
    """Source ids (S, N): pieces from 4 up, the end symbol (3), padding (0).

    Unpadded, all sentences are `longest` long. Padded, each has a length of its own (1 is the end
    symbol alone) and two columns of padding follow the longest.
    """
    columns = np.arange(longest + 2 if padded else longest)
    lengths = np.full((sentences, 1), longest)
    if padded:
        lengths = random.integers(1, longest + 1, (sentences, 1))
    pieces = random.integers(4, words, (sentences, len(columns)))
    return np.where(columns < lengths - 1, pieces, np.where(columns == lengths - 1, 3, 0))
