"""Damaged files by the thousand: a reader takes them, or refuses them in one line.

Each run of the suite tries the same few (`BUDGET`), and those in `fuzz/corpus/READER/`, which once
went wrong. `make fuzz` tries fresh ones for minutes; what it finds is kept in `fuzz/found/` until
it is fixed, and then moved to the corpus by hand. If a library takes the process with it, the input
is the last one in pytest's temporary directory.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from bothends.errors import BothendsError
from fuzz.readers import READERS, Reader

FUZZ = Path(__file__).parent / "fuzz"
#: Inputs for each reader; 0 is the suite's small and repeatable number.
LONG = int(os.environ.get("BOTHENDS_FUZZ", "0"))
BUDGET = LONG or 30

#: What parsers are known to stumble over.
TOKENS = [
    b"[" * 200,
    b'{"":' * 200,
    b"- " * 100,
    b"&a [*a]",
    b"<<: *a",
    b"!!int ''",
    b"!!timestamp x",
    b"!!set {a, b}",
    b"!!binary x",
    b"9" * 400,
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"true",
    b'"\\ud800"',
    b'"\\u0000"',
    b"\x00",
    b"\xff\xfe",
    b"\x1f\x8b",
    b"\n",
    b"\r",
    b'"',
    b"\\",
    b": ",
    b"../",
    b"%",
    b"\xe2\x80\xa8",
]


@st.composite
def damages(draw: st.DrawFn, content: bytes) -> bytes:
    """The content with one to four things wrong: bits, holes, repetitions, foreign pieces."""
    damaged = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        size = len(damaged)
        # Structure is at the beginning, more often than not.
        place = draw(st.one_of(st.integers(0, size), st.integers(0, min(size, 300))))
        end = min(size, place + draw(st.integers(1, 40)))
        match draw(st.integers(0, 6)):
            case 0 if place < size:
                damaged[place] ^= 1 << draw(st.integers(0, 7))
            case 1:
                del damaged[place:]
            case 2:
                del damaged[place:end]
            case 3:
                damaged[place:place] = damaged[place:end]
            case 4:
                damaged[place:end] = draw(st.binary(max_size=12))
            case 5:
                damaged[place:place] = draw(st.sampled_from(TOKENS))
            case _:
                damaged[place:end] = draw(st.sampled_from(TOKENS))
    return bytes(damaged)


def attempt(reader: Reader, directory: Path, content: bytes) -> None:
    """Read a damaged file; whatever is not a one-line refusal is a failure."""
    (directory / reader.file).write_bytes(content)
    message = f"{directory}"
    try:
        reader.read(directory)
    except BothendsError as error:
        message = str(error)
    assert str(directory) in message, "does not say which file"
    assert len(message) < 2000


def prepared(name: str, factory: pytest.TempPathFactory) -> Path:
    directory = factory.mktemp("fuzz") / name.replace(" ", "-")
    directory.mkdir()
    READERS[name].make(directory)
    READERS[name].read(directory)  # which is right as it is
    return directory


@pytest.mark.parametrize("name", sorted(path.name for path in (FUZZ / "corpus").iterdir()))
def test_what_went_wrong_once(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = prepared(name, tmp_path_factory)
    for path in sorted((FUZZ / "corpus" / name).iterdir()):
        attempt(READERS[name], directory, path.read_bytes())


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    reader, directory = READERS[name], prepared(name, tmp_path_factory)
    whole = (directory / reader.file).read_bytes()
    phases = [Phase.explicit, Phase.reuse, Phase.generate]

    @settings(
        max_examples=BUDGET,
        derandomize=not LONG,
        database=DirectoryBasedExampleDatabase(FUZZ / "found") if LONG else None,
        suppress_health_check=list(HealthCheck),
        phases=[*phases, Phase.shrink] if LONG else phases,
    )
    @given(st.one_of(damages(whole), damages(whole), damages(whole), st.binary(max_size=200)))
    def check(content: bytes) -> None:
        attempt(reader, directory, content)

    check()
