"""Shards over time as a picture, rates of nodes, and kinds of processors."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bothends.distillation.shard_times import ShardTimes
from bothends.drawing.timeline import MOST_ROWS, Bar, draw_timeline
from bothends.jobs.processors import features_in, processor_kind
from bothends.progress import progress

_SVG = "{http://www.w3.org/2000/svg}"


def bars_of(picture: str) -> list[ElementTree.Element]:
    return [
        rect
        for rect in ElementTree.fromstring(picture).iter(f"{_SVG}rect")
        if rect.find(f"{_SVG}title") is not None
    ]


def test_bars_stand_where_they_belong() -> None:
    bars = [
        Bar("a/1", "a", 0, 5, "shard 0"),
        Bar("b/2", "b", 0, 10, "shard 1"),
        Bar("a/1", "a", 5, 9, "shard 2"),
    ]
    drawn = bars_of(draw_timeline("<job>", bars))
    places = [(float(bar.get("x", 0)), float(bar.get("width", 0))) for bar in drawn]
    assert places == [(170, 399.4), (170, 799.4), (570, 319.4)]
    rows = [bar.get("y") for bar in drawn]
    assert rows[0] == rows[2] != rows[1]
    assert [bar.get("class") for bar in drawn] == ["s0", "s1", "s0"]


def test_nothing_and_too_many_can_be_drawn() -> None:
    ElementTree.fromstring(draw_timeline("nothing", []))
    many = [Bar(f"n/{number:04}", "n", 0, 1, "shard") for number in range(MOST_ROWS + 7)]
    picture = draw_timeline("many", many)
    assert len(bars_of(picture)) == MOST_ROWS
    assert "7 workers are not shown" in picture


def test_rates_are_those_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 20.0, 20.0])
    monkeypatch.setattr("bothends.distillation.shard_times.time.monotonic", lambda: next(clock))
    times = ShardTimes()
    times.add(0, 100, 10.0, "a", "a/1")
    times.add(1, 100, 10.0, "late", "late/1")  # it began at 10 s
    assert times.rates() == "nodes a 5.0, late 10.0"


def test_one_node_has_no_rates_of_its_own() -> None:
    times = ShardTimes()
    times.add(0, 100, 1.0, "a", "a/1")
    assert times.rates() == ""


def test_progress_has_room_for_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bothends.progress.INTERVAL", 0.0)
    with progress("job", "lines", 10, lambda: "nodes a 1, b 2") as advance:
        advance(5)
    assert capsys.readouterr().err.endswith("left; nodes a 1, b 2\n")


def test_kinds_are_told_by_what_kernels_are_chosen_by() -> None:
    text = "processor : 0\nflags : fpu avx2 sse avx512_vnni avx\n\nprocessor : 1\nflags : avx\n"
    assert features_in(text) == ["avx", "avx2", "avx512_vnni"]
    assert features_in("Features : fp asimd asimddp\n") == ["asimd", "asimddp"]
    assert features_in("nothing") == []
    assert processor_kind().split()[0]
