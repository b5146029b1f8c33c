"""When which worker had which shard: rates of nodes while a job runs, a picture when it has ended.

Workers tell how long a shard took, and its end is when that is heard: clocks of machines differ.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from bothends.drawing.timeline import Bar, draw_timeline
from bothends.storage.places import Place, write_whole

#: Nodes whose rates are told one by one.
_MOST_NODES = 8


@dataclass
class ShardTimes:
    """Notes of the shards of a run."""

    #: whether all of them are kept, for a picture
    keep: bool = False
    _begun: float = field(default_factory=lambda: time.monotonic())
    #: seconds until the last shard was done
    _took: float = 0.0
    #: lines by node
    _lines: dict[str, int] = field(default_factory=dict)
    #: when a node began its first shard
    _since: dict[str, float] = field(default_factory=dict)
    _bars: list[Bar] = field(default_factory=list)

    def add(self, number: int, lines: int, seconds: float, node: str, worker: str) -> None:
        """Note a shard that has just been done."""
        end = self._took = time.monotonic() - self._begun
        self._lines[node] = self._lines.get(node, 0) + lines
        self._since.setdefault(node, end - seconds)
        if self.keep:
            self._bars.append(Bar(worker, node, max(0.0, end - seconds), end, f"shard {number}"))

    def rates(self) -> str:
        """Lines a second of each node, if there are several."""
        if len(self._lines) < 2:
            return ""
        now = time.monotonic() - self._begun
        rates = {
            node: lines / max(now - self._since[node], 1e-9) for node, lines in self._lines.items()
        }
        slowest_first = sorted(rates.items(), key=lambda item: item[1])
        told = [f"{node} {rate:,.1f}" for node, rate in slowest_first[:_MOST_NODES]]
        more = len(rates) - len(told)
        return "nodes " + ", ".join(told) + (f" and {more} faster ones" if more else "")

    def draw(self, place: Place | None, title: str) -> None:
        """Write the picture, if there is a place for it.

        A run that found all shards there has nothing to show, and leaves the picture of the run
        that made them. If that one was killed before it could draw, the picture says so much.
        """
        if place is None or (not self._bars and place.exists()):
            return
        heading = f"{title}: all shards were there already"
        if self._bars:
            lines, seconds = sum(self._lines.values()), max(self._took, 1e-9)
            speed = f"{lines / seconds:,.1f} a second"
            heading = f"{title}: {lines:,} lines in {seconds:,.0f} s, {speed}"
        write_whole(place, draw_timeline(heading, self._bars).encode())
