"""A stage's process: its status is passed on, and it never outlives the chain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from bothends.chain import process
from bothends.chain.process import run_command
from bothends.training.run import RunDirectory
from tiny_model import tiny_model
from training_data import tiny_corpus, tiny_recipe

#: A chain of one stage, which is the command in the arguments.
CHAIN = "import sys; from bothends.chain.process import run_command; "
CHAIN += "sys.exit(run_command(sys.argv[1:]))"


def test_the_status_of_a_command_is_that_of_its_process(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["order", "2x1"]) == 0
    assert run_command(["order", "2y1"]) == 2
    assert "bothends: error: " in capfd.readouterr().err


def wait_for(what: Callable[[], bool]) -> None:
    limit = time.monotonic() + 120
    while not what():
        assert time.monotonic() < limit, "it did not happen in two minutes"
        time.sleep(0.02)


def running(number: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{number}/status").read_text()
    except FileNotFoundError:
        return False


def stage_of(chain: subprocess.Popen[bytes]) -> list[int]:
    """The child that runs the stage, as opposed to Python's resource tracker."""
    children = Path(f"/proc/{chain.pid}/task/{chain.pid}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks into /proc")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_stage_ends_with_its_chain(tmp_path: Path, number: signal.Signals, status: int) -> None:
    os.mkfifo(tmp_path / "endless")  # nobody ever writes to it
    command = ["translate", str(tmp_path / "endless"), "--model", str(tiny_model("1x1"))]
    chain = subprocess.Popen([sys.executable, "-c", CHAIN, *command])
    try:
        wait_for(lambda: bool(stage_of(chain)))
        (stage,) = stage_of(chain)
        # It has come as far as the text: its own watch is there, too.
        threads = Path(f"/proc/{stage}/task")
        wait_for(lambda: len(list(threads.iterdir())) > 1)
        chain.send_signal(number)
        assert chain.wait(120) == status
        wait_for(lambda: not running(stage))
    finally:
        chain.kill()


@pytest.mark.slow
def test_several_processes_train_together(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tiny_recipe(tmp_path)
    settings = [f"data.prepared={tiny_corpus()}", f"run={tmp_path / 'run'}", "training.updates=2"]
    assert run_command(["train", str(tmp_path / "tiny.yaml"), *settings], processes=2) == 0
    assert "2 x cpu" in capfd.readouterr().err
    (checkpoint,) = RunDirectory(tmp_path / "run").complete()
    assert checkpoint.name == "update-00000002"


def test_torchruns_errors_become_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = ProcessFailure(local_rank=0, pid=1, exitcode=2, error_file="none")
    errors = [ChildFailedError("bothends", {0: failure}), SignalException("stopped", signal.SIGINT)]

    def fail(arguments: list[str]) -> None:
        raise errors.pop(0)

    monkeypatch.setattr("torch.distributed.run.main", fail)
    monkeypatch.setattr(process, "end_with_parent", lambda number: None)
    monkeypatch.delenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", raising=False)
    for status in (2, 130):
        with pytest.raises(SystemExit) as leaving:
            process._command(["train"], 2)
        assert leaving.value.code == status
    # Else torchrun kills a training after half a minute, checkpoint or not.
    assert int(os.environ["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"]) >= 3600
