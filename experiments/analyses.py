"""What stands below a table: mutual information, batch and beam, lengths, agreement.

Each is a function of a table that yields parts of a page; none of them trains or measures.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from bothends.evaluation.analyses.agreement import Accuracies
from bothends.evaluation.analyses.agreement import table as agreement_table
from bothends.evaluation.analyses.pmi import analyse
from bothends.tables import Table as Cells
from columns import NOT_RUN
from figures import PictureFolder, draw_accuracies
from results import load_agreement, load_lengths, load_result, load_speed
from speed import lengths_of
from table_file import Data, PaperTable, tasks_of


def markdown(cells: Cells) -> str:
    """A table in Markdown."""
    rows = [cells.headings, ("---",) * len(cells.headings), *cells.lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def pictures(paths: Sequence[Path], title: str, pages: Path) -> Iterator[str]:
    """Links to the SVG files, from pages in another folder."""
    for path in paths:
        if path.suffix == ".svg":
            yield f"![{title}]({Path(os.path.relpath(path, pages)).as_posix()})"


def mutual_information(table: PaperTable, _place: PictureFolder, _pages: Path) -> Iterator[str]:
    """The paper's table of perplexities, and ours in its form."""
    results = [load_result(table.models_of(row, "raw")[0]) for row in table.rows]
    scored = [result.scored() for result in results if result]
    analysis = analyse(scored) if scored else None
    perplexities = {each.order: each for each in analysis.perplexities} if analysis else {}
    estimates = {each.parallel: each for each in analysis.estimates} if analysis else {}

    def perplexity(order: str) -> str:
        if not (found := perplexities.get(order)) or found.interval is None:
            return NOT_RUN
        return f"{found.perplexity:.2f} ({found.interval.low:.2f} to {found.interval.high:.2f})"

    def estimate(order: str) -> str:
        if not (found := estimates.get(order)) or found.pmi is None:
            return NOT_RUN
        interval = found.pmi.interval
        return f"{found.nats:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})"

    yield "## Estimated mutual information"
    lines = (
        ("one at a time", perplexity("1x1"), perplexity("2x1+autoregressive"), "4.04", "4.86"),
        ("two at once", perplexity("1x2"), perplexity("2x1"), "6.95", "4.72"),
        ("PMI, nats per symbol", estimate("1x2"), estimate("2x1"), "0.542", "-0.029"),
    )
    headings = (
        "perplexity",
        "left to right",
        "both ends",
        "paper, left to right",
        "paper, both ends",
    )
    yield markdown(Cells("", headings, lines))
    yield (
        "PMI is the difference of log perplexities, here in natural logs. The paper prints 0.235 "
        "and -0.014, which fit logs of base 10; the table has natural logs of its perplexities."
    )


def grid(table: PaperTable, _place: PictureFolder, _pages: Path) -> Iterator[str]:
    """Speed-up at the same beam and batch, for each batch and beam of the benchmark."""
    for task in tasks_of(table):
        report = load_speed(table, task)
        yield "## Batch and beam"
        if report is None:
            yield f"{NOT_RUN}: `python experiments/run.py {table.name} --speed`"
            continue
        points = sorted({(row["batch"], row["beam"]) for row in report["rows"]})
        by_name: dict[str, dict[tuple[int, int], str]] = {}
        for row in report["rows"]:
            name, cell = _short(row["name"]), f"{row['milliseconds']['median']:.1f} ms"
            if row["engine"] not in ("native", "onnx"):
                name = f"{name}, {row['engine']}"
            elif found := row["same_beam"]:
                cell += f", {found['speedup']['median']:.2f}x"
            by_name.setdefault(name, {})[row["batch"], row["beam"]] = cell
        headings = ("model", *(f"batch {batch}, beam {beam}" for batch, beam in points))
        lines = tuple(
            (name, *(cells.get(point, "-") for point in points)) for name, cells in by_name.items()
        )
        yield "Milliseconds a sentence, and speed-up against 1x1 at the same batch and beam, int8."
        yield markdown(Cells("", headings, lines))


def lengths(table: PaperTable, place: PictureFolder, pages: Path) -> Iterator[str]:
    """Quality and speed by length of the source, as `bothends analyse lengths` measured them."""
    for task in tasks_of(table):
        path = lengths_of(table, task)
        yield "## By length of the source"
        found = load_lengths(table, task)
        if found is None:
            yield f"{NOT_RUN}: `python experiments/run.py {table.name} --speed`"
            continue
        headings = ["source words", "sentences"]
        for name in found["systems"]:
            headings += [f"{_short(name)} (95 %)", "ms", "speed-up"]
        lines = []
        for each in found["bins"]:
            words = dict.fromkeys((str(each["shortest"]), str(each["longest"])))
            cells = ["-".join(words), str(each["sentences"])]
            for cell in each["cells"]:
                interval = cell["interval"]
                cells += [
                    f"{cell['score']:.1f} ({interval['low']:.1f} to {interval['high']:.1f})",
                    f"{cell['milliseconds']:.1f}",
                    f"{cell['speedup']:.2f}x",
                ]
            lines.append(tuple(cells))
        yield markdown(Cells("", tuple(headings), tuple(lines)))
        picture = place.folder / path.with_suffix(".svg").name
        if path.exists():  # else the picture is where it is, with the tables
            shutil.copyfile(path.with_suffix(".svg"), picture)
        yield from pictures([picture], "Quality and speed-up by length", pages)
        yield f"Beam {found['beam']}, int8, one sentence at a time; {found['signature']}"


def agreement(table: PaperTable, place: PictureFolder, pages: Path) -> Iterator[str]:
    """Accuracy on contrastive pairs by distance, for every model that was run."""
    found, missing = [], []
    kinds: tuple[Data, ...] = ("raw", "distilled")
    named = {
        model: row.name
        for data in kinds
        for row in table.rows
        for model in table.models_of(row, data)
    }
    is_clear = len({(model.order, model.data) for model in named}) == len(named)
    for model, row in named.items():
        if measured := load_agreement(model):
            (system,) = measured["systems"]
            name = {"raw": "", "distilled": "distilled"}[model.data] if is_clear else row
            found.append(Accuracies.from_json({**system, "name": name}))
        else:
            missing.append(f"`{model.name}`")
    yield "## Agreement of subject and verb"
    if not found:
        yield NOT_RUN
        return
    yield markdown(agreement_table(found))
    paths = draw_accuracies(table, found, place)
    yield from pictures(paths, "Agreement by distance", pages)
    yield (
        "% of contrastive pairs in which the right verb is more probable (Wilson, 95 %), "
        "by words from subject to verb; distances are guessed (docs/analysis.md). 50 is chance."
    )
    if missing:
        yield f"{NOT_RUN}: {', '.join(missing)}"


ANALYSES = {"pmi": mutual_information, "grid": grid, "lengths": lengths, "agreement": agreement}


def _short(name: str) -> str:
    """The name of a model from the path of its export."""
    return Path(name).parent.name
