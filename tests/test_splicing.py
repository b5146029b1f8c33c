"""New sentences from the beginnings and ends of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bothends.cli import run
from bothends.errors import BothendsError
from bothends.text.splicing import splice
from command_line import error_line

SENTENCES = [
    "we have to leave at once .",
    "she told me to leave the door open .",
    "he wants to leave the town .",
    "they do not have to pay .",
]


def could_be_spliced(sentence: str) -> bool:
    """By its definition: two neighbours of one sentence, and what follows them in another."""
    words = sentence.split()
    for cut in range(2, len(words)):
        for head in map(str.split, SENTENCES):
            for tail in map(str.split, SENTENCES):
                begins = head[:cut] == words[:cut] and len(head) > cut
                ends = any(
                    tail[place - 2 : place] == words[cut - 2 : cut] and tail[place:] == words[cut:]
                    for place in range(2, len(tail))
                )
                if begins and ends and len(words) <= max(len(head), len(tail)):
                    return True
    return False


def test_all_that_can_be_made_is_made_once() -> None:
    made = list(splice(SENTENCES, 1000))
    assert len(set(made)) == len(made)
    assert not set(made) & set(SENTENCES)
    assert all(map(could_be_spliced, made))
    words = {word for sentence in SENTENCES for word in sentence.split()}
    assert "we have to leave the door open ." in made
    assert "she told me to leave at once ." in made
    assert "we have to pay ." in made
    assert set(" ".join(made).split()) <= words


def test_an_unlikely_sentence_is_no_splice() -> None:
    assert not could_be_spliced("she told me to pay .")


def test_as_many_as_asked_and_none_that_is_excluded() -> None:
    everything = list(splice(SENTENCES, 1000))
    assert list(splice(SENTENCES, 2)) == everything[:2]
    rest = list(splice(SENTENCES, 1000, exclude=everything[:2]))
    assert set(rest) == set(everything[2:])


def test_spaces_do_not_hide_what_is_excluded() -> None:
    assert "we have to pay ." in list(splice(SENTENCES, 1000))
    excluded = ["we  have to pay\u00a0."]
    assert "we have to pay ." not in list(splice(SENTENCES, 1000, exclude=excluded))


def test_the_seed_decides() -> None:
    assert list(splice(SENTENCES, 5, seed=3)) == list(splice(SENTENCES, 5, seed=3))
    orders = {tuple(splice(SENTENCES, 5, seed=seed)) for seed in range(8)}
    assert len(orders) > 1


@pytest.mark.parametrize("sentences", [[], ["one two", "", "three"], ["今日は天気がいい。"] * 3])
def test_text_without_three_words_in_a_line(sentences: list[str]) -> None:
    with pytest.raises(BothendsError, match="no sentence has three words"):
        list(splice(sentences, 3))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, unseen = (tmp_path / name for name in ("one", "two", "unseen"))
    one.write_text("\n".join(SENTENCES[:2]) + "\n")
    two.write_text("\n".join(SENTENCES[2:]) + "\n")
    unseen.write_text("we have to pay .\n")
    output = tmp_path / "text"
    command = ["splice", "--source", str(one), str(two), "--lines", "1000"]
    assert run([*command, "--exclude", str(unseen), "--output", str(output)]) == 0
    made = output.read_text().splitlines()
    assert made == list(splice(SENTENCES, 1000, exclude=["we have to pay ."]))
    assert f"{len(made)} new lines written to {output}; the text does not give 1,000" in (
        capsys.readouterr().err
    )
    status, message = error_line([*command, "--output", str(one)], capsys)
    assert (status, message) == (1, f"--output {one}: exists; remove it, or name another file")
    missing = tmp_path / "missing"
    arguments = ["--source", str(missing), "--lines", "1", "--output", f"{output}2"]
    status, message = error_line(["splice", *arguments], capsys)
    assert (status, message) == (1, f"{missing}: no such file")
