"""The learning curves of a run as a picture, drawn from its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bothends.drawing.figure_file import write_figure
from bothends.training.run import CURVES

METRICS = ("bleu", "chrf", "rouge", "exact")


def draw_curves(log: Path) -> Path | None:
    """Draw the log's losses and scores beside it; nothing if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    training = [record for record in records if record["kind"] == "training"]
    validation = [record for record in records if record["kind"] == "validation"]
    metric = next((name for name in METRICS if validation and name in validation[0]), None)
    figure = Figure(figsize=(9, 3.5) if metric else (5, 3.5), layout="constrained")
    panels: Any = figure.subplots(1, 2 if metric else 1, squeeze=False)[0]
    for records, name in ((training, "training (smoothed)"), (validation, "validation")):
        updates = [record["update"] for record in records]
        marker = "o" if len(updates) < 60 and records is validation else ""
        panels[0].plot(
            updates, [record["loss"] for record in records], label=name, marker=marker, markersize=3
        )
    panels[0].set(xlabel="update", ylabel="loss per token (nats)")
    panels[0].legend(frameon=False)
    if metric:
        updates = [record["update"] for record in validation]
        panels[1].plot(updates, [record[metric] for record in validation], marker="o", markersize=3)
        panels[1].set(xlabel="update", ylabel=f"validation {metric}")
    for panel in panels:
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    path = log.with_name(CURVES)
    write_figure(figure, path)
    return path
