"""Orders: the paper's figure and the design's tables written out, and properties of every order."""

from __future__ import annotations

from itertools import groupby, pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothends.errors import UsageError
from bothends.order import VARIANTS, BoolArray, GenerationOrder
from every_order import EVERY_ORDER

# ------------------------------------------------------------------------------------- the figure

# The paper's figure, subfigure by subfigure: six tokens, counted from 1 as there. Masks are drawn
# with a row for each slot that looks and a column for each slot that is seen.
BLOCKS_OF_TWO = "##.... ##.... ####.. ####.. ###### ######"
BLOCKS_OF_FOUR = "####.. ####.. ####.. ####.. ###### ######"
TRIANGLE = "#..... ##.... ###... ####.. #####. ######"
SIX_TOKENS = {
    "1x1": ("1 2 3 4 5 6", "0 1 2 3 4 5", "0 0 0 0 0 0", TRIANGLE),
    "2x1": ("1 6 2 5 3 4", "1 -1 2 -2 3 -3", "0 1 0 1 0 1", BLOCKS_OF_TWO),  # (a), (c)
    "1x2": ("1 2 3 4 5 6", "0 1 2 3 4 5", "0 0 0 0 0 0", BLOCKS_OF_TWO),  # (b), (c)
    "4x1": ("1 4 3 6 2 5", "0 0 0 0 1 1", "0 1 2 3 0 1", BLOCKS_OF_FOUR),  # (d), (f)
    "2x2": ("1 6 2 5 3 4", "1 -1 2 -2 3 -3", "0 1 0 1 0 1", BLOCKS_OF_FOUR),  # (e), (f)
    "1x4": ("1 2 3 4 5 6", "0 1 2 3 4 5", "0 0 0 0 0 0", BLOCKS_OF_FOUR),
}


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def drawn(mask: str) -> BoolArray:
    """A mask from its picture: `#` may attend, `.` may not, a row per word."""
    return np.array([[mark == "#" for mark in row] for row in mask.split()], dtype=bool)


@pytest.mark.parametrize("name", SIX_TOKENS)
def test_six_tokens_are_generated_as_in_the_papers_figure(name: str) -> None:
    generation_order, positions, directions, mask = SIX_TOKENS[name]
    order = GenerationOrder.parse(name)
    assert (order.permutation(6) + 1).tolist() == numbers(generation_order)
    assert order.positions(6).tolist() == numbers(positions)
    assert order.direction_ids(6).tolist() == numbers(directions)
    assert np.array_equal(order.mask(6), drawn(mask))


# ----------------------------------------------------------------------------- lengths from 0 to 12

LEFT_TO_RIGHT = """
1
1 2
1 2 3
1 2 3 4
1 2 3 4 5
1 2 3 4 5 6
1 2 3 4 5 6 7
1 2 3 4 5 6 7 8
1 2 3 4 5 6 7 8 9
1 2 3 4 5 6 7 8 9 10
1 2 3 4 5 6 7 8 9 10 11
1 2 3 4 5 6 7 8 9 10 11 12
"""
BOTH_ENDS = """
1
1 2
1 3 2
1 4 2 3
1 5 2 4 3
1 6 2 5 3 4
1 7 2 6 3 5 4
1 8 2 7 3 6 4 5
1 9 2 8 3 7 4 6 5
1 10 2 9 3 8 4 7 5 6
1 11 2 10 3 9 4 8 5 7 6
1 12 2 11 3 10 4 9 5 8 6 7
"""
FROM_THE_MIDDLE = """
1
1 2
2 3 1
2 3 1 4
3 4 2 5 1
3 4 2 5 1 6
4 5 3 6 2 7 1
4 5 3 6 2 7 1 8
5 6 4 7 3 8 2 9 1
5 6 4 7 3 8 2 9 1 10
6 7 5 8 4 9 3 10 2 11 1
6 7 5 8 4 9 3 10 2 11 1 12
"""
FOUR_DIRECTIONS = """
1
1 2
1 3 2
1 3 2 4
1 4 3 5 2
1 4 3 6 2 5
1 5 4 7 2 6 3
1 5 4 8 2 6 3 7
1 6 5 9 2 7 4 8 3
1 6 5 10 2 7 4 9 3 8
1 7 6 11 2 8 5 10 3 9 4
1 7 6 12 2 8 5 11 3 9 4 10
"""
EIGHT_DIRECTIONS = """
1
1 2
1 2 3
1 2 3 4
1 3 4 5 2
1 3 5 6 2 4
1 3 5 7 2 4 6
1 3 5 7 2 4 6 8
1 4 6 8 3 5 7 9 2
1 4 7 9 3 6 8 10 2 5
1 4 7 10 3 6 9 11 2 5 8
1 4 7 10 3 6 9 12 2 5 8 11
"""
GENERATION_ORDERS = {
    "1x1": LEFT_TO_RIGHT,
    "1x2": LEFT_TO_RIGHT,
    "1x4": LEFT_TO_RIGHT,
    "2x1": BOTH_ENDS,
    "2x2": BOTH_ENDS,
    "2x4": BOTH_ENDS,
    "2x1+vanilla-mask": BOTH_ENDS,
    "2x1+vanilla-positions": BOTH_ENDS,
    "2x1+independent-directions": BOTH_ENDS,
    "2x1+autoregressive": BOTH_ENDS,
    "2x1+middle-to-side": FROM_THE_MIDDLE,
    "2x2+middle-to-side": FROM_THE_MIDDLE,
    "4x1": FOUR_DIRECTIONS,
    "4x2": FOUR_DIRECTIONS,
    "8x1": EIGHT_DIRECTIONS,
}

COUNTED = "0 1 2 3 4 5 6 7 8 9 10 11"
SIGNED = "1 -1 2 -2 3 -3 4 -4 5 -5 6 -6"
POSITIONS = {
    "1x1": COUNTED,
    "1x2": COUNTED,
    "1x4": COUNTED,
    "2x1": SIGNED,
    "2x2": SIGNED,
    "2x4": SIGNED,
    "2x1+vanilla-mask": SIGNED,
    "2x1+independent-directions": SIGNED,
    "2x1+middle-to-side": SIGNED,
    "2x1+autoregressive": SIGNED,
    "2x1+vanilla-positions": COUNTED,
    "4x1": "0 0 0 0 1 1 1 1 2 2 2 2",
    "4x2": "0 0 0 0 1 1 1 1 2 2 2 2",
    "4x1+vanilla-positions": COUNTED,
    "6x1": "0 0 0 0 0 0 1 1 1 1 1 1",
    "8x1": "0 0 0 0 0 0 0 0 1 1 1 1",
}
DIRECTIONS = {
    "1x1": "0 0 0 0 0 0 0 0 0 0 0 0",
    "1x4": "0 0 0 0 0 0 0 0 0 0 0 0",
    "2x1": "0 1 0 1 0 1 0 1 0 1 0 1",
    "2x2": "0 1 0 1 0 1 0 1 0 1 0 1",
    "2x1+middle-to-side": "0 1 0 1 0 1 0 1 0 1 0 1",
    "4x1": "0 1 2 3 0 1 2 3 0 1 2 3",
    "4x2": "0 1 2 3 0 1 2 3 0 1 2 3",
    "6x1": "0 1 2 3 4 5 0 1 2 3 4 5",
    "8x1": "0 1 2 3 4 5 6 7 0 1 2 3",
}

SLOT_BY_SLOT = """
#...........
##..........
###.........
####........
#####.......
######......
#######.....
########....
#########...
##########..
###########.
############
"""
PAIRS = """
##..........
##..........
####........
####........
######......
######......
########....
########....
##########..
##########..
############
############
"""
FOURS = """
####........
####........
####........
####........
########....
########....
########....
########....
############
############
############
############
"""
EIGHTS = """
########....
########....
########....
########....
########....
########....
########....
########....
############
############
############
############
"""
TWO_STRANDS = """
#...........
.#..........
#.#.........
.#.#........
#.#.#.......
.#.#.#......
#.#.#.#.....
.#.#.#.#....
#.#.#.#.#...
.#.#.#.#.#..
#.#.#.#.#.#.
.#.#.#.#.#.#
"""
TWO_STRANDS_BY_PAIRS = """
#.#.........
.#.#........
#.#.........
.#.#........
#.#.#.#.....
.#.#.#.#....
#.#.#.#.....
.#.#.#.#....
#.#.#.#.#.#.
.#.#.#.#.#.#
#.#.#.#.#.#.
.#.#.#.#.#.#
"""
FOUR_STRANDS = """
#...........
.#..........
..#.........
...#........
#...#.......
.#...#......
..#...#.....
...#...#....
#...#...#...
.#...#...#..
..#...#...#.
...#...#...#
"""
MASKS = {
    "1x1": SLOT_BY_SLOT,
    "2x1+vanilla-mask": SLOT_BY_SLOT,
    "1x4+vanilla-mask": SLOT_BY_SLOT,
    "4x1+vanilla-mask": SLOT_BY_SLOT,
    "2x1+autoregressive": SLOT_BY_SLOT,
    "1x2": PAIRS,
    "2x1": PAIRS,
    "2x1+vanilla-positions": PAIRS,
    "2x1+middle-to-side": PAIRS,
    "1x4": FOURS,
    "2x2": FOURS,
    "4x1": FOURS,
    "1x8": EIGHTS,
    "2x4": EIGHTS,
    "4x2": EIGHTS,
    "8x1": EIGHTS,
    "2x1+independent-directions": TWO_STRANDS,
    "2x1+independent-directions+autoregressive": TWO_STRANDS,
    "2x2+vanilla-mask+independent-directions": TWO_STRANDS,
    "2x2+independent-directions": TWO_STRANDS_BY_PAIRS,
    "4x1+independent-directions": FOUR_STRANDS,
}


@pytest.mark.parametrize("length", range(13))
@pytest.mark.parametrize("name", GENERATION_ORDERS)
def test_generation_order(name: str, length: int) -> None:
    # The line of length 0 is the empty one before the table.
    expected = numbers(GENERATION_ORDERS[name].splitlines()[length])
    assert (GenerationOrder.parse(name).permutation(length) + 1).tolist() == expected


@pytest.mark.parametrize("length", range(13))
@pytest.mark.parametrize("name", POSITIONS)
def test_positions(name: str, length: int) -> None:
    expected = numbers(POSITIONS[name])[:length]
    assert GenerationOrder.parse(name).positions(length).tolist() == expected


@pytest.mark.parametrize("length", range(13))
@pytest.mark.parametrize("name", DIRECTIONS)
def test_directions(name: str, length: int) -> None:
    expected = numbers(DIRECTIONS[name])[:length]
    assert GenerationOrder.parse(name).direction_ids(length).tolist() == expected


@pytest.mark.parametrize("length", range(13))
@pytest.mark.parametrize("name", MASKS)
def test_mask(name: str, length: int) -> None:
    mask = GenerationOrder.parse(name).mask(length)
    assert mask.dtype == bool
    assert np.array_equal(mask, drawn(MASKS[name])[:length, :length])


# ------------------------------------------------------------------------- what the decoder is fed

START, END, PAD = 90, 91, 92
#: order, text, target slots, decoder input
TARGETS = [
    ("1x1", "", "91", "90"),
    ("1x1", "1 2 3", "1 2 3 91", "90 1 2 3"),
    ("1x2", "1 2 3", "1 2 3 91", "90 90 1 2"),
    ("1x2", "1 2", "1 2 91 92", "90 90 1 2"),
    ("2x1", "", "91 92", "90 90"),
    ("2x1", "1", "1 91", "90 90"),
    ("2x1", "1 2 3 4 5", "1 5 2 4 3 91", "90 90 1 5 2 4"),
    ("2x1", "1 2 3 4 5 6", "1 6 2 5 3 4 91 92", "90 90 1 6 2 5 3 4"),
    ("2x2", "1 2 3 4 5 6", "1 6 2 5 3 4 91 92", "90 90 90 90 1 6 2 5"),
    ("4x1", "1 2 3 4 5 6", "1 4 3 6 2 5 91 92", "90 90 90 90 1 4 3 6"),
    ("4x1", "1 2", "1 2 91 92", "90 90 90 90"),
    ("2x1+autoregressive", "1 2 3 4", "1 4 2 3 91", "90 1 4 2 3"),
    ("2x1+middle-to-side", "1 2 3 4", "2 3 1 4 91 92", "90 90 2 3 1 4"),
]


@pytest.mark.parametrize(("name", "text", "slots", "fed"), TARGETS)
def test_target_slots_and_their_shift(name: str, text: str, slots: str, fed: str) -> None:
    order = GenerationOrder.parse(name)
    (target,) = order.target_slots([numbers(text)], end=END, pad=PAD)
    assert target.tolist() == numbers(slots)
    assert order.shift(target, START).tolist() == numbers(fed)
    assert order.steps(len(numbers(text))) == len(target) // order.block_size


@pytest.mark.parametrize(
    ("name", "length", "steps"),
    [
        ("1x1", 0, 1),
        ("1x1", 6, 7),
        ("2x1", 0, 1),
        ("2x1", 5, 3),
        ("2x1", 6, 4),
        ("2x2", 6, 2),
        ("2x2", 7, 2),
        ("2x2", 8, 3),
        ("4x1", 6, 2),
        ("8x8", 63, 1),
        ("8x8", 64, 2),
        ("2x1+autoregressive", 6, 7),
    ],
)
def test_steps_count_the_end_symbol(name: str, length: int, steps: int) -> None:
    assert GenerationOrder.parse(name).steps(length) == steps


# ---------------------------------------------------------------------------------------- spelling


def test_every_order_has_one_spelling() -> None:
    spellings = [str(order) for order in EVERY_ORDER]
    assert len(set(spellings)) == len(EVERY_ORDER)
    assert [GenerationOrder.parse(text) for text in spellings] == EVERY_ORDER


def test_no_two_spellings_mean_the_same() -> None:
    """Long enough for two blocks of the largest order, two orders differ in something they say."""
    length = 200

    def meaning(order: GenerationOrder) -> tuple[Any, ...]:
        return (
            order.block_size,
            order.directions,
            order.permutation(length).tobytes(),
            order.positions(length).tobytes(),
            order.mask(length).tobytes(),
        )

    assert len({meaning(order) for order in EVERY_ORDER}) == len(EVERY_ORDER)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2x1", "2x1"),
        (" 2X1\n", "2x1"),
        ("02x01", "2x1"),
        ("2x1+autoregressive+vanilla-positions", "2x1+vanilla-positions+autoregressive"),
        ("2x1+Middle-To-Side", "2x1+middle-to-side"),
        ("2x1+vanilla-mask+vanilla-mask", "2x1+vanilla-mask"),
        ("12x34", "12x34"),
    ],
)
def test_a_loose_spelling_is_read_and_printed_strictly(text: str, canonical: str) -> None:
    assert str(GenerationOrder.parse(text)) == canonical


FORM = "expected DIRECTIONSxTOKENS[+VARIANT...], such as 2x1 or 2x1+vanilla-mask"
SHAPE = "directions must be 1 or even, and tokens per direction at least 1"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", f"'': {FORM}"),
        ("2", f"'2': {FORM}"),
        ("x", f"'x': {FORM}"),
        ("2x", f"'2x': {FORM}"),
        ("2*1", f"'2*1': {FORM}"),
        ("-2x1", f"'-2x1': {FORM}"),
        ("2x1.0", f"'2x1.0': {FORM}"),
        ("2x1x1", f"'2x1x1': {FORM}"),
        ("2 x 1", f"'2 x 1': {FORM}"),
        ("+vanilla-mask", f"'+vanilla-mask': {FORM}"),
        ("2x12345", f"'2x12345': {FORM}"),
        ("\N{ARABIC-INDIC DIGIT TWO}x1", f"'\N{ARABIC-INDIC DIGIT TWO}x1': {FORM}"),
        ("0x1", f"0x1: {SHAPE}"),
        ("1x0", f"1x0: {SHAPE}"),
        ("3x1", f"3x1: {SHAPE}"),
        ("7x2", f"7x2: {SHAPE}"),
        ("2x1+", "'2x1+': unknown variant ''; known: " + ", ".join(sorted(VARIANTS))),
        (
            "2x1+vanila-mask",
            "'2x1+vanila-mask': unknown variant 'vanila-mask'; did you mean vanilla-mask?",
        ),
        (
            "2x1+middle_to_side",
            "'2x1+middle_to_side': unknown variant 'middle_to_side'; did you mean middle-to-side?",
        ),
        ("2x1+xyz", "'2x1+xyz': unknown variant 'xyz'; known: " + ", ".join(sorted(VARIANTS))),
        (
            "1x1+vanilla-mask",
            "1x1+vanilla-mask: vanilla-mask changes nothing in a block of one token",
        ),
        (
            "2x1+vanilla-mask+autoregressive",
            "2x1+vanilla-mask+autoregressive: vanilla-mask changes nothing in a block of one token",
        ),
        (
            "4x1+vanilla-mask+independent-directions",
            "4x1+vanilla-mask+independent-directions: "
            "vanilla-mask changes nothing in independent directions of one token",
        ),
        (
            "1x2+vanilla-positions",
            "1x2+vanilla-positions: vanilla-positions changes nothing in one direction",
        ),
        (
            "1x2+independent-directions",
            "1x2+independent-directions: independent-directions needs two directions or more",
        ),
        (
            "1x1+middle-to-side",
            "1x1+middle-to-side: middle-to-side needs two directions or more",
        ),
        (
            "1x1+autoregressive",
            "1x1+autoregressive: autoregressive needs two directions or more",
        ),
        (
            "2x2+autoregressive",
            "2x2+autoregressive: autoregressive needs one token per direction",
        ),
    ],
)
def test_a_bad_spelling_is_refused_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as error:
        GenerationOrder.parse(text)
    assert str(error.value) == f"bad generation order {complaint}"


# -------------------------------------------------------------------------------------- properties

orders = st.sampled_from(EVERY_ORDER)
lengths = st.integers(0, 200)


@given(orders, lengths)
def test_permuting_is_a_bijection(order: GenerationOrder, length: int) -> None:
    assert sorted(order.permutation(length).tolist()) == list(range(length))


@given(orders, st.lists(st.text(max_size=2), max_size=200))
def test_inverse_undoes_permute(order: GenerationOrder, words: list[str]) -> None:
    permuted = order.permute(words)
    assert isinstance(permuted, list)
    assert permuted == [words[index] for index in order.permutation(len(words))]
    assert order.inverse(permuted) == words


@given(orders, lengths, st.sampled_from(["int32", "int64", "float64", "<U3"]))
def test_inverse_undoes_permute_for_arrays(order: GenerationOrder, length: int, kind: str) -> None:
    tokens = np.arange(length).astype(kind)
    permuted = order.permute(tokens)
    assert permuted.dtype == tokens.dtype
    assert np.array_equal(order.inverse(permuted), tokens)
    assert np.array_equal(order.permute(order.inverse(tokens)), tokens)
    # Changing the result must leave the argument alone, whatever the order.
    assert not np.shares_memory(permuted, tokens)
    assert not np.shares_memory(order.inverse(tokens), tokens)


@given(orders, lengths)
def test_strands_are_stretches_of_text_that_grow_one_way(
    order: GenerationOrder, length: int
) -> None:
    permutation = order.permutation(length)
    for direction in range(order.directions):
        strand = permutation[order.direction_ids(length) == direction]
        assert set(np.diff(strand)) <= {1 if order.moves_right(direction) else -1}


@given(orders, lengths, st.integers(0, 50))
def test_only_the_permutation_depends_on_the_length(
    order: GenerationOrder, length: int, more: int
) -> None:
    longer = length + more
    assert np.array_equal(order.positions(longer)[:length], order.positions(length))
    assert np.array_equal(order.direction_ids(longer)[:length], order.direction_ids(length))
    assert np.array_equal(order.mask(longer)[:length, :length], order.mask(length))


@given(orders, st.integers(0, 12))
def test_a_block_is_a_part_of_the_whole(order: GenerationOrder, number: int) -> None:
    z = order.block_size
    whole, block = order.whole((number + 2) * z), order.block(number)
    here = slice(number * z, (number + 1) * z)
    assert np.array_equal(block.positions, whole.positions[here])
    assert np.array_equal(block.directions, whole.directions[here])
    assert np.array_equal(block.mask, whole.mask[here, : here.stop])
    # A decoder that steps never has the later blocks, so the mask must not ask for them.
    assert not whole.mask[here, here.stop :].any()


@given(orders, lengths)
def test_a_whole_target_is_one_block(order: GenerationOrder, length: int) -> None:
    whole = order.whole(length)
    assert np.array_equal(whole.positions, order.positions(length))
    assert np.array_equal(whole.directions, order.direction_ids(length))
    assert np.array_equal(whole.mask, order.mask(length))


def test_what_is_shared_cannot_be_written_to() -> None:
    order = GenerationOrder.parse("2x1")
    block = order.block(3)
    assert order.block(3) is block
    for array in (block.positions, block.directions, block.mask, order.permutation(6)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@given(orders, st.integers(1, 60))
def test_strands_stand_in_the_text_from_left_to_right(order: GenerationOrder, length: int) -> None:
    directions = order.inverse(order.direction_ids(length)).tolist()
    left_to_right = [direction for direction, _ in groupby(directions)]
    assert left_to_right == [each for each in order.strands if each in left_to_right]
    assert sorted(order.strands) == list(range(order.directions))


@given(orders, st.integers(0, 60))
def test_strands_meet_at_seams(order: GenerationOrder, length: int) -> None:
    seams = order.seams(length)
    assert len(seams) == order.directions - 1
    directions = order.inverse(order.direction_ids(length)).tolist()
    for begin, end in pairwise([0, *seams, length]):
        assert len(set(directions[begin:end])) <= 1
    changes = [place for place in range(1, length) if directions[place - 1] != directions[place]]
    assert set(changes) <= set(seams)


@given(orders, st.lists(st.lists(st.integers(0, 50), max_size=20), max_size=4))
def test_targets_of_a_batch_are_laid_out_one_by_one(
    order: GenerationOrder, targets: list[list[int]]
) -> None:
    batch = order.target_slots(targets, end=END, pad=PAD)
    assert len(batch) == len(targets)
    for row, target in zip(batch, targets, strict=True):
        (alone,) = order.target_slots([target], end=END, pad=PAD)
        assert row[: len(alone)].tolist() == alone.tolist()
        assert set(row[len(alone) :].tolist()) <= {PAD}


@given(orders, lengths)
def test_mask_follows_equation_4_and_its_variants(order: GenerationOrder, length: int) -> None:
    mask = order.mask(length)
    span = 1 if order.vanilla_mask or order.autoregressive else order.block_size
    h = order.directions
    for i, j in product(*[range(0, length, 7)] * 2):
        across = order.independent_directions and i % h != j % h
        assert mask[i, j] == (i // span >= j // span and not across)
    assert mask.diagonal().all()  # a softmax over nothing would be undefined


@given(orders, st.lists(st.integers(0, 50), max_size=60))
def test_target_slots_hold_the_text_one_end_and_whole_blocks(
    order: GenerationOrder, tokens: list[int]
) -> None:
    (slots,) = order.target_slots([tokens], end=END, pad=PAD)
    length, z = len(tokens), order.block_size
    assert slots[:length].tolist() == order.permute(tokens)
    assert slots[length] == END
    assert set(slots[length + 1 :].tolist()) <= {PAD}
    assert len(slots) == order.padded_length(length + 1) == order.steps(length) * z
    assert 0 <= len(slots) - (length + 1) < z


@given(orders, st.integers(0, 3), st.integers(0, 150))
def test_shift_feeds_each_slot_the_token_a_block_before(
    order: GenerationOrder, rows: int, length: int
) -> None:
    slots = np.arange(rows * length, dtype=np.int32).reshape(rows, length)
    fed, z = order.shift(slots, START), order.block_size
    assert fed.shape == slots.shape
    assert fed.dtype == slots.dtype
    assert (fed[:, :z] == START).all()
    assert np.array_equal(fed[:, z:], slots[:, : max(0, length - z)])


@given(orders, st.integers(0, 1000))
def test_padded_length_is_the_next_whole_number_of_blocks(
    order: GenerationOrder, slots: int
) -> None:
    padded = order.padded_length(slots)
    assert padded % order.block_size == 0
    assert slots <= padded < slots + order.block_size


@given(st.sampled_from((1, 2, 4, 6, 8)), st.integers(1, 8), lengths)
def test_tokens_per_direction_change_the_mask_alone(h: int, c: int, length: int) -> None:
    one, several = GenerationOrder(h, 1), GenerationOrder(h, c)
    assert np.array_equal(one.permutation(length), several.permutation(length))
    assert np.array_equal(one.positions(length), several.positions(length))
    assert np.array_equal(one.direction_ids(length), several.direction_ids(length))


@pytest.mark.parametrize(
    ("name", "twin"), [("2x1", "1x2"), ("4x1", "2x2"), ("4x1", "1x4"), ("8x2", "2x8")]
)
def test_orders_of_one_block_size_share_a_mask(name: str, twin: str) -> None:
    order, other = GenerationOrder.parse(name), GenerationOrder.parse(twin)
    assert np.array_equal(order.mask(40), other.mask(40))


def test_a_direction_embedding_is_for_four_directions_and_more() -> None:
    users = {o.directions for o in EVERY_ORDER if o.uses_direction_embedding}
    others = {o.directions for o in EVERY_ORDER if not o.uses_direction_embedding}
    assert (others, users) == ({1, 2}, {4, 6, 8})
