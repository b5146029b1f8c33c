"""An evaluation for people: tables, and bars with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bothends.drawing.figure_file import write_figure
from bothends.evaluation.bench.plots import COLOURS, load_pyplot
from bothends.evaluation.evaluate import Evaluation, Figure
from bothends.tables import Table


def tables(evaluation: Evaluation) -> list[Table]:
    """The scores, and the differences from the first system where there are others."""
    names = [metric.name for metric in evaluation.metrics]
    titles = tuple(metric.title for metric in evaluation.metrics)
    scores = tuple(
        (result.name, *(_score(result.figures[name]) for name in names))
        for result in evaluation.results
    )
    found = [Table(f"Scores on {evaluation.lines:,} lines", ("system", *titles), scores)]
    first, *others = evaluation.results
    if others and evaluation.samples:
        differences = tuple(
            (result.name, *(_difference(result.figures[name]) for name in names))
            for result in others
        )
        found.append(Table(f"Difference from {first.name}", ("system", *titles), differences))
    return found


def legend(evaluation: Evaluation) -> Iterator[str]:
    """What the cells mean, and every metric's signature."""
    if evaluation.samples:
        text = "score (95% interval)"
        if len(evaluation.results) > 1:
            text += "; difference (95% interval) p-value, two-sided, of a paired bootstrap"
        yield f"{text}; {evaluation.samples:,} samples, seed {evaluation.seed}."
        if evaluation.texts < evaluation.lines:
            yield (
                f"{evaluation.texts:,} texts, some with several references: samples are of texts."
            )
    for metric in evaluation.metrics:
        best = {True: "higher is better", False: "lower is better", None: "100 is the reference's"}
        yield f"{metric.title}: {best[metric.higher_is_better]}; {metric.signature}"


def draw_evaluation(evaluation: Evaluation, path: Path) -> None:
    """A panel for each metric, a bar with its interval for each system."""
    pyplot = load_pyplot()
    results = evaluation.results
    places = range(len(results))
    with pyplot.rc_context({"svg.hashsalt": "bothends", "font.size": 9}):
        figure, panels = pyplot.subplots(
            1,
            len(evaluation.metrics),
            figsize=(1.6 + 2.2 * len(evaluation.metrics), 1.2 + 0.45 * len(results)),
            squeeze=False,
            sharey=True,
            layout="constrained",
        )
        for panel, metric in zip(panels[0], evaluation.metrics, strict=True):
            figures = [result.figures[metric.name] for result in results]
            panel.barh(
                places,
                [each.score for each in figures],
                color=[COLOURS[place % len(COLOURS)] for place in places],
                alpha=0.8,
            )
            for place, each in enumerate(figures):
                if each.interval is not None:
                    # not an error bar: the score need not lie within the samples' percentiles
                    panel.plot([each.interval.low, each.interval.high], [place] * 2, color="black")
            panel.set_title(metric.title)
            panel.set_xlim(left=0)
            panel.spines[["top", "right"]].set_visible(False)
        panels[0][0].set_yticks(places, [result.name for result in results])
        panels[0][0].invert_yaxis()  # shared by all panels: the first system on top
        note = f"{evaluation.lines:,} lines of {evaluation.reference}"
        if evaluation.samples:
            note += f"; 95% intervals of {evaluation.samples:,} bootstrap samples"
        figure.supxlabel(note, fontsize=6.5, color="gray")
        write_figure(figure, path, dpi=150)
        pyplot.close(figure)


def _score(figure: Figure) -> str:
    if figure.interval is None:
        return f"{figure.score:.2f}"
    return f"{figure.score:.2f} ({figure.interval.low:.2f} to {figure.interval.high:.2f})"


def _difference(figure: Figure) -> str:
    assert figure.against is not None, "only the first system is compared with none"
    interval = figure.against.interval
    return (
        f"{figure.against.difference:+.2f} ({interval.low:+.2f} to {interval.high:+.2f}) "
        f"p={figure.against.p:.3f}"
    )
