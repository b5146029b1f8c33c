"""Workers of a Ray cluster behind the protocol of a pool: nodes come and go, results stay."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import Mock

import pytest

from bothends.distillation.bulk import translate_in_bulk
from bothends.distillation.distill import Distillation, distill
from bothends.errors import BothendsError
from bothends.jobs.pool import InThisProcess, parse_pool
from bothends.jobs.ray_pool import RayPool, _connect, _Member, _Run
from corpus_data import write_lines
from crashing_teacher import FULL_DISK, CrashingTeacher
from local_jobs import LocalTranslation


def test_without_ray_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    pool = parse_pool("ray")
    with pytest.raises(BothendsError, match=r"--workers ray needs Ray: pip install 'bothends"):
        list(pool.run(Square(), [1]))


def test_an_address_is_kept() -> None:
    assert parse_pool("ray:10.0.0.1:6379") == RayPool("10.0.0.1:6379")
    assert str(parse_pool("ray")) == "Ray on this machine"


@pytest.mark.parametrize("name", ["OutOfMemoryError", "NodeDiedError"])
def test_a_worker_that_ray_has_killed_is_a_lost_one(name: str) -> None:
    exceptions = pytest.importorskip("ray.exceptions")
    error = getattr(exceptions, name)("the node was low on memory")
    ray = Mock(exceptions=exceptions, get=Mock(side_effect=error))
    run = _Run(ray, RayPool(), Square(), iter([]), None)
    run._awaited["answer"] = _Member(actor=None, node="node", task=7, attempt=1)
    assert list(run._take("answer")) == []
    assert run._at_hand == [(7, 2)]


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
        # A node that is killed closes its connections; one that is slow to answer is not dead.
        patch.setenv("RAY_health_check_failure_threshold", "100")
        patch.setenv("RAY_health_check_timeout_ms", "60000")
        patch.setenv("RAY_worker_niceness", "0")  # or they starve where other tests run
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


LINES = [f"line {number}" for number in range(120)]


@pytest.fixture
def job(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalTranslation:
    """A job of 24 shards for the cluster, of some seconds."""
    monkeypatch.setattr("bothends.distillation.corpus_directory.source_commit", lambda: "abc")
    text = write_lines(tmp_path / "text", LINES)
    teacher = CrashingTeacher(seconds=0.15)
    pool = RayPool(cluster.address)
    return LocalTranslation(teacher, (text,), tmp_path / "out", pool, shard_lines=5)


def check_result(job: LocalTranslation, lines: list[str] = LINES) -> None:
    """What one process writes."""
    assert job.output.read_text() == "".join(f"{line.upper()}\n" for line in lines)
    alone = replace(job, output=job.output.with_name("alone"), pool=InThisProcess(), picture=None)
    alone = replace(alone, teacher=CrashingTeacher())
    assert lines != LINES or translate_in_bulk(alone) is not None
    if lines == LINES:
        manifests = [
            path.with_name(f"{path.name}.job") / "manifest.json"
            for path in (job.output, job.output.with_name("alone"))
        ]
        first, second = (json.loads(path.read_bytes()) for path in manifests)
        assert first["files"]["../out"] == second["files"]["../alone"]
        assert first["job"] == second["job"]
        assert first["kinds"] == second["kinds"]


def shards_of(job: LocalTranslation) -> int:
    return len(list(Path(str(job.directory)).glob("shards/*.jsonl")))


def wait_for(what: Callable[[], bool]) -> None:
    limit = time.monotonic() + 100
    while not what():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.01)


@pytest.mark.slow
def test_nodes_that_are_killed_and_that_join_late_leave_no_trace(
    cluster: Any, job: LocalTranslation, tmp_path: Path
) -> None:
    node = cluster.add_node(num_cpus=1)
    job = replace(job, picture=tmp_path / "shards.svg")

    with ThreadPoolExecutor(1) as executor:  # Ray starts nodes in the first thread alone
        result = executor.submit(translate_in_bulk, job)
        wait_for(lambda: shards_of(job) >= 5)
        cluster.remove_node(node, allow_graceful=False)
        late = cluster.add_node(num_cpus=1)
        assert result.result() is not None
    cluster.remove_node(late)
    check_result(job)
    picture = (tmp_path / "shards.svg").read_text()
    assert picture.count("<title>shard ") == 24
    assert "24 shards over time" in picture


@pytest.mark.slow
def test_a_driver_killed_between_write_and_mark_goes_on(
    cluster: Any, job: LocalTranslation, tmp_path: Path
) -> None:
    """It dies when it hears of the seventh shard, which is written and not yet noted."""
    script = f"""
import os, signal
from pathlib import Path
from bothends.distillation.bulk import translate_in_bulk
from bothends.distillation.shard_times import ShardTimes
from bothends.jobs.ray_pool import RayPool
from crashing_teacher import CrashingTeacher
from local_jobs import LocalTranslation
add, calls = ShardTimes.add, []
def dying(self, *arguments):
    calls.append(arguments)
    if len(calls) == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    add(self, *arguments)
ShardTimes.add = dying
pool = RayPool({cluster.address!r})
text, output = Path({str(job.inputs[0])!r}), Path({str(job.output)!r})
teacher = CrashingTeacher(seconds=0.15)
translate_in_bulk(LocalTranslation(teacher, (text,), output, pool, shard_lines=5))
"""
    (tmp_path / "driver.py").write_text(script)
    paths = f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    driver = subprocess.run(
        [sys.executable, str(tmp_path / "driver.py")],
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
        timeout=100,
    )
    assert driver.returncode == -signal.SIGKILL
    assert 7 <= shards_of(job) < 24
    assert translate_in_bulk(job) is not None
    check_result(job)


@pytest.mark.slow
def test_a_second_driver_is_refused_while_a_cluster_works(job: LocalTranslation) -> None:
    refusals: list[BothendsError] = []

    def come_second() -> None:
        wait_for(lambda: shards_of(job) >= 1)
        try:
            translate_in_bulk(replace(job, pool=InThisProcess()))
        except BothendsError as error:
            refusals.append(error)

    thread = Thread(target=come_second)
    thread.start()
    assert translate_in_bulk(job) is not None
    thread.join()
    assert "another process is at work there" in str(refusals[0])
    check_result(job)


@pytest.mark.slow
def test_a_poisoned_line_is_found_by_the_cluster(
    cluster: Any, job: LocalTranslation, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = list(LINES)
    lines[77] = "poison"
    write_lines(job.inputs[0], lines)
    pool = RayPool(cluster.address, attempts=1)
    job = replace(job, pool=pool, teacher=CrashingTeacher())
    manifest = translate_in_bulk(replace(job, on_crash="aside"))
    assert manifest is not None
    assert f"{job.inputs[0]}:78: this line crashes whoever translates it" in capsys.readouterr().err
    assert manifest.crashed == (f"{job.inputs[0]}:78",)
    aside = json.loads((job.directory / "crashed.jsonl").read_bytes())
    assert (aside["line"], aside["text"]) == (78, "poison")
    lines[77] = ""
    check_result(job, lines)


@pytest.mark.slow
def test_a_node_with_a_full_disk_is_left_out(
    cluster: Any, job: LocalTranslation, capfd: pytest.CaptureFixture[str]
) -> None:
    node = cluster.add_node(num_cpus=1, env_vars={FULL_DISK: "1"})
    try:
        assert translate_in_bulk(job) is not None
    finally:
        cluster.remove_node(node)
    said = capfd.readouterr().err
    assert "(No space left on device); node " in said
    assert "is left out from here on" in said
    check_result(job)


@pytest.mark.slow
def test_distill_has_the_same_job(cluster: Any, job: LocalTranslation, tmp_path: Path) -> None:
    corpora = []
    for name, pool in (("one", InThisProcess()), ("ray", RayPool(cluster.address))):
        options = Distillation(
            CrashingTeacher(), job.inputs, tmp_path / name, pool=pool, shard_lines=5
        )
        assert distill(options) is not None
        corpora.append(
            {
                str(path.relative_to(tmp_path / name)): path.read_bytes()
                for path in sorted((tmp_path / name).rglob("*"))
                if path.is_file()
            }
        )
    assert corpora[0] == corpora[1]
    assert len(corpora[0]) == 24 + 3
