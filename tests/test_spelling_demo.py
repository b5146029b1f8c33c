"""The demo from scratch: its task is right, and it runs to the end (with hardly any training)."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

DEMO = Path(__file__).parents[1] / "experiments" / "spelling_demo.py"
sys.path.append(str(DEMO.parent))


@pytest.fixture(scope="module")
def demo() -> dict[str, Any]:
    return runpy.run_path(str(DEMO))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "one"),
        (10, "ten"),
        (19, "nineteen"),
        (20, "twenty"),
        (99, "ninety nine"),
        (100, "one hundred"),
        (115, "one hundred fifteen"),
        (60_812, "sixty thousand eight hundred twelve"),
        (700_000, "seven hundred thousand"),
        (217_334, "two hundred seventeen thousand three hundred thirty four"),
    ],
)
def test_numbers_are_spelled(demo: dict[str, Any], number: int, words: str) -> None:
    assert " ".join(demo["spell"](number)) == words


def test_the_demo_runs(demo: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    demo["main"](updates=2, examples=100, rounds=1)
    shown = capsys.readouterr().out
    for name, steps in ("1x1", 8), ("2x1", 4), ("2x2", 2):
        assert f"{name}: {steps} steps\n" in shown
        assert re.search(rf"{name}: 2 updates in \d+ s, \d+\.\d% of 100 unseen numbers", shown)
        assert re.search(rf"^  {name} +\d+\.\d +\d+\.\d ms +\d+\.\d\dx$", shown, re.MULTILINE)
    assert "\x1b" not in shown
