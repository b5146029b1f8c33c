"""Quality and speed by length: bins worked by hand, and the command as users run it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bothends.cli import run
from bothends.errors import UsageError
from bothends.evaluation.analyses.lengths import (
    Timed,
    by_length,
    split_by_length,
    translate_in_turns,
)
from bothends.metrics.sums import bleu, exact
from command_line import error_line
from tiny_model import sentences, tiny_model

SOURCES = ["a a a", "b", "c c", "d", "e e e e"]


def test_bins_are_equal_and_sorted() -> None:
    assert split_by_length(SOURCES, 1) == [[1, 3, 2, 0, 4]]
    assert split_by_length(SOURCES, 2) == [[1, 3], [2, 0, 4]]
    assert split_by_length(SOURCES, 5) == [[1], [3], [2], [0], [4]]
    for count in (0, 6):
        with pytest.raises(UsageError, match="expected 1 to 5"):
            split_by_length(SOURCES, count)
    sizes = {len(each) for each in split_by_length(["x"] * 1003, 10)}
    assert sizes == {100, 101}


def test_each_bin_has_its_score_and_its_speed() -> None:
    slow = Timed("slow", SOURCES, [600.0, 1.0, 2.0, 3.0, 4.0])
    fast = Timed("fast", ["a a a", "x", "c c", "d", "e"], [3.0, 1.0, 1.0, 1.0, 2.0])
    copied = Timed("copied", SOURCES)
    found = by_length([slow, fast, copied], SOURCES, SOURCES, exact(), count=2, samples=0)
    assert [each.label for each in found.bins] == ["1", "2-4"]
    assert [each.sentences for each in found.bins] == [2, 3]
    short, long = found.bins
    assert [cell.score for cell in short.cells] == [100, 50, 100]
    assert [cell.score for cell in long.cells] == [100, pytest.approx(200 / 3), 100]
    assert [cell.milliseconds for cell in short.cells] == [2000, 1000, None]
    assert [cell.speedup for cell in short.cells] == [1, 2, None]
    assert [cell.milliseconds for cell in long.cells] == [4000, 2000, None]
    assert [cell.speedup for cell in long.cells] == [1, 2, None]


def test_all_translate_every_sentence() -> None:
    turns = list(translate_in_turns([str.upper, str.lower], ["Ab", "Cd"]))
    assert [[text for text, _ in turn] for turn in turns] == [["AB", "ab"], ["CD", "cd"]]
    assert all(seconds >= 0 for turn in turns for _, seconds in turn)


def test_turns_are_shuffled_for_each_sentence() -> None:
    calls: list[str] = []

    def translator(name: str) -> Callable[[str], str]:
        return lambda line: calls.append(name) or line  # type: ignore[func-returns-value]

    list(translate_in_turns([translator("a"), translator("b")], ["line"] * 20))
    turns = ["".join(calls[start : start + 2]) for start in range(2, 42, 2)]  # after the warm-up
    assert set(turns) == {"ab", "ba"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name in ("source", "reference", "hypothesis"):
        text = "".join(f"{line}\n" for line in sentences(20, seed=3))
        Path(name).write_text(text, encoding="utf-8")
    return ["--source", "source", "--reference", "reference"]


def test_models_and_files_are_compared(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    models = [str(tiny_model(order)) for order in ("1x1", "2x1")]
    options = "--hypothesis hypothesis --bins 4 --bootstrap 50 --json x.json --picture x.svg"
    assert run(["analyse", "lengths", *files, "--model", *models, *options.split()]) == 0
    printed = capsys.readouterr().out
    assert "By length of the source" in printed
    assert bleu().signature in printed
    report = json.loads(Path("x.json").read_text())
    assert report["systems"] == [*models, "hypothesis"]
    assert [each["sentences"] for each in report["bins"]] == [5] * 4
    for each in report["bins"]:
        first, second, copied = each["cells"]
        assert first["speedup"] == 1
        assert second["milliseconds"] > 0
        assert copied["milliseconds"] is None
    # Short sentences have no 4-grams, and BLEU is not 100 even for the reference itself.
    assert report["bins"][-1]["cells"][2]["score"] == pytest.approx(100)
    assert Path("x.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "nothing to measure: give --model DIR, or --hypothesis FILE"),
        ("--hypothesis hypothesis --bins 21", "21 bins of 20 sentences: expected 1 to 20"),
        (
            "--hypothesis hypothesis --metric bleu,chrf",
            "--metric bleu,chrf: expected a single metric",
        ),
    ],
)
def test_mistakes_are_one_line(
    files: list[str], capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    assert error_line(["analyse", "lengths", *files, *options.split()], capsys) == (2, message)
