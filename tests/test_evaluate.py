"""`bothends evaluate` as users run it: tables, JSON, pictures, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from bothends import Translator
from bothends.cli import run
from bothends.model.directory import record_model
from command_line import error_line, python
from tiny_model import sentences, tiny_model

REFERENCES = [*sentences(60, seed=5), "", "ba bo da du ga"]


def spoil(lines: list[str], every: int) -> list[str]:
    """A worse system: each so-many-th line loses its first word and says its last one thrice."""
    return [
        " ".join([*line.split()[1:], *2 * line.split()[-1:]]) if number % every == 0 else line
        for number, line in enumerate(lines)
    ]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def evaluate(options: str) -> int:
    return run(["evaluate", "--reference", "reference", *options.split()])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in: a reference, a good and a bad system, and one that lacks a line."""
    monkeypatch.chdir(tmp_path)
    write(Path("reference"), REFERENCES)
    write(Path("good"), spoil(REFERENCES, every=9))
    write(Path("bad"), spoil(REFERENCES, every=2))
    write(Path("short"), REFERENCES[:-1])
    return tmp_path


def test_systems_are_compared(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate("--hypothesis bad good bad --metrics all --bootstrap 300 --json x.json") == 0
    table = capsys.readouterr().out
    assert "Scores on 62 lines" in table
    assert "Difference from bad" in table
    assert "tok:13a|smooth:exp|version" in table
    (line,) = Path("x.json").read_text().splitlines()
    report = json.loads(line)
    bad, good, same = (system["figures"] for system in report["systems"])
    expected = BLEU().corpus_score(Path("good").read_text().split("\n")[:-1], [REFERENCES]).score
    assert good["bleu"]["score"] == expected
    assert report["signatures"].keys() == good.keys()
    assert bad["bleu"]["against"] is None
    for name, figure in good.items():
        low, high = figure["interval"]["low"], figure["interval"]["high"]
        assert low <= figure["score"] <= high, name
        assert same[name]["against"]["difference"] == 0
        assert same[name]["against"]["p"] == 1
    against = good["bleu"]["against"]
    assert against["difference"] == pytest.approx(expected - bad["bleu"]["score"])
    assert 0 < against["interval"]["low"] < against["difference"] < against["interval"]["high"]
    assert against["p"] < 0.05
    assert good["repetition"]["against"]["difference"] < 0
    assert good["otem"]["score"] < bad["otem"]["score"]


def test_seeds_and_metrics_do_not_change_each_other(files: Path) -> None:
    figures = []
    for options in ("--metrics bleu", "--metrics chrf,bleu", "--metrics bleu --seed 1"):
        assert evaluate(f"--hypothesis good --bootstrap 50 --json x {options}") == 0
        figures.append(json.loads(Path("x").read_text())["systems"][0]["figures"]["bleu"])
    assert figures[0] == figures[1]
    assert figures[0]["score"] == figures[2]["score"]
    assert figures[0]["interval"] != figures[2]["interval"]


def test_lines_of_one_source_are_drawn_together(files: Path) -> None:
    write(Path("source"), [f"text {number // 2}" for number in range(62)])
    reports = []
    for options in ("", "--source source"):
        assert evaluate(f"--hypothesis bad {options} --metrics bleu --bootstrap 50 --json x") == 0
        reports.append(json.loads(Path("x").read_text()))
    assert [report["texts"] for report in reports] == [62, 31]
    lines, texts = (report["systems"][0]["figures"]["bleu"] for report in reports)
    assert lines["score"] == texts["score"]
    assert lines["interval"] != texts["interval"]


def test_without_bootstrap(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate("--hypothesis good bad --bootstrap 0 --json x --picture x.svg") == 0
    assert "chrF" in Path("x.svg").read_text()
    assert "Difference" not in capsys.readouterr().out
    report = json.loads(Path("x").read_text())
    assert report["bootstrap"] is None
    assert report["systems"][1]["figures"]["bleu"]["interval"] is None


def test_a_model_translates_and_is_compared_with_a_file(files: Path) -> None:
    model = str(tiny_model())
    options = "--source reference --hypothesis bad --beam 2 --bootstrap 20 --output out --json x"
    assert evaluate(f"--model {model} {options}") == 0
    texts = [each.text for each in Translator.load(model).translate(REFERENCES, beam=2)]
    assert Path("out").read_text().split("\n")[:-1] == texts
    report = json.loads(Path("x").read_text())
    assert [system["name"] for system in report["systems"]] == [model, "bad"]
    expected = BLEU().corpus_score(texts, [REFERENCES]).score
    assert report["systems"][0]["figures"]["bleu"]["score"] == expected
    assert "beam 2" in report["systems"][0]["origin"]


@pytest.mark.parametrize("many", [False, True])
def test_lines_are_units_and_many_of_several_sentences_are_told(
    files: Path, many: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tiny_model())
    lines = ["Ba bo da. Du ga!" if many or not number else "Ba bo." for number in range(62)]
    write(Path("source"), lines)
    assert evaluate(f"--model {model} --source source --bootstrap 0 --output out") == 0
    expected = Translator.load(model).translate(lines, split_sentences=False)
    assert Path("out").read_text().splitlines() == [each.text for each in expected]
    told = "62 of 62 lines hold several sentences, and a model translates one at a time"
    assert (told in capsys.readouterr().err) == many


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ("", 2, "nothing to evaluate: give --model DIR and --source FILE, or --hypothesis"),
        ("--model m", 2, "--model needs --source FILE, the text to translate"),
        ("--hypothesis good short", 1, "short has 61 lines, but reference has 62"),
        ("--hypothesis good --source short", 1, "short has 61 lines, but reference has 62"),
        ("--model en-pt-2x1 --source short", 1, "short has 61 lines, but reference has 62"),
        ("--hypothesis nowhere", 1, "nowhere: no such file"),
        ("--hypothesis good --metrics blue", 2, "unknown 'blue'; did you mean bleu?"),
        ("--hypothesis good --tokenizer 13b", 2, "no tokenizer '13b'; did you mean 13a?"),
        ("--hypothesis good --output x", 2, "--output has 1 files, but there are 0 models"),
        ("--hypothesis good --picture x.gif", 2, "expected a name that ends in .svg or .png"),
        ("--hypothesis good --json no/x", 1, "no is not a directory that can be written to"),
        ("--hypothesis empty --reference empty", 1, "empty: is empty"),
        ("--model m --source good", 1, "m: "),
    ],
)
def test_errors(
    files: Path, options: str, status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").touch()
    arguments = ["evaluate", "--reference", "reference", *options.split()]
    found, line = error_line(arguments, capsys)
    assert message in line
    assert found == status


def test_torch_and_matplotlib_are_not_loaded(files: Path) -> None:
    program = (
        "import sys; from bothends.cli import run; "
        "run('evaluate --hypothesis good --reference reference --bootstrap 5'.split()); "
        "assert not {'torch', 'matplotlib', 'transformers'} & sys.modules.keys()"
    )
    finished = python("-c", program)
    assert finished.returncode == 0, finished.stderr


def test_words_are_those_of_the_language_that_a_model_writes(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(tiny_model(), "japanese")
    config = Path("japanese/config.json")
    config.write_text(json.dumps({**json.loads(config.read_bytes()), "target_language": "ja"}))
    record_model(Path("japanese"), ["config.json"])
    options = "--model japanese --source reference --metrics bleu --beam 1 --bootstrap 0"
    assert evaluate(options) == 0
    assert "tok:ja-mecab" in capsys.readouterr().out
    assert evaluate(f"{options} --tokenizer char") == 0
    assert "tok:char" in capsys.readouterr().out
