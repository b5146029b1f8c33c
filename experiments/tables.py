"""Turn stored results into tables and figures; nothing is trained, translated or timed.

    python experiments/tables.py [TABLE ...]    writes docs/tables and docs/images/results

Results are read from `runs/`, and copied to `experiments/results/` for people without these runs.
Rows that were not run say so. Differences are paired bootstraps over stored translations, and need
the references in $BOTHENDS_DATA.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from analyses import ANALYSES, markdown, pictures
from bothends.errors import BothendsError, UsageError, nearest
from bothends.tables import Table as Cells
from columns import COLUMNS, Line
from figures import FIGURES, TITLES, PictureFolder
from results import StoredResult, keep, load_result, load_speed
from table_file import PaperTable, load_tables, tasks_of

MADE = "<!-- Written by experiments/tables.py from stored results: do not edit. -->"
UNCOMMITTED = (
    "A commit that ends in `-dirty` had uncommitted changes when it was measured. Those models "
    "have not been measured again since"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="names or files; else all")
    parser.add_argument("--output", type=Path, default=Path("docs/tables"), metavar="DIR")
    parser.add_argument("--figures", type=Path, default=Path("docs/images/results"), metavar="DIR")
    parser.add_argument("--png", action="store_true", help="figures as PNG, too")
    options = parser.parse_args(arguments)
    try:
        tables = load_tables(options.tables)
        for folder in (options.output, options.figures):
            folder.mkdir(parents=True, exist_ok=True)
        place = PictureFolder(options.figures, ("svg", "png") if options.png else ("svg",))
        for table in tables:
            path = options.output / f"{table.name}.md"
            parts = write_table(table, place, options.output)
            path.write_text("\n\n".join([MADE, *parts]) + "\n", encoding="utf-8")
            print(path)
        keep(tables)
    except BothendsError as error:
        print(f"tables.py: error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def write_table(table: PaperTable, place: PictureFolder, pages: Path) -> Iterator[str]:
    """The parts of a page: the table, its figures, its analyses, what it is made of."""
    yield f"# {table.title}"
    yield markdown(cells_of(table))
    if table.note:
        yield table.note
    for task in tasks_of(table):
        # Such as that the machine was busy, which makes times worth little.
        yield from (load_speed(table, task) or {"notes": []})["notes"]
    if table.figure is not None:
        yield from pictures(FIGURES[table.figure](table, place), table.title, pages)
    for analysis in table.analyses:
        yield from ANALYSES[analysis](table, place, pages)
    yield "\n".join(["## Signatures and commands", "", *(f"- {line}" for line in _facts(table))])


def cells_of(table: PaperTable) -> Cells:
    """A line for each row and beam."""
    for name in table.columns:
        if name not in COLUMNS:
            raise UsageError(f"{table.name}: no column {name!r}; {nearest(name, COLUMNS)}")
    columns = [COLUMNS[name] for name in table.columns]
    metrics = {table.task_of(row).metric for row in table.rows}
    quality = TITLES[metrics.pop()] if len(metrics) == 1 else "quality"
    lines = tuple(
        (row.name, *(cell(Line(table, row, beam)) for _, cell in columns))
        for row in table.rows
        for beam in table.beams
    )
    headings = ("model", *(heading.format(metric=quality) for heading, _ in columns))
    return Cells(table.title, headings, lines)


def _facts(table: PaperTable) -> Iterator[str]:
    """How the figures came about, and the command that makes what is missing."""
    models = table.models()
    results = [result for result in map(load_result, models) if result]
    command = f"python experiments/run.py {table.name}"
    precisions = {_precision(result) for result in results}
    if len(precisions) == 1 and precisions != {"float32"}:
        command += f" --precision {precisions.pop()}"
    if missing := [model for model in models if not load_result(model)]:
        yield f"{len(results)} of {len(models)} models were run; the others: `{command} --missing`"
        yield "Not run: " + ", ".join(f"`{model.name}`" for model in missing)
    else:
        yield f"All {len(models)} models were run, by `{command}`"
    if len(precisions) > 1:
        yield "Not all were trained in the same precision, which is worth as much as another seed."
    for signature in dict.fromkeys(line for result in results for line in result.signatures()):
        yield f"`{signature}`"
    for result in results:
        yield f"`{result.model.name}`: {_budget(result)}; `{_evaluation(result)}`"
    for task in tasks_of(table):
        if report := load_speed(table, task):
            # The first of each size of batch: they are not timed on the same cores.
            signatures = {row["batch"]: row["signature"] for row in reversed(report["rows"])}
            for batch, signature in sorted(signatures.items()):
                yield f"speed, batch {batch}: `{signature}`"
    if any("-dirty" in _evaluation(result) for result in results):
        yield UNCOMMITTED


def _budget(result: StoredResult) -> str:
    training = result.content["training"]
    return (
        f"{training['updates']:,} updates, {training['target_tokens'] / 1e6:.1f} million target "
        f"tokens, trained in {_precision(result)}, commit {(training['commit'] or 'unknown')[:7]}"
    )


def _precision(result: StoredResult) -> str:
    """The precision of its training; the default of a CPU is float32."""
    return str(result.content["training"].get("precision", "auto")).replace("auto", "float32")


def _evaluation(result: StoredResult) -> str:
    return str(result.content["evaluations"][0]["signature"])


if __name__ == "__main__":
    sys.exit(main())
