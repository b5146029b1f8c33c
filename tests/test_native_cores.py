"""Several cores on one search: the same bits, whoever helps and whoever comes in between."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest

from bothends.engines.native import extension
from bothends.engines.native.engine import NativeEngine
from bothends.jobs.processes import available_cores
from bothends.model.bundled import find_model
from bothends.search.batch import search_batch
from bothends.search.options import SearchOptions

native: Any = extension()
if native is None:
    pytest.skip("the native engine is not built", allow_module_level=True)


@cache
def engine(cores: int) -> NativeEngine:
    """A model whose matrices are large enough to be shared."""
    return NativeEngine.load(find_model(), cores=cores)


def search(running: NativeEngine, source: np.ndarray, beam: int) -> Any:
    options = SearchOptions(beam=beam, n_best=beam, max_length=16)
    return search_batch(running, running.order, running.config.special, source, options)


def sources(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [random.integers(10, 5000, (n % 3 + 1, n % 9 + 2)) for n in range(count)]


@pytest.mark.parametrize("isa", native.instruction_sets())
def test_cores_do_not_change_a_bit(isa: str) -> None:
    alone = NativeEngine.load(find_model(), isa)
    together = NativeEngine.load(find_model(), isa, cores=3)
    for source in sources(6 if isa == "portable" else 30):
        for beam in (1, 4):
            assert search(together, source, beam) == search(alone, source, beam)


@pytest.mark.skipif(available_cores() < 2, reason="there is one core")
def test_helpers_help() -> None:
    running = engine(2)
    deadline = time.monotonic() + 60
    while not running.helped:  # other programs may have the second core
        search(running, sources(3)[2], beam=4)
        assert time.monotonic() < deadline
    assert not engine(1).helped


def test_searches_that_come_and_go_get_what_they_would_get_alone() -> None:
    """The helpers go to sleep when a second search begins."""
    texts = sources(40)
    expected = [search(engine(1), source, 2) for source in texts]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = pool.map(lambda source: search(engine(3), source, 2), texts)
            assert list(found) == expected


def test_a_forked_process_does_without_helpers() -> None:
    code = (
        "import os, sys\n"
        "import numpy as np\n"
        "from test_native_cores import engine, search, sources\n"
        "running, source = engine(2), sources(1)[0]\n"
        "before = search(running, source, 2)\n"
        "if child := os.fork():\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "assert search(running, source, 2) == before\n"
    )
    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, *sys.path])
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True, timeout=60
    )


def test_a_forked_process_has_workers_of_its_own() -> None:
    """Threads stay behind in a fork; the pool that it inherits would wait for them forever."""
    code = (
        "import os, signal, sys\n"
        "from bothends import Translator\n"
        "translator = Translator.load(threads=2)\n"
        "before = translator.translate('Hello.').text\n"
        "if child := os.fork():\n"
        "    status = os.waitpid(child, 0)[1]\n"
        "    assert translator.submit('Hello.').result().text == before\n"
        "    sys.exit(os.waitstatus_to_exitcode(status))\n"
        "signal.alarm(30)  # a child that hangs does not outlive the test\n"
        "assert translator.translate('Hello.').text == before\n"
        "assert translator.submit('Hello.').result().text == before\n"
        "translator.close()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("cores", [-1, 0, 1000])
def test_any_number_of_cores_will_do(cores: int) -> None:
    running = NativeEngine.load(find_model(), cores=cores)
    assert search(running, sources(1)[0], 1) == search(engine(1), sources(1)[0], 1)
