"""How long a user waits for the first translation: from the start of a process to its first byte.

    python experiments/start_up.py [--model en-pt-1x1] [--engine native onnx] [--rounds 21]
        [--json FILE]

The model translates one line of standard input. The first two rounds are not counted: they
bring files into the system's cache, and Python compiles its modules.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bothends.evaluation.bench.machine import this_machine
from bothends.files import write_output
from bothends.model.bundled import DEFAULT_MODEL

WARM_UP = 2


def first_byte(model: str, engine: str) -> float:
    """Seconds until a new process has written something."""
    options = ["--model", model, "--engine", engine]
    command = [sys.executable, "-m", "bothends", "translate", *options]
    # As on any machine, Python keeps the modules that it has compiled.
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
    pipe = subprocess.PIPE
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Hello, world.\n")
        process.stdin.close()
        process.stdout.read(1)
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--engine", nargs="+", default=["native", "onnx"])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {engine: [] for engine in arguments.engine}
    for turn in range(-WARM_UP, arguments.rounds):
        for engine, taken in seconds.items():  # in turns: a busy moment hits them all
            waited = first_byte(arguments.model, engine)
            if turn >= 0:
                taken.append(waited)
    machine = this_machine()
    note = f"{arguments.model}, commit {machine.commit}, {machine.cpu}, {machine.cores} cores"
    for engine, taken in seconds.items():
        low, middle, high = statistics.quantiles(taken, n=4)
        print(f"{engine}: {middle:.3f} s (quartiles {low:.3f} to {high:.3f})")
    print(note)
    if arguments.json:
        content = {"note": note, "seconds": seconds}
        write_output(arguments.json, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
