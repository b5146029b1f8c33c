"""The figures of our tables, as SVG and on request as PNG, from stored results alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bothends.evaluation.analyses.agreement import Accuracies, draw_agreement
from bothends.evaluation.bench.plots import COLOURS, MARKERS, load_pyplot
from columns import Line
from model_files import Setting
from results import StoredResult
from table_file import Data, PaperTable

#: How metrics that stand for quality are written.
TITLES = {"bleu": "BLEU", "rougeL": "ROUGE-L"}
#: Filled markers are distilled models.
DATA: tuple[Data, ...] = ("raw", "distilled")


@dataclass(frozen=True)
class PictureFolder:
    """Where figures go, and in which formats."""

    folder: Path
    formats: tuple[str, ...] = ("svg",)

    def paths(self, name: str) -> list[Path]:
        return [self.folder / f"{name}.{each}" for each in self.formats]


def draw_speed(table: PaperTable, place: PictureFolder) -> list[Path]:
    """Quality against speed-up: a point for each model and beam that was timed."""
    points = []
    for number, row in enumerate(table.rows):
        for beam in table.beams:
            line = Line(table, row, beam)
            for data in DATA:
                found = line.speed(data)
                for result in line.results(data)[:1]:
                    if found and result and found["paper"]:
                        score = result.figure(
                            table.task_of(row).metric, Setting("int8", beam)
                        ).score
                        speedup = found["paper"]["speedup"]["median"]
                        points.append((number, row, beam, data, speedup, score))
    if not points:
        return []

    def draw(pyplot: Any) -> Any:
        figure, panel = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
        for number, row, beam, data, speedup, score in points:
            colour = COLOURS[number % len(COLOURS)]
            panel.plot(
                speedup,
                score,
                linestyle="none",
                marker=MARKERS[number % len(MARKERS)],
                markersize=9 if beam == 4 else 6,
                markeredgecolor=colour,
                markerfacecolor=colour if data == "distilled" else "white",
                label=f"{row.name}, {row.order}" if beam == table.beams[0] else None,
            )
        panel.axvline(1, color="gray", linewidth=0.8, linestyle=":", zorder=0)
        for beam, speedup in _ctranslate2(table).items():
            panel.axvline(speedup, color="gray", linewidth=0.8, zorder=0)
            panel.text(
                speedup, 0.01, f" CTranslate2, beam {beam}", color="gray", rotation=90,
                ha="right", transform=panel.get_xaxis_transform(),
            )  # fmt: skip
        panel.set_xlabel("speed-up against 1x1 at beam 4")
        panel.set_ylabel(_title(table))
        panel.spines[["top", "right"]].set_visible(False)
        handles, labels = panel.get_legend_handles_labels()
        shown = {label: handle for handle, label in zip(handles, labels, strict=True)}
        figure.legend(
            shown.values(),
            shown.keys(),
            title="filled: distilled\nsmall: beam 1",
            loc="outside right center",
            frameon=False,
        )
        return figure

    return _save(draw, place, f"{table.name}-speed")


def draw_bars(table: PaperTable, place: PictureFolder) -> list[Path]:
    """A bar with its interval for each row that was run."""
    metric, setting = _metric(table), Setting("float32", table.beams[0])
    rows = [
        (row, result)
        for row in table.rows
        for result in Line(table, row, table.beams[0]).results("raw")[:1]
    ]
    if not any(result for _, result in rows):
        return []

    def draw(pyplot: Any) -> Any:
        figure, panel = pyplot.subplots(figsize=(6.4, 1 + 0.35 * len(rows)), layout="constrained")
        for height, (row, result) in enumerate(rows):
            if result is None:
                panel.text(0, height, " not run", va="center", color="gray")
                continue
            found = result.figure(metric, setting)
            colour = COLOURS[0] if row.name == table.baseline else COLOURS[5]
            panel.barh(height, found.score, color=colour, alpha=0.8)
            panel.plot([found.low, found.high], [height] * 2, color="black")
        panel.set_yticks(range(len(rows)), [f"{row.name} ({row.order})" for row, _ in rows])
        panel.set_ylim(len(rows) - 0.4, -0.6)  # the first row on top
        panel.set_xlabel(f"{_title(table)}, 95% intervals")
        panel.spines[["top", "right"]].set_visible(False)
        return figure

    return _save(draw, place, table.name)


def draw_tokens(table: PaperTable, place: PictureFolder) -> list[Path]:
    """Quality, over-translation and speed against tokens per direction, as the paper draws them."""
    beam = table.beams[0]
    rows = [row for row in table.rows if row.order.directions > 1]
    lines = [Line(table, row, beam) for row in rows]
    if not any(result for line in lines for data in DATA for result in line.results(data)):
        return []

    def points(
        data: Data, of: Callable[[Line, StoredResult], float | None]
    ) -> tuple[list[int], list[float]]:
        places, values = [], []
        for line in lines:
            for result in line.results(data)[:1]:
                value = of(line, result) if result else None
                if value is not None:
                    places.append(line.row.order.tokens_per_direction)
                    values.append(value)
        return places, values

    def draw(pyplot: Any) -> Any:
        figure, panels = pyplot.subplots(1, 3, figsize=(9.5, 3), layout="constrained")
        for colour, data in zip(COLOURS, DATA, strict=False):
            for dedup in (False, True):
                style = dict(
                    color=colour,
                    linestyle="--" if dedup else "-",
                    marker="o" if data == "distilled" else "s",
                    markersize=4,
                    label=f"{data}{', dedup' if dedup else ''}",
                )
                setting = Setting("float32", beam, dedup)
                for panel, metric in zip(panels, (_metric(table), "otem"), strict=False):
                    panel.plot(*points(data, partial(_score, metric, setting)), **style)
        for width, dashes in ((beam, "-"), (1, "--")):
            panels[2].plot(
                *points("raw", partial(_speedup, width)), color="black", linestyle=dashes,
                marker="D", markersize=4, label=f"beam {width}",
            )  # fmt: skip
        panels[2].legend(loc="lower right", frameon=False)
        titles = (_title(table), "OTEM (lower is better)", "speed-up against 1x1, same beam")
        for panel, title in zip(panels, titles, strict=True):
            panel.set_title(title)
            tokens = sorted({row.order.tokens_per_direction for row in rows})
            panel.set_xticks(tokens)
            panel.set_xlim(tokens[0] - 0.3, tokens[-1] + 0.3)
            panel.set_xlabel("tokens per direction")
            panel.spines[["top", "right"]].set_visible(False)
        panels[2].set_ylim(bottom=0)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right", frameon=False)
        return figure

    return _save(draw, place, table.name)


def draw_accuracies(
    table: PaperTable, found: Sequence[Accuracies], place: PictureFolder
) -> list[Path]:
    """Agreement by distance."""
    paths = place.paths(f"{table.name}-agreement")
    for path in paths:
        draw_agreement(found, path)
    return paths


def _ctranslate2(table: PaperTable) -> dict[int, float]:
    """By beam: the speed of CTranslate2, where it was timed, over that of our 1x1 at beam 4."""
    speedups = {}
    for row in table.rows:
        for beam in table.beams:
            found = Line(table, row, beam).speed("raw")
            if str(row.order) == "1x1" and found and found["paper"] and found["ctranslate2"]:
                ours, over_theirs = found["paper"]["speedup"], found["ctranslate2"]["speedup"]
                speedups[beam] = ours["median"] / over_theirs["median"]
    return speedups


FIGURES = {"speed": draw_speed, "bars": draw_bars, "tokens": draw_tokens}


def _score(metric: str, setting: Setting, _line: Line, result: StoredResult) -> float:
    return result.figure(metric, setting).score


def _speedup(beam: int, line: Line, _result: StoredResult) -> float | None:
    found = replace(line, beam=beam).speed("raw")
    return found["same_beam"]["speedup"]["median"] if found and found["same_beam"] else None


def _metric(table: PaperTable) -> str:
    return table.task_of(table.rows[0]).metric


def _title(table: PaperTable) -> str:
    return TITLES[_metric(table)]


def _save(draw: Callable[[Any], Any], place: PictureFolder, name: str) -> list[Path]:
    """The same bytes whenever the results are the same."""
    pyplot = load_pyplot()
    with pyplot.rc_context({"svg.hashsalt": "bothends", "font.size": 9}):
        figure = draw(pyplot)
        paths = place.paths(name)
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(path, dpi=110, metadata=metadata)
        pyplot.close(figure)
    return paths
