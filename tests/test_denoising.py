"""Text that is damaged for a model to mend."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothends.cli import run
from bothends.errors import UsageError
from bothends.text.denoising import MARK, Damage, damage_lines
from command_line import error_line

LINES = [" ".join(f"{number}-{place}" for place in range(20)) for number in range(2000)]

SHARES = st.floats(0, 1)


def is_in_order(part: list[str], whole: list[str]) -> bool:
    """Whether `part` is what is left of `whole`."""
    words = iter(whole)
    return all(word in words for word in part)


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), max_size=12).map(" ".join), max_size=8),
    st.builds(Damage, SHARES, st.floats(1, 9), SHARES, SHARES),  # none are added
)
def test_what_is_left_was_there_and_marks_stand_for_the_rest(
    lines: list[str], damage: Damage
) -> None:
    found = list(damage_lines(lines, damage))
    assert len(found) == len(lines)
    for before, after in zip(lines, found, strict=True):
        words = after.split()
        assert bool(words) == bool(before.split())
        assert is_in_order([word for word in words if word != MARK], before.split())


def test_no_two_marks_stand_side_by_side() -> None:
    """Unless what stood between them was left out."""
    damaged = damage_lines(LINES, Damage(masked=0.6, span=1, deleted=0, copied=0))
    assert not any(f"{MARK} {MARK}" in line for line in damaged)


def test_shares_are_those_asked_for() -> None:
    damage = Damage(masked=0.3, span=3, deleted=0, copied=0.2)
    found = list(damage_lines(LINES, damage))
    copies = sum(one == other for one, other in zip(found, LINES, strict=True))
    assert copies / len(LINES) == pytest.approx(0.2, abs=0.03)
    changed = [line.split() for line, old in zip(found, LINES, strict=True) if line != old]
    marks = sum(words.count(MARK) for words in changed)
    kept = sum(map(len, changed)) - marks
    gone = 20 * len(changed) - kept
    assert gone / (20 * len(changed)) == pytest.approx(0.3, abs=0.01)
    assert 2 < gone / marks < 4  # spans that touch are one, and the last one is cut to fit
    deleting = Damage(masked=0, deleted=0.1, copied=0)
    left = sum(len(line.split()) for line in damage_lines(LINES, deleting))
    assert left / (20 * len(LINES)) == pytest.approx(0.9, abs=0.01)


def test_words_of_earlier_lines_are_put_in() -> None:
    damage = Damage(masked=0, span=4, deleted=0, copied=0, added=1.5)
    found = [line.split() for line in damage_lines(LINES, damage)]
    assert found[0] == LINES[0].split(), "there is no other line yet"
    for number, (words, line) in enumerate(zip(found, LINES, strict=True)):
        own = [word for word in words if word.startswith(f"{number}-")]
        assert own == line.split(), "none of its own is lost"
        assert all(int(word.split("-")[0]) <= number for word in words)
    assert sum(map(len, found)) / (20 * len(LINES)) == pytest.approx(2.5, abs=0.01)
    assert [" ".join(words) for words in found] == list(damage_lines(LINES, damage))


def test_everything_and_nothing() -> None:
    assert list(damage_lines(LINES, Damage(masked=1, copied=0))) == [MARK] * len(LINES)
    assert list(damage_lines(LINES, Damage(masked=0, deleted=0))) == LINES
    assert list(damage_lines(LINES, Damage(copied=1))) == LINES
    assert set(damage_lines(LINES, Damage(masked=0, deleted=1, copied=0))) == {MARK}


def test_a_seed_decides() -> None:
    assert list(damage_lines(LINES, Damage(), 1)) == list(damage_lines(LINES, Damage(), 1))
    assert list(damage_lines(LINES, Damage(), 1)) != list(damage_lines(LINES, Damage(), 2))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ({"masked": -0.1}, "masked must be between 0 and 1, but is -0.1"),
        ({"copied": float("nan")}, "copied must be between 0 and 1, but is nan"),
        ({"added": 11}, "added must be between 0 and 10, but is 11"),
        ({"span": 0.5}, "span must be between 1 and 100, but is 0.5"),
    ],
)
def test_absurd_settings_are_errors(damage: dict[str, float], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Damage(**damage)


def test_the_command_keeps_the_lines_of_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, output = tmp_path / "first", tmp_path / "second", tmp_path / "damaged"
    first.write_text("one two three four\n\n")
    second.write_text("ein zwei drei vier\n")
    command = ["denoise", "--text", str(first), str(second), "--output", str(output)]
    run([*command, "--copied", "0", "--deleted", "0"])
    lines = output.read_text().splitlines()
    assert len(lines) == 3
    assert MARK in lines[0]
    assert lines[1] == ""
    assert capsys.readouterr().err == f"3 lines written to {output}\n"
    complaint = f"--output {output}: exists; remove it, or name another file"
    assert error_line(command, capsys) == (1, complaint)
