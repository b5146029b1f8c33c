"""`bothends score`: one figure per pair, and the perplexity of them all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bothends import Translator
from bothends.cli import run
from bothends.search.scoring import ForcedScore, corpus_perplexity
from tiny_model import sentences, tiny_model

Command = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command on two texts; gives its status, lines of output and errors."""

    def command(source: str, target: str, *options: str) -> tuple[int, list[str], str]:
        (tmp_path / "source").write_text(source, encoding="utf-8")
        (tmp_path / "target").write_text(target, encoding="utf-8")
        files = ["--source", str(tmp_path / "source"), "--target", str(tmp_path / "target")]
        status = run(["score", "--model", str(tiny_model()), *files, *options])
        captured = capsys.readouterr()
        return status, captured.out.splitlines(), captured.err

    return command


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    made = zip(sentences(40, seed=31), sentences(40, seed=32), strict=True)
    return [*made, ("", ""), ("ba", ""), ("", "bo"), ("ba\u2028bo", "da\tdu")]


@pytest.fixture(scope="module")
def expected(pairs: list[tuple[str, str]]) -> list[ForcedScore]:
    """One pair at a time."""
    translator = Translator.load(tiny_model(), threads=1)
    return [translator.score([source], [target])[0] for source, target in pairs]


def joined(lines: tuple[str, ...]) -> str:
    return "".join(line + "\n" for line in lines)


@pytest.mark.parametrize("options", [(), ("--threads=1", "--batch-tokens=40")])
def test_a_logprob_for_each_pair(
    score: Command,
    pairs: list[tuple[str, str]],
    expected: list[ForcedScore],
    options: tuple[str, ...],
) -> None:
    sources, targets = zip(*pairs, strict=True)
    status, lines, errors = score(joined(sources), joined(targets), *options)
    assert status == 0
    logprobs = [each.logprob for each in expected]
    assert [float(line) for line in lines] == pytest.approx(logprobs, abs=1e-4)
    summary = re.fullmatch(r"44 pairs, ([\d,]+) tokens, perplexity ([\d.,]+)\n", errors)
    assert summary is not None
    assert int(summary[1]) == sum(each.length for each in expected)
    perplexity = corpus_perplexity(expected)
    assert float(summary[2].replace(",", "")) == pytest.approx(perplexity, rel=1e-4)


def test_json(score: Command, pairs: list[tuple[str, str]], expected: list[ForcedScore]) -> None:
    sources, targets = zip(*pairs, strict=True)
    _, lines, _ = score(joined(sources), joined(targets), "--json")
    for line, each in zip(lines, expected, strict=True):
        record = json.loads(line)
        assert record["logprob"] == pytest.approx(each.logprob, abs=1e-4)
        assert record["length"] == len(record["token_logprobs"]) == each.length
        assert record["perplexity"] == pytest.approx(each.perplexity, rel=1e-4)
        total = sum(record["token_logprobs"]) + record["end_logprob"]
        assert total == pytest.approx(record["logprob"])


def test_no_pairs(score: Command) -> None:
    assert score("", "") == (0, [], "0 pairs, 0 tokens\n")


@pytest.mark.parametrize(
    ("source", "target", "counts"),
    [("a\nb\nc\n", "a\n", (3, 1)), ("a\n", "a\nb\nc", (1, 3)), ("", "a\n", (0, 1))],
)
def test_line_counts_must_agree(
    score: Command, tmp_path: Path, source: str, target: str, counts: tuple[int, int]
) -> None:
    status, _, errors = score(source, target)
    assert status == 1
    assert errors == (
        f"bothends: error: {tmp_path / 'source'} has {counts[0]} lines, "
        f"but {tmp_path / 'target'} has {counts[1]}: expected equally many\n"
    )


def test_invalid_utf8(score: Command, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"ba\nb\xff\n")
    status, _, errors = score("ba\nbo\n", "", "--target", str(bad))
    assert (status, errors.count("\n")) == (1, 1)
    assert errors.startswith(f"bothends: error: {bad}, line 2: not valid UTF-8")
    status, lines, _ = score("ba\nbo\n", "", "--target", str(bad), "--invalid", "replace")
    assert (status, len(lines)) == (0, 2)


def test_missing_files(score: Command) -> None:
    status, _, errors = score("ba\n", "ba\n", "--source", "no-such-file")
    assert (status, errors) == (1, "bothends: error: no-such-file: no such file\n")


def test_a_line_that_is_too_long(score: Command) -> None:
    status, lines, errors = score("ba\nba\n", "ba\n" + "ba " * 30, "--max-length=20")
    assert (status, lines) == (1, [])
    assert errors.startswith("bothends: error: pair 2: 30 tokens, but at most 20")
