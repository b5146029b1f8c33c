"""The waiting room, and the files of keys."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bothends.cli import run
from bothends.errors import BothendsError, UsageError
from bothends.serve.keys import ApiKeys, KeyFile, add_key
from bothends.serve.limits import Limits, OverloadedError, TooLargeError, WaitingRoom, check_size
from bothends.serve.requests import parse_form
from bothends.serve.schemas import LibreTranslateRequest
from bothends.serve.service import ServeOptions
from command_line import error_line


def test_the_room_takes_so_many_requests() -> None:
    room = WaitingRoom(Limits(waiting_requests=2, client_share=1))
    with room.admit("a", 10), room.admit("b", 10):
        with pytest.raises(OverloadedError) as refusal, room.admit("c", 1):
            pass
        assert refusal.value.retry_after >= 1
    assert (room.requests, room.characters) == (0, 0)
    with room.admit("c", 1):
        pass


def test_the_room_takes_so_many_characters_but_never_none() -> None:
    room = WaitingRoom(Limits(waiting_characters=100, client_share=1))
    with room.admit("a", 1000), pytest.raises(OverloadedError), room.admit("b", 1):
        pass


def test_a_client_has_a_share() -> None:
    room = WaitingRoom(Limits(waiting_requests=4, client_share=0.5))
    with room.admit("a", 1), room.admit("a", 1):
        with pytest.raises(OverloadedError, match="of yours"), room.admit("a", 1):
            pass
        with room.admit("b", 1):
            pass


def test_a_request_that_fails_leaves_the_room() -> None:
    room = WaitingRoom(Limits())
    with pytest.raises(ZeroDivisionError), room.admit("a", 5):
        raise ZeroDivisionError
    assert (room.requests, room.characters) == (0, 0)


def test_retry_after_follows_the_speed() -> None:
    now = 0.0
    room = WaitingRoom(Limits(waiting_characters=10**9), clock=lambda: now)
    for _ in range(100):
        now += 0.1
        with room.admit("a", 100):  # 1,000 characters a second
            pass
    with room.admit("a", 1), room.admit("a", 10_000):
        # half of it at some 630 a second: after ten seconds the average is at 63 % of the speed
        assert 5 <= room.retry_after() <= 9


def test_sizes() -> None:
    limits = Limits(characters=10, lines=2)
    assert check_size(["12345", "67890"], limits) == 10
    with pytest.raises(TooLargeError, match="11 characters"):
        check_size(["12345", "67890x"], limits)
    with pytest.raises(TooLargeError, match="3 lines"):
        check_size(["a\nb", "c"], limits)


def test_keys_are_found_by_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first, second = add_key(path, "ann"), add_key(path, "bob")
    keys = ApiKeys.load(path)
    assert (keys.owner(first), keys.owner(second), keys.owner("")) == ("ann", "bob", None)
    assert keys.owner(keys.hashes["ann"]) is None  # a stolen file opens nothing
    with pytest.raises(UsageError, match="there is a key called ann"):
        add_key(path, "ann")
    with pytest.raises(UsageError, match="letters, digits"):
        add_key(path, "a:b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no keys"),
        (b"# nothing\n", "no keys"),
        (b"ann:secret\n", "line 1: expected name:hash"),
        (b"\xff", "not UTF-8"),
        (b"a:" + b"0" * 64 + b"\na:" + b"1" * 64, "line 2: a second key called a"),
    ],
)
def test_bad_files_of_keys(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "keys"
    path.write_bytes(content)
    with pytest.raises(BothendsError, match=message):
        ApiKeys.load(path)
    with pytest.raises(BothendsError, match="cannot be read"):
        ApiKeys.load(tmp_path / "none")


def test_a_changed_file_of_keys_is_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "bothends.serve")

    def events() -> list[str]:
        found = [str(getattr(record, "event", "")) for record in caplog.records]
        caplog.clear()
        return found

    path = tmp_path / "keys"
    ann = add_key(path, "ann")
    keys = KeyFile(path)
    assert (keys.owner(ann), events()) == ("ann", [])
    bob = add_key(path, "bob")
    assert (keys.owner(bob), events()) == ("bob", ["keys-loaded"])
    # Damaged, empty or gone: the keys stay, and each state is told once
    whole = path.read_text()
    for content in (f"{whole}half a li", "", None):
        path.unlink()
        if content is not None:
            path.write_text(content)
        assert (keys.owner(ann), keys.owner(bob), events()) == ("ann", "bob", ["keys-kept"])
    path.write_text(whole.splitlines()[1])
    assert (keys.owner(ann), keys.owner(bob), events()) == (None, "bob", ["keys-loaded"])
    path.unlink()
    with pytest.raises(BothendsError, match="cannot be read"):
        KeyFile(path)


def test_the_command_reads_keys_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys"
    add_key(path, "ann")
    served: list[ServeOptions] = []
    monkeypatch.setattr("bothends.serve.server.serve", lambda options, *_: served.append(options))
    assert run(["serve", "--api-keys", str(path)]) == 0
    bob = add_key(path, "bob")
    assert served[0].keys is not None
    assert served[0].keys.owner(bob) == "bob"


def test_the_command_takes_origins_as_people_type_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Browsers send one spelling, which is compared to the letter."""
    served: list[ServeOptions] = []
    monkeypatch.setattr("bothends.serve.server.serve", lambda options, *_: served.append(options))
    typed = ["HTTPS://Example.org/", "https://a.org:443", "http://localhost:3000", "*"]
    assert run(["serve", *(word for each in typed for word in ("--cors", each))]) == 0
    (options,) = served
    assert options.cors == ("https://example.org", "https://a.org", "http://localhost:3000", "*")


@pytest.mark.parametrize("origin", ["example.org", "https://example.org/app", "https://*.org", ""])
def test_an_origin_that_no_page_has_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], origin: str
) -> None:
    monkeypatch.setattr("bothends.serve.server.serve", lambda *_: None)
    status, message = error_line(["serve", "--cors", origin], capsys)
    assert (status, "such as https://example.org" in message) == (2, True)


def test_a_form_of_many_fields_takes_time_in_proportion() -> None:
    """By the clock of this process, not of a machine that may be busy."""
    body = b"target=pt" + b"&q=a" * 200_000
    begin = time.process_time()
    request = parse_form(body, LibreTranslateRequest)
    assert request.q == ["a"] * 200_000
    assert time.process_time() - begin < 10  # some minutes, if each field copied those before it
