"""The machine under a benchmark: what it is, and the fastest a decoder step could be on it.

A step for one sentence reads every weight of the decoder once and does little with each, so the
time to stream those bytes is its floor. The bandwidth is measured in the same run, by one thread,
over as many bytes as the weights have: weights that fit a large cache come faster than memory can
bring them, and a floor taken from memory would then be no floor.
"""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import numpy as np

import bothends
from bothends.jobs.processes import available_cores
from bothends.model.config import ModelConfig
from bothends.model.spec import Network, tensors
from bothends.order import GenerationOrder

#: Instruction sets that decide how fast a product is.
TELLING_FLAGS = (
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "amx_int8",
    "asimd",
    "asimddp",
    "i8mm",
)
PACKAGES = ("numpy", "onnxruntime", "ctranslate2", "transformers", "torch")
BYTES = {"float32": 4, "int8": 1}


@dataclass(frozen=True)
class Machine:
    """Where and with what a benchmark ran."""

    cpu: str
    cores: int
    flags: tuple[str, ...]
    system: str
    python: str
    bothends: str
    commit: str | None
    packages: dict[str, str]
    date: str


def this_machine() -> Machine:
    """The machine we are on; what it does not tell is left empty."""
    processor = _processor()
    return Machine(
        cpu=processor.get("model name") or platform.processor() or platform.machine(),
        cores=available_cores(),
        flags=tuple(
            flag
            for flag in TELLING_FLAGS
            if flag in (processor.get("flags") or processor.get("Features", "")).split()
        ),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        bothends=bothends.__version__,
        commit=_commit(),
        packages={name: found for name in PACKAGES if (found := _version(name))},
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def step_bytes(config: ModelConfig, precision: str) -> int:
    """Bytes of weights that one decoder step reads: every matrix but those of the source.

    Keys and values of the source are projected once per sentence; of the embedding, a step reads
    only the rows of its tokens. Biases, norms and scales are left out: less than one in a hundred.
    """
    network = Network.of(config, GenerationOrder())
    of_the_source = {layer.cross_attention.key_value.weight for layer in network.decoder.layers}
    matrices = {each for each in tensors(network.decoder) if each.kind == "matrix"} - of_the_source
    return BYTES[precision] * sum(each.size for each in {*matrices, network.output_weight})


class Bandwidth:
    """Bytes a second that one thread reads from a working set of `size` bytes."""

    PASSES = 5

    def __init__(self, size: int) -> None:
        self.size = size
        self._words = np.arange(size // 8, dtype=np.int64)

    def sample(self) -> float:
        """The best of a few passes over the working set, after one that is not counted."""
        # The maximum of integers is the quickest pass NumPy has that does nothing but read: a dot
        # product may use several threads, and a sum of floats waits for its additions.
        seconds = []
        for _ in range(1 + self.PASSES):
            started = perf_counter()
            self._words.max()
            seconds.append(perf_counter() - started)
        return self._words.nbytes / min(seconds[1:])


def _processor() -> dict[str, str]:
    """The first processor's lines in /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _commit() -> str | None:
    """The commit of the checkout that this code runs from, if it is one."""
    root = Path(bothends.__file__).parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
