"""`bothends plan`: forecasts against formulas and counts, from one worker to thousands."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bothends.cli import run
from bothends.errors import UsageError
from bothends.jobs.plan import JobSize, best_shard_lines, forecast, simulate
from bothends.planning import read_measured
from command_line import error_line
from corpus_data import write_lines
from tiny_model import sentences, tiny_model

HOUR = 3600.0
SMALL = JobSize(lines=1_000_000, workers=10, rate=100, overhead=0, start=0)


@pytest.mark.parametrize(
    ("lines", "workers", "seconds"),
    [
        (1_000_000, 10, 1000),  # 500 shards of 20 s: 50 rounds
        (1_000_000, 300, 40),  # two rounds, though the second is short of work
        (1_000_000, 5000, 20),  # as long as a shard takes, however many there are
        (4001, 2, 20.01),  # the last shard has a line
        (500, 7, 5),
    ],
)
def test_without_losses_a_job_takes_its_rounds(lines: int, workers: int, seconds: float) -> None:
    found = forecast(replace(SMALL, lines=lines, workers=workers))
    assert found.seconds == pytest.approx(seconds)
    assert found.losses == 0
    assert found.core_hours == pytest.approx(seconds * workers / HOUR)
    assert found.efficiency == pytest.approx(lines / 100 / seconds / workers)


def test_start_and_overhead_are_counted() -> None:
    found = forecast(replace(SMALL, overhead=1, start=7))
    assert found.seconds == pytest.approx(7 + 50 * 21)


@pytest.mark.parametrize("losses", [100, 600, HOUR])
def test_the_formula_for_lost_workers_is_what_happens(losses: float) -> None:
    """A single worker, so that nobody waits for anybody."""
    size = replace(SMALL, lines=4_000_000, workers=1, mean_time_between_losses=losses)
    courses = [simulate(size, seed) for seed in range(10)]
    seconds = sum(course.seconds for course in courses) / 10
    assert seconds == pytest.approx(size.shards * size.expected_shard_seconds, rel=0.02)
    expected = 10 * size.shards * math.expm1(size.shard_seconds / losses)
    # The number of losses spreads like its root.
    assert abs(sum(course.losses for course in courses) - expected) < 5 * math.sqrt(expected)


def test_thousands_of_workers_wait_for_the_last() -> None:
    size = replace(SMALL, lines=30_000_000, workers=3000, mean_time_between_losses=600)
    found = forecast(size)
    alone = size.shards * size.expected_shard_seconds / size.workers
    # Five rounds; among 3,000 workers some lose the last shard, and some of their successors, too.
    assert alone + size.shard_seconds / 2 < found.seconds < alone + 6 * size.shard_seconds
    assert found.losses == pytest.approx(15_000 * math.expm1(20 / 600), rel=0.1)


def test_simulation_and_formula_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    size = replace(SMALL, lines=20_000_000, workers=20, mean_time_between_losses=HOUR)
    simulated = forecast(size)
    monkeypatch.setattr("bothends.jobs.plan.SIMULATED_SHARDS", 0)
    computed = forecast(size)
    assert computed.seconds == pytest.approx(simulated.seconds, rel=0.02)
    assert computed.losses == pytest.approx(simulated.losses, rel=0.2)


def test_shards_are_smaller_the_more_is_lost_and_the_more_share_them() -> None:
    size = replace(SMALL, lines=10_000_000, overhead=0.05)
    quiet = best_shard_lines(size)
    assert best_shard_lines(replace(size, mean_time_between_losses=600)) < quiet
    assert best_shard_lines(replace(size, workers=1000)) < quiet
    # And they are not as small as can be: each has its overhead.
    assert best_shard_lines(replace(size, overhead=2, mean_time_between_losses=600)) > 100


def test_a_shard_that_nobody_survives_is_never_done() -> None:
    size = replace(SMALL, rate=0.001, mean_time_between_losses=60)
    assert forecast(size).seconds == math.inf


@pytest.mark.parametrize("change", [{"rate": 0}, {"workers": 0}, {"lines": -1}, {"start": -1}])
def test_impossible_sizes_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(change))):
        replace(SMALL, **change)  # type: ignore[arg-type]


def test_the_command_prints_a_line_for_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--lines=4500000,1e10", "--workers=10,1000", "--rate=100", "--losses=100"]
    words.append("--serial=0")
    assert run(words) == 0
    rows = re.findall(r"^([\d,]+) +([\d,]+) +(.*?)  +[\d,.]+ +\d+%", capsys.readouterr().out, re.M)
    assert [(lines, cores) for lines, cores, _ in rows] == [
        ("4,500,000", "10"), ("4,500,000", "1,000"),
        ("10,000,000,000", "10"), ("10,000,000,000", "1,000"),
    ]  # fmt: skip
    assert rows[0][2].startswith("1:15:")  # 4,500 s of work


def test_slow_workers_take_their_share_and_keep_others_waiting() -> None:
    """Thousands of workers, one in ten four times as slow, and some are lost."""
    size = replace(SMALL, lines=30_000_000, workers=2000, stragglers=0.1, slowness=4)
    found = forecast(size)
    ideal = size.shards * size.shard_seconds / size.capacity
    assert size.capacity == pytest.approx(2000 * (0.9 + 0.1 / 4))
    # Whoever takes a last shard keeps the job waiting, a slow one four times as long.
    assert ideal < found.seconds < ideal + 4 * size.shard_seconds + 1
    lossy = forecast(replace(size, mean_time_between_losses=HOUR))
    assert lossy.seconds > found.seconds
    expected = size.shards * math.expm1(20 / HOUR)  # more in slow workers, who have them longer
    assert expected < lossy.losses < 4 * expected


def test_stragglers_agree_with_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    size = replace(SMALL, lines=30_000_000, workers=100, stragglers=0.2, slowness=3)
    simulated = forecast(size)
    monkeypatch.setattr("bothends.jobs.plan.SIMULATED_SHARDS", 0)
    assert forecast(size).seconds == pytest.approx(simulated.seconds, rel=0.05)


def test_what_one_process_does_is_not_shared() -> None:
    size = replace(SMALL, serial=1e-5)
    assert forecast(size).seconds == pytest.approx(forecast(SMALL).seconds + 10)
    # Workers are not paid for while one process merges.
    assert forecast(size).core_hours == pytest.approx(forecast(SMALL).core_hours + 10 / HOUR)
    many = replace(size, workers=10_000, lines=10**10, shard_lines=100_000)
    assert forecast(many).seconds > 1e5 > 10 * forecast(replace(many, jobs=100)).seconds / 2


def test_all_figures_may_be_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_lines(tmp_path / "text", sentences(30, 1))
    stored = tmp_path / "measured.json"
    words = ["plan", "--lines=1e6", "--workers=10", "--json", str(stored)]
    words += ["--source", str(source), "--model", str(tiny_model("2x1"))]
    assert run(words) == 0
    first = capsys.readouterr().out
    assert re.search(r"engine +lines/s alone +lines/s, \d+ busy +start s", first)
    assert "measured here with 30 lines" in first
    figures = read_measured(stored)
    assert figures.engine == "onnx"
    assert figures.kind.startswith("x86_64 ") or figures.kind
    for name in ("rate_alone", "rate", "start", "restart", "overhead", "serial"):
        assert getattr(figures, name) > 0, name
    # A worker is replaced in the time that a first one takes, more or less; a shard takes less.
    assert figures.overhead < figures.restart
    assert figures.effective_rate < figures.rate
    assert run(["plan", "--lines=1e6", "--workers=10", "--measured", str(stored)]) == 0
    again = capsys.readouterr().out
    assert first.split("Plan\n")[1].split("\n\n")[0] in again


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--lines=5"], "give --rate, --measured FILE, or --source FILE"),
        (["--lines=5", "--rate=1", "--source=x"], "one of the three"),
        (["--lines=5", "--rate=1", "--stragglers=some"], "--stragglers some: expected SHARE:TIMES"),
        (["--lines=5", "--rate=1", "--stragglers=2:3"], "stragglers: expected a share"),
        (["--lines=many", "--rate=1"], "--lines many: expected whole numbers"),
        (["--lines=5", "--rate=0"], "rate: expected more than 0"),
        (["--lines=5", "--rate=1", "--json=x"], "--json stores what is measured: give --source"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, message = error_line(["plan", *words], capsys)
    assert (status, expected in message) == (2, True), message
