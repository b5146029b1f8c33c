"""`bothends distill`: whatever stops it and whoever shares the work, the corpus is the same."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from bothends.cli import run
from bothends.data.shards import PreparedCorpus
from bothends.distillation.corpus_directory import Manifest
from bothends.distillation.distill import distill
from bothends.distillation.filters import PairFilters, repeated_words
from bothends.distillation.job import describe_job
from bothends.distillation.shard_file import Record, read_header, write_shard
from bothends.distillation.shard_run import Share
from bothends.distillation.teachers import ModelTeacher
from bothends.errors import BothendsError
from bothends.jobs.locks import lock_directory
from bothends.jobs.pool import InThisProcess
from bothends.model.directory import CONFIG, read_description, record_model, write_description
from bothends.model.lengths import LengthStatistics
from bothends.model.shortlist import SHORTLIST
from bothends.search.generator import Generator
from bothends.text.vocabulary import Vocabularies
from bothends.translator import Translator
from command_line import error_line
from corpus_data import content, write_lines
from crashing_teacher import CrashingTeacher
from killed_writes import Killed, killed_at_write
from local_jobs import LocalDistillation
from tiny_model import sentences, tiny_model

#: Empty lines, repeated lines, a line of spaces; five shards of five lines and one of three.
LINES = [*sentences(9, 1), "", *sentences(9, 2), *sentences(3, 1), *sentences(3, 1), "  ", "", "ba"]


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalDistillation:
    """A small job in this process."""
    # A commit to this checkout while a test runs is none of its business.
    monkeypatch.setattr("bothends.distillation.corpus_directory.source_commit", lambda: "abc")
    source = write_lines(tmp_path / "text.source", LINES)
    return LocalDistillation(
        ModelTeacher(tiny_model("1x1"), beam=2),
        (source,),
        tmp_path / "distilled",
        shard_lines=5,
        pool=InThisProcess(),
    )


@pytest.fixture
def uninterrupted(options: LocalDistillation) -> dict[str, bytes]:
    elsewhere = replace(options, output=options.output.with_name("uninterrupted"))
    assert distill(elsewhere) is not None
    return content(elsewhere.output)


def complete(options: LocalDistillation) -> Manifest:
    manifest = distill(options)
    assert manifest is not None
    return manifest


def teacher_of(options: LocalDistillation) -> ModelTeacher:
    assert isinstance(options.teacher, ModelTeacher)
    return options.teacher


def command(options: LocalDistillation, *more: str) -> list[str]:
    """The same job on the command line."""
    arguments = ["distill", "--teacher", options.teacher.name, "--source"]
    arguments += [*map(str, options.sources), "--output", str(options.output), "--beam"]
    return [
        *arguments,
        str(teacher_of(options).beam),
        f"--shard-lines={options.shard_lines}",
        *more,
    ]


def test_line_n_is_the_teachers_translation_of_line_n(options: LocalDistillation) -> None:
    manifest = complete(options)
    source, target = (options.output / name for name in ("train.source", "train.target"))
    assert source.read_bytes() == options.sources[0].read_bytes()
    translator = Translator.load(tiny_model("1x1"), threads=1)
    expected = [translator.translate([line], beam=2)[0].text for line in LINES]
    assert target.read_text("utf-8").split("\n") == [*expected, ""]
    assert len(set(expected)) > 15, "a teacher that says always the same proves little"
    assert (manifest.counts.read, manifest.counts.kept, manifest.counts.dropped) == (28, 28, {})
    assert len(manifest.shards) == 6
    assert manifest.provenance["teacher"] == str(tiny_model("1x1"))


def test_the_weights_serve_as_well_as_the_graphs(options: LocalDistillation) -> None:
    complete(options)
    teacher = replace(teacher_of(options), directory=tiny_model("1x1", None), engine="torch")
    torch_output = options.output.with_name("torch")
    complete(replace(options, teacher=teacher, output=torch_output))
    target = (options.output / "train.target").read_bytes()
    assert (torch_output / "train.target").read_bytes() == target


def test_prepare_takes_what_distill_writes(options: LocalDistillation, tmp_path: Path) -> None:
    complete(options)
    text = [f"--{side}={options.output / f'train.{side}'}" for side in ("source", "target")]
    teacher = options.teacher.name
    arguments = ["prepare", *text, "--vocabulary", teacher, "--output", str(tmp_path / "prepared")]
    assert run(arguments) == 0
    report = PreparedCorpus.open(tmp_path / "prepared").manifest.reports["train"]
    assert report.read == 28
    targets = (options.output / "train.target").read_text("utf-8").split("\n")[:-1]
    assert report.dropped["empty"] == targets.count("") >= 3


def test_equal_lines_of_a_shard_are_translated_once(
    options: LocalDistillation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    search = Generator.search

    def counting(self: Generator, sources: Sequence[Sequence[int]], options: Any) -> Any:
        vocabulary = Vocabularies.load(tiny_model("1x1")).source
        asked.extend(vocabulary.decode(sources))
        return search(self, sources, options)

    monkeypatch.setattr(Generator, "search", counting)
    text = write_lines(options.sources[0], ["ba bo", "da", "ba bo", "ba bo", "da", "da", "ki"])
    complete(options)
    assert sorted(asked) == ["ba bo", "da", "da", "ki"]  # the longest first, shard by shard
    target = (options.output / "train.target").read_text("utf-8").split("\n")
    assert target[0] == target[2] == target[3]
    assert target[1] == target[4] == target[5]
    assert (options.output / "train.source").read_bytes() == text.read_bytes()


# Every shard is flushed and renamed, then both texts, then the manifest: 18 points to die at.
@pytest.mark.parametrize("point", range(1, 19))
def test_stopped_at_any_write_it_goes_on_byte_for_byte(
    options: LocalDistillation,
    uninterrupted: dict[str, bytes],
    point: int,
) -> None:
    with killed_at_write(point), pytest.raises(Killed):
        distill(options)
    assert not (options.output / "manifest.json").exists()
    complete(options)
    assert content(options.output) == uninterrupted


def start(options: LocalDistillation) -> subprocess.Popen[str]:
    """The command in processes of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, "-m", "bothends", *command(options, "--processes=2")]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment)


def wait_for(what: Callable[[], bool]) -> None:
    limit = time.monotonic() + 120
    while not what():
        assert time.monotonic() < limit, "it did not happen in two minutes"
        time.sleep(0.005)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Its child processes that translate, as opposed to Python's resource tracker."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def is_running(process: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks into /proc")
@pytest.mark.parametrize("victim", ["first process", "worker"])
def test_two_processes_killed_for_real_go_on_to_what_one_writes(
    options: LocalDistillation, victim: str
) -> None:
    write_lines(options.sources[0], sentences(900, 3))
    options = replace(options, shard_lines=30)
    process = start(options)
    try:
        wait_for(lambda: len(list(options.output.glob("shards/*.jsonl"))) >= 2)
        workers = workers_of(process)
        assert len(workers) == 2
        os.kill(process.pid if victim == "first process" else workers[0], signal.SIGKILL)
        said = process.communicate()[1]
    finally:
        process.kill()
    if victim == "worker":  # another one takes its place
        assert process.returncode == 0
        assert "a worker process ended with status -9; attempt 2 of 3" in said
    else:
        assert process.returncode == -signal.SIGKILL
        assert not (options.output / "manifest.json").exists()
    wait_for(lambda: not any(map(is_running, workers)))  # nobody works on without the first process
    (options.output / "manifest.json").unlink(missing_ok=True)  # it has another commit
    assert complete(options).counts.kept == 900
    alone = replace(options, output=options.output.with_name("alone"))
    complete(alone)
    assert content(options.output) == content(alone.output)


def test_machines_share_the_work(
    options: LocalDistillation, uninterrupted: dict[str, bytes], tmp_path: Path
) -> None:
    machines = [tmp_path / f"machine-{number}" for number in (1, 2, 3)]
    for number, machine in enumerate(machines, start=1):
        # The same text lies elsewhere, and is compressed.
        source = write_lines(tmp_path / f"{machine.name}.gz", LINES)
        share = Share.parse(f"{number}/3")
        part = replace(options, sources=(source,), output=machine, share=share)
        assert distill(part) is None
        assert len(list(machine.glob("shards/*.jsonl"))) == 2
        assert not (machine / "manifest.json").exists()
        shutil.copytree(machine / "shards", options.output / "shards", dirs_exist_ok=True)
    complete(replace(options, merge_only=True))
    assert content(options.output) == uninterrupted


def test_a_share_says_what_is_there(
    options: LocalDistillation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command(options, "--shard=1/2", "--processes=1")) == 0
    assert "3 of 6 shards are there\n" in capsys.readouterr().err
    assert run(command(options, "--shard", "2/2", "--processes=1")) == 0
    said = capsys.readouterr().err
    assert "going on, 3 of 6 shards are there" in said
    assert "6 of 6 shards are there; the same command without --shard merges them" in said


def test_several_files_are_one_text(
    options: LocalDistillation, uninterrupted: dict[str, bytes]
) -> None:
    first = write_lines(options.sources[0], LINES[:12])
    second = options.sources[0].with_name("more.gz")
    second.write_bytes(gzip.compress("\r\n".join(LINES[12:]).encode()))
    complete(replace(options, sources=(first, second)))
    for name in ("train.source", "train.target"):
        assert (options.output / name).read_bytes() == uninterrupted[name]


def test_gaps_are_named(options: LocalDistillation) -> None:
    complete(options)
    for number in (1, 3, 4):
        (options.output / "shards" / f"00000{number}.jsonl").unlink()
    (options.output / "manifest.json").unlink()
    with pytest.raises(BothendsError, match=r"3 of 6 shards are missing \(1, 3-4\)"):
        distill(replace(options, merge_only=True))


@pytest.mark.parametrize("damage", ["cut", "changed", "header"])
def test_a_damaged_shard_is_named(options: LocalDistillation, damage: str) -> None:
    manifest = complete(options)
    path = options.output / "shards" / "000002.jsonl"
    whole = path.read_bytes()
    path.write_bytes(
        {
            "cut": whole[:-9],
            "changed": whole.replace(b'"finished": true', b'"finished": false', 1),
            "header": whole[:9],
        }[damage]
    )
    (options.output / "manifest.json").unlink()
    with pytest.raises(BothendsError, match=r"000002\.jsonl: damaged; remove it"):
        distill(options)
    path.unlink()
    assert complete(options) == manifest


@pytest.mark.parametrize("name", ["manifest.json", "shards/000002.jsonl"])
def test_what_a_newer_version_wrote_is_not_called_damaged(
    options: LocalDistillation, name: str
) -> None:
    complete(options)
    path = options.output / name
    path.write_bytes(re.sub(rb'("format_version": )2', rb"\g<1>3", path.read_bytes(), count=1))
    if name != "manifest.json":
        (options.output / "manifest.json").unlink()
    with pytest.raises(BothendsError, match=f"{name}: format version 3, .* a newer bothends"):
        distill(options)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda job: replace(job, teacher=replace(job.teacher, beam=3)), "beam 2, not 3"),
        (lambda job: replace(job, shard_lines=6), "shard_lines 5, not 6"),
        (
            lambda job: replace(job, teacher=replace(job.teacher, directory=tiny_model("2x1"))),
            "another teacher",
        ),
        (lambda job: replace(job, sources=job.sources * 2), "other source text"),
    ],
    ids=["beam", "shards", "teacher", "text"],
)
@pytest.mark.parametrize("merged", [True, False], ids=["corpus", "shards"])
def test_work_of_another_job_is_refused(
    options: LocalDistillation,
    change: Callable[[LocalDistillation], LocalDistillation],
    expected: str,
    merged: bool,
) -> None:
    complete(options)
    if not merged:
        (options.output / "manifest.json").unlink()
    before = content(options.output)
    with pytest.raises(BothendsError, match=rf"of another job \({expected}\)"):
        distill(change(options))
    assert content(options.output) == before


def test_a_shard_under_another_name_is_refused(options: LocalDistillation) -> None:
    complete(options)
    (options.output / "manifest.json").unlink()
    (options.output / "shards/000001.jsonl").rename(options.output / "shards/000004.jsonl")
    with pytest.raises(BothendsError, match=r"000004\.jsonl: is shard 1 under another name"):
        distill(options)


def test_text_that_changes_meanwhile_is_noticed(
    options: LocalDistillation, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete(options)
    (options.output / "manifest.json").unlink()
    job = describe_job(options.teacher, options.sources, options.shard_lines)
    write_lines(options.sources[0], [*LINES[:7], "something else", *LINES[8:]])
    monkeypatch.setattr("bothends.distillation.distill.describe_job", lambda *_: job)
    with pytest.raises(BothendsError, match=r"000001\.jsonl: its source lines are not those"):
        distill(options)


def test_a_complete_corpus_is_left_alone(
    options: LocalDistillation, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = complete(options)
    times = {path: path.stat().st_mtime_ns for path in options.output.rglob("*")}
    shutil.rmtree(options.output / "shards")  # no longer needed
    assert distill(options) == manifest
    assert "complete, nothing to do" in capsys.readouterr().err
    for name in ("manifest.json", "train.source", "train.target"):
        path = options.output / name
        assert path.stat().st_mtime_ns == times[path]


def test_a_lost_text_is_written_again(
    options: LocalDistillation, uninterrupted: dict[str, bytes]
) -> None:
    complete(options)
    (options.output / "train.target").write_text("cut off")
    complete(options)
    assert content(options.output) == uninterrupted


GOOD = Record("Wo ist es?", -2.0, tokens=4, source_tokens=4, finished=True, truncated=False)
CASES: list[tuple[str, Record, str | None]] = [
    ("Where is it?", GOOD, None),
    ("", replace(GOOD, text="", logprob=0.0, tokens=0, source_tokens=0), "empty"),
    ("Where?", replace(GOOD, text=" ", tokens=1), "empty"),
    ("Where is it?", replace(GOOD, tokens=8, logprob=-8.9), None),
    ("Where is it?", replace(GOOD, tokens=9), "too_long"),
    ("Where is it?", replace(GOOD, text="Wo ist, ist es?"), "repetition"),
    ("Where is it?", replace(GOOD, text="Wo ist wo ist es?"), "repetition"),
    ("Very, very good.", replace(GOOD, text="Sehr, sehr gut."), None),
    ("Very, very good.", replace(GOOD, text="Sehr, sehr, sehr gut."), "repetition"),
    ("Where is it?", replace(GOOD, logprob=-5.0), None),
    ("Where is it?", replace(GOOD, logprob=-5.1), "low_score"),
    ("Where is it?", replace(GOOD, text="Wo wo?", tokens=9, logprob=-99.0), "too_long"),
    ("Where is it?", replace(GOOD, text="Wo wo?", logprob=-99.0), "repetition"),
]
ALL = PairFilters(drop_empty=True, max_ratio=2.0, drop_repetitions=True, min_score=-1.0)


@pytest.mark.parametrize(("source", "record", "reason"), CASES)
def test_a_filter_drops_what_it_is_for(source: str, record: Record, reason: str | None) -> None:
    assert ALL.refuse(source, record) == reason
    assert PairFilters().refuse(source, record) is None


@pytest.mark.parametrize(
    ("text", "words"), [("", 0), ("a b a b a b", 4), ("A, a!", 1), ("a b c a", 0), ("ja-ja", 1)]
)
def test_repeated_words_are_counted(text: str, words: int) -> None:
    assert repeated_words(text) == words


def test_what_filters_drop_is_counted_and_gone_from_both_sides(
    options: LocalDistillation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, records = [source for source, _, _ in CASES], [record for _, record, _ in CASES]
    write_lines(options.sources[0], sources)
    job = describe_job(options.teacher, options.sources, options.shard_lines)
    shards = options.output / "shards"
    shards.mkdir(parents=True)
    for number, first in enumerate(range(0, len(CASES), 5)):
        part = slice(first, first + 5)
        write_shard(shards, job, number, sources[part], records[part])
    monkeypatch.setattr(Translator, "translate", None)  # the shards are there: nobody translates
    assert run(command(options)) == 0
    assert capsys.readouterr().out == (
        f"13 lines read, 13 pairs kept\nwritten to {options.output}\n"
    )
    filters = ["--drop-empty", "--max-ratio=2", "--drop-repetitions", "--min-score", "-1"]
    assert run(command(options, *filters)) == 0
    assert capsys.readouterr().out == (
        "13 lines read, 4 pairs kept\n"
        "  dropped: 2 with an empty side, 2 with more than 2.0 target tokens for a source token, "
        "4 with repetitions, 1 with a score below -1.0\n"
        f"written to {options.output}\n"
    )
    kept = [(source, record.text) for source, record, reason in CASES if reason is None]
    texts = [(options.output / f"train.{side}").read_text("utf-8") for side in ("source", "target")]
    assert list(zip(*(text.split("\n")[:-1] for text in texts), strict=True)) == kept
    counts = json.loads((options.output / "manifest.json").read_text())["counts"]
    assert counts["dropped"] == {"empty": 2, "too_long": 2, "repetition": 4, "low_score": 1}


def test_cut_lines_are_counted(options: LocalDistillation) -> None:
    write_lines(options.sources[0], ["ba bo da du ga gi", "ba", "ba bo da du ga gi"])
    manifest = complete(replace(options, teacher=replace(teacher_of(options), max_source_length=4)))
    assert manifest.counts.truncated == 2


def test_a_header_tells_the_job(options: LocalDistillation) -> None:
    complete(options)
    job = describe_job(options.teacher, options.sources, options.shard_lines)
    header = read_header(options.output / "shards/000005.jsonl", job)
    assert (header.number, header.job, job.shard_size(5)) == (5, job, 3)


@pytest.mark.parametrize(
    ("more", "status", "expected"),
    [
        (["--shard=0/2"], 2, "--shard 0/2: expected I/N with I from 1 to N"),
        (["--shard=3/2"], 2, "--shard 3/2: expected I/N"),
        (["--shard=half"], 2, "--shard half: expected I/N"),
        (["--shard=1/2", "--merge"], 2, "give one of the two"),
        (["--min-score=1"], 2, "--min-score: Input should be less than or equal to 0"),
        (["--max-ratio=0"], 2, "--max-ratio: Input should be greater than 0"),
        (["--source=nowhere"], 1, "nowhere: no such file"),
        (["--source=."], 1, ".: not a regular file"),
        (["--teacher=nobody"], 1, "nobody: no such model directory"),
        (["--output=text.source"], 1, "text.source: exists and is not a distilled corpus"),
        (["--output=."], 1, ".: exists and is not a distilled corpus"),
        (["--output=prepared"], 1, "not the manifest of a distilled corpus"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    options: LocalDistillation,
    more: list[str],
    status: int,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared" / "manifest.json").write_text('{"token_type": "uint16"}')
    found, message = error_line(command(options, "--processes=1", *more), capsys)
    assert (found, expected in message) == (status, True), message


@pytest.mark.parametrize("processes", [1, 2])
def test_a_mistake_in_any_process_is_told_in_one_line(
    options: LocalDistillation, processes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    teacher = tiny_model("1x1", None)
    assert run(command(options, f"--teacher={teacher}", f"--processes={processes}")) == 1
    announcement, error = capsys.readouterr().err.splitlines()
    assert announcement.startswith(f"{teacher} translates 28 of 28 lines")
    assert "no encoder.onnx and no decoder.onnx; write them with `bothends export" in error


def test_a_worker_that_is_gone_before_it_reads_its_shard(
    options: LocalDistillation, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shard larger than a pipe holds breaks the pipe, which is not the reader of our output."""
    write_lines(options.sources[0], ["ba " * 1000] * 2000)
    big = replace(options, shard_lines=1000)
    teacher = tiny_model("1x1", None)
    assert run(command(big, f"--teacher={teacher}", "--processes=2")) == 1
    assert "no encoder.onnx and no decoder.onnx" in capsys.readouterr().err


def test_an_empty_text_is_refused(options: LocalDistillation) -> None:
    write_lines(options.sources[0], [])
    with pytest.raises(BothendsError, match="no lines to translate"):
        distill(options)


@pytest.fixture
def poisoned(options: LocalDistillation) -> LocalDistillation:
    """Two lines that crash workers, in the second of two files."""
    first = write_lines(options.sources[0], [f"a {number}" for number in range(12)])
    lines = [f"b {number}" for number in range(8)]
    lines[4], lines[6] = "poison", "more poison"
    second = write_lines(options.sources[0].with_name("second"), lines)
    return replace(
        options,
        teacher=CrashingTeacher(),
        sources=(first, second),
        processes=2,
        pool=None,
        shard_lines=4,
        on_crash="error",
    )


def test_a_line_that_crashes_workers_is_found(
    poisoned: LocalDistillation, capsys: pytest.CaptureFixture[str]
) -> None:
    place = re.escape(str(poisoned.sources[1]))
    with pytest.raises(BothendsError, match=rf"{place}:5: this line crashes .* \(and 1 more\)"):
        distill(poisoned)
    assert f"{poisoned.sources[1]}:7: this line crashes whoever" in capsys.readouterr().err
    # All the rest is there.
    assert len(list(poisoned.output.glob("shards/*.jsonl"))) == 4
    assert not (poisoned.output / "manifest.json").exists()


def test_a_line_that_crashes_workers_may_have_no_translation(poisoned: LocalDistillation) -> None:
    complete(replace(poisoned, on_crash="empty"))
    target = (poisoned.output / "train.target").read_text().split("\n")
    expected = [f"A {number}" for number in range(12)] + [f"B {number}" for number in range(8)]
    expected[16] = expected[18] = ""
    assert target == [*expected, ""]


def test_a_line_that_crashed_workers_is_left_out_at_the_next_attempt(
    poisoned: LocalDistillation,
) -> None:
    """One shard is left then: its worker is not the process that has to survive."""
    with pytest.raises(BothendsError, match="this line crashes"):
        distill(replace(poisoned, processes=1))
    manifest = complete(replace(poisoned, processes=1, on_crash="empty"))
    assert len(manifest.crashed) == 2


def test_a_shortlist_makes_another_teacher_and_so_do_other_cuts(tmp_path: Path) -> None:
    model = Path(shutil.copytree(tiny_model("1x1"), tmp_path / "model"))
    native, onnx = ModelTeacher(model, engine="native"), ModelTeacher(model)
    splitting = replace(onnx, split_sentences=True)
    before = {teacher: teacher.fingerprint() for teacher in (native, onnx, splitting)}
    (model / SHORTLIST).write_bytes(b"words")
    assert native.fingerprint() != before[native]
    assert onnx.fingerprint() == before[onnx]  # which does not read it
    lengths = LengthStatistics(mean=0.0, spread=1.0, longest_source=9)
    description = replace(read_description(model), lengths=lengths)
    write_description(model, description)
    record_model(model, [CONFIG])
    assert onnx.fingerprint() == before[onnx]
    assert splitting.fingerprint() != before[splitting]


def test_where_directories_cannot_be_locked_a_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """NFS gives exclusive locks only for what is open for writing."""
    import fcntl

    flock = fcntl.flock

    def as_on_nfs(descriptor: int, kind: int) -> None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    with (
        lock_directory(tmp_path, "taken"),
        pytest.raises(BothendsError, match="taken"),
        lock_directory(tmp_path, "taken"),
    ):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks")))
    with lock_directory(tmp_path, "taken"):
        assert "no locks here; let no other process work there" in capsys.readouterr().err


def test_a_second_driver_is_refused(options: LocalDistillation) -> None:
    (options.output / "shards").mkdir(parents=True)
    with lock_directory(options.output / "shards", "taken"):
        with pytest.raises(BothendsError, match="distilled: another process is at work there"):
            distill(options)
        with pytest.raises(BothendsError, match="another process is at work there"):
            distill(replace(options, share=Share(1, 2)))
    with lock_directory(options.output / "shards", "taken", shared=True):
        assert distill(replace(options, share=Share(1, 2))) is None
    complete(options)
