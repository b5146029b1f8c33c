"""`experiments/baselines.py`: what summaries must beat."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from corpus_data import write_lines

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
baselines = import_module("baselines")

SOURCES = ["one two three four five", "six seven eight nine ten", "red green blue grey pink"]


def test_the_best_lead_is_as_long_as_the_references() -> None:
    references = ["one two three", "six seven eight", "red green blue"]
    assert baselines.best_lead(SOURCES, references) == 3
    assert baselines.leads(SOURCES, 3) == references


def test_the_constant_is_the_example_nearest_to_the_others() -> None:
    assert baselines.nearest_to_all(["x y", "a b", "a b c", "a c"]) == "a b c"


def test_copies_are_counted_as_often_as_the_source_has_them() -> None:
    assert baselines.share_of_copies(["Red, green."], ["red red green"]) == pytest.approx(2 / 3)
    assert baselines.share_of_copies(["red"], [""]) == 0


def test_the_command_writes_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_lines(tmp_path / "source", SOURCES)
    reference = write_lines(tmp_path / "reference", [line.split()[0] for line in SOURCES])
    command = ["--source", str(source), "--reference", str(reference)]
    output = tmp_path / "found"
    baselines.main([*command, "--examples", str(reference), "--output", str(output)])
    assert capsys.readouterr().out == "best lead: 1 words\n"
    assert (output / "lead.txt").read_text() == reference.read_text()
    shuffled = (output / "shuffled.txt").read_text().splitlines()
    assert sorted(shuffled) == sorted(SOURCES)
    assert not any(one == other for one, other in zip(shuffled, SOURCES, strict=True))
    constant = output / "constant.txt"
    baselines.main([*command, "--judge", str(output / "lead.txt"), str(constant)])
    assert capsys.readouterr().out.splitlines() == [
        "lead.txt: 100.0% distinct, 100.0% of the words copied",
        "constant.txt: 33.3% distinct, 33.3% of the words copied",
    ]
    with pytest.raises(SystemExit):
        baselines.main(["--source", str(source), "--output", str(output)])
