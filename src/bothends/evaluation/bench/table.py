"""A benchmark's report for people: two tables, and the rules to read them by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bothends.evaluation.bench.report import Baseline, Report, Row
from bothends.tables import Table, print_tables


def tables(report: Report) -> list[Table]:
    """How fast each system is, and where our own time goes."""
    ours = [row for row in report.rows if row.parts is not None]
    found = [_speed(report.rows)]
    return [*found, _parts(ours)] if ours else found


def legend(report: Report) -> Iterator[str]:
    """What the columns mean, and what the run was."""
    machine = report.machine
    yield (
        "ms: per sentence, median over rounds (quartiles); cpu ms: of all threads. p50, p95: ms of "
        "one call, i.e. of a whole batch."
    )
    yield (
        "x same beam: speed-up against 1x1 of the same engine and precision; x beam 4: against "
        "that at beam 4, as in the paper; x CT2: against CTranslate2 int8 1x1 at the same beam. "
        "All at the same batch size, paired round by round; - where the baseline is not in the run."
    )
    floors = {
        (row.family, row.precision, row.floor.megabytes): row.floor
        for row in report.rows
        if row.floor is not None
    }
    for (family, precision, _), floor in floors.items():
        yield (
            f"floor of a {family} {precision} step: {floor.megabytes:.1f} MB of weights at "
            f"{floor.gigabytes_per_second:.1f} GB/s, read by one thread from a working set of that "
            f"size: {_number(floor.milliseconds)} ms."
        )
    for signature in dict.fromkeys(filter(None, (row.bleu_signature for row in report.rows))):
        yield f"BLEU: {signature}"
    yield from report.notes
    packages = ", ".join(f"{name} {found}" for name, found in machine.packages.items())
    yield (
        f"{report.rounds} rounds; {machine.cpu}, {machine.cores} cores, "
        f"{' '.join(machine.flags)}; bothends {machine.bothends} {machine.commit or ''}; "
        f"{packages}; {machine.date}"
    )


def print_report(report: Report) -> None:
    """Tables and legend of a benchmark on stdout."""
    print_tables(tables(report), list(legend(report)))


def _speed(rows: Sequence[Row]) -> Table:
    with_bleu = any(row.bleu is not None for row in rows)
    headings = "system;batch;beam;threads;ms;(quartiles);cpu ms;p50;p95;tokens/s;steps;x same beam"
    headings += ";x beam 4;x CT2" + ";BLEU" * with_bleu
    lines = []
    for row in rows:
        milliseconds = row.milliseconds
        cells = (
            row.title,
            str(row.batch),
            str(row.beam or "-"),
            row.threads,
            _number(milliseconds.median),
            f"({_number(milliseconds.low)} to {_number(milliseconds.high)})",
            _known(row.cpu_milliseconds, _number),
            _number(row.latency_p50),
            _number(row.latency_p95),
            _known(row.tokens_per_second, "{:.0f}".format),
            _known(row.steps, "{:.4g}".format),
            *map(_speedup, (row.same_beam, row.paper, row.ctranslate2)),
        )
        bleu = "-" if row.bleu is None else f"{row.bleu:.1f}"
        lines.append((*cells, bleu) if with_bleu else cells)
    return Table("Speed", tuple(headings.split(";")), tuple(lines))


def _parts(rows: Sequence[Row]) -> Table:
    headings = "system;batch;beam;encoder;decoder;search;text;ms/step;floor;x floor"
    lines = []
    for row in rows:
        assert row.parts is not None
        assert row.step_milliseconds is not None
        lines.append(
            (
                row.title,
                str(row.batch),
                str(row.beam),
                *(_number(row.parts[part]) for part in ("encoder", "decoder", "search", "text")),
                _number(row.step_milliseconds),
                _number(row.floor.milliseconds) if row.floor else "-",
                f"{row.floor.ratio:.2f}" if row.floor else "-",
            )
        )
    return Table("Where our time goes (ms per sentence)", tuple(headings.split(";")), tuple(lines))


def _speedup(baseline: Baseline | None) -> str:
    return "-" if baseline is None else f"{baseline.speedup.median:.2f}"


def _known(value: float | None, spell: Callable[[float], str]) -> str:
    return "-" if value is None else spell(value)


def _number(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
