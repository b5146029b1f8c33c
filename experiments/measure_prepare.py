"""Measure `bothends prepare` on generated pairs: peak memory, time, and memory of a reader.

    python experiments/measure_prepare.py --pairs 1000000

A side draws its lines from 200,000 sentences of 3 to 30 words, so pairs are different though
sentences come back; words are Zipf-distributed over a lexicon of 200,000, so a vocabulary of 32,000
has something to learn. The last line is JSON. Peak memory is the kernel's own count for the child
process; the reader's is its anonymous memory, since mapped pages of a file belong to the system.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bothends.data.shards import PreparedCorpus

LEXICON = SENTENCES = 200_000
CHUNK = 1_000_000


def generate(path: Path, pairs: int, seed: int) -> None:
    """Write one side of a corpus; the same seed gives the same text."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("aaabcddeeeeefghiiiijklmnnnoooprrssttuuvwyz"))
    words = ["".join(rng.choice(letters, size)) for size in rng.integers(1, 12, LEXICON)]
    sentences = [
        " ".join([words[word] for word in np.minimum(rng.zipf(1.2, size), LEXICON) - 1]) + "\n"
        for size in rng.integers(3, 31, SENTENCES)
    ]
    with open(path, "w", encoding="utf-8") as file:
        for start in range(0, pairs, CHUNK):
            numbers = rng.integers(0, SENTENCES, min(CHUNK, pairs - start)).tolist()
            file.writelines(map(sentences.__getitem__, numbers))


def measure_reader(directory: Path, reads: int = 100_000) -> dict[str, float]:
    """What a process that reads random pairs costs, beyond its imports."""

    def anonymous_memory() -> float:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("no RssAnon in /proc/self/status")

    total = len(PreparedCorpus.open(directory).split("train"))
    indices = random.Random(1).sample(range(total), min(reads, total))
    before = anonymous_memory()
    pairs = PreparedCorpus.open(directory).split("train")
    started = time.perf_counter()
    tokens = sum(len(source) + len(target) for source, target in map(pairs.__getitem__, indices))
    seconds = time.perf_counter() - started
    assert tokens
    assert int(pairs.source_lengths.max()) > 0
    return {
        "reader_MiB": round(anonymous_memory() - before, 1),
        "reads_per_second": round(len(indices) / seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("options", nargs="*", help="more options of prepare, after --")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for seed, side in enumerate(("source", "target")):
            generate(directory / side, arguments.pairs, seed)
        command = [sys.executable, "-m", "bothends", "prepare"]
        command += ["--source", str(directory / "source"), "--target", str(directory / "target")]
        command += ["--output", str(directory / "prepared"), "--threads", str(arguments.threads)]
        started = time.perf_counter()
        subprocess.run([*command, *arguments.options], check=True)
        seconds = time.perf_counter() - started
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = {
            "pairs": arguments.pairs,
            "threads": arguments.threads,
            "seconds": round(seconds, 1),
            "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
            "peak_MiB": round(usage.ru_maxrss / 1024),
            **measure_reader(directory / "prepared"),
        }
        print(json.dumps(result))


if __name__ == "__main__":
    main()
