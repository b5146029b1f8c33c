"""`bothends translate FILE ... --output PATH`: a job that kills and workers leave no trace in."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bothends.cli import run
from bothends.distillation import shard_run
from bothends.distillation.bulk import translate_in_bulk
from bothends.distillation.shard_run import Share
from bothends.errors import BothendsError, UsageError
from bothends.jobs.locks import lock_directory
from bothends.jobs.pool import InThisProcess, ProcessPool
from command_line import error_line
from corpus_data import write_lines
from crashing_teacher import CrashingTeacher
from local_jobs import LocalTranslation
from tiny_model import sentences, tiny_model

FIRST = [f"a {number}" for number in range(11)]
SECOND = [*(f"b {number}" for number in range(9)), "", "  ", "ü"]


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalTranslation:
    """Two files, in shards of which one has lines of both."""
    monkeypatch.setattr("bothends.distillation.corpus_directory.source_commit", lambda: "abc")
    first = write_lines(tmp_path / "first", FIRST)
    second = write_lines(tmp_path / "second.gz", SECOND)
    pool = InThisProcess()
    return LocalTranslation(
        CrashingTeacher(), (first, second), tmp_path / "out", pool, shard_lines=4
    )


def content(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def expected(options: LocalTranslation) -> dict[str, bytes]:
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
    options: LocalTranslation, expected: dict[str, bytes]
) -> None:
    assert translate_in_bulk(replace(options, pool=ProcessPool(2))) is not None
    assert content(options.output) == expected


class Killed(BaseException):
    """Ends a run at once: nothing in the code handles it."""


# Six shards, two outputs and the manifest, each flushed and renamed, and its directory flushed.
@pytest.mark.parametrize("point", range(1, 28))
def test_stopped_at_any_write_it_goes_on_byte_for_byte(
    options: LocalTranslation,
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


def test_a_planted_link_is_not_followed(options: LocalTranslation, tmp_path: Path) -> None:
    """Whoever can foresee a hidden name could have another file overwritten."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    single = replace(options, inputs=options.inputs[:1])
    for name in (".out.partial", f".out.{os.getpid()}.partial"):
        options.output.with_name(name).symlink_to(victim)
    assert translate_in_bulk(single) is not None
    assert victim.read_text() == "precious"


def test_a_single_file_has_its_job_beside_it(options: LocalTranslation) -> None:
    single = replace(options, inputs=options.inputs[:1])
    assert translate_in_bulk(single) is not None
    assert options.output.read_text() == "".join(f"{line.upper()}\n" for line in FIRST)
    assert content(options.output.with_name("out.job")).keys() == {"manifest.json"}


def test_a_finished_job_is_left_alone(
    options: LocalTranslation, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = translate_in_bulk(options)
    times = {path: path.stat().st_mtime_ns for path in options.output.iterdir()}
    assert translate_in_bulk(options) == manifest
    assert "complete, nothing to do" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in options.output.iterdir()} == times
    (options.output / "first").write_text("changed")
    with pytest.raises(BothendsError, match="first: is not as it was written"):
        translate_in_bulk(options)


def test_machines_share_the_work(options: LocalTranslation, expected: dict[str, bytes]) -> None:
    for part in (1, 2):
        assert translate_in_bulk(replace(options, share=Share(part, 2))) is None
        assert not (options.output / "manifest.json").exists()
    assert translate_in_bulk(options) is not None
    assert content(options.output) == expected


def test_another_job_is_refused(options: LocalTranslation) -> None:
    translate_in_bulk(options)
    with pytest.raises(BothendsError, match=r"another job .shard_lines 4, not 5"):
        translate_in_bulk(replace(options, shard_lines=5))
    write_lines(options.inputs[0], ["edited"])
    with pytest.raises(BothendsError, match=r"another job .other source text"):
        translate_in_bulk(options)


def test_a_second_driver_is_refused(options: LocalTranslation) -> None:
    (options.output / "shards").mkdir(parents=True)
    with (
        lock_directory(options.output / "shards", "taken"),
        pytest.raises(BothendsError, match="out: another process is at work there"),
    ):
        translate_in_bulk(options)


def test_what_is_not_ours_is_not_written_into(options: LocalTranslation) -> None:
    options.output.mkdir()
    (options.output / "precious").touch()
    with pytest.raises(BothendsError, match="out: exists and is not a translation of this"):
        translate_in_bulk(options)
    single = replace(options, inputs=options.inputs[:1], output=options.output / "precious")
    with pytest.raises(BothendsError, match="precious: exists; remove it"):
        translate_in_bulk(single)


def test_outputs_do_not_collide(options: LocalTranslation, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    twin = tmp_path / "more" / "first.gz"
    twin.write_bytes(gzip.compress(b"x\n"))
    with pytest.raises(UsageError, match="out/first, which is taken"):
        translate_in_bulk(replace(options, inputs=(*options.inputs, twin)))
    with pytest.raises(UsageError, match="first: would be overwritten"):
        translate_in_bulk(replace(options, output=tmp_path))


def test_a_line_that_crashes_workers_is_named(options: LocalTranslation) -> None:
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


def test_crashing_lines_are_kept_aside_by_request(options: LocalTranslation) -> None:
    lines = list(SECOND)
    lines[3] = "poison"
    write_lines(options.inputs[1], lines)
    pool = ProcessPool(2, attempts=1)
    manifest = translate_in_bulk(replace(options, pool=pool, on_crash="aside"))
    assert manifest is not None
    assert manifest.crashed == (f"{options.inputs[1]}:4",)
    aside = json.loads((options.output / "crashed.jsonl").read_bytes())
    assert aside == {"file": str(options.inputs[1]), "line": 4, "text": "poison"}
    assert manifest.files.keys() == {"first", "second", "crashed.jsonl"}


def test_the_manifest_tells_which_kind_of_processor_made_which_shard(
    options: LocalTranslation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part, kind in ((1, "old"), (2, "new")):
        monkeypatch.setattr("bothends.distillation.shard_run.kind_of", lambda _, kind=kind: kind)
        translate_in_bulk(replace(options, share=Share(part, 2)))
    insisting = replace(options, same_kind=True)
    with pytest.raises(BothendsError, match=r"several kinds of processors \(1, 3, 5: new; 0, 2, 4"):
        translate_in_bulk(insisting)
    manifest = translate_in_bulk(options)
    assert manifest is not None
    assert manifest.kinds == {"new": "1, 3, 5", "old": "0, 2, 4"}


def test_another_kind_of_processor_is_refused_before_it_begins(
    options: LocalTranslation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bothends.distillation.shard_run.kind_of", lambda _: "old")
    translate_in_bulk(replace(options, share=Share(1, 2)))
    monkeypatch.setattr("bothends.distillation.shard_run.kind_of", lambda _: "new")
    with pytest.raises(BothendsError, match=r"another kind of processor \(new, not old\)"):
        translate_in_bulk(replace(options, same_kind=True))
    assert len(list((options.output / "shards").glob("*.jsonl"))) == 3


def test_a_worker_of_another_kind_ends_a_job_that_insists(
    options: LocalTranslation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first shard decides; that of another kind is not kept."""
    kinds = iter(["old", "old", "new", *["old"] * 9])
    done = shard_run.ShardDone

    def of_any_kind(*arguments: Any) -> shard_run.ShardDone:
        return replace(done(*arguments), kind=next(kinds))

    monkeypatch.setattr(shard_run, "ShardDone", of_any_kind)
    with pytest.raises(BothendsError, match="another kind of processor"):
        translate_in_bulk(replace(options, same_kind=True))
    assert len(list((options.output / "shards").glob("*.jsonl"))) == 2


def test_a_picture_shows_the_shards_over_time(options: LocalTranslation, tmp_path: Path) -> None:
    assert translate_in_bulk(replace(options, picture=tmp_path / "x.svg")) is not None
    picture = (tmp_path / "x.svg").read_text()
    assert picture.startswith("<svg ")
    assert picture.count("<title>shard ") == 6
    ElementTree.fromstring(picture)


def test_a_picture_that_cannot_be_written_costs_no_translation(
    options: LocalTranslation, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """It is an error all the same, and the same job draws what it can when it is asked again."""
    wanted = replace(options, picture=tmp_path / "none" / "x.svg")
    with pytest.raises(BothendsError, match=r"none/x\.svg: cannot be written"):
        translate_in_bulk(wanted)
    assert content(options.output) == expected
    (tmp_path / "none").mkdir()
    assert translate_in_bulk(wanted) is not None
    assert "all shards were there already" in (tmp_path / "none" / "x.svg").read_text()


def test_a_run_without_work_leaves_the_picture_of_the_one_that_had_it(
    options: LocalTranslation, tmp_path: Path
) -> None:
    wanted = replace(options, picture=tmp_path / "x.svg")
    assert translate_in_bulk(wanted) is not None
    before = (tmp_path / "x.svg").read_bytes()
    assert translate_in_bulk(wanted) is not None
    assert (tmp_path / "x.svg").read_bytes() == before


def test_the_directory_of_a_picture_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "text", ["x"])
    found = error_line(command(tmp_path, "--picture=none/x.svg"), capsys)
    assert found == (1, "--picture none/x.svg: none is not a directory that can be written to")
    assert not (tmp_path / "out.job").exists()


def test_a_picture_is_not_another_output(options: LocalTranslation) -> None:
    one = replace(options, inputs=options.inputs[:1], output=options.output.with_suffix(".svg"))
    with pytest.raises(
        UsageError, match=r"--picture .*out\.svg: is another output, too; name a different file"
    ):
        translate_in_bulk(replace(one, picture=one.output))


def peak_memory(options: LocalTranslation, lines: int) -> int:
    """Bytes, at most, while a job of so many lines is described and its first shard is made."""
    path = options.output.parent / f"text-{lines}"
    with open(path, "w") as file:
        file.writelines(f"line {number}\n" for number in range(lines))
    output = options.output.parent / f"out-{lines}"
    whole = replace(options, inputs=(path,), output=output, shard_lines=1000, share=Share(1, 10**6))
    tracemalloc.start()
    try:
        assert translate_in_bulk(whole) is None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_text(options: LocalTranslation) -> None:
    peak_memory(options, 1000)  # imports
    small, large = (peak_memory(options, lines) for lines in (20_000, 200_000))
    assert large < small + 300_000, (small, large)  # the text has 2.3 MB


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
        (["--workers=0"], "--workers 0: expected a number of processes, ray or ray:ADDRESS"),
        (["--shard=3/2"], "shard 3/2: expected I/N"),
        (["--n-best=2"], "takes only these options: --model, --beam"),
        (["--json"], "takes only these options: --model, --beam"),
        (["--batch-tokens=9"], "takes only these options: --model, --beam"),
        (["--no-progress"], "takes only these options: --model, --beam"),
        (["--picture=x.png"], "--picture x.png: expected a name that ends in .svg"),
        (["--output=s3://"], "s3://: expected s3://PLACE/NAME"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    tmp_path: Path, more: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "text", ["x"])
    status, message = error_line(command(tmp_path, *more), capsys)
    assert (status, expected in message) == (2, True), message


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["memory://x/y"], "memory://x/y: only a job reads and writes URLs: give --workers, too"),
        (["--same-kind"], "are for jobs: add --workers"),
        (["--shard-lines=9"], "are for jobs: add --workers"),
    ],
)
def test_what_only_a_job_can_do_is_said(
    more: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, message = error_line(["translate", *more], capsys)
    assert (status, expected in message) == (2, True), message


@pytest.mark.parametrize("name", ["a.srt", "a.md", "a.HTML", "a.txt", "memory://x/a.md"])
def test_documents_are_no_lines(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `translate` takes for a document by its name, a job does not take for lines."""
    file = name if "://" in name else str(write_lines(tmp_path / name, ["x"]))
    words = ["translate", file, "--output", str(tmp_path / "out"), "--workers=1"]
    assert error_line(words, capsys) == (
        2,
        f"{file}: a job translates lines, not documents; leave out --workers and "
        "--shard, or add --format lines",
    )
    assert not (tmp_path / "out.job").exists()


def test_a_job_takes_lines_whatever_their_name(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text.txt", ["ba bo", "da du"])
    model = ["--model", str(tiny_model("1x1")), "--format=lines", "--workers=1"]
    assert run(["translate", str(text), "--output", str(tmp_path / "out"), *model]) == 0
    assert (tmp_path / "out").read_text().count("\n") == 2


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
