"""`bothends bench`: turns, baselines, parts and floors, on systems that are fast or made up."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

from bothends.cli import run
from bothends.engines.native import is_built
from bothends.errors import UsageError
from bothends.evaluation.bench import measure as bench
from bothends.evaluation.bench import plots
from bothends.evaluation.bench.contestants import BenchOptions, gather
from bothends.evaluation.bench.machine import Machine, step_bytes, this_machine
from bothends.evaluation.bench.measure import (
    Call,
    Case,
    Contestant,
    Measurement,
    Plan,
    Turn,
    measure,
)
from bothends.evaluation.bench.peers import choose_peers
from bothends.evaluation.bench.report import make_report
from bothends.evaluation.bench.synthetic import (
    random_shortlist,
    random_weights,
    synthetic_config,
)
from bothends.evaluation.bench.systems import (
    Bothends,
    Label,
    Parts,
    Request,
    Threads,
    TimedOutcome,
    arrangements,
)
from bothends.evaluation.bench.workload import RandomIds, read_pairs
from bothends.order import GenerationOrder, IntArray
from bothends.storage.digests import record_digests
from bothends.tables import Table, plain, print_tables
from bothends.text.vocabulary import SpecialTokens
from tiny_model import sentences, tiny_model
from toy_engine import ToyEngine

CONFIG = synthetic_config("tiny")
MACHINE = Machine("cpu", 2, ("avx2",), "Linux", "3.11", "0.1", "abc", {"numpy": "2"}, "today")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "PAUSE", 0.0)


def workload(pool: int = 16) -> RandomIds:
    sources = [np.array([5, 6, 3])] * pool
    return RandomIds("made-up", sources, sentences=2, slots=4, never_ends=True)


class Sleeper:
    """A system whose only work is to sleep, and to remember that it was called."""

    def __init__(self, label: Label, log: list[str], seconds: Callable[[Threads], float]) -> None:
        self.label = label
        self.log = log
        self.seconds = seconds

    def arrangements(self, cores: int) -> list[Threads]:
        return arrangements(cores)

    def translate(
        self, sources: Sequence[IntArray], request: Request, threads: Threads
    ) -> TimedOutcome:
        self.log.append(str(self.label))
        sleep(self.seconds(threads))
        return TimedOutcome([[7] * request.max_length for _ in sources], [4] * len(sources), None)


def sleeper(
    name: str, log: list[str], seconds: Callable[[Threads], float] = lambda threads: 0.0
) -> Contestant:
    return Contestant(
        Sleeper(Label("f", name, "1x1", "e", "int8"), log, seconds), workload(), CONFIG
    )


def turn(seconds: float, parts: Parts | None = None) -> Turn:
    """A turn of one call on one sentence."""
    return Turn((Call(seconds, seconds, TimedOutcome([[5, 6]], [3], parts), [], 3, parts),))


def case(
    order: str, engine: str, seconds: Sequence[float], *, beam: int = 1, precision: str = "int8"
) -> Case:
    label = Label("base", "base", order, engine, precision)
    contestant = Contestant(Sleeper(label, [], lambda threads: 0.0), workload(), CONFIG)
    parts = None if engine == "ctranslate2" else Parts(decoder=0.03, steps=3)
    return Case(contestant, 1, beam, 1, turns=[turn(each, parts) for each in seconds])


# --- the measuring frame ---


def test_every_system_takes_one_turn_in_every_round() -> None:
    log: list[str] = []
    contestants = [sleeper(name, log) for name in "abcdef"]
    rounds: list[int] = []
    plan = Plan(batches=(1,), beams=(1,), threads=(1,), rounds=4)
    measurement = measure(contestants, plan, lambda message: rounds.append(len(log)))
    # Two trials of two calls each; then a turn is a call that does not count and two that do.
    assert len(log) == 6 * 2 * 2 + 4 * 6 * 3
    orders = []
    for start in rounds[1:]:
        turns = log[start : start + 18]
        assert turns == [name for name in turns[::3] for _ in range(3)]
        assert sorted(turns[::3]) == sorted(str(each.system.label) for each in contestants)
        orders.append(tuple(turns[::3]))
    assert len(set(orders)) > 1  # one in 720 to the power of 3 that all are the same by chance
    assert all(len(each.turns) == 4 for each in measurement.cases)
    assert all(len(each.turns[0].calls) == 2 for each in measurement.cases)


def test_cases_that_compare_are_neighbours_in_a_round() -> None:
    log: list[str] = []
    cases = [
        Case(sleeper(name, log), batch, beam, 1)
        for name in "abc"
        for batch in (1, 8)
        for beam in (1, 4)
    ]
    found = [each.batch for each in bench.turn_order(cases, random.Random(0).shuffle)]
    assert sorted(found) == [1] * 6 + [8] * 6
    assert found in ([1] * 6 + [8] * 6, [8] * 6 + [1] * 6)


@pytest.mark.parametrize("best", [Threads(1, 2), Threads(2, 1)])
def test_the_better_arrangement_of_threads_is_taken_and_told(best: Threads) -> None:
    contestant = sleeper("a", [], lambda threads: 0.0 if threads == best else 0.02)
    (found,) = measure([contestant], Plan((2,), (1,), (2,), 1), lambda message: None).cases
    assert found.threads == best
    assert set(found.tried) == {Threads(1, 2), Threads(2, 1)}
    assert min(found.tried, key=lambda threads: found.tried[threads]) == best


def test_a_single_sentence_has_one_core_and_a_batch_has_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench, "available_cores", lambda: 3)
    cases = measure([sleeper("a", [])], Plan((1, 6), (1,)), lambda message: None).cases
    assert [each.cores for each in cases] == [1, 3]
    assert cases[0].threads == Threads(1, 1)


def test_parts_are_those_of_an_engine_that_takes_its_time() -> None:
    class SlowEngine(ToyEngine):
        def encode(self, source: IntArray) -> Any:
            sleep(0.03)
            return super().encode(source)

        def step(self, *arguments: Any) -> Any:
            sleep(0.01)
            return super().step(*arguments)

    engine = SlowEngine()
    system = Bothends(Label("", "", "1x1", "", ""), GenerationOrder(), CONFIG, lambda n: engine)
    contestant = Contestant(system, workload(), CONFIG)
    call = bench.translate(contestant, slice(0, 2), 1, Threads())
    parts = call.parts
    assert parts is not None
    assert 1 <= parts.steps <= 4
    # Sleeping takes no less than was asked, and on a busy machine more.
    assert parts.encoder >= 0.03
    assert parts.decoder >= 0.01 * parts.steps
    assert parts.search > 0
    assert parts.seconds == pytest.approx(call.seconds, rel=0.05)
    shared = bench.translate(contestant, slice(0, 4), 1, Threads(2, 1))
    assert shared.parts is not None
    assert shared.parts.seconds <= shared.seconds
    assert shared.parts.encoder < 0.06 + shared.seconds - shared.parts.seconds  # side by side


# --- the report ---


def report_on(*cases: Case, bandwidth: float = 1e9) -> dict[str, Any]:
    sizes = {step_bytes(CONFIG, precision): [bandwidth] for precision in ("int8", "float32")}
    report = make_report(Measurement(list(cases), sizes), MACHINE, len(cases[0].turns), [])
    found: dict[str, Any] = report.as_json()
    return found


def test_speedups_are_paired_so_that_a_slow_round_cancels() -> None:
    slow = (1.0, 10.0, 1.0, 3.0)  # what the rest of the machine did

    def times(seconds: float) -> list[float]:
        return [seconds * factor for factor in slow]

    report = report_on(
        case("1x1", "onnx", times(0.4)),
        case("1x1", "onnx", times(0.8), beam=4),
        case("2x1", "onnx", times(0.2)),
        case("1x1", "ctranslate2", times(0.6)),
    )
    (row,) = (row for row in report["rows"] if row["order"] == "2x1")
    for name, factor, baseline in (
        ("same_beam", 2, "base 1x1 onnx int8, beam 1, batch 1, threads 1"),
        ("paper", 4, "base 1x1 onnx int8, beam 4, batch 1, threads 1"),
        ("ctranslate2", 3, "base 1x1 ctranslate2 int8, beam 1, batch 1, threads 1"),
    ):
        assert row[name]["row"] == baseline
        assert row[name]["speedup"]["median"] == pytest.approx(factor)
        assert row[name]["speedup"]["low"] == pytest.approx(factor)
        assert row[name]["speedup"]["high"] == pytest.approx(factor)


def test_a_baseline_that_did_not_run_is_not_invented() -> None:
    float32 = case("1x1", "ctranslate2", [1.0], precision="float32")
    report = report_on(case("2x1", "onnx", [1.0]), float32)
    row = next(row for row in report["rows"] if row["order"] == "2x1")
    assert row["same_beam"] is row["paper"] is row["ctranslate2"] is None


def test_the_floor_is_the_weights_over_the_bandwidth() -> None:
    row = report_on(case("2x1", "onnx", [1.0]), bandwidth=2e9)["rows"][0]
    assert row["floor"]["milliseconds"] == pytest.approx(step_bytes(CONFIG, "int8") / 2e9 * 1000)
    assert row["step_milliseconds"] == pytest.approx(10)
    assert row["floor"]["ratio"] == pytest.approx(10 / row["floor"]["milliseconds"])
    assert report_on(case("1x1", "ctranslate2", [1.0]))["rows"][0]["floor"] is None


@pytest.mark.parametrize("name", ["base", "small", "tiny"])
def test_step_bytes_are_those_of_the_matrices_a_step_reads(name: str) -> None:
    config = synthetic_config(name)
    if name == "base":  # the figure that the design gives, without drawing 60 million weights
        assert step_bytes(config, "int8") / 1e6 == pytest.approx(38.4, abs=0.05)
        return
    weights = random_weights(config, GenerationOrder(), 0)
    read = [
        weight.size
        for tensor, weight in weights.items()
        if weight.ndim == 2 and not tensor.startswith("encoder") and "key_value" not in tensor
    ]
    own = [
        w.size
        for tensor, w in weights.items()
        if "decoder" in tensor and "query_key_value.w" in tensor
    ]
    assert step_bytes(config, "float32") == 4 * (sum(read) + sum(own))


def test_a_busy_machine_is_told_of() -> None:
    quiet = case("1x1", "onnx", [1.0, 1.0])
    assert not report_on(quiet)["notes"]
    busy = case("1x1", "onnx", [])
    busy.turns = [Turn((Call(1.0, 0.5, TimedOutcome([[5]], [1], None), [], 1, None),))]
    assert "a single thread had a processor for 50% of its time" in report_on(busy)["notes"][0]


def test_a_signature_says_all_that_matters() -> None:
    signature = report_on(case("2x1", "onnx", [1.0]))["rows"][0]["signature"]
    for fact in (
        "data:made-up|", "order:2x1|", "beam:1|", "batch:1|", "engine:onnx|", "precision:int8|",
        "threads:1|", "cpu:cpu|", "flags:avx2|", "bothends:0.1+abc|", "numpy:2|", "date:today",
    ):  # fmt: skip
        assert fact in signature


def test_plain_tables_are_aligned() -> None:
    table = Table("Title", ("system", "ms"), (("a", "1"), ("longer", "123")))
    assert plain(table) == "Title\nsystem   ms\n------  ---\na         1\nlonger  123"


def test_wide_tables_go_on_below() -> None:
    table = Table("Title", ("system", "first", "second", "third"), (("a", "1", "2", "3"),))
    assert plain(table, width=22).split("\n") == [
        "Title",
        "system  first  second",
        "------  -----  ------",
        "a           1       2",
        "",
        "system  third",
        "------  -----",
        "a           3",
    ]
    # A column that is too wide alone is not cut.
    assert max(map(len, plain(table, width=3).split("\n"))) == len("system  second")


def test_tables_and_notes_fit_a_hundred_columns(capsys: pytest.CaptureFixture[str]) -> None:
    cells = tuple(f"column {number}" for number in range(30))
    print_tables([Table("Wide", cells, (cells, cells))], ["a long note " * 40])
    lines = capsys.readouterr().out.split("\n")
    assert max(map(len, lines)) <= 100
    for cell in cells:
        assert any(cell in line for line in lines)


def test_names_are_no_markup_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file may be called `[/red]x`, which rich would take for the end of a colour."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_tables([Table("[/b]", ("[red]", "y"), (("[/red]x", "[bold]1"),))], ["[/i]"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("[/b]", "[red]", "[/red]x", "[bold]1", "[/i]"))


def test_this_machine_tells_what_it_is() -> None:
    machine = this_machine()
    assert machine.cpu
    assert machine.cores >= 1
    assert {"numpy", "onnxruntime"} <= machine.packages.keys()


# --- the command ---


@pytest.fixture
def bench_command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def command(*arguments: object) -> tuple[int, str, str]:
        status = run(["bench", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command


@pytest.mark.skipif(not is_built(), reason="the native engine is not built")
def test_two_engines_take_turns(bench_command: Callable[..., tuple[int, str, str]]) -> None:
    status, output, _ = bench_command(
        "--synthetic", "tiny:2x1", "--batch", "1,2", "--beam", 1, "--repeat", 1, "--peers", "none",
        "--target-length", 8, "--sentences", 1, "--engine", "native,onnx", "--json", "-",
    )  # fmt: skip
    assert status == 0
    rows = json.loads(output.splitlines()[-1])["rows"]
    assert {row["engine"] for row in rows} == {"native", "onnx"}
    for row in rows:
        assert row["steps"] == 4
        assert min(row["parts"]["encoder"], row["parts"]["decoder"], row["parts"]["search"]) > 0


def test_an_unknown_engine_is_an_error(
    bench_command: Callable[..., tuple[int, str, str]],
) -> None:
    status, _, errors = bench_command("--synthetic", "tiny", "--engine", "nativ")
    assert status == 2
    assert "--engine nativ: expected native, onnx or native,onnx" in errors


def test_a_synthetic_run_from_end_to_end(bench_command: Any, tmp_path: Path) -> None:
    picture = tmp_path / "speed.svg"
    status, output, errors = bench_command(
        "--synthetic", "tiny:1x1,4x1", "--batch", "1,2", "--beam", "1,4", "--repeat", 3,
        "--target-length", 8, "--sentences", 1, "--picture", picture, "--json", "-",
        "--engine", "onnx",
    )  # fmt: skip
    assert status == 0
    assert "bench: round 3 of 3" in errors
    *text, line = output.splitlines()
    assert text[0] == "Speed"
    assert not any(each.startswith("{") for each in text)
    report = json.loads(line)
    rows = report["rows"]
    systems = {(row["order"], row["engine"], row["precision"]) for row in rows}
    assert systems == {
        ("1x1", "onnx", "int8"),
        ("4x1", "onnx", "int8"),
        ("1x1", "ctranslate2", "int8"),
    }
    assert len(rows) == 4 * len(systems)
    for row in rows:
        assert row["steps"] == {"1x1": 8, "4x1": 2}[row["order"]]
        assert row["milliseconds"]["low"] <= row["milliseconds"]["median"]
        assert row["latency_p50"] <= row["latency_p95"]
        assert row["same_beam"]["row"].startswith(f"tiny 1x1 {row['engine']} {row['precision']}")
        assert f"beam {row['beam']}, batch {row['batch']}" in row["same_beam"]["row"]
        assert f"beam 4, batch {row['batch']}" in row["paper"]["row"]
        assert row["ctranslate2"]["row"].startswith("tiny 1x1 ctranslate2 int8")
        # 8 tokens, their end among them, whatever the order; of three rounds, both are the second
        tokens = row["tokens_per_second"] * row["milliseconds"]["median"] / 1000
        assert tokens == pytest.approx(8)
        ours = row["engine"] == "onnx"
        assert (row["parts"] is not None) == ours
        assert (row["floor"] is not None) == (ours and row["threads"] == "1")
        if ours:
            assert row["parts"]["text"] < row["parts"]["search"] < row["milliseconds"]["high"]
    root = ElementTree.parse(picture).getroot()
    assert root.tag.endswith("svg")


@pytest.mark.skipif(not is_built(), reason="the native engine is not built")
def test_shallow_decoders_and_shortlists_are_rows_that_nobody_is_compared_with(
    bench_command: Any,
) -> None:
    options = "--batch 1 --beam 1 --repeat 1 --peers none --engine native --json -".split()
    shapes = ["--synthetic", "tiny-1:1x1", "--synthetic", "tiny:1x1"]
    status, out, _ = bench_command(*shapes, *options, "--synthetic-shortlist", "100")
    assert status == 0
    rows = json.loads(out.splitlines()[-1])["rows"]
    assert [(row["name"], row["shortlist"]) for row in rows] == [
        ("tiny-1", False),
        ("tiny-1", True),
        ("tiny", False),
        ("tiny", True),
    ]
    for row in rows:
        assert row["family"] == "tiny"
        assert row["same_beam"]["row"].startswith("tiny 1x1 native int8, ")
        assert row["instruction_set"] in row["signature"]
        assert f"|shortlist:{'yes' if row['shortlist'] else 'no'}|" in row["signature"]
        assert (row["floor"] is None) == row["shortlist"]


@pytest.mark.parametrize("name", ["tiny-0", "tiny-", "tiny-x", "huge-1"])
def test_a_shape_that_is_none_is_an_error(name: str) -> None:
    with pytest.raises(UsageError, match="preset"):
        synthetic_config(name)


def test_a_random_shortlist_allows_about_as_many_words_as_asked() -> None:
    shortlist = random_shortlist(CONFIG, 200, 25, 0)
    allowed = [len(shortlist.allowed(range(n, n + 24))) for n in range(10, 500, 50)]
    assert 150 < min(allowed) <= max(allowed) <= 200
    assert CONFIG.special.end not in shortlist.allowed(range(CONFIG.vocabulary_size))


def test_the_same_weights_run_in_every_order(bench_command: Any) -> None:
    """Orders without a direction embedding share their graphs."""
    status, output, _ = bench_command(
        "--synthetic", "tiny:1x2,2x1,2x2", "--batch", 1, "--beam", 1, "--repeat", 1,
        "--precision", "int8,float32", "--target-length", 8, "--sentences", 1, "--peers", "none",
        "--json", "-",
    )  # fmt: skip
    assert status == 0
    rows = json.loads(output.splitlines()[-1])["rows"]
    steps = [(row["order"], row["precision"], row["steps"]) for row in rows]
    assert steps == [
        (order, precision, count)
        for precision in ("int8", "float32")
        for order, count in (("1x2", 4), ("2x1", 4), ("2x2", 2))
    ]
    assert all(row["ctranslate2"] is None for row in rows)


def test_models_translate_text_and_are_scored(bench_command: Any, tmp_path: Path) -> None:
    lines = sentences(12, seed=9)
    source, reference = tmp_path / "source.txt", tmp_path / "reference.txt"
    source.write_text("\n".join([*lines[:6], "", *lines[6:]]) + "\n")
    reference.write_text("\n".join([*lines[:6], "nothing", *lines[6:]]) + "\n")
    file, picture = tmp_path / "bench.json", tmp_path / "speed.png"
    status, output, _ = bench_command(
        "--model", tiny_model("1x1"), tiny_model("2x1"), "--precision", "float32",
        "--source", source, "--reference", reference, "--batch", "1,12", "--beam", "1",
        "--repeat", 1, "--json", file, "--picture", picture,
    )  # fmt: skip
    assert status == 0
    assert "BLEU" in output
    assert "{" not in output
    assert picture.read_bytes().startswith(b"\x89PNG")
    (line,) = file.read_text().splitlines()
    rows = json.loads(line)["rows"]
    assert len(rows) == 2 * 3
    for row in rows:
        assert row["bleu"] > 5  # it has learned to copy, a little
        assert row["bleu_signature"].startswith("nrefs:1")
        assert row["signature"].startswith("data:source.txt|sentences:12|")
    by_system = {(row["order"], row["engine"], row["batch"]): row for row in rows}
    ours, theirs = (by_system["1x1", engine, 1] for engine in ("onnx", "ctranslate2"))
    assert ours["bleu"] == pytest.approx(theirs["bleu"])  # the same weights, the same text
    assert ours["steps"] == theirs["steps"]
    assert ours["parts"]["text"] > 0
    assert by_system["2x1", "onnx", 1]["steps"] < ours["steps"]


def test_models_without_text_write_random_ids_of_a_forced_length(bench_command: Any) -> None:
    status, output, _ = bench_command(
        "--model", tiny_model("2x1"), "--batch", 1, "--beam", 1, "--repeat", 1,
        "--target-length", 9, "--sentences", 1, "--json", "-",
    )  # fmt: skip
    assert status == 0
    report = json.loads(output.splitlines()[-1])
    (row,) = report["rows"]
    assert row["steps"] == 5
    assert "none of them is 1x1" in report["notes"][0]


def test_peers_need_weights_only_if_they_were_asked_for(bench_command: Any, tmp_path: Path) -> None:
    directory = tmp_path / "model"
    directory.mkdir()
    names = ("config.json", "encoder.onnx", "decoder.onnx", "sentencepiece.model")
    for name in names:
        (directory / name).write_bytes((tiny_model("1x1") / name).read_bytes())
    record_digests(directory, names)  # as bundled models have them
    arguments = ("--model", directory, "--batch", 1, "--beam", 1, "--repeat", 1, "--sentences", 1)
    status, output, _ = bench_command(*arguments)
    assert status == 0
    assert "no peers for the models: model was exported without its weights" in output
    assert "{" not in output  # JSON is for those who ask for it
    status, _, errors = bench_command(*arguments, "--peers", "ctranslate2")
    assert status == 1
    assert "no weights, model.safetensors is missing" in errors


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        ([], 2, "nothing to measure: name a --model DIR, or --synthetic base:1x1,2x1"),
        (["--synthetic", "bass"], 2, "unknown preset 'bass'; did you mean base?"),
        (["--synthetic", "tiny:1x1,3x1"], 2, "bad generation order 3x1"),
        (["--synthetic", "tiny", "--batch", "1,x"], 2, "--batch 1,x: expected whole numbers"),
        (["--synthetic", "tiny", "--threads", "1000000"], 2, "--threads 1000000: at most 1024"),
        (["--synthetic", "tiny", "--beam", "0"], 2, "--beam 0: expected whole numbers from 1 on"),
        (["--synthetic", "tiny", "--threads", "-1"], 2, "--threads -1: expected whole numbers"),
        (["--synthetic", "tiny", "--precision", "int4"], 2, "--precision int4: expected float32"),
        (["--synthetic", "tiny", "--peers", "marian"], 2, "--peers: unknown peer 'marian'"),
        (["--synthetic", "tiny", "--picture", "x.gif"], 2, "ends in .svg or .png"),
        (["--synthetic", "tiny", "--json", "no/x"], 1, "--json no/x: no is not a directory"),
        (["--synthetic", "tiny:1x1", "tiny:2x1"], 2, "--synthetic names a shape twice"),
        (["--synthetic", "tiny", "--source", "x"], 2, "--source is text for models"),
        (["--model", "nowhere"], 1, "nowhere: no such model directory"),
        (["--model", "nowhere", "--reference", "x"], 2, "--reference is a translation of --source"),
        (["--model", "nowhere", "--source", "absent"], 1, "absent: no such file"),
    ],
)  # fmt: skip
def test_bad_options_are_one_line(
    bench_command: Any, arguments: list[str], status: int, complaint: str
) -> None:
    found, output, errors = bench_command(*arguments)
    assert (found, output) == (status, "")
    assert errors.count("\n") == 1
    assert errors.startswith("bothends: error: ")
    assert complaint in errors


def test_a_batch_larger_than_the_text_is_refused(bench_command: Any, tmp_path: Path) -> None:
    source = tmp_path / "source.txt"
    source.write_text("ba bo\nda\n")
    status, _, errors = bench_command(
        "--model", tiny_model("2x1"), "--source", source, "--batch", 4, "--beam", 1
    )
    assert status == 2
    assert "a batch of 4 needs as many sentences, but source.txt has 2" in errors


def test_a_batch_larger_than_the_text_is_left_out(bench_command: Any, tmp_path: Path) -> None:
    source = tmp_path / "source.txt"
    source.write_text("ba bo\nda\n")
    status, output, errors = bench_command(
        "--model", tiny_model("2x1"), "--source", source, "--batch", "1,4,2", "--beam", 1,
        "--repeat", 1, "--json", "-",
    )  # fmt: skip
    assert status == 0
    told = "a batch of 4 needs as many sentences, but source.txt has 2: batch 4 is left out"
    assert told in errors
    rows = json.loads(output.splitlines()[-1])["rows"]
    assert [row["batch"] for row in rows] == [1, 2]


def test_references_must_be_parallel(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\ny\n")
    (tmp_path / "b").write_text("x\n")
    with pytest.raises(Exception, match=r"b: 1 lines, but .*a has 2; they must be parallel"):
        read_pairs(tmp_path / "a", tmp_path / "b", 10)


def test_a_text_is_measured_once_whatever_its_references(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\nx\nyy\nx\n\nzzz\n")
    (tmp_path / "b").write_text("1\n2\n3\n4\n5\n6\n")
    assert read_pairs(tmp_path / "a", tmp_path / "b", 2) == (["yy", "x"], ["3", "1"])
    assert read_pairs(tmp_path / "a", None, 9) == (["zzz", "yy", "x"], None)


def test_overlong_lines_are_cut_as_in_a_translation(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text(f"ba bo\n{'ba ' * 600}\n")
    wanted = BenchOptions(
        (), (tiny_model("2x1"),), ("int8",), choose_peers([]), 1, 5, 5, source=source
    )
    (contestant,), notes = gather(wanted, tmp_path)
    longest, short = contestant.workload.read(slice(0, 2))
    assert len(longest) == 512 + 1  # and its end
    assert longest[-1] == short[-1] == SpecialTokens().end
    (note,) = notes
    assert note.endswith(
        ": 1 lines were longer than 512 tokens, the rest of them is not translated"
    )


def test_a_picture_needs_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Exception, match=r"pip install 'bothends\[eval\]'"):
        plots.check_picture(Path("x.svg"))


def test_no_pytorch_is_imported_even_with_ctranslate2() -> None:
    script = (
        "import sys; from bothends.cli import run\n"
        "status = run(['bench', '--synthetic', 'tiny:2x1', '--batch', '1', '--beam', '1',"
        " '--repeat', '1', '--sentences', '1', '--target-length', '4'])\n"
        "sys.exit(status or 'torch' in sys.modules or 'transformers' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "ctranslate2" in found.stdout
