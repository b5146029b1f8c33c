"""How fast a 2x1 student of an opus-mt model's size trains here: target tokens a second, one core.

    python experiments/opus_rate.py [--seconds 60] [--order 2x1]

Updates of random sentences at the lengths of Europarl, after a first one that is not counted: how
long an update takes depends on shapes, not on what is learned. Stops at the first update that ends
after the given seconds. Both the clock and the processor's time are printed: where they are far
apart, other programs ran, and the figure is not to be used.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from bothends.model.config import Dropout, preset
from train_speed import our_step

#: opus-mt: 6 and 6 layers of width 512 with a feed-forward of 2,048, which `base` is too.
WORDS = 58_777
SOURCE, TARGET = 27, 26
SENTENCES = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--order", default="2x1")
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = preset("base", vocabulary_size=WORDS, dropout=Dropout())
    random = np.random.default_rng(0)
    pairs = [
        (random.integers(4, WORDS, SOURCE), random.integers(4, WORDS, TARGET))
        for _ in range(SENTENCES)
    ]
    step = our_step(config, options.order)
    step(pairs)
    updates = 0
    clock, processor = time.perf_counter(), time.process_time()
    while time.perf_counter() - clock < options.seconds:
        step(pairs)
        updates += 1
    seconds, busy = time.perf_counter() - clock, time.process_time() - processor
    rate = updates * SENTENCES * TARGET / seconds
    print(
        f"{options.order}: {rate:.0f} target tokens/s ({updates} updates of "
        f"{SENTENCES * TARGET} tokens, {seconds:.0f} s, {busy / seconds:.0%} of them processor "
        f"time); 1 million lines: {1e6 * TARGET / rate / 3600:.0f} core hours an epoch"
    )


if __name__ == "__main__":
    main()
