"""`bothends order`: the pictures it prints and draws, and what it refuses."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bothends.cli import run
from bothends.drawing import draw_gap_svg, draw_steps, draw_svg, draw_text, in_ascii
from bothends.drawing.width import align_right, display_width
from bothends.errors import UsageError
from bothends.order import GenerationOrder
from command_line import error_line
from every_order import EVERY_ORDER

orders = st.sampled_from(EVERY_ORDER)
IMAGES = Path(__file__).parents[1] / "docs" / "images"
IDEA = "We write this sentence from both ends"

BOTH_ENDS = """\
2x1: 6 tokens and the end symbol in 4 steps instead of 7

step 1   1→  ·   ·   ·   ·  ←6
step 2   1   2→  ·   ·  ←5   6
step 3   1   2   3→ ←4   5   6
step 4   1   2   3   4   5   6   end

slots, in generation order
token          1     6 |     2     5 |     3     4 |   end
slot           0     1 |     2     3 |     4     5 |     6
input      start start |     1     6 |     2     5 |     3
position       1    -1 |     2    -2 |     3    -3 |     4
direction      0     1 |     0     1 |     0     1 |     0

mask: the slots that a slot may attend to
       0 1 2 3 4 5 6
  1  0 ■ ■ · · · · ·
  6  1 ■ ■ · · · · ·
  2  2 ■ ■ ■ ■ · · ·
  5  3 ■ ■ ■ ■ · · ·
  3  4 ■ ■ ■ ■ ■ ■ ·
  4  5 ■ ■ ■ ■ ■ ■ ·
end  6 ■ ■ ■ ■ ■ ■ ■
"""
NOTHING = """\
2x2: 0 tokens and the end symbol in 1 step

step 1  end

slots, in generation order
token        end
slot           0
input      start
position       1
direction      0

mask: the slots that a slot may attend to
       0
end  0 ■
"""
#: The steps alone, for orders that fill the text in other ways.
STEPS = {
    "1x1 3": """
step 1   1→  ·   ·
step 2   1   2→  ·
step 3   1   2   3→
step 4   1   2   3   end
""",
    "1x2 5": """
step 1   1→  2→  ·   ·   ·
step 2   1   2   3→  4→  ·
step 3   1   2   3   4   5→  end
""",
    "2x2 7": """
step 1   1→  2→  ·   ·   ·  ←6  ←7
step 2   1   2   3→  4→ ←5   6   7   end
""",
    "4x1 10": """
step 1   1→  ·   ·   ·  ←5   6→  ·   ·   ·  ←10
step 2   1   2→  ·  ←4   5   6   7→  ·  ←9   10
step 3   1   2   3→  4   5   6   7   8→  9   10   end
""",
    "2x1+middle-to-side 5": """
step 1   ·   ·  ←3   4→  ·
step 2   ·  ←2   3   4   5→
step 3  ←1   2   3   4   5   end
""",
    "2x1+autoregressive 3": """
step 1   1→  ·   ·
step 2   1   ·  ←3
step 3   1   2→  3
step 4   1   2   3   end
""",
}


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["order", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def numbered(length: int) -> list[str]:
    return [str(number) for number in range(1, length + 1)]


# --------------------------------------------------------------------------------------------- text


def test_the_idea_at_a_glance(capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "2x1", "--length", "6") == BOTH_ENDS
    assert output(capsys, "2x1") == BOTH_ENDS


def test_no_token_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "2x2", "--length", "0") == NOTHING


@pytest.mark.parametrize("case", STEPS)
def test_the_steps_of_other_orders(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, length = case.split()
    assert output(capsys, name, "--length", length).split("\n\n")[1] == STEPS[case].strip()


def test_words_instead_of_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    shown = output(capsys, "2x1", "--text", IDEA)
    assert "step 1   We→    ·      ·        ·        ·      ·    ←ends\n" in shown
    assert "step 4   We   write   this   sentence→  from   both   ends   end\n" in shown
    # No words are no tokens, not an error: an empty line is a text too.
    assert output(capsys, "2x2", "--text", "  ") == NOTHING


WIDE = """\
step 1   我们→  ·     ·     ·   ←句子
step 2   我们   从→   ·    ←写   句子
step 3   我们   从   两端→  写   句子   end

slots, in generation order
token       我们  句子 |    从    写 |  两端   end
slot           0     1 |     2     3 |     4     5
input      start start |  我们  句子 |    从    写
position       1    -1 |     2    -2 |     3    -3
direction      0     1 |     0     1 |     0     1

mask: the slots that a slot may attend to
        0 1 2 3 4 5
我们  0 ■ ■ · · · ·
句子  1 ■ ■ · · · ·
  从  2 ■ ■ ■ ■ · ·
  写  3 ■ ■ ■ ■ · ·
两端  4 ■ ■ ■ ■ ■ ■
 end  5 ■ ■ ■ ■ ■ ■
"""


def test_columns_line_up_where_characters_are_wide(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = output(capsys, "2x1", "--text", "我们 从 两端 写 句子").split("\n\n", 1)
    assert shown == WIDE


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("ab", 2),
        ("我们", 4),
        ("\uff37", 2),
        ("ｱ", 1),
        ("e\u0301", 1),
        ("a\u20dd", 1),
        ("นี่", 1),
    ],
)
def test_display_width(text: str, columns: int) -> None:
    assert display_width(text) == columns


@given(st.text("ab1", max_size=9), st.integers(0, 12))
def test_text_of_plain_characters_is_padded_as_python_does(text: str, more: int) -> None:
    columns = len(text) + more
    assert align_right(text, columns) == text.rjust(columns)


@given(orders, st.integers(0, 12))
def test_every_step_points_at_its_own_tokens(order: GenerationOrder, length: int) -> None:
    steps = draw_text(order, numbered(length)).split("\n\n")[1].splitlines()
    assert len(steps) == order.steps(length)
    permutation = (order.permutation(length) + 1).tolist()
    for step, line in enumerate(steps):
        block = permutation[step * order.block_size : (step + 1) * order.block_size]
        new = [int(number) for number in re.findall(r"(?<=←)\d+|\d+(?=→)", line)]
        assert new == sorted(block)
        waiting = length - len(permutation[: (step + 1) * order.block_size])
        assert line.count("·") == waiting
    assert [line.endswith("end") for line in steps] == [False] * (len(steps) - 1) + [True]


@given(orders, st.lists(st.text("abc", min_size=1, max_size=4), max_size=8))
def test_words_stay_where_they_appear(order: GenerationOrder, words: list[str]) -> None:
    steps = [line[8:] for line in draw_steps(order, words).splitlines()]
    final = re.sub("[→←]", " ", steps[-1])
    for line in steps:
        assert not re.search("→←|[a-c]←|→[a-c]", line)
        assert all(x in "→←· " or x == y for x, y in zip(line, final, strict=False))


@example(GenerationOrder(), 22, 113)
@given(orders, st.integers(0, 400), st.integers(40, 200))
def test_a_long_text_stays_readable(order: GenerationOrder, length: int, width: int) -> None:
    lines = draw_text(order, numbered(length), width).splitlines()
    assert len(lines) < 100
    pictures = [line for line in lines if not re.search("the end symbol|mask:|mark is", line)]
    assert max(map(len, pictures)) <= width


def test_a_long_text_in_marks(capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(capsys, "2x1", "--length", "60").splitlines()
    assert lines[2] == "step 1   →" + "·" * 58 + "←"
    assert lines[3] == "step 2   ━→" + "·" * 56 + "←━"
    assert lines[25] == "step 31  " + "━" * 60
    assert lines[26] == "(24 of 31 steps)"
    # More tokens than columns: a mark stands for several.
    lines = output(capsys, "2x1", "--length", "200").splitlines()
    assert lines[2] == "step 1    →" + "·" * 65 + "←"
    assert lines[27] == "(a mark is up to 3 tokens: ━ all of them are there, ─ some are)"


def test_colour_is_for_terminals_alone() -> None:
    order = GenerationOrder.parse("4x1")
    plain, coloured = (draw_text(order, numbered(9), color=color) for color in (False, True))
    assert "\x1b" not in plain
    uncoloured = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in uncoloured.splitlines()] == plain.splitlines()
    # Four strands in four colours.
    assert len(set(re.findall(r"\x1b\[1;(\d+)m", coloured))) == 4


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_colour_unless_it_says_no(
    environment: dict[str, str], coloured: bool
) -> None:
    settings = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    terminal, program = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "bothends", "order", "2x1"],
        stdout=program,
        env={**settings, "TERM": "xterm", "COLUMNS": "80", **environment},
    ) as process:
        os.close(program)
        shown = b""
        try:
            while piece := os.read(terminal, 4096):
                shown += piece
        except OSError:  # how Linux says that the other end was closed
            pass
    os.close(terminal)
    assert process.returncode == 0
    assert (b"\x1b[" in shown) == coloured
    assert "step 1" in shown.decode()


def test_a_device_without_unicode() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "bothends", "order", "2x1"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert result.stdout.decode("ascii") == in_ascii(BOTH_ENDS)
    assert "step 1   1>  .   .   .   .  <6\n" in in_ascii(BOTH_ENDS)


# ---------------------------------------------------------------------------------------------- SVG

SVG = "{http://www.w3.org/2000/svg}"


def drawn(path: Path) -> ElementTree.Element:
    return ElementTree.parse(path).getroot()


@pytest.mark.parametrize("name", ["1x1", "2x1", "1x2", "2x2", "4x1", "8x2", "2x1+vanilla-mask"])
@pytest.mark.parametrize("length", [0, 1, 6, 11])
def test_a_drawing_shows_mask_blocks_and_tokens(
    name: str, length: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, order = tmp_path / "order.svg", GenerationOrder.parse(name)
    shown = output(capsys, name, "--length", str(length), "--svg", str(path))
    assert shown == draw_text(order, numbered(length))
    root = drawn(path)
    circles = root.findall(f".//{SVG}circle")
    assert len(circles) == (length + 1) ** 2
    allowed = [circle for circle in circles if circle.get("class") != "dot"]
    assert len(allowed) == order.mask(length + 1).sum()
    # One pointed shape per token, at the step that makes it; one dashed frame per step.
    assert len(root.findall(f".//{SVG}path")) == length
    frames = [r for r in root.findall(f".//{SVG}rect") if r.get("class") == "line"]
    assert len(frames) == order.steps(length)
    words = [text.text for text in root.findall(f".//{SVG}text")]
    assert {*numbered(length), "end", name} <= set(words)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    assert root.get("viewBox") == f"0 0 {width:g} {height:g}"


def test_a_drawing_has_room_for_wide_characters() -> None:
    order = GenerationOrder.parse("2x1")
    wide, letters = (
        ElementTree.fromstring(draw_svg(order, [word])) for word in ("我们写句子", "tenletters")
    )
    assert wide.get("width") == letters.get("width")


def test_a_drawing_needs_nothing_else_and_hides_nothing() -> None:
    svg = draw_svg(GenerationOrder.parse("2x1"), ["<a>", "b&c", "'\"", "\N{SNOWMAN}"])
    assert not re.search(r"href|url\(|@import|<script|<image", svg)
    assert svg.count("http") == 1  # the namespace
    words = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert {"<a>", "b&c", "'\"", "\N{SNOWMAN}"} <= set(words)


def test_everything_drawn_is_inside_the_drawing() -> None:
    root = ElementTree.fromstring(draw_svg(GenerationOrder.parse("2x2"), IDEA.split()))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for group in root.findall(f"{SVG}g"):
        found = re.fullmatch(r"translate\((\d+) (\d+)\)", group.get("transform", ""))
        assert found is not None
        left, top = float(found[1]), float(found[2])
        for rect in group.findall(f"{SVG}rect"):
            x, y = left + float(rect.get("x", 0)), top + float(rect.get("y", 0))
            assert 0 < x < x + float(rect.get("width", 0)) < width
            assert 0 < y < y + float(rect.get("height", 0)) < height
        for circle in group.findall(f"{SVG}circle"):
            assert 0 < left + float(circle.get("cx", 0)) < width - 7
            assert 0 < top + float(circle.get("cy", 0)) < height - 7


COMMITTED = {
    "idea": ("2x1", IDEA.split()),
    **{
        name.replace("+", "-"): (name, numbered(6))
        for name in (
            "1x1",
            "2x1",
            "1x2",
            "2x2",
            "4x1",
            "2x1+vanilla-mask",
            "2x1+independent-directions",
            "2x1+middle-to-side",
            "2x1+autoregressive",
        )
    },
}


def test_the_docs_show_these_pictures() -> None:
    assert sorted(path.stem for path in IMAGES.glob("*.svg")) == sorted(COMMITTED)


@pytest.mark.parametrize("name", COMMITTED)
def test_the_pictures_in_the_docs_are_what_the_tool_draws(name: str) -> None:
    order, words = COMMITTED[name]
    committed = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert committed == draw_svg(GenerationOrder.parse(order), words), (
        f"draw it again: bothends order {order} --svg docs/images/{name}.svg"
    )


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["3x1"], 2, "bad generation order 3x1: directions must be 1 or even"),
        (["2x0"], 2, "bad generation order 2x0: directions must be 1 or even"),
        (["two"], 2, "bad generation order 'two': expected DIRECTIONSxTOKENS"),
        (["2x1+vanila-mask"], 2, "bad generation order '2x1+vanila-mask': unknown variant"),
        (["2x1", "--length", "-1"], 2, "Invalid value for '--length'"),
        (["2x1", "--length", "six"], 2, "Invalid value for '--length'"),
        (["2x1", "--length", "10001"], 2, "Invalid value for '--length'"),
        (["2x1", "--length", "3", "--text", "a b c"], 2, "give --length or --text, not both"),
        (["2x1", "--text", "a \x1b[2J"], 2, "--text has a character that cannot be printed"),
        (["2x1", "--text", "a \udcff"], 2, "--text has a character that cannot be printed"),
        (["2x1", "6"], 2, "Got unexpected extra argument"),
        (["2x1", "--length", "65", "--svg", "x.svg"], 2, "a picture of 65 tokens is too wide"),
        (["2x1", "--svg", "no/such/directory/x.svg"], 1, "--svg no/such/directory/x.svg: no/such/"),
        (["2x1", "--svg", "."], 1, "--svg .: is a directory, expected a file to write"),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    actual, line = error_line(["order", *arguments], capsys)
    assert actual == status
    assert line.startswith(message)
    assert list(tmp_path.iterdir()) == []


# A gap between given words


@given(orders, st.lists(st.text("abc", min_size=1, max_size=4), max_size=8), st.data())
def test_given_words_are_there_from_the_start(
    order: GenerationOrder, words: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(words)))
    after = data.draw(st.integers(first, len(words)))
    steps = draw_steps(order, words, gap=(first, after)).splitlines()
    slots = np.argsort(order.permutation(len(words)))[first:after]
    for step, line in enumerate(steps):
        unwritten = (slots // order.block_size > step).sum()
        assert line.count("·") == unwritten
    svg = draw_gap_svg(order, words, (first, after))
    root = ElementTree.fromstring(svg)
    coloured = [path for path in root.iter() if re.fullmatch(r"s\d", path.get("class", ""))]
    assert len(coloured) == after - first  # each written word has one cell that is new


def test_a_gap_that_closes() -> None:
    drawing = draw_steps(GenerationOrder.parse("2x1"), "a b c d e f".split(), gap=(2, 5))
    assert drawing == (
        "step 1   a→  b   ·   ·   ·  ←f\n"
        "step 2   a   b→  ·   ·  ←e   f\n"
        "step 3   a   b   c→ ←d   e   f\n"
        "step 4   a   b   c   d   e   f   end\n"
    )


@pytest.mark.parametrize("order", ["2x1", "1x1"])
def test_the_docs_show_these_gaps(order: str) -> None:
    words = "Fo mos ao cinema ontem à noite .".split()
    picture = draw_gap_svg(GenerationOrder.parse(order), words, (0, 4))
    assert (IMAGES / "fill" / f"{order}.svg").read_text("utf-8") == picture


def test_a_gap_that_is_too_wide() -> None:
    with pytest.raises(UsageError, match="65 tokens is too wide"):
        draw_gap_svg(GenerationOrder(), ["a"] * 65, (1, 3))
