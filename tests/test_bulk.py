"""`bothends translate FILE ... --output PATH`: a job that kills and workers leave no trace in."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bothends.bulk import BulkTranslation, translate_in_bulk
from bothends.cli import run
from bothends.distillation.shard_run import Share
from bothends.errors import BothendsError, UsageError
from bothends.jobs.locks import lock_directory
from bothends.jobs.pool import InThisProcess, ProcessPool
from command_line import error_line
from corpus_data import write_lines
from crashing_teacher import CrashingTeacher
from tiny_model import sentences, tiny_model

FIRST = [f"a {number}" for number in range(11)]
SECOND = [*(f"b {number}" for number in range(9)), "", "  ", "ü"]


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BulkTranslation:
    """Two files, in shards of which one has lines of both."""
    monkeypatch.setattr("bothends.distillation.corpus_directory.source_commit", lambda: "abc")
    first = write_lines(tmp_path / "first", FIRST)
    second = write_lines(tmp_path / "second.gz", SECOND)
    pool = InThisProcess()
    return BulkTranslation(
        CrashingTeacher(), (first, second), tmp_path / "out", pool, shard_lines=4
    )


def content(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def expected(options: BulkTranslation) -> dict[str, bytes]:
    elsewhere = replace(options, output=options.output.with_name("expected"))
    assert translate_in_bulk(elsewhere) is not None
    return content(elsewhere.output)


def test_every_input_has_its_output(expected: dict[str, bytes]) -> None:
    assert expected.keys() == {"first", "second", "manifest.json"}
    for name, lines in (("first", FIRST), ("second", SECOND)):
        assert expected[name].decode() == "".join(f"{line.upper()}\n" for line in lines)
    manifest = json.loads(expected["manifest.json"])
    assert manifest["files"].keys() == {"first", "second"}
    assert [source["lines"] for source in manifest["job"]["sources"]] == [11, 12]


def test_several_workers_write_the_same(
    options: BulkTranslation, expected: dict[str, bytes]
) -> None:
    assert translate_in_bulk(replace(options, pool=ProcessPool(2))) is not None
    assert content(options.output) == expected


class Killed(BaseException):
    """Ends a run at once: nothing in the code handles it."""


# Six shards, two outputs and the manifest, each flushed and renamed, and its directory flushed.
@pytest.mark.parametrize("point", range(1, 28))
def test_stopped_at_any_write_it_goes_on_byte_for_byte(
    options: BulkTranslation,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    point: int,
) -> None:
    calls = 0

    def guard(function: Callable[..., None]) -> Callable[..., None]:
        def guarded(*arguments: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == point:
                raise Killed
            function(*arguments)

        return guarded

    with monkeypatch.context() as patch:
        for name in ("fsync", "replace"):
            patch.setattr(os, name, guard(getattr(os, name)))
        with pytest.raises(Killed):
            translate_in_bulk(options)
    assert translate_in_bulk(options) is not None
    assert content(options.output) == expected


def test_a_planted_link_is_not_followed(options: BulkTranslation, tmp_path: Path) -> None:
    """Whoever can foresee a hidden name could have another file overwritten."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    single = replace(options, inputs=options.inputs[:1])
    for name in (".out.partial", f".out.{os.getpid()}.partial"):
        options.output.with_name(name).symlink_to(victim)
    assert translate_in_bulk(single) is not None
    assert victim.read_text() == "precious"


def test_a_single_file_has_its_job_beside_it(options: BulkTranslation) -> None:
    single = replace(options, inputs=options.inputs[:1])
    assert translate_in_bulk(single) is not None
    assert options.output.read_text() == "".join(f"{line.upper()}\n" for line in FIRST)
    assert content(options.output.with_name("out.job")).keys() == {"manifest.json"}


def test_a_finished_job_is_left_alone(
    options: BulkTranslation, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = translate_in_bulk(options)
    times = {path: path.stat().st_mtime_ns for path in options.output.iterdir()}
    assert translate_in_bulk(options) == manifest
    assert "complete, nothing to do" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in options.output.iterdir()} == times
    (options.output / "first").write_text("changed")
    with pytest.raises(BothendsError, match="first: is not as it was written"):
        translate_in_bulk(options)


def test_machines_share_the_work(options: BulkTranslation, expected: dict[str, bytes]) -> None:
    for part in (1, 2):
        assert translate_in_bulk(replace(options, share=Share(part, 2))) is None
        assert not (options.output / "manifest.json").exists()
    assert translate_in_bulk(options) is not None
    assert content(options.output) == expected


def test_another_job_is_refused(options: BulkTranslation) -> None:
    translate_in_bulk(options)
    with pytest.raises(BothendsError, match=r"another job .shard_lines 4, not 5"):
        translate_in_bulk(replace(options, shard_lines=5))
    write_lines(options.inputs[0], ["edited"])
    with pytest.raises(BothendsError, match=r"another job .other source text"):
        translate_in_bulk(options)


def test_a_second_driver_is_refused(options: BulkTranslation) -> None:
    (options.output / "shards").mkdir(parents=True)
    with (
        lock_directory(options.output / "shards", "taken"),
        pytest.raises(BothendsError, match="out: another process is at work there"),
    ):
        translate_in_bulk(options)


def test_what_is_not_ours_is_not_written_into(options: BulkTranslation) -> None:
    options.output.mkdir()
    (options.output / "precious").touch()
    with pytest.raises(BothendsError, match="out: exists and is not a translation of this"):
        translate_in_bulk(options)
    single = replace(options, inputs=options.inputs[:1], output=options.output / "precious")
    with pytest.raises(BothendsError, match="precious: exists; remove it"):
        translate_in_bulk(single)


def test_outputs_do_not_collide(options: BulkTranslation, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    twin = tmp_path / "more" / "first.gz"
    twin.write_bytes(gzip.compress(b"x\n"))
    with pytest.raises(UsageError, match="out/first, which is taken"):
        translate_in_bulk(replace(options, inputs=(*options.inputs, twin)))
    with pytest.raises(UsageError, match="first: would be overwritten"):
        translate_in_bulk(replace(options, output=tmp_path))


def test_a_line_that_crashes_workers_is_named(options: BulkTranslation) -> None:
    lines = list(SECOND)
    lines[3] = "poison"
    write_lines(options.inputs[1], lines)
    poisoned = replace(options, pool=ProcessPool(2, attempts=1))
    with pytest.raises(BothendsError, match=r"second\.gz:4: this line crashes whoever"):
        translate_in_bulk(poisoned)
    assert translate_in_bulk(replace(poisoned, on_crash="empty")) is not None
    lines[3] = ""
    target = (options.output / "second").read_text()
    assert target == "".join(f"{line.upper()}\n" for line in lines)


def command(tmp_path: Path, *more: str) -> list[str]:
    model = ["--model", str(tiny_model("2x1")), "--beam", "2", "--shard-lines", "30"]
    output = ["--output", str(tmp_path / "out"), "--workers", "2"]
    return ["translate", str(tmp_path / "text"), *output, *model, *more]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks into /proc")
def test_killed_for_real_it_arrives_at_what_translate_writes(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = write_lines(tmp_path / "text", [*sentences(600, 3), ""])
    words = command(tmp_path)
    with subprocess.Popen([sys.executable, "-m", "bothends", *words]) as process:
        try:
            limit = time.monotonic() + 120
            while len(list(tmp_path.glob("out.job/shards/*.jsonl"))) < 3:
                assert time.monotonic() < limit
                assert process.poll() is None, "it was too quick"
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
    assert not (tmp_path / "out").exists()
    assert run(words) == 0
    capfdbinary.readouterr()
    plain = ["translate", str(text), "--model", str(tiny_model("2x1")), "--beam", "2"]
    assert run(plain) == 0
    assert capfdbinary.readouterr().out == (tmp_path / "out").read_bytes()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--workers=none"], "--workers none: expected a number of processes, ray or ray:ADDRESS"),
        (["--workers=0"], "processes must be at least 1"),
        (["--shard=3/2"], "shard 3/2: expected I/N"),
        (["--n-best=2"], "a job takes --beam, --length-penalty"),
        (["--json"], "a job takes --beam, --length-penalty"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    tmp_path: Path, more: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "text", ["x"])
    status, message = error_line(command(tmp_path, *more), capsys)
    assert (status, expected in message) == (2, True), message


def test_a_job_needs_files_and_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = str(write_lines(tmp_path / "text", ["x"]))
    for words in ([], [text], ["--output", str(tmp_path / "out")]):
        status, message = error_line(["translate", "--workers=2", *words], capsys)
        assert (status, "a job needs files and one --output" in message) == (2, True)


def test_the_slurm_script_shares_a_job(tmp_path: Path) -> None:
    """As Slurm would run it: an array of two, and a last job."""
    text = write_lines(tmp_path / "text", sentences(40, 5))
    script = Path(__file__).parents[1] / "deploy" / "translate.slurm"
    (tmp_path / "bothends").write_text(f'#!/bin/sh\nexec {sys.executable} -m bothends "$@"\n')
    (tmp_path / "bothends").chmod(0o755)
    settings = {
        "MODEL": str(tiny_model("1x1")),
        "INPUT": str(text),
        "OUTPUT": str(tmp_path / "out"),
        "PARTS": "2",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    for task in ({"SLURM_ARRAY_TASK_ID": "1"}, {"SLURM_ARRAY_TASK_ID": "2"}, {}):
        assert not (tmp_path / "out").exists()
        words = ["sh", str(script), "--shard-lines", "10"]
        subprocess.run(words, env={**os.environ, **settings, **task}, check=True)
    assert (tmp_path / "out").read_text().count("\n") == 40
