"""The loss against PyTorch's, value and gradients; the schedule as a table; cheap dropout."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

import bothends.model.torch.attention
import bothends.training.loss
from bothends.model.torch.attention import attention
from bothends.model.torch.dropout import CheapDropout, dropout_mask
from bothends.training.loss import CHUNK, smoothed_cross_entropy
from bothends.training.recipe import Optimiser
from bothends.training.schedule import learning_rate


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("rows", [1, CHUNK, CHUNK + 3])
@pytest.mark.parametrize("with_bias", [False, True])
def test_loss_and_gradients_are_the_reference_s(
    seed: int, smoothing: float, rows: int, with_bias: bool
) -> None:
    hidden = torch.randn(rows, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(31, 8, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(31, dtype=torch.float64, requires_grad=True) if with_bias else None
    targets = torch.randint(0, 31, (rows,))
    inputs = [hidden, weight] + ([bias] if bias is not None else [])
    loss = smoothed_cross_entropy(hidden, weight, bias, targets, smoothing)
    expected = F.cross_entropy(
        F.linear(hidden, weight, bias), targets, reduction="sum", label_smoothing=smoothing
    )
    # Two roundings of the same sums in float64.
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
    ours = torch.autograd.grad(loss / 7, inputs)
    theirs = torch.autograd.grad(expected / 7, inputs)
    for mine, reference in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-10, atol=1e-12)


def test_the_loss_survives_improbable_words() -> None:
    """A word 400 nats below the best has a probability that float32 rounds to zero."""
    hidden = torch.eye(3)
    weight = torch.tensor([[400.0, 0, 0], [0, 400.0, 0], [0, 0, 400.0]])
    loss = smoothed_cross_entropy(hidden, weight, None, torch.tensor([1, 2, 2]), 0.0)
    assert loss == pytest.approx(800.0)


def test_no_gradient_is_computed_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    products = []
    monkeypatch.setattr(bothends.training.loss, "_add_product", lambda *_: products.append(1))
    weight = torch.randn(5, 4, requires_grad=True)
    arguments = (torch.randn(3, 4), weight, None, torch.tensor([0, 1, 2]), 0.1)
    with torch.no_grad():
        smoothed_cross_entropy(*arguments)
    assert not products
    smoothed_cross_entropy(*arguments)
    assert products


@pytest.mark.parametrize(
    ("update", "expected"),
    # Vaswani et al.: width ** -0.5 * min(update ** -0.5, update * warmup ** -1.5)
    [
        (1, 1.7469e-07),
        (2000, 3.4939e-04),
        (4000, 6.9877e-04),
        (16000, 3.4939e-04),
        (100000, 1.3975e-04),
    ],
)
def test_the_default_schedule_is_vaswani_s(update: int, expected: float) -> None:
    assert learning_rate(update, Optimiser(), 512, None) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("update", "expected"), [(1, 0.1), (5, 0.5), (10, 1.0), (20, 0.5), (30, 0.0), (40, 0.0)]
)
def test_the_cosine_ends_at_zero(update: int, expected: float) -> None:
    settings = Optimiser(learning_rate=1.0, warmup=10, schedule="cosine")
    assert learning_rate(update, settings, 8, 30) == pytest.approx(expected, abs=1e-12)


def test_a_given_peak_is_reached_at_the_end_of_the_warm_up() -> None:
    settings = Optimiser(learning_rate=3e-3, warmup=100)
    rates = [learning_rate(update, settings, 512, None) for update in range(1, 500)]
    assert max(rates) == rates[99] == 3e-3
    assert rates[399] == pytest.approx(3e-3 * math.sqrt(100 / 400))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_dropout_mask_drops_its_share_and_keeps_the_mean(p: float) -> None:
    torch.manual_seed(5)
    mask = dropout_mask(torch.empty(500, 401), p)
    # 200,500 draws: a standard deviation of at most 0.0011
    assert (mask == 0).double().mean() == pytest.approx(p, abs=0.006)
    assert torch.unique(mask).tolist() == [0.0, pytest.approx(1 / (1 - p), rel=1e-4)]
    assert not torch.equal(mask, dropout_mask(torch.empty(500, 401), p))
    torch.manual_seed(5)
    assert torch.equal(mask, dropout_mask(torch.empty(500, 401), p))


def test_dropout_adds_what_it_keeps() -> None:
    dropout = CheapDropout(0.3).train()
    residual = torch.randn(6, 7, dtype=torch.float64, requires_grad=True)
    x = torch.randn(6, 7, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(1)
    total = dropout.add(residual, x)
    torch.manual_seed(1)
    torch.testing.assert_close(total, residual + dropout(x))
    torch.manual_seed(1)
    mask = dropout_mask(x, 0.3)
    grad = torch.randn_like(total)
    d_residual, d_x = torch.autograd.grad(total, (residual, x), grad)
    assert torch.equal(d_residual, grad)
    torch.testing.assert_close(d_x, grad * mask)
    assert dropout.eval()(x) is x
    assert torch.equal(dropout.add(residual, x), residual + x)


def test_attention_with_dropout_and_its_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    query = torch.randn(3, 2, 5, 4, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(3, 2, 7, 4, dtype=torch.float64, requires_grad=True)
    values = torch.randn(3, 2, 7, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(3, 1, 1, 7) > 0.3
    mask[..., 0] = True
    kept = (torch.rand(3, 2, 5, 7) > 0.3).double() / 0.7

    def fixed(like: Tensor, p: float) -> Tensor:
        assert (like.shape, p) == (kept.shape, 0.3)
        return kept

    monkeypatch.setattr(bothends.model.torch.attention, "dropout_mask", fixed)
    ours = attention(query, keys, values, mask, 0.3)
    scores = (query @ keys.transpose(-1, -2) / 2).masked_fill(~mask, -torch.inf)
    theirs = (scores.softmax(-1) * kept) @ values
    torch.testing.assert_close(ours, theirs)
    grad = torch.randn_like(ours)
    for mine, reference in zip(
        torch.autograd.grad(ours, (query, keys, values), grad),
        torch.autograd.grad(theirs, (query, keys, values), grad),
        strict=True,
    ):
        torch.testing.assert_close(mine, reference)


def test_attention_in_bfloat16_and_its_gradients() -> None:
    """On a CPU it is our own, which rounds operands and weights of the values to bfloat16."""
    torch.manual_seed(3)
    shapes = ((3, 2, 5, 4), (3, 2, 7, 4), (3, 2, 7, 4))
    rounded = [torch.randn(shape).bfloat16().requires_grad_() for shape in shapes]
    exact = [each.detach().double().requires_grad_() for each in rounded]
    mask = torch.rand(3, 1, 1, 7) > 0.3
    mask[..., 0] = True
    ours = attention(rounded[0], rounded[1], rounded[2], mask, 0.0)
    assert ours.dtype == torch.bfloat16
    query, keys, values = exact
    theirs = F.scaled_dot_product_attention(query, keys, values, mask)
    # Numbers of about 1, each rounded to 8 bits three or four times on its way.
    check = partial(torch.testing.assert_close, rtol=0.02, atol=0.03, check_dtype=False)
    check(ours, theirs)
    grad = torch.randn_like(theirs)
    for mine, reference in zip(
        torch.autograd.grad(ours, rounded, grad.bfloat16()),
        torch.autograd.grad(theirs, exact, grad),
        strict=True,
    ):
        check(mine, reference)
