"""Who worked at what, and when: a row for each worker, a bar for each task, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bothends.drawing.shapes import HUES, Panel, svg_document, svg_text

#: Rows of a picture. A cluster of more workers is shown in part, which the picture says.
MOST_ROWS = 200
_MARGIN, _NAMES, _WIDTH, _TOP = 28, 170, 800, 96


@dataclass(frozen=True)
class Bar:
    """A task: whose row it is in, the group of the row, and its time in seconds."""

    row: str
    group: str
    begin: float
    end: float
    label: str


def draw_timeline(title: str, bars: Sequence[Bar]) -> str:
    """The bars as an SVG document; rows of one group have one colour."""
    groups = sorted({bar.group for bar in bars})
    rows = sorted({(bar.group, bar.row) for bar in bars})
    shown = {row: number for number, (_, row) in enumerate(rows[:MOST_ROWS])}
    pitch = 20 if len(shown) <= 40 else 8
    last = max((bar.end for bar in bars), default=1.0) or 1.0
    scale = _WIDTH / last
    panel = Panel(_NAMES + _WIDTH, max(1, len(shown)) * pitch)
    named: set[str] = set()
    for group, row in rows[:MOST_ROWS]:
        if pitch >= 20 or group not in named:  # small rows have a name for each group
            name = (row if pitch >= 20 else group)[-24:]
            panel.shapes.append(svg_text(0, shown[row] * pitch + 13, name, "small quiet"))
            named.add(group)
    for bar in bars:
        if bar.row not in shown:
            continue
        x, width = _NAMES + bar.begin * scale, max(0.8, (bar.end - bar.begin) * scale - 0.6)
        hue = groups.index(bar.group) % len(HUES)
        panel.shapes.append(
            f'<rect class="s{hue}" x="{x:.1f}" y="{shown[bar.row] * pitch + 1}" '
            f'width="{width:.1f}" height="{pitch - 3}" rx="2"><title>{escape(bar.label)}, '
            f"{bar.end - bar.begin:.1f} s</title></rect>"
        )
    for tick in _ticks(last):
        x = round(_NAMES + tick * scale)
        panel.shapes += [
            f'<path class="faint" d="M{x} -6 V{panel.height}"/>',
            svg_text(x, panel.height + 18, f"{tick:g} s", "small quiet centre"),
        ]
    more = len(rows) - len(shown)
    what = f"{len(bars):,} shards over time, {len(rows):,} workers on {len(groups):,} nodes"
    what += f"; {more:,} workers are not shown" if more else ""
    size = (2 * _MARGIN + panel.width, _TOP + panel.height + 30 + _MARGIN)
    body = [
        svg_text(_MARGIN, 44, title, "title ink"),
        svg_text(_MARGIN, 68, what, "quiet"),
        panel.at(_MARGIN, _TOP),
    ]
    return svg_document(size, escape(title), body)


def _ticks(last: float) -> list[float]:
    """Some round times from 0 on."""
    step = 10.0 ** math.floor(math.log10(last))
    for factor in (0.2, 0.5, 1.0, 2.0):
        if last / (step * factor) <= 8:
            step *= factor
            break
    return [round(number * step, 6) for number in range(int(last / step) + 1)]
