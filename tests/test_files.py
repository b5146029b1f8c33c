"""Files and directories that are there whole or not at all, whoever interferes."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bothends.errors import BothendsError
from bothends.files import (
    append_line,
    atomic_file,
    is_new,
    new_directory,
    write_atomically,
    write_output,
)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"")
        with new_directory(tmp_path / "directory"):
            pass
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("file", "directory")]
    assert modes == [0o640, 0o750]


def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if somebody guessed the name: what is there already is never opened."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    monkeypatch.setattr("secrets.token_hex", lambda count: "00" * count)
    for planted in (f".file.{os.getpid()}.partial", f".file.{'00' * 8}.partial"):
        (tmp_path / planted).symlink_to(victim)
    with pytest.raises(BothendsError, match="cannot be written \\(File exists\\)"):
        write_atomically(tmp_path / "file", b"content")
    assert victim.read_bytes() == b"precious"


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_atomically(tmp_path / "file", b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BothendsError, match="file: cannot be written \\(No space left on device"):
        write_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with atomic_file(tmp_path / "file") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert names(tmp_path) == []


def test_the_name_is_made_durable_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[os.stat_result] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)))
    write_atomically(tmp_path / "file", b"content")
    assert [stat.S_ISDIR(each.st_mode) for each in synced] == [False, True]
    assert os.path.samestat(synced[1], tmp_path.stat())


def test_a_long_name_has_room(tmp_path: Path) -> None:
    name = "ä" * 127
    write_atomically(tmp_path / name, b"content")
    assert names(tmp_path) == [name]


def test_what_killed_writers_left_goes_and_nothing_else(tmp_path: Path) -> None:
    abandoned = tmp_path / f".a[b]c.{'0' * 16}.partial"
    others = [".a[b]c.txt.partial", f".abc.{'0' * 16}.partial", "a[b]c.partial"]
    for path in (abandoned, *(tmp_path / name for name in others)):
        path.write_bytes(b"half")
        os.utime(path, (0, 0))
    with atomic_file(tmp_path / "a[b]c") as slow:
        slow.write(b"first")
        slow.flush()
        (mine,) = tmp_path.glob(".a[[]b]c.[0-9a-f]*.partial")
        os.utime(mine, (0, 0))  # at work for an hour
        write_atomically(tmp_path / "a[b]c", b"second")
    assert names(tmp_path) == sorted(["a[b]c", *others])
    assert (tmp_path / "a[b]c").read_bytes() == b"first"


def test_a_directory_appears_complete(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where"
    with new_directory(path) as partial:
        (partial / "file").write_text("content")
        assert not path.exists()
        assert partial.parent == path.parent  # a rename, not a copy
    assert names(path) == ["file"]
    assert names(path.parent) == ["where"]


def test_an_empty_directory_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.mkdir()
    assert is_new(path)
    with new_directory(path) as partial:
        (partial / "file").touch()
    assert names(path) == ["file"]


@pytest.mark.parametrize("error", [BothendsError("no"), KeyboardInterrupt()])
def test_a_directory_that_failed_is_not_there(tmp_path: Path, error: BaseException) -> None:
    def fill() -> None:
        with new_directory(tmp_path / "new") as partial:
            (partial / "file").touch()
            raise error

    with pytest.raises(type(error)):
        fill()
    assert names(tmp_path) == []


def test_a_directory_on_a_full_disk(tmp_path: Path) -> None:
    with (
        pytest.raises(BothendsError, match="new: cannot be written \\(No space left on device\\)"),
        new_directory(tmp_path / "new") as partial,
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(partial / "file"))
    assert names(tmp_path) == []


def test_an_error_about_another_file_names_that_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), new_directory(tmp_path / "new"):
        (tmp_path / "input").read_bytes()


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("file", "file: exists and is not empty; name a new directory"),
        ("file/new", "file/new: cannot be written \\(.*\\)"),
        ("directory", "directory: exists and is not empty; name a new directory"),
    ],
)
def test_what_is_there_is_not_replaced(tmp_path: Path, name: str, complaint: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory" / "inside").mkdir(parents=True)
    with pytest.raises(BothendsError, match=complaint), new_directory(tmp_path / name):
        pytest.fail("must not begin")
    assert names(tmp_path) == ["directory", "file"]


def test_replacing(tmp_path: Path) -> None:
    path = tmp_path / "there"
    for content in ("old", "new"):
        with new_directory(path, replace=True) as partial:
            assert names(partial) == []
            (partial / content).touch()
    assert names(path) == ["new"]
    assert names(tmp_path) == ["there"]


def test_a_kill_between_the_renames_of_a_replacement_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.mkdir()
    (path / "old").touch()
    os.rename(path, tmp_path / ".there.replaced")  # and then it was killed
    with pytest.raises(BothendsError, match="not empty"), new_directory(path):
        pytest.fail("must not begin")
    assert names(path) == ["old"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".new.partial"
    (left / "folder").mkdir(parents=True)
    (left / "folder" / "file").touch()
    (left / "link").symlink_to(tmp_path)
    with new_directory(tmp_path / "new") as partial:
        assert names(partial) == []
    assert names(tmp_path) == ["new"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners")
def test_a_directory_that_another_user_has_planted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".new.partial").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with (
        pytest.raises(BothendsError, match=r"new\.partial: belongs to another user"),
        new_directory(tmp_path / "new"),
    ):
        pytest.fail("must not begin")


def test_two_processes_do_not_write_one_directory(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from bothends.files import new_directory\n"
        f"with new_directory(Path({str(tmp_path / 'new')!r})): pass"
    )
    with new_directory(tmp_path / "new"):
        other = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
    assert "new: another process is writing it" in other.stderr
    assert names(tmp_path) == ["new"]


def test_everything_in_a_directory_is_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = set()
    monkeypatch.setattr(os, "fsync", lambda handle: synced.add(os.fstat(handle).st_ino))
    with new_directory(tmp_path / "new") as partial:
        (partial / "folder").mkdir()
        (partial / "folder" / "file").touch()
    new = tmp_path / "new"
    made = [tmp_path, new, new / "folder", new / "folder" / "file"]
    assert {path.stat().st_ino for path in made} <= synced


def test_errors_name_the_file_and_not_its_hidden_name(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"Is a directory: '[^']*/folder'"):  # noqa: SIM117
        with atomic_file(tmp_path / "folder"):
            pass
    assert names(tmp_path) == ["folder"]


def test_an_error_is_not_hidden_by_a_disk_that_is_full(tmp_path: Path) -> None:
    """What is still in the buffer is not written on the way out."""
    full = os.open("/dev/full" if sys.platform == "linux" else os.devnull, os.O_WRONLY)

    def write() -> None:
        with atomic_file(tmp_path / "file") as file:
            file.write(b"buffered")
            os.dup2(full, file.fileno())
            raise BothendsError("the reason")

    with pytest.raises(BothendsError, match="the reason"):
        write()
    os.close(full)


def test_a_line_is_appended_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    append_line(path, "first", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("first\nby hand")  # without an end
    append_line(path, "second")
    assert path.read_text() == "first\nby hand\nsecond\n"

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(BothendsError, match="keys: cannot be written"):
        append_line(path, "third")
    assert path.read_text() == "first\nby hand\nsecond\n"
    with pytest.raises(BothendsError, match="other: cannot be written"):
        append_line(tmp_path / "other", "first")
    assert names(tmp_path) == ["keys"]


def test_an_output_that_is_a_link_or_a_device(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("file")
    write_output(link, b"content")
    assert link.is_symlink()
    assert (tmp_path / "file").read_bytes() == b"content"
    write_output(Path(os.devnull), b"content")
    assert not Path(os.devnull).is_file()
    with pytest.raises(BothendsError, match="/dev/full: cannot be written \\(No space left"):
        write_output(Path("/dev/full"), b"content")
