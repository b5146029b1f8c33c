"""Two processes train the same model as one: the same losses from the same global batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from bothends.errors import BothendsError
from bothends.training.distributed import Processes, telling_of_the_lost
from bothends.training.loop import train
from network_namespaces import Host, hosts
from training_data import tiny_corpus, tiny_recipe

# Dropout stays on: it is seeded by the micro-batch, so that it does not matter who computes it.
# Three micro-batches an update are shared two to one, and the last update of an epoch may have one.
SETTINGS = (
    "order=2x1",
    "batch.tokens=400",
    "training={updates: null, epochs: 1}",
    "log_every=1",
    "validation={every: 4, metric: chrf, beam: 2}",
    "checkpoints.every=4",
)


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_two_processes_give_the_losses_of_one(tmp_path: Path) -> None:
    train(tiny_recipe(tmp_path / "one", *SETTINGS))
    tiny_recipe(tmp_path / "two")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "-m", "bothends", "train"]
    command += [str(tmp_path / "two" / "tiny.yaml"), f"data.prepared={tiny_corpus()}"]
    command += [f"run={tmp_path / 'two' / 'run'}", *SETTINGS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert result.returncode == 0, result.stderr
    assert "2 x cpu" in result.stderr
    one, two = records(tmp_path / "one" / "run"), records(tmp_path / "two" / "run")
    assert len(one) == len(two) > 8
    for expected, found in zip(one, two, strict=True):
        assert (found["kind"], found["update"]) == (expected["kind"], expected["update"])
        # float32 sums in another order, carried on through the updates
        assert found["loss"] == pytest.approx(expected["loss"], rel=1e-4)
        if "chrf" in expected:
            assert found["chrf"] == pytest.approx(expected["chrf"], abs=1.0)
        else:
            assert found["target_tokens"] == expected["target_tokens"]
            assert found["gradient_norm"] == pytest.approx(expected["gradient_norm"], rel=1e-3)


@pytest.mark.slow
def test_a_run_directory_that_is_not_shared_is_refused(tmp_path: Path) -> None:
    """As on two machines that have a disk of their own each."""
    tiny_recipe(tmp_path)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "--no-python", "sh", "-c"]
    recipe = f"{tmp_path / 'tiny.yaml'} data.prepared={tiny_corpus()}"
    command += [f"{sys.executable} -m bothends train {recipe} run={tmp_path}/disk-$RANK"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert result.returncode != 0
    assert "disk-0: not the same directory for all processes" in result.stderr
    assert "disk-1: not the same directory for all processes" in result.stderr
    assert not list(tmp_path.glob("disk-*/checkpoints/update-*"))


#: Updates of some tenths of a second, and many checkpoints.
LONG = ("training.updates=60", "validation.every=0", "checkpoints={every: 5, keep: 2}", "order=2x1")


def wait_for(what: Callable[[], bool]) -> None:
    limit = time.monotonic() + 300
    while not what():
        assert time.monotonic() < limit, "it did not happen in five minutes"
        time.sleep(0.05)


def weights(run: Path) -> bytes:
    return (run / "last" / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_a_host_that_is_lost_and_comes_back_changes_nothing(tmp_path: Path, count: int) -> None:
    """Each process has a network of its own; the last one is killed, and rejoins."""
    tiny_recipe(tmp_path)
    lanes = f"batch.lanes={count}"
    train_command = ["-m", "bothends", "train", str(tmp_path / "tiny.yaml"), *LONG, lanes]
    train_command.append(f"data.prepared={tiny_corpus()}")
    torchrun = [sys.executable, "-m", "torch.distributed.run"]

    def start(host: Host) -> subprocess.Popen[bytes]:
        meeting = f"--rdzv-endpoint={first.address}:29400"
        settings = f"is_host={int(host is first)},keep_alive_interval=1"
        words = [f"--nnodes={count}", "--nproc-per-node=1", "--max-restarts=3", meeting]
        words += ["--rdzv-backend=c10d", "--rdzv-id=test", f"--rdzv-conf={settings}"]
        words += [f"--local-addr={host.address}"]
        command = [*torchrun, *words, *train_command, f"run={tmp_path / 'run'}"]
        # Otherwise those that stayed keep the store of the round before, and nobody tells the
        # one that comes back where the new one is (PyTorch up to 2.13).
        own_store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        return host.start(command, tmp_path / f"{host.name}.log", **own_store)

    try:
        with hosts(count) as (first, *others):
            agents = [start(host) for host in (first, *others)]
            wait_for(lambda: (tmp_path / "run/checkpoints/update-00000010").exists())
            others[-1].kill()
            agents[-1].wait()
            agents[-1] = start(others[-1])
            for agent, host in zip(agents, (first, *others), strict=True):
                assert agent.wait(300) == 0, (tmp_path / f"{host.name}.log").read_text()[-3000:]
            said = [(tmp_path / f"{host.name}.log").read_text() for host in (first, *others)]
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")
    assert "another process of this training was lost" in said[0]
    # The first process alone speaks of the training, wherever it is now.
    assert "resuming" in "".join(said)
    assert sum("done after update 60" in text for text in said) == 1
    planned = [*torchrun, "--standalone", f"--nproc-per-node={count}", *train_command]
    subprocess.run([*planned, f"run={tmp_path / 'planned'}"], check=True, timeout=600)
    assert weights(tmp_path / "run") == weights(tmp_path / "planned")
    logs = [records(tmp_path / name) for name in ("run", "planned")]
    assert [r["loss"] for r in logs[0]] == [r["loss"] for r in logs[1]]


def test_lanes_fewer_than_processes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Processes, "join", lambda _: Processes(0, 4, torch.device("cpu")))
    with pytest.raises(BothendsError, match=r"batch\.lanes=2 is fewer than the 4 processes"):
        train(tiny_recipe(tmp_path, "batch.lanes=2"))


def test_a_lost_process_is_told_in_one_line() -> None:
    lost = r"was lost \(gloo: Connection closed by peer\)"
    with pytest.raises(BothendsError, match=lost), telling_of_the_lost():
        raise RuntimeError("gloo: Connection closed by peer\nat line 1")
    with pytest.raises(RuntimeError, match="shape"), telling_of_the_lost():
        raise RuntimeError("a shape does not fit")


def test_what_processes_exchange(tmp_path: Path) -> None:
    """Sums, gradients and token sequences, between this process and a copy of it."""
    child = os.fork()
    rank = int(child == 0)
    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meeting", rank=rank, world_size=2
    )
    processes = Processes(rank, 2, torch.device("cpu"))
    weights = [torch.zeros(2, 3), torch.zeros(4)]
    weights[0].grad = torch.full((2, 3), 1.0 + rank)
    if rank == 1:  # the other one had no micro-batch that used this weight
        weights[1].grad = torch.ones(4)
    own = [[[7], [8, 9, 10]], [[1, 2], [], [3]]][rank]
    total, gathered = processes.sum(1.0 + rank, 10.0), processes.gather(own)
    processes.sum_gradients(weights)
    processes.wait()
    processes.leave()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert total == [3.0, 20.0]
    assert gathered == [[[7], [8, 9, 10]], [[1, 2], [], [3]]]
    assert [w.grad.tolist() for w in weights if w.grad is not None] == [[[3.0] * 3] * 2, [1.0] * 4]


def test_a_process_alone_exchanges_nothing() -> None:
    alone = Processes(0, 1, torch.device("cpu"))
    assert alone.sum(1.5, 2.0) == [1.5, 2.0]
    assert alone.gather([[1, 2], []]) == [[[1, 2], []]]
    assert list(alone.share(range(3))) == [0, 1, 2]


def test_shares_are_a_partition() -> None:
    shares = [Processes(rank, 3, torch.device("cpu")).share(range(8)) for rank in range(3)]
    assert sorted(item for share in shares for item in share) == list(range(8))
