"""Pictures of a benchmark: speed-up against batch size, and against quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bothends.drawing.figure_file import write_figure
from bothends.errors import BothendsError, UsageError
from bothends.evaluation.bench.report import Baseline, Report, Row

#: Colours of our orders, one by one, and those of the peers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
PEER_COLOURS = {"ctranslate2": "black", "transformers": "gray"}
MARKERS = "osD^vP"
LINES = {"int8": "-", "float32": "--"}


def check_picture(path: Path) -> None:
    """Complain about a picture before the benchmark, not after it."""
    if path.suffix not in (".svg", ".png"):
        raise UsageError(f"--picture {path}: expected a name that ends in .svg or .png")
    load_pyplot()


def draw_bench(report: Report, path: Path) -> None:
    """Speed-up against batch size: one panel for each beam, one line of panels for each family.

    Where translations were scored, a last line of panels has speed-up against quality.
    """
    pyplot = load_pyplot()
    # Programs have no beam, and no baseline of their own.
    report = replace(report, rows=tuple(row for row in report.rows if row.beam))
    beams = sorted({row.beam for row in report.rows})
    families = list(dict.fromkeys(row.family for row in report.rows))
    scored = any(row.bleu is not None for row in report.rows)
    with pyplot.rc_context({"svg.hashsalt": "bothends", "font.size": 9}):
        figure, panels = pyplot.subplots(
            len(families) + scored,
            len(beams),
            figsize=(2.4 + 3.2 * len(beams), 0.4 + 3.1 * (len(families) + scored)),
            squeeze=False,
            sharey="row",
            layout="constrained",
        )
        styles = _styles(report.rows)
        for line, family in enumerate(families):
            for panel, beam in zip(panels[line], beams, strict=True):
                rows = [row for row in report.rows if (row.family, row.beam) == (family, beam)]
                _by_batch(panel, rows, styles)
                panel.set_title(f"{family}, {'greedy' if beam == 1 else f'beam {beam}'}")
            panels[line][0].set_ylabel(f"speed-up against {_yardstick(report.rows, family)}")
        if scored:
            for panel in panels[-1][1:]:
                panel.sharex(panels[-1][0])
            for panel, beam in zip(panels[-1], beams, strict=True):
                rows = [row for row in report.rows if row.bleu is not None and row.beam == beam]
                _by_quality(panel, rows, styles)
            panels[-1][0].set_ylabel(f"speed-up against {_yardstick(report.rows, 'models')}")
        handles = {
            label: handle
            for panel in panels[:, 0]
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles, loc="outside right center", frameon=False)
        figure.supxlabel(_caption(report), fontsize=6.5, color="gray")
        write_figure(figure, path, dpi=150)
        pyplot.close(figure)


def _styles(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """By title: a colour and a marker for each order, a line for each precision, peers in grey."""
    ours = list(dict.fromkeys((row.name, row.order) for row in rows if row.parts is not None))
    styles = {}
    for row in rows:
        number = ours.index((row.name, row.order)) if row.parts is not None else 0
        styles[row.title] = dict(
            color=PEER_COLOURS.get(row.engine, COLOURS[number % len(COLOURS)]),
            marker="x" if row.parts is None else MARKERS[number % len(MARKERS)],
            linestyle=LINES[row.precision],
        )
    return styles


def _by_batch(panel: Any, rows: Sequence[Row], styles: dict[str, dict[str, Any]]) -> None:
    sizes = sorted({row.batch for row in rows})
    for title in dict.fromkeys(row.title for row in rows):
        points = [(row, found) for row in rows if row.title == title and (found := _against(row))]
        points.sort(key=lambda point: point[0].batch)
        panel.errorbar(
            [row.batch for row, _ in points],
            [found.speedup.median for _, found in points],
            [
                [found.speedup.median - found.speedup.low for _, found in points],
                [found.speedup.high - found.speedup.median for _, found in points],
            ],
            label=title,
            capsize=2,
            linewidth=1.2,
            elinewidth=0.7,
            markersize=5,
            **styles[title],
        )
    panel.set_xscale("log", base=2)
    panel.set_xticks(sizes, [str(size) for size in sizes])
    panel.minorticks_off()
    panel.set_xlabel("sentences in a batch")
    _finish(panel)


def _by_quality(panel: Any, rows: Sequence[Row], styles: dict[str, dict[str, Any]]) -> None:
    """Each system at each batch size; larger points are larger batches."""
    for row in rows:
        if found := _against(row):
            style = styles[row.title]
            panel.scatter(
                row.bleu,
                found.speedup.median,
                s=20 + 2 * row.batch,
                color=style["color"],
                marker=style["marker"],
                alpha=0.7,
            )
    panel.set_xlabel("BLEU (larger points: larger batches)")
    _finish(panel)


def _finish(panel: Any) -> None:
    panel.axhline(1, color="gray", linewidth=0.8, linestyle=":", zorder=0)
    panel.set_ylim(bottom=0)
    panel.spines[["top", "right"]].set_visible(False)


def _against(row: Row) -> Baseline | None:
    """CTranslate2 where it ran, and otherwise our own model that writes from left to right."""
    return row.ctranslate2 or row.same_beam


def _yardstick(rows: Sequence[Row], family: str) -> str:
    compared = any(row.ctranslate2 for row in rows if row.family == family)
    return "CTranslate2 int8" if compared else "our 1x1"


def _caption(report: Report) -> str:
    machine = report.machine
    return (
        f"{machine.cpu}, {machine.cores} cores, {' '.join(machine.flags)}\n"
        f"bothends {machine.bothends} {machine.commit or ''}; {report.rounds} rounds, median and "
        f"quartiles; {machine.date}"
    )


def load_pyplot() -> Any:
    try:
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot
    except ImportError:
        raise BothendsError("--picture needs matplotlib: pip install 'bothends[eval]'") from None
    return pyplot
