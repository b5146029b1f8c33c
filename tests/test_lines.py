"""Lines from files and pipes: where they end, when they arrive, what is wrong with them."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothends.errors import BothendsError
from bothends.text.lines import MAX_LINE, LineReader

CONTENTS = [
    (b"", []),
    (b"\n", [""]),
    (b"a", ["a"]),
    (b"a\n", ["a"]),
    (b"a\n\n", ["a", ""]),
    (b"\n\na\n", ["", "", "a"]),
    (b"a\r\nb\r\n", ["a", "b"]),
    (b"a\rb\n\r\n", ["a\rb", ""]),
    (b"a\r", ["a"]),
    ("a\u2028b\u2029c\u0085d\n".encode(), ["a\u2028b\u2029c\u0085d"]),
    (b"a\x00b\n\x0b\x0c\x1c\tc\n", ["a\x00b", "\x0b\x0c\x1c\tc"]),
    ("é 漢字 🙂\n".encode(), ["é 漢字 🙂"]),
    (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),  # a byte order mark, and no mark
]


def feed_standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(("content", "lines"), CONTENTS)
def test_a_line_ends_at_a_line_feed_only(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    assert list(LineReader([path])) == lines


@pytest.mark.parametrize(("content", "lines"), CONTENTS)
def test_standard_input_is_the_default(
    monkeypatch: pytest.MonkeyPatch, content: bytes, lines: list[str]
) -> None:
    feed_standard_input(monkeypatch, content)
    assert list(LineReader()) == lines
    assert not sys.stdin.closed


@given(
    lines=st.lists(
        st.text().map(lambda text: text.replace("\n", "").rstrip("\r").lstrip("\ufeff")),
        max_size=20,
    )
)
def test_lines_come_back_as_they_were(
    lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    assert list(LineReader([path])) == lines


def test_a_line_may_be_longer_than_a_read(tmp_path: Path) -> None:
    path = tmp_path / "text"
    lines = ["x" * 200_000, "", "é" * 100_000, "end"]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert list(LineReader([path])) == lines


def test_files_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a line feed at its end does not run into the next one."""
    first, empty, last = (tmp_path / name for name in ("first", "empty", "last"))
    first.write_text("a\nb")
    empty.write_text("")
    last.write_text("d\n")
    feed_standard_input(monkeypatch, b"c\n")
    reader = LineReader([first, empty, Path("-"), last])
    assert list(reader) == ["a", "b", "c", "d"]
    assert [reader.where(index) for index in range(4)] == [
        f"{first}, line 1",
        f"{first}, line 2",
        "<stdin>, line 1",
        f"{last}, line 1",
    ]


def test_a_pipe_says_when_it_has_no_more_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with open(read, "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        lines = iter(LineReader())
        assert next(lines) is None
        os.write(write, b"a\nb\nc")
        assert [next(lines) for _ in range(3)] == ["a", "b", None]  # c has not ended
        os.write(write, b"d\n")
        assert [next(lines) for _ in range(2)] == ["cd", None]
        os.write(write, b"e")
        os.close(write)
        assert list(lines) == ["e"]


def test_a_pipe_that_does_not_block_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)
    with open(read, "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        lines = iter(LineReader())
        assert next(lines) is None

        def write_and_close() -> None:
            os.write(write, b"a\n")
            os.close(write)

        later = threading.Timer(0.05, write_and_close)
        later.start()
        assert [line for line in lines if line is not None] == ["a"]
        later.join()


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    """As in `bothends translate <(zcat text.gz)`."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a\nb\n",))
    writer.start()
    assert [line for line in LineReader([path]) if line is not None] == ["a", "b"]
    writer.join()


def test_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(gzip.compress("ä\nb\n".encode()))
    assert list(LineReader([path])) == ["ä", "b"]
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(BothendsError, match="text: damaged or cut off gzip file"):
        list(LineReader([path]))


def test_invalid_utf8_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(b"a\nb\n")
    bad.write_bytes("c\nd\u00e9\n".encode() + b"ef\xff\ng\n")
    lines = iter(LineReader([good, bad]))
    assert [next(lines) for _ in range(4)] == ["a", "b", "c", "dé"]
    with pytest.raises(BothendsError, match=f"^{bad}, line 3: not valid UTF-8 .*0xff after 2 "):
        next(lines)


def test_invalid_utf8_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\xff\xfeb\nc\xc3\n")
    assert list(LineReader([path], "replace")) == ["a\ufffd\ufffdb", "c\ufffd"]


def test_a_missing_file_is_noticed_before_any_work(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(BothendsError, match=f"^{missing}: no such file$"):
        LineReader([Path("-"), missing])


def test_a_directory_is_not_text(tmp_path: Path) -> None:
    with pytest.raises(BothendsError, match="cannot be read: Is a directory"):
        list(LineReader([tmp_path]))


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BothendsError, match="name a file"):
        list(LineReader())


def test_lines_are_counted_beforehand(tmp_path: Path) -> None:
    texts = {"a": b"x\ny\n", "b": b"", "c": b"x\n\ny", "d": b"\n" * 2_000_000}
    for name, content in texts.items():
        (tmp_path / name).write_bytes(content)
        reader = LineReader([tmp_path / name])
        assert reader.total() == sum(line is not None for line in reader)
    assert LineReader([tmp_path / name for name in texts]).total() == 2 + 0 + 3 + 2_000_000
    with gzip.open(tmp_path / "e", "wb") as file:
        file.write(b"x\ny\n")
    assert LineReader([tmp_path / "a", tmp_path / "e"]).total() is None  # it would be read twice


@pytest.mark.parametrize("before", [b"", b"x\ny\n"])
def test_a_line_that_is_too_long(before: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(before + b"x" * MAX_LINE + b"\nz\n")
    assert len([line for line in LineReader([path]) if line]) == before.count(b"\n") + 2
    path.write_bytes(before + b"x" * (MAX_LINE + (1 << 17)) + b"\nz\n")
    with pytest.raises(BothendsError) as caught:
        list(LineReader([path]))
    assert str(caught.value).startswith(
        f"{path}, line {before.count(bytes([10])) + 1}: longer than 1,048,576 bytes"
    )
