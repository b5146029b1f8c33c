"""An order drawn as SVG: one file that needs no other, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence

from bothends.drawing.picture import DrawnToken, Picture
from bothends.drawing.shapes import HUES, Panel, svg_document, svg_text
from bothends.drawing.width import display_width
from bothends.errors import UsageError
from bothends.order import GenerationOrder

#: A picture of more tokens would be too wide to look at.
LIMIT = 64

_MARGIN, _NAMES, _HEIGHT, _GAP, _PITCH = 28, 76, 30, 8, 20


def draw_svg(order: GenerationOrder, words: Sequence[str]) -> str:
    """The order as an SVG document."""
    if len(words) > LIMIT:
        raise UsageError(f"a picture of {len(words)} tokens is too wide; up to {LIMIT} are drawn")
    picture = Picture.of(order, words)
    cell = max(34, 9 * max(display_width(token.label) for token in picture.text) + 14)
    steps, slots, mask = _steps(picture, cell), _slots(picture, cell), _mask(picture)
    top = 112
    slots_top = top + steps.height + 52
    column = _MARGIN + max(steps.width, slots.width) + 44
    # The mask's heading and the title may be wider than what they are about.
    width = max(column + max(mask.width, 200), 13 * len(str(order))) + _MARGIN
    height = max(slots_top + slots.height, top + mask.height) + _MARGIN
    return svg_document(
        (width, height),
        f"{order}: {picture.summary()}",
        [
            svg_text(_MARGIN, 44, str(order), "title ink"),
            svg_text(_MARGIN, 68, picture.summary(), "quiet"),
            svg_text(_MARGIN, top - 14, "the text, step by step", "heading ink"),
            steps.at(_MARGIN, top),
            svg_text(_MARGIN, slots_top - 14, "the slots, in generation order", "heading ink"),
            slots.at(_MARGIN, slots_top),
            svg_text(column, top - 14, "what a slot may attend to", "heading ink"),
            mask.at(column, top),
        ],
    )


def draw_gap_svg(order: GenerationOrder, words: Sequence[str], gap: tuple[int, int]) -> str:
    """How a gap, `(first, after)`, is filled between words that are given, as an SVG document."""
    if len(words) > LIMIT:
        raise UsageError(f"a picture of {len(words)} tokens is too wide; up to {LIMIT} are drawn")
    picture = Picture.of(order, words, gap)
    cell = max(34, 9 * max(display_width(token.label) for token in picture.text) + 14)
    steps, top = _steps(picture, cell), 100
    width, height = steps.width + 2 * _MARGIN, top + steps.height + _MARGIN
    tokens = gap[1] - gap[0]
    what = f"a gap of {tokens} {'token' if tokens == 1 else 'tokens'} between given words"
    return svg_document(
        (width, height),
        f"{order}: {what}",
        [
            svg_text(_MARGIN, 44, str(order), "title ink"),
            svg_text(_MARGIN, 68, f"{what}: grey is read, colour is written", "quiet"),
            steps.at(_MARGIN, top),
        ],
    )


def _steps(picture: Picture, cell: int) -> Panel:
    """A line per step: pointed cells are new, pale ones known, dashed ones still to come."""
    pitch, line = cell + _GAP, _HEIGHT + _GAP
    panel = Panel(_NAMES + pitch * len(picture.text) - _GAP, line * picture.steps - _GAP)
    for step in range(1, picture.steps + 1):
        y = (step - 1) * line
        panel.shapes.append(svg_text(0, y + 20, f"step {step}", "quiet"))
        for index, token in enumerate(picture.text):
            x = _NAMES + index * pitch
            if step == token.step:
                panel.shapes += [_new(token, x, y, cell), _label(token, x, y, cell, "on")]
            elif step > token.step:
                panel.shapes += [
                    _box(x, y, cell, f"{_hue(token)} old"),
                    _label(token, x, y, cell, "ink"),
                ]
            elif token.given:
                panel.shapes += [_box(x, y, cell, "line"), _label(token, x, y, cell, "quiet")]
            elif token.strand is not None:
                panel.shapes.append(_box(x, y, cell, "faint"))
    return panel


def _slots(picture: Picture, cell: int) -> Panel:
    """The blocks side by side, one per step, with what the decoder knows of each slot."""
    generated, facts, line = picture.generated, picture.facts(), 22
    block, apart = picture.order.block_size, 22
    body = _HEIGHT + line * len(facts) + 16

    def left(slot: int) -> int:
        return _NAMES + slot * (cell + 4) + slot // block * apart

    panel = Panel(left(len(generated) - 1) + cell + 8, body + 22)
    for row, name in enumerate(["token", *facts]):
        panel.shapes.append(svg_text(0, 27 + row * line + 7 * bool(row), name, "quiet"))
    for step in range(picture.steps):
        slots = generated[step * block : (step + 1) * block]
        x, width = left(slots[0].slot) - 7, left(slots[-1].slot) + cell - left(slots[0].slot) + 14
        panel.shapes += [
            f'<rect class="line" x="{x}" y="0" width="{width}" height="{body}" rx="8"/>',
            svg_text(x + width // 2, body + 18, f"step {step + 1}", "small quiet centre"),
        ]
        for token in slots:
            x = left(token.slot)
            panel.shapes += [_box(x, 7, cell, _hue(token)), _label(token, x, 7, cell, "on")]
            for row, values in enumerate(facts.values()):
                text = values[token.slot].replace("-", "\N{MINUS SIGN}")
                y = 34 + (row + 1) * line
                panel.shapes.append(svg_text(x + cell // 2, y, text, "ink centre small"))
    return panel


def _mask(picture: Picture) -> Panel:
    """A line per slot: a coloured dot where it may look, in the colour of what it sees there."""
    generated = picture.generated
    side = _PITCH * (len(generated) + 1)
    panel = Panel(side + 8, side)
    for i, (token, row) in enumerate(
        zip(generated, picture.order.mask(len(generated)), strict=True), start=1
    ):
        for x, y in ((0, i), (i, 0)):
            centre = x * _PITCH + 8, y * _PITCH + 8
            panel.shapes.append(
                svg_text(centre[0], centre[1] + 4, str(token.slot), "small quiet centre")
            )
        for j, (other, allowed) in enumerate(zip(generated, row, strict=True), start=1):
            kind, radius = (_hue(other), 7) if allowed else ("dot", 2)
            panel.shapes.append(
                f'<circle class="{kind}" cx="{j * _PITCH + 8}" cy="{i * _PITCH + 8}" r="{radius}"/>'
            )
    return panel


def _hue(token: DrawnToken) -> str:
    return "end" if token.strand is None or token.given else f"s{token.strand % len(HUES)}"


def _label(token: DrawnToken, x: int, y: int, width: int, kind: str) -> str:
    return svg_text(x + width // 2, y + 20, token.label, f"{kind} centre")


def _box(x: int, y: int, width: int, kind: str) -> str:
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{_HEIGHT}" rx="5"/>'


def _new(token: DrawnToken, x: int, y: int, width: int) -> str:
    """A box with a point in the direction of its strand."""
    if token.strand is None:
        return _box(x, y, width, _hue(token))
    # Drawn pointing right from its left edge, and mirrored for a strand that grows to the left.
    place = (
        f"translate({x} {y})" if token.moves_right else f"translate({x + width} {y}) scale(-1 1)"
    )
    shape = f"M5 0 H{width - 6} L{width + 3} 15 L{width - 6} 30 H5 Q0 30 0 25 V5 Q0 0 5 0 Z"
    return f'<path class="{_hue(token)}" transform="{place}" d="{shape}"/>'
