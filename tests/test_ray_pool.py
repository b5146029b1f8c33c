"""Workers of a Ray cluster behind the protocol of a pool: nodes come and go, results stay."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bothends.bulk import BulkTranslation, translate_in_bulk
from bothends.errors import BothendsError
from bothends.jobs.pool import InThisProcess, parse_pool
from bothends.jobs.ray_pool import RayPool, _connect
from corpus_data import write_lines
from crashing_teacher import CrashingTeacher


def test_without_ray_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    pool = parse_pool("ray")
    with pytest.raises(BothendsError, match=r"--workers ray needs Ray: pip install 'bothends"):
        list(pool.run(Square(), [1]))


def test_an_address_is_kept() -> None:
    assert parse_pool("ray:10.0.0.1:6379") == RayPool("10.0.0.1:6379")
    assert str(parse_pool("ray")) == "Ray on this machine"


@dataclass(frozen=True)
class Square:
    """Notes who does what, so that a test knows when a node is at work."""

    notes: Path | None = None
    seconds: float = 0.0

    @contextmanager
    def start(self) -> Iterator[Callable[[int], int]]:
        def square(task: int) -> int:
            if task == 13:
                raise BothendsError("13 is unlucky")
            if task == 99:
                os._exit(1)
            if self.notes is not None:
                (self.notes / f"{task}-{os.getpid()}").touch()
            time.sleep(self.seconds)
            return task * task

        yield square


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes on this machine, with a core each."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", paths)  # workers import this file
        started = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        for _ in range(2):
            started.add_node(num_cpus=1)
        _connect(ray, started.address)  # once: a pool takes a connection that is there
        yield started
        ray.shutdown()
        started.shutdown()


@pytest.mark.slow
def test_every_task_is_done_once(cluster: Any) -> None:
    pool, lost = RayPool(cluster.address, attempts=1), list[int]()
    found = pool.run(Square(), [*range(10), 99], lost.append)
    assert sorted(found) == [n * n for n in range(10)]
    assert lost == [99]
    with pytest.raises(BothendsError, match="13 is unlucky"):
        list(pool.run(Square(), [1, 13]))


@pytest.mark.slow
def test_a_node_that_is_lost_costs_its_tasks_another_attempt(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = cluster.add_node(num_cpus=1)
    results = RayPool(cluster.address).run(Square(tmp_path, seconds=0.3), range(20, 50))
    found = [next(results) for _ in range(6)]  # all nodes are at work
    cluster.remove_node(node, allow_graceful=False)
    late = cluster.add_node(num_cpus=1)
    found += results
    cluster.remove_node(late)
    assert sorted(found) == [n * n for n in range(20, 50)]
    # Whoever joined late worked as well.
    workers = {path.name.split("-")[1] for path in tmp_path.iterdir()}
    assert len(workers) >= 4


@pytest.mark.slow
def test_a_cluster_writes_what_one_process_writes(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bothends.distillation.corpus_directory.source_commit", lambda: "abc")
    text = write_lines(tmp_path / "text", [f"line {number}" for number in range(300)])
    outputs = []
    for name, pool in (("one", InThisProcess()), ("ray", RayPool(cluster.address))):
        job = BulkTranslation(CrashingTeacher(), (text,), tmp_path / name, pool, shard_lines=20)
        assert translate_in_bulk(job) is not None
        outputs.append((tmp_path / name).read_bytes())
    assert outputs[0] == outputs[1]
    assert outputs[0].decode().split("\n")[7] == "LINE 7"
