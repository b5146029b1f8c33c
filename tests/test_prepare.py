"""`bothends prepare`, as a user runs it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bothends.cli import run
from bothends.data.shards import PreparedCorpus
from bothends.files import new_directory
from bothends.progress import progress
from bothends.text.vocabulary import Vocabulary
from corpus_data import make_sentences, write_lines


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a training pair and a validation pair."""
    for side, seed in (("en", 1), ("de", 2)):
        write_lines(tmp_path / f"train.{side}", make_sentences(400, seed))
        write_lines(tmp_path / f"valid.{side}", make_sentences(20, seed + 10))
    monkeypatch.chdir(tmp_path)
    return tmp_path


BASIC = ["--source", "train.en", "--target", "train.de", "--output", "corpus"]
SMALL = ["--vocabulary-size", "400"]


def prepare(*options: str) -> int:
    return run(["prepare", *BASIC, *options])


def test_report_and_contents(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare("--valid-source", "valid.en", "--valid-target", "valid.de", *SMALL) == 0
    output = capsys.readouterr()
    tokens = r"[\d,]+ source and [\d,]+ target tokens"
    patterns = [
        rf"train: 400 pairs read, (\d+) kept, {tokens}",
        r"  dropped: 0 with an empty side, 0 longer than 256 tokens, "
        r"(\d+) with a length ratio over 9",
        rf"valid: 20 pairs read, 20 kept, {tokens}",
        r"  dropped: 0 with an empty side",
        r"vocabulary: 400 entries, joint, trained on 800 lines",
        r"written to corpus",
    ]
    match = re.fullmatch("\n".join(patterns) + "\n", output.out)
    assert match is not None, output.out
    assert int(match[1]) + int(match[2]) == 400

    corpus = PreparedCorpus.open(Path("corpus"))
    assert corpus.splits == ("train", "valid")
    assert corpus.vocabularies().joint
    assert len(corpus.split("train")) == int(match[1])
    assert corpus.valid_text() == (make_sentences(20, 11), make_sentences(20, 12))
    assert corpus.manifest.provenance["texts"]["train"]["sources"] == ["train.en"]


def test_the_manual_works(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first command and the program at the end of docs/data.md, in a directory with text."""
    manual = (Path(__file__).parents[1] / "docs" / "data.md").read_text(encoding="utf-8")
    command = re.findall(r"```\n(bothends .*?)```", manual, re.DOTALL)[0].replace("\\\n", "")
    assert run(command.split()[1:]) == 0
    capsys.readouterr()
    exec(re.findall(r"```python\n(.*?)```", manual, re.DOTALL)[-1], {})
    pairs, text = capsys.readouterr().out.splitlines()
    assert int(pairs.split()[0]) == len(PreparedCorpus.open(Path("corpus")).split("train"))
    assert text == f"['{make_sentences(400, 1)[0]}']"


def test_text_order_is_stored(data: Path) -> None:
    assert prepare("--max-ratio", "0", *SMALL) == 0
    corpus = PreparedCorpus.open(Path("corpus"))
    vocabulary = corpus.vocabularies().source
    pairs = list(corpus.split("train"))
    assert vocabulary.decode([source for source, _ in pairs]) == make_sentences(400, 1)
    assert vocabulary.decode([target for _, target in pairs]) == make_sentences(400, 2)


def test_every_filter_is_counted(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = [("ba bo", "be bi"), ("ba bo", "be bu"), ("bo ba", "be bi")]
    empty = [("", "be"), ("ba", "   "), ("", ""), ("\u3000", "be")]
    long = [("ba " * 30, "be " * 29)]
    ratio = [("ba", "be be be be"), ("ba ba ba ba", "be")]
    pairs = [*kept, *empty, *long, *ratio, kept[0], kept[1], kept[0]]
    write_lines(data / "train.en", [source for source, _ in pairs])
    write_lines(data / "train.de", [target for _, target in pairs])
    # All words are entries, so that a token is a word.
    options = ["--max-length", "29", "--max-ratio", "3", "--drop-duplicates"]
    assert prepare(*options) == 0
    assert "13 pairs read, 3 kept, 6 source and 6 target tokens" in (out := capsys.readouterr().out)
    assert (
        "dropped: 4 with an empty side, 1 longer than 29 tokens, 2 with a length ratio over 3, "
        "3 seen before" in out
    )
    report = json.loads(Path("corpus/manifest.json").read_text())["reports"]["train"]
    dropped = {"empty": 4, "too_long": 1, "ratio": 2, "duplicate": 3}
    assert report == {"read": 13, "kept": 3, "dropped": dropped}


def test_validation_pairs_are_not_filtered_but_for_empty_ones(data: Path) -> None:
    write_lines(data / "v.en", ["ba " * 300, "", "ba", "ba"])
    write_lines(data / "v.de", ["be", "be", "be", "be"])
    valid = ["--valid-source", "v.en", "--valid-target", "v.de"]
    assert prepare(*valid, "--drop-duplicates", *SMALL) == 0
    corpus = PreparedCorpus.open(Path("corpus"))
    assert corpus.manifest.reports["valid"].dropped == {"empty": 1}
    assert corpus.valid_text() == (["ba " * 300, "ba", "ba"], ["be", "be", "be"])
    assert corpus.split("valid").source_lengths.tolist() == [600, 2, 2]


@pytest.mark.parametrize(
    "options",
    [
        "--source train.en valid.en --target train.de valid.de.gz",
        "--source train.en --source valid.en --target train.de --target valid.de.gz",
        "--source=train.en valid.en --target=train.de --target=valid.de.gz",
    ],
)
def test_several_files(data: Path, options: str) -> None:
    write_lines(data / "valid.de.gz", make_sentences(20, 12))
    extra = ["--output", "corpus", "--max-ratio", "0", *SMALL]
    assert run(["prepare", *options.split(), *extra]) == 0
    corpus = PreparedCorpus.open(Path("corpus"))
    decoded = corpus.vocabularies().target.decode([target for _, target in corpus.split("train")])
    assert decoded == make_sentences(400, 2) + make_sentences(20, 12)


def _contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_same_text_gives_the_same_bytes(data: Path) -> None:
    contents = []
    for seed, threads in (("0", "1"), ("1", "2")):
        # A process of its own: sets of strings have another order in each.
        command = [sys.executable, "-m", "bothends", "prepare", *BASIC, *SMALL, "--drop-duplicates"]
        options = ["--vocabulary-sample", "300", "--threads", threads, "--overwrite"]
        subprocess.run([*command, *options], env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        contents.append(_contents(data / "corpus"))
    assert contents[0] == contents[1]


def test_a_given_vocabulary(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare(*SMALL) == 0
    for path in ("corpus/sentencepiece.model", "corpus"):  # a file, or a directory that has it
        assert prepare("--vocabulary", path, "--output", "second", "--overwrite") == 0
        first, second = _contents(data / "corpus"), _contents(data / "second")
        assert {**first, "manifest.json": b""} == {**second, "manifest.json": b""}
        assert "vocabulary: 400 entries, joint, given" in capsys.readouterr().out


def test_separate_vocabularies(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(data / "train.de", [line.upper() for line in make_sentences(400, 2)])
    assert prepare("--separate-vocabularies", "--max-ratio", "0", *SMALL) == 0
    assert "400 source and 400 target entries, trained on 800 lines" in capsys.readouterr().out
    corpus = PreparedCorpus.open(Path("corpus"))
    vocabularies = corpus.vocabularies()
    assert not vocabularies.joint
    source, target = corpus.split("train")[5]
    assert vocabularies.source.decode([source]) == [make_sentences(400, 1)[5]]
    assert vocabularies.target.decode([target]) == [make_sentences(400, 2)[5].upper()]


def test_a_vocabulary_is_as_large_as_a_small_text_allows(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare() == 0
    size = Vocabulary.load(Path("corpus/sentencepiece.model")).size
    assert 400 < size < 32_000
    assert f"vocabulary: {size:,} entries, joint, trained on 800 lines; the text has no more" in (
        capsys.readouterr().out
    )


def test_a_large_text_is_sampled_for_the_vocabulary(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare("--vocabulary-sample", "150", *SMALL) == 0
    assert "trained on 300 lines" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ("--source nowhere --target train.de", 1, "nowhere: no such file"),
        ("--source . --target train.de", 1, ".: not a regular file, and text is read twice"),
        ("--source train.en valid.en --target train.de", 2, "2 source and 1 target files"),
        ("--source train.en --target valid.de", 1, "train.en has 400 lines but valid.de has 20"),
        ("--source latin1 --target train.de", 1, "latin1: line 2 is not UTF-8: byte 0xe4"),
        ("--source cut.gz --target train.de", 1, "cut.gz: damaged or cut off gzip file"),
        ("--source blank --target blank", 1, "all 2 train pairs were dropped (2 empty)"),
        ("--source no_lines --target no_lines", 1, "no text to train a vocabulary on"),
        ("--valid-source valid.en", 2, "1 source and 0 target files: expected one target file"),
        ("--valid-target valid.de", 2, "0 source and 1 target files: expected one target file"),
        (
            "--valid-source blank --valid-target blank",
            1,
            "all 2 valid pairs were dropped (2 empty)",
        ),
        (
            "--valid-source no_lines --valid-target no_lines",
            1,
            "no valid pairs: the files are empty",
        ),
        ("--max-length 1 --max-ratio 1", 1, "all 400 train pairs were dropped (400 too long)"),
        ("--vocabulary-size 50000", 1, "vocabulary size 50000 is too large for this text"),
        ("--vocabulary-size 100", 1, "vocabulary size 100 is too small"),
        ("--vocabulary-size 0", 2, "vocabulary size 0: too small"),
        ("--vocabulary-size 5000000000", 2, "vocabulary size 5000000000: too large"),
        ("--vocabulary nowhere", 1, "nowhere: no such vocabulary"),
        ("--vocabulary .", 1, ".: no vocabulary, expected sentencepiece.model or"),
        ("--vocabulary latin1", 1, "latin1: damaged, or not a SentencePiece model"),
        ("--vocabulary x --vocabulary-size 9", 2, "--vocabulary names a trained one: leave out"),
        ("--vocabulary x --separate-vocabularies", 2, "--vocabulary names a trained one"),
        (
            "--vocabulary x --normalisation identity --no-byte-fallback",
            2,
            "leave out --byte-fallback, --normalisation",
        ),
        ("--character-coverage 2", 2, "character coverage 2: expected 0.9 to 1"),
        ("--normalisation nfd", 2, "unknown normalisation 'nfd'; known: nmt_nfkc, nfkc, identity"),
        ("--max-length -3", 2, "maximum length -3: expected a number of tokens, or 0"),
        ("--max-ratio 0.5", 2, "maximum ratio 0.5: expected at least 1, or 0 for no limit"),
        ("--output train.en/corpus", 1, "train.en/corpus: cannot be written (File exists)"),
        ("--output train.en", 1, "train.en: exists and is not a prepared corpus; choose another"),
        ("--output . --overwrite", 1, ".: exists and is not a prepared corpus; choose another"),
        ("--surce train.en", 2, "No such option: --surce"),
        ("--source", 2, "Option '--source' requires an argument"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    data: Path, capsys: pytest.CaptureFixture[str], options: str, status: int, message: str
) -> None:
    (data / "latin1").write_bytes("gut\nwär gut\n".encode("latin-1"))
    (data / "cut.gz").write_bytes(
        write_lines(data / "all.gz", make_sentences(99)).read_bytes()[:99]
    )
    write_lines(data / "blank", ["", "  "])
    write_lines(data / "no_lines", [])
    before = sorted(data.rglob("*"))
    arguments = options.split()
    defaults = {"--source": "train.en", "--target": "train.de", "--output": "corpus"}
    for option, value in defaults.items():
        if option not in arguments:
            arguments = [option, value, *arguments]
    assert run(["prepare", *arguments]) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("bothends: error: ")
    assert output.err.count("\n") == 1
    assert message in output.err.replace(f"{data}/", "")
    assert sorted(data.rglob("*")) == before


def test_a_prepared_corpus_is_replaced_on_request_only(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("corpus").mkdir()  # an empty directory is as good as none
    assert prepare(*SMALL) == 0
    before = _contents(data / "corpus")
    assert prepare(*SMALL) == 1
    assert "corpus: holds a prepared corpus already; --overwrite" in capsys.readouterr().err
    assert prepare("--overwrite", "--vocabulary-size", "5") == 1, "a failure keeps the old one"
    assert _contents(data / "corpus") == before
    assert prepare("--overwrite", "--vocabulary-size", "300") == 0
    assert PreparedCorpus.open(Path("corpus")).manifest.vocabulary.source_size == 300
    assert not Path(".corpus.partial").exists()
    assert not Path(".corpus.replaced").exists()


@pytest.mark.parametrize("what", ["distilled", "with a note"])
def test_what_prepare_has_not_written_is_not_overwritten(
    data: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    if what == "distilled":  # a directory with a manifest of another kind
        (data / "corpus").mkdir()
        (data / "corpus/manifest.json").write_text('{"format_version": 1, "teacher": {}}\n')
        (data / "corpus/train.target").write_text("hours of work\n")
    else:
        assert prepare(*SMALL) == 0
        (data / "corpus/note").write_text("mine\n")
    (data / "corpus.partial").mkdir()
    (data / "corpus.partial/thesis").write_text("mine, too\n")
    before = _contents(data / "corpus")
    capsys.readouterr()
    assert prepare(*SMALL, "--overwrite") == 1
    assert "choose another name" in capsys.readouterr().err
    assert _contents(data / "corpus") == before
    assert (data / "corpus.partial/thesis").exists()


def test_two_at_once_are_kept_apart(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with new_directory(data / "corpus"):
        assert prepare(*SMALL) == 1
    assert "corpus: another process is writing it" in capsys.readouterr().err
    assert prepare(*SMALL) == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed(data: Path, how: signal.Signals) -> None:
    """At whatever moment: here as soon as shards are being written."""
    for side, seed in (("en", 1), ("de", 2)):
        write_lines(data / f"train.{side}", make_sentences(2000, seed) * 200)
    command = [sys.executable, "-m", "bothends", "prepare", *BASIC, *SMALL]
    process = subprocess.Popen(
        [*command, "--vocabulary-sample", "1000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A suite in the background of a shell hands on that Ctrl-C is to be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not Path(".corpus.partial/train.tokens.000").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(how)
    _, complaint = process.communicate()
    assert process.returncode == (130 if how == signal.SIGINT else -how)
    assert "Traceback" not in complaint
    assert not Path("corpus").exists()
    if how == signal.SIGINT:
        assert not Path(".corpus.partial").exists()

    write_lines(data / "train.en", make_sentences(400, 1))
    write_lines(data / "train.de", make_sentences(400, 2))
    assert prepare(*SMALL) == 0, "what is left of a killed run is in nobody's way"
    assert not Path(".corpus.partial").exists()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("encode", "pairs", total=200) as advance:
        advance(50)
    assert "encode" in terminal.getvalue()
    assert "50/200" in terminal.getvalue()


def test_a_burst_is_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate is that of the whole time, not of the last moments."""
    now = 0.0
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("rich.console.monotonic", lambda: now)
    with progress("encode", "pairs", total=2000) as advance:
        for later in (100.0, 100.1, 100.2):
            now = later
            advance(500)
    assert re.search(r"\b15 a second", terminal.getvalue())


def test_progress_is_a_line_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("encode", "pairs") as advance:
        advance(1)
    assert capsys.readouterr().err == "", "a short job needs no report"
    monkeypatch.setattr("bothends.progress.INTERVAL", 0)
    with progress("encode", "pairs", total=2000) as advance:
        advance(500)
        advance(1000)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["encode: 500 of 2", "encode: 1"]
    speed_and_time = r"[\d,]+ a second, 0:00:[0-9]{2} left"
    assert re.fullmatch(rf"encode: 1,500 of 2,000 \(75%\) pairs, {speed_and_time}", lines[1])
