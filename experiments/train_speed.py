"""How fast a training step is: against other orders, its matrix products, and a peer.

    python experiments/train_speed.py [--rounds 6] [--json FILE]

Everything is measured in one run and in turns: in each round every system trains on every batch,
one system after the other, so that a busy or warm machine slows all of them down. Times are the
processor time of the one thread that computes. Other programs can only lengthen it, so the time of
a batch is its least over the rounds. Every round builds the models anew: where their memory happens
to lie is worth a percent or two. Ratios are of times summed over all batches.

- Orders: target tokens per second of 2x1, 2x2 and 4x1 over those of 1x1, same pairs.
- Products: the time of a whole update (forward, backward, clipping, Adam) over that of its matrix
  products alone, forward and backward, same shapes, operands in place.
- bfloat16, where it is asked for: target tokens per second of 1x1 over those in float32.
- Peer: target tokens per second over those of `MarianMTModel` of transformers: same sizes, dropout,
  label smoothing, batches and optimiser (PyTorch's fused Adam).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from bothends.evaluation.bench.peer_transformers import marian_config
from bothends.model.config import Dropout, ModelConfig, preset
from bothends.model.torch.transformer import Transformer
from bothends.order import GenerationOrder
from bothends.training.batches import Arrays, collate
from bothends.training.precision import trains_in_bfloat16
from bothends.training.step import Tensors, summed_loss

ORDERS = ("1x1", "2x1", "2x2", "4x1")
SMOOTHING = 0.1
PADDED_TOKENS = 2048
CPU = torch.device("cpu")

Pair = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
Step = Callable[[list[Pair]], None]


@dataclass(frozen=True)
class Workload:
    """The miniature model, and sentences as long as those of news in subwords."""

    config: ModelConfig
    lengths: tuple[float, float] = (27.0, 12.0)  # mean and standard deviation

    def batches(self, count: int, seed: int = 0) -> list[list[Pair]]:
        """Batches of pairs of one length, as bucketing makes them.

        Slots fill the last block of four in all four ways equally often: padding to whole blocks
        is a cost that an order of four words a step really has, 1.5 slots on average.
        """
        random = np.random.default_rng(seed)
        words = self.config.vocabulary_size
        mean, deviation = self.lengths
        batches = []
        for number in range(count):
            slots = int(np.clip(random.normal(mean, deviation), 8, 80)) // 4 * 4 + number % 4
            target = slots - 1
            source = target + int(random.integers(-3, 4))
            rows = PADDED_TOKENS // (max(source, target) + 1)
            batches.append(
                [
                    (random.integers(4, words, source), random.integers(4, words, target))
                    for _ in range(rows)
                ]
            )
        return batches


def our_step(config: ModelConfig, order: str, bfloat16: bool = False) -> Step:
    """A whole update of our model."""
    torch.manual_seed(1)
    model = Transformer(config, GenerationOrder.parse(order)).train()
    optimiser = _adam(model)

    def step(pairs: list[Pair]) -> None:
        batch = Tensors.of(collate(pairs, model.order, config.special), config.special, CPU)
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            loss = summed_loss(model, batch, SMOOTHING) / batch.count
        loss.backward()  # type: ignore[no-untyped-call]
        _update(model, optimiser)

    return step


def marian_step(config: ModelConfig) -> Step:
    """The same update of transformers' model of the same sizes."""
    from transformers import MarianMTModel

    special = config.special
    torch.manual_seed(1)
    model = MarianMTModel(marian_config(config)).train()
    optimiser = _adam(model)

    def step(pairs: list[Pair]) -> None:
        arrays = collate(pairs, GenerationOrder(), special)
        source, targets = torch.from_numpy(arrays.source), torch.from_numpy(arrays.targets)
        logits = model(
            input_ids=source,
            attention_mask=(source != special.pad).long(),
            decoder_input_ids=torch.from_numpy(arrays.tokens),
            use_cache=False,
        ).logits
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            targets.flatten(),
            ignore_index=special.pad,
            label_smoothing=SMOOTHING,
        )
        loss.backward()  # type: ignore[no-untyped-call]
        _update(model, optimiser)

    return step


def _adam(model: torch.nn.Module) -> torch.optim.Adam:
    return torch.optim.Adam(model.parameters(), 1e-4, (0.9, 0.98), 1e-9, fused=True)


def _update(model: torch.nn.Module, optimiser: torch.optim.Adam) -> None:
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def products_of(config: ModelConfig, arrays: Arrays) -> Iterator[tuple[Tensor, Tensor]]:
    """The operands of every matrix product of a forward pass."""
    sentences, source = arrays.source.shape
    slots = arrays.targets.shape[1]
    real = int((arrays.targets != config.special.pad).sum())
    width, inner = config.width, config.feed_forward

    def linear(rows: int, columns_in: int, columns_out: int) -> tuple[Tensor, Tensor]:
        return torch.randn(rows, columns_in), torch.randn(columns_in, columns_out)

    def attention(queries: int, keys: int) -> Iterator[tuple[Tensor, Tensor]]:
        heads = sentences * config.heads
        yield (
            torch.randn(heads, queries, config.head_width),
            torch.randn(heads, config.head_width, keys),
        )
        yield torch.randn(heads, queries, keys), torch.randn(heads, keys, config.head_width)

    for length, layers, crosses in (
        (source, config.encoder_layers, False),
        (slots, config.decoder_layers, True),
    ):
        rows = sentences * length
        for _ in range(layers):
            yield linear(rows, width, 3 * width)
            yield from attention(length, length)
            yield linear(rows, width, width)
            if crosses:
                yield linear(rows, width, width)
                yield linear(sentences * source, width, 2 * width)
                yield from attention(length, source)
                yield linear(rows, width, width)
            yield linear(rows, width, inner)
            yield linear(rows, inner, width)
    yield linear(real, width, config.target_size)


def products_step(config: ModelConfig, order: str) -> Step:
    """All matrix products of a step: each forward one, and two for its gradients."""
    parsed = GenerationOrder.parse(order)
    prepared: dict[int, list[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]] = {}

    def step(pairs: list[Pair]) -> None:
        if id(pairs) not in prepared:
            prepared[id(pairs)] = [
                (left, right, torch.matmul(left, right), left.clone(), right.clone())
                for left, right in products_of(config, collate(pairs, parsed, config.special))
            ]
        for left, right, result, d_left, d_right in prepared[id(pairs)]:
            torch.matmul(left, right, out=result)
            torch.matmul(result, right.mT, out=d_left)
            torch.matmul(left.mT, result, out=d_right)

    return step


def measure(
    systems: dict[str, Callable[[], Step]], batches: list[list[Pair]], rounds: int
) -> dict[str, list[float]]:
    """The least seconds that every system took for each batch."""
    seconds = {name: [math.inf] * len(batches) for name in systems}
    random = np.random.default_rng(0)
    for _ in range(rounds):
        steps = {name: build() for name, build in systems.items()}
        for step in steps.values():
            step(batches[0])  # warm-up
        for number, batch in enumerate(batches):
            for name in random.permutation(list(systems)):
                started = time.thread_time()
                steps[name](batch)
                taken = time.thread_time() - started
                seconds[name][number] = min(seconds[name][number], taken)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--batches", type=int, default=4, help="different ones; best 4, 8, ...")
    parser.add_argument("--bfloat16", action="store_true", help="measure training in it, too")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    # The embedding is dropped by the same rate in both models, as Marian has one rate for all.
    rates = Dropout(residual=0.1, attention=0.1, embedding=0.1)
    config = preset("small", vocabulary_size=6000, dropout=rates)
    workload = Workload(config)
    batches = workload.batches(options.batches)
    products = products_step(config, "1x1")  # built once: its first round makes the operands
    systems: dict[str, Callable[[], Step]] = {
        **{order: partial(our_step, config, order) for order in ORDERS},
        "products": lambda: products,
        "marian": partial(marian_step, config),
    }
    if options.bfloat16 and trains_in_bfloat16("bfloat16", CPU):
        systems["bfloat16"] = partial(our_step, config, "1x1", bfloat16=True)
    seconds = {
        name: sum(least) for name, least in measure(systems, batches, options.rounds).items()
    }
    tokens = sum(len(target) + 1 for batch in batches for _, target in batch)
    report = {
        "target_tokens_per_second": {
            name: round(tokens / taken) for name, taken in seconds.items() if name != "products"
        },
        "orders_over_1x1": {
            order: round(seconds["1x1"] / seconds[order], 3) for order in ORDERS[1:]
        },
        "step_over_products": round(seconds["1x1"] / seconds["products"], 3),
        "over_marian": round(seconds["marian"] / seconds["1x1"], 3),
        "target_tokens_per_batch": round(tokens / len(batches)),
        "batches": len(batches),
        "rounds": options.rounds,
        "torch": torch.__version__,
    }
    if "bfloat16" in seconds:
        report["bfloat16_over_float32"] = round(seconds["1x1"] / seconds["bfloat16"], 3)
    for name, value in report.items():
        print(f"{name:26}  {value}")
    if options.json:
        options.json.write_text(json.dumps(report) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
