"""An order drawn in characters: for a terminal, in colour, and for a pipe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bothends.drawing.picture import DrawnToken, Picture
from bothends.drawing.width import align_right, display_width
from bothends.order import GenerationOrder

#: Of a long text: how many steps are drawn, rows and columns of the mask, and folds of the table.
STEPS_SHOWN = 24
SLOTS_SHOWN = 24
FOLDS_SHOWN = 6

# Blue against yellow, green against magenta, cyan against red: the terminal's own colours, so that
# its theme holds.
_HUES = (34, 33, 32, 35, 36, 31)
_ASCII = str.maketrans("→←·━─■", "><.=-#")


def draw_text(
    order: GenerationOrder, words: Sequence[str], width: int = 100, color: bool = False
) -> str:
    """The order as lines of about `width` characters, whatever the number of words."""
    picture, pen, width = Picture.of(order, words), _Pen(color), max(width, 40)
    return _page(
        [f"{order}: {picture.summary()}"],
        _steps(picture, width, pen),
        _slots(picture, width, pen),
        _mask(picture, width, pen),
    )


def draw_steps(
    order: GenerationOrder,
    words: Sequence[str],
    width: int = 100,
    color: bool = False,
    gap: tuple[int, int] | None = None,
) -> str:
    """Only how the text fills up, or a gap in it, `(first, after)`."""
    return _page(_steps(Picture.of(order, words, gap), max(width, 40), _Pen(color)))


def _page(*parts: list[str]) -> str:
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts) + "\n"


def in_ascii(drawing: str) -> str:
    """The same drawing for a device that has nothing else."""
    return drawing.translate(_ASCII).encode("ascii", "replace").decode()


class _Pen:
    """Writes text in the colour of a token's strand, or plainly."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, token: DrawnToken, bold: bool = False) -> str:
        if not self.color or token.strand is None or token.given:
            return text
        return f"\x1b[{'1;' if bold else ''}{_HUES[token.strand % len(_HUES)]}m{text}\x1b[0m"


def _steps(picture: Picture, width: int, pen: _Pen) -> list[str]:
    """The text after each step: an arrow for what is new, a dot for what is still to come."""
    *words, end = picture.text
    name = len(f"step {end.step}") + 2
    cells = sum(display_width(_word(word, step=0)) for word in words)
    last = " " * bool(words) + end.label
    if name + cells + len(last) > width:
        return _long_steps(picture, width - name, pen)
    lines = []
    for step in range(1, picture.steps + 1):
        line = f"step {step}".ljust(name)
        for word in words:
            line += pen(_word(word, step), word, bold=word.step == step)
        lines.append(line)
    lines[-1] += last
    return lines


def _word(token: DrawnToken, step: int) -> str:
    """A cell of the same width at every step: room for an arrow on both sides, and a space."""
    shown = step >= token.step or token.given
    label = token.label if shown else "·".center(display_width(token.label))
    left, right = (" ", "→") if token.moves_right else ("←", " ")
    return f"{left}{label}{right} " if step == token.step else f" {label}  "


def _long_steps(picture: Picture, width: int, pen: _Pen) -> list[str]:
    """A long text: a mark instead of a word, for one token or more, and a sample of the steps."""
    words = picture.text[:-1]
    share = -(-len(words) // width)
    groups = [words[start : start + share] for start in range(0, len(words), share)]
    shown = np.linspace(1, picture.steps, min(STEPS_SHOWN, picture.steps)).astype(int).tolist()
    lines = []
    for step in shown:
        line = f"step {step}".ljust(len(f"step {picture.steps}") + 2)
        lines.append(line + "".join(_mark(group, step, pen) for group in groups))
    if len(shown) < picture.steps:
        lines.append(f"({len(shown)} of {picture.steps} steps)")
    if share > 1:
        lines.append(f"(a mark is up to {share} tokens: ━ all of them are there, ─ some are)")
    return lines


def _mark(group: Sequence[DrawnToken], step: int, pen: _Pen) -> str:
    done = [token for token in group if token.step <= step]
    if not done:
        return "·"
    latest = max(done, key=lambda token: token.step)
    if latest.step == step:
        return pen("→" if latest.moves_right else "←", latest, bold=True)
    return pen("━" if len(done) == len(group) else "─", latest)


def _slots(picture: Picture, width: int, pen: _Pen) -> list[str]:
    """A table with a column per slot, folded at the width of the page."""
    generated = picture.generated
    rows = {"token": [token.label for token in generated], **picture.facts()}
    name = max(map(len, rows)) + 1
    cell = max(display_width(value) for values in rows.values() for value in values) + 1
    block = picture.order.block_size
    bar = " |" if block > 1 else ""
    # Fold between two blocks, or within a block that is wider than the page.
    blocks = (width - name) // (block * cell + len(bar))
    fold = blocks * block or max(1, (width - name - len(bar)) // cell)
    firsts = list(range(0, len(generated), fold))
    if len(firsts) > FOLDS_SHOWN:
        firsts = [*firsts[: FOLDS_SHOWN - 2], firsts[-1]]
    lines, printed = ["slots, in generation order"], 0
    for first in firsts:
        if first > printed:
            lines += ["", f"... {first - printed} slots ..."]
        lines += [""] if first else []
        for row, values in rows.items():
            line = row.ljust(name)
            for token in generated[first : first + fold]:
                line += bar if token.slot % block == 0 and token.slot > first else ""
                value = align_right(values[token.slot], cell)
                line += pen(value, token) if row == "token" else value
            lines.append(line)
        printed = first + fold
    return lines


def _mask(picture: Picture, width: int, pen: _Pen) -> list[str]:
    """The mask's first rows and columns: the rest continues alike, whatever the length."""
    generated = picture.generated
    cell = 2 if len(generated) <= 10 else 3
    label = max(display_width(token.label) for token in generated) + 1
    shown = generated[: max(1, min(SLOTS_SHOWN, (width - label - cell) // cell))]
    lines = ["mask: the slots that a slot may attend to"]
    if len(shown) < len(generated):
        lines[0] += f" (the first {len(shown)} of {len(generated)})"
    lines.append(" " * (label + cell) + "".join(f"{token.slot:{cell}}" for token in shown))
    for token, row in zip(shown, picture.order.mask(len(shown)), strict=True):
        line = pen(align_right(token.label, label - 1), token) + f"{token.slot:{cell + 1}}"
        for other, allowed in zip(shown, row, strict=True):
            line += pen("■".rjust(cell), other) if allowed else "·".rjust(cell)
        lines.append(line)
    return lines
