"""What happens to what a command writes: full disks, kills, read-only directories, closed pipes.

For every command and every fault: the error is one line, what is there has not lost a byte, and the
same command, run again, gives what an undisturbed one gives.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from bothends.cli import app
from writing_commands import COMMANDS, READING, VOLATILE, Ending, in_child, snapshot

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are put into forks")


def _nothing() -> None: ...


#: What changes a file system, by which progress is counted.
CALLS = ("open", "mkdir", "rename", "replace", "rmdir", "unlink", "fsync", "symlink")

#: Options that name what is read, and is never written.
READ = {
    *("files", "model", "source", "target", "reference", "hypothesis", "sample", "teacher"),
    *("correct", "incorrect", "distances", "exclude", "recipe", "run", "vocabulary", "glossary"),
    *("valid_source", "valid_target", "source_sentencepiece", "target_sentencepiece"),
    *("measured", "metrics", "rescore"),
}

#: All rows, and which of them take so long that the suite has one kill for them, and no more.
ROWS = [
    pytest.param(name, marks=pytest.mark.slow) if command.slow else name
    for name, command in COMMANDS.items()
]


def run_row(
    name: str, workspace: Path, fault: Callable[[], object] = _nothing, **how: Any
) -> Ending:
    """Run the command of a row in a child, with a fault."""
    command = COMMANDS[name]

    def before() -> None:
        command.patch()
        fault()

    return in_child(command.arguments, workspace, before, **how)


def snapshot_of(name: str, workspace: Path) -> dict[str, str]:
    return snapshot(workspace, COMMANDS[name].volatile)


class Undisturbed:
    """A workspace before and after a command that nothing happened to."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name, self._before = name, directory / "before"
        self._before.mkdir()
        COMMANDS[name].make(self._before)
        after = self.workspace(directory / "after")
        self.calls = _count_calls(name, after)
        self.result = snapshot_of(name, after)
        before = snapshot_of(name, self._before)
        assert self.result != before
        new = [after / path for path in self.result if self.result[path] != before.get(path)]
        largest = max(new, key=lambda path: path.stat().st_size)
        #: bytes of the largest file that it has written, and whether it has them each time
        self.largest = largest.stat().st_size
        self.is_constant = largest.name not in VOLATILE | COMMANDS[name].volatile

    def workspace(self, path: Path) -> Path:
        return Path(shutil.copytree(self._before, path, symlinks=True))

    def check(self, workspace: Path) -> None:
        """The result is there already, or else the same command works, and gives it."""
        if snapshot_of(self.name, workspace) == self.result:
            return
        again = run_row(self.name, workspace)
        assert again.status == 0, again.errors
        assert snapshot_of(self.name, workspace) == self.result
        directories = [path for path in workspace.rglob(".*.partial") if path.is_dir()]
        assert directories == []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Undisturbed]:
    return cache(lambda name: Undisturbed(name, tmp_path_factory.mktemp("undisturbed")))


def _count_calls(name: str, workspace: Path) -> int:
    """Run a command; how many of `CALLS` it makes."""
    read, write = os.pipe()

    def count() -> None:
        _at_call(None, lambda: os.write(write, b"x"))

    ending = run_row(name, workspace, count)
    os.close(write)
    assert ending.status == 0, ending.errors
    with open(read, "rb") as file:
        return len(file.read())


def _at_call(number: int | None, action: Callable[[], object]) -> None:
    """Have `action` happen before call `number` of `CALLS`, counted from 0; before all if None."""
    made = 0

    def guard(function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **options: Any) -> Any:
            nonlocal made
            if number in (None, made):
                action()
            made += 1
            return function(*arguments, **options)

        return guarded

    for call in CALLS:
        setattr(os, call, guard(getattr(os, call)))


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fill_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def assert_one_line(ending: Ending, *reasons: str) -> None:
    assert ending.status == 1, ending.errors
    assert "Traceback" not in ending.errors
    # The last one, but for a chain, which then says at which stage that was and what sets it up.
    (line,) = (x for x in ending.errors.splitlines()[-3:] if x.startswith("bothends: error: "))
    assert not reasons or any(reason in line for reason in reasons)


def moments(name: str, calls: int, count: int) -> list[int]:
    """Some of the calls, always the same ones, the last among them."""
    chosen = random.Random(name).sample(range(calls), min(count, calls))
    return sorted({*chosen[:-1], calls - 1})


Undo = Callable[[str], Undisturbed]


def _commands(group: Any = app, *names: str) -> Iterator[tuple[str, Callable[..., object]]]:
    """Every command of the command line, by its name."""
    for each in group.registered_commands:
        yield " ".join([*names, each.name or each.callback.__name__]), each.callback
    for each in group.registered_groups:
        yield from _commands(each.typer_instance, *names, each.name)


def _names_a_file(kind: Any) -> bool:
    """By its type, or by what its help shows in its place."""
    shown = str(getattr(kind, "metavar", None) or "")
    return (
        kind is Path
        or any(word in shown for word in ("FILE", "DIR", "PATH"))
        or any(map(_names_a_file, get_args(kind)))
    )


@pytest.mark.parametrize(("name", "function"), _commands())
def test_the_table_has_every_command_that_writes(
    name: str, function: Callable[..., object]
) -> None:
    """Whatever names a file or directory is read, or has a row in which it is written."""
    rows = [
        command.arguments.split()
        for command in COMMANDS.values()
        if f"{command.arguments} ".startswith(f"{name} ")
    ]
    if name in READING:
        assert not rows
    else:
        assert rows, f"no row for {name} in writing_commands.py"
    kinds = get_type_hints(function, include_extras=True)
    for parameter, kind in kinds.items():
        if parameter in READ or not _names_a_file(kind):
            continue
        option = f"--{parameter.rstrip('_').replace('_', '-')}"
        is_argument = "ArgumentInfo" in str(kind)
        if is_argument and name in READING:
            continue
        assert any(is_argument or option in row for row in rows), f"no row for {name} {option}"


@pytest.mark.parametrize("name", READING)
def test_what_only_reads_writes_nothing(name: str, tmp_path: Path) -> None:
    READING[name].make(tmp_path)
    before = _everything(tmp_path)
    ending = in_child(READING[name].arguments, tmp_path)
    assert ending.status == 0, ending.errors
    assert _everything(tmp_path) == before


def _everything(workspace: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in workspace.rglob("*")}


@pytest.mark.parametrize("room", ["none", "some", "all but a byte"])
@pytest.mark.parametrize("name", ROWS)
def test_a_full_disk(name: str, room: str, undisturbed: Undo, tmp_path: Path) -> None:
    """No file may have more than so many bytes: small ones are written, and the largest is not."""
    workspace = undisturbed(name).workspace(tmp_path / "workspace")
    largest = undisturbed(name).largest
    limit = {"none": 0, "some": min(1500, largest // 2), "all but a byte": largest - 1}[room]

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    ending = run_row(name, workspace, fill)
    if ending.status or undisturbed(name).is_constant or room == "none":
        # A write may also be cut short, which has no reason of its own.
        assert_one_line(ending, "File too large", "No space left on device")
    undisturbed(name).check(workspace)


@pytest.mark.parametrize("name", ROWS)
def test_a_disk_that_fills_up_on_the_way(name: str, undisturbed: Undo, tmp_path: Path) -> None:
    for number in moments(name, undisturbed(name).calls, 2):
        workspace = undisturbed(name).workspace(tmp_path / str(number))
        fill = partial(_at_call, number, _fill_disk)
        ending = run_row(name, workspace, fill)
        if ending.status:  # a directory that could not be made durable is no error
            assert_one_line(ending, "No space left on device")
        undisturbed(name).check(workspace)


def _killed(name: str, undisturbed: Undo, tmp_path: Path, count: int) -> None:
    killed = 0
    for number in moments(name, undisturbed(name).calls, count):
        workspace = undisturbed(name).workspace(tmp_path / str(number))
        kill = partial(_at_call, number, _kill)
        ending = run_row(name, workspace, kill)
        # A few calls fewer than before are enough to be done: caches of fonts, for one.
        assert ending.status in (0, -signal.SIGKILL), ending.errors
        killed += ending.status != 0
        undisturbed(name).check(workspace)
    assert killed


@pytest.mark.parametrize("name", ROWS)
def test_killed_at_some_moments(name: str, undisturbed: Undo, tmp_path: Path) -> None:
    _killed(name, undisturbed, tmp_path, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_killed_at_many_moments(name: str, undisturbed: Undo, tmp_path: Path) -> None:
    _killed(name, undisturbed, tmp_path, 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_killed_at_any_time(name: str, undisturbed: Undo, tmp_path: Path) -> None:
    """By the clock, and in a process of its own: three times for each command."""
    generator = random.Random(name)
    command = [sys.executable, "-m", "bothends", *COMMANDS[name].arguments.split()]
    started = time.monotonic()
    subprocess.run(command, cwd=undisturbed(name).workspace(tmp_path / "timed"), check=True)
    takes = time.monotonic() - started
    for number in range(3):
        workspace = undisturbed(name).workspace(tmp_path / str(number))
        process = subprocess.Popen(
            command, cwd=workspace, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(generator.uniform(0.2, 1.0) * takes)
        process.kill()
        process.wait()
        _wait_for_children(process.pid)
        undisturbed(name).check(workspace)


def _wait_for_children(group: int, seconds: float = 30) -> None:
    """A command's own processes end with it, each when it notices."""
    limit = time.monotonic() + seconds
    with suppress(ProcessLookupError):
        while time.monotonic() < limit:
            os.killpg(group, 0)
            time.sleep(0.01)
        pytest.fail(f"processes of the command are still there after {seconds} s")


def _give_up_override() -> None:
    """Have root obey permissions like anybody else: without CAP_DAC_OVERRIDE."""
    library = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    assert library.capget(header, data) == 0
    data[0] &= ~(1 << 1)
    assert library.capset(header, data) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="root obeys no permissions")
@pytest.mark.parametrize("name", ROWS)
def test_a_read_only_directory(name: str, undisturbed: Undo, tmp_path: Path) -> None:
    workspace = undisturbed(name).workspace(tmp_path / "workspace")
    before = snapshot_of(name, workspace)
    folders = [workspace, *(path for path in workspace.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        ending = run_row(name, workspace, _give_up_override)
        assert snapshot_of(name, workspace) == before
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert_one_line(ending)
    undisturbed(name).check(workspace)


@pytest.mark.parametrize("name", ROWS)
def test_a_closed_pipe(name: str, undisturbed: Undo, tmp_path: Path) -> None:
    """Nobody reads what it prints: what it writes is written all the same, and no word is lost."""
    workspace = undisturbed(name).workspace(tmp_path / "workspace")
    read, write = os.pipe()
    os.close(read)
    ending = run_row(name, workspace, stdout=write)
    os.close(write)
    assert ending.status == 0, ending.errors
    assert "Traceback" not in ending.errors
    assert "Error" not in ending.errors
    assert snapshot_of(name, workspace) == undisturbed(name).result
