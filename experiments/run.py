"""Train and judge the models of a table; what is done already is left alone.

    python experiments/run.py main ablation --at-once 2     two trainings at once
    python experiments/run.py                               every table, one after the other
    python experiments/run.py main --rows IBDecoder         one row, and the teacher it needs
    python experiments/run.py --missing                     only what has no result kept either
    python experiments/run.py --list                        what is done, and what is not
    python experiments/run.py main --speed                  times the finished models, in turns

Text is in $BOTHENDS_DATA. Stop it at any time, with Ctrl-C, SIGTERM or by force: the same command
goes on from the last checkpoints. `tables.py` turns what is stored into tables and figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bothends.errors import BothendsError
from jobs import RunningProcesses, catch_signals, run_jobs
from model_files import updates_done
from results import load_result
from speed import measure_speed
from steps import agreement_jobs, is_done, jobs_for
from table_file import Model, PaperTable, load_tables, text_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="names or files; else all")
    parser.add_argument("--rows", nargs="+", default=[], metavar="ROW", help="only these rows")
    parser.add_argument(
        "--missing", action="store_true", help="only models without a result in experiments/results"
    )
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="trainings at once")
    parser.add_argument(
        "--precision",
        choices=("float32", "bfloat16"),
        help="precision of the trainings; by default the recipe's",
    )
    parser.add_argument(
        "--list", action="store_true", help="list the models and their state; run nothing"
    )
    parser.add_argument("--speed", action="store_true", help="time the finished models")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of --speed")
    options = parser.parse_args(arguments)
    if options.at_once < 1 or options.rounds < 1:
        parser.error("--at-once and --rounds take whole numbers from 1 on")
    try:
        tables = load_tables(options.tables)
        if options.list:
            list_models(tables, options.rows)
            return 0
        text_folder()
        processes = RunningProcesses()
        with catch_signals(processes):
            if options.speed:
                failed = measure_speed(tables, options.rounds, processes)
            else:
                models = [model for table in tables for model in table.models(options.rows)]
                if options.missing:
                    models = [model for model in models if is_done(model) or not load_result(model)]
                changes = [f"precision={options.precision}"] if options.precision else []
                jobs = jobs_for(models, changes) + agreement_jobs(tables, models)
                failed = run_jobs(jobs, options.at_once, processes)
    except BothendsError as error:
        print(f"run.py: error: {error}", file=sys.stderr)
        return error.exit_status
    if processes.signal:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 128 + processes.signal
    for name, reason in failed.items():
        print(f"not done: {name}: {reason}", file=sys.stderr)
    return 1 if failed else 0


def list_models(tables: Sequence[PaperTable], rows: Sequence[str]) -> None:
    """One line for each model: its state, its name, the tables that it is for."""
    wanted_by: dict[Model, list[str]] = {}
    for table in tables:
        for model in table.models(rows):
            wanted_by.setdefault(model, []).append(table.name)
    states = [state_of(model) for model in wanted_by]
    lines = [
        f"{state:>18}  {model.name:50}  {', '.join(names)}"
        for state, (model, names) in zip(states, wanted_by.items(), strict=True)
    ]
    done, kept = states.count("done"), states.count("result kept")
    lines.append(f"{len(states)} models: {done} done, {kept} more of which the result is kept")
    # In one go, so that a reader who has seen enough, as in `run.py --list | head`, breaks no pipe.
    print("".join(f"{line}\n" for line in lines), end="")


def state_of(model: Model) -> str:
    if is_done(model):
        return "done"
    if load_result(model):
        return "result kept"
    updates = updates_done(model.run)
    limit = model.recipe().training.updates
    return f"update {updates}/{limit}" if updates else "not run"


if __name__ == "__main__":
    sys.exit(main())
