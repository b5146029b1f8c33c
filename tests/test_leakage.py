"""No slot knows what it is to predict: dependencies by gradients, exactly where an order allows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bothends.model.config import Dropout
from bothends.model.torch.transformer import Transformer
from bothends.order import BoolArray, GenerationOrder
from conftest import ALL_ORDERS, MakeModel, order_tensors, random_source

WORDS = 23


def dependencies(model: Transformer, slots: int, random: np.random.Generator) -> BoolArray:
    """`[i, j]`: do the logits of slot `i` depend on the token of target slot `j`? By gradients.

    They are taken with respect to the embeddings of the *targets*, which reach the decoder through
    the shift: a mistake in mask or shift shows as a slot that knows itself or too little.
    """
    targets = torch.randn(slots, model.config.width, dtype=torch.float64, requires_grad=True)
    start = torch.randn(1, model.config.width, dtype=torch.float64)
    fed_slot = model.order.shift(np.arange(slots), -1)  # -1: the start symbol
    fed = torch.cat([targets, start])[torch.from_numpy(fed_slot)]
    model.target_embedding.register_forward_hook(lambda *_: fed[None])
    source = torch.from_numpy(random_source(random, 1, 5, WORDS, padded=False))
    tokens = torch.zeros(1, slots, dtype=torch.int64)  # the hook replaces their embeddings
    logits = model(source, tokens, order_tensors(model.order, slots))[0]
    rows = []
    for slot in logits:
        (gradient,) = torch.autograd.grad(slot @ torch.randn_like(slot), targets, retain_graph=True)
        rows.append((gradient != 0).any(dim=1).numpy())
    return np.array(rows)


def allowed_dependencies(order: GenerationOrder, slots: int) -> BoolArray:
    """What `dependencies` should be, from the definitions: target `j` is fed at slot `j + z`.

    All masks are transitive, so that a second layer reaches no farther than the first.
    """
    span = 1 if order.vanilla_mask else order.block_size
    i, fed_at = np.arange(slots)[:, None], np.arange(slots)[None, :] + order.block_size
    allowed: BoolArray = i // span >= fed_at // span
    if order.independent_directions:
        allowed &= (i - fed_at) % order.directions == 0
    return allowed


@pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_slot_knows_what_the_order_allows_and_nothing_else(
    order: GenerationOrder, norm: str, make_model: MakeModel, random: np.random.Generator
) -> None:
    model = make_model(order, norm=norm, share_embeddings=False, tie_output=False)
    slots = order.padded_length(3 * order.block_size + 3)
    found = dependencies(model, slots, random)
    np.testing.assert_array_equal(found, allowed_dependencies(order, slots))
    block = np.arange(slots) // order.block_size
    assert not found[block[:, None] <= block].any(), "a slot knows its own block or a later one"


@pytest.mark.parametrize("order", ["1x1", "2x1", "2x2", "4x1", "2x1+independent-directions"])
def test_nothing_leaks_in_training_either(
    order: str, make_model: MakeModel, random: np.random.Generator
) -> None:
    """Dropout may hide what is allowed; it must not show what is not."""
    dropout = Dropout(residual=0.1, attention=0.2, activation=0.1, embedding=0.1)
    model = make_model(order, share_embeddings=False, tie_output=False, dropout=dropout).train()
    found = dependencies(model, 12, random)
    allowed = allowed_dependencies(model.order, 12)
    assert not (found & ~allowed).any()
    assert found.sum() > allowed.sum() / 2
