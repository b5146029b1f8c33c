"""The idea: in which order a decoder generates the tokens of a target.

A *generation order* of `h` directions and `c` tokens per direction generates blocks of `z = h * c`
tokens, one block per decoder step. Everything that an order changes in a standard Transformer is
here, and only here: the permutation of the target, the position and direction of each slot, the
self-attention mask, and the shift between target and decoder input. Pure NumPy. What a decoder step
has to know about its slots is handed out as one value, a `Block`.

Only the permutation depends on the target's length. Positions, directions and mask of a slot are
the same in every longer target, which is why a decoder can step without knowing where it will end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from bothends.errors import UsageError, nearest

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)
Token = TypeVar("Token")


@dataclass(frozen=True, eq=False)
class Block:
    """What a decoder knows about the slots it predicts together: all but the tokens it is fed.

    The `Z` slots of one step, or a whole target at once. `T` counts the slots so far, these
    included. Blocks are shared, so their arrays are read-only.
    """

    positions: IntArray  # (Z,)
    directions: IntArray  # (Z,)
    mask: BoolArray  # (Z, T), True where a slot may attend

    def __post_init__(self) -> None:
        for array in (self.positions, self.directions, self.mask):
            array.flags.writeable = False


@dataclass(frozen=True)
class GenerationOrder:
    """An order such as `2x1`, with the variants that the paper ablates.

    Equal orders print the same text, and `parse(str(order)) == order`. A variant that would change
    nothing (`1x1+vanilla-mask`) is refused, so that every order has one spelling.

    Attributes:
        directions: Strands that are written at once: 1, or an even number.
        tokens_per_direction: Tokens that each strand gets in a step.
        vanilla_mask: Slot-causal attention (`i >= j`) instead of block-causal.
        vanilla_positions: Positions `0 1 2 ...` whatever the directions.
        independent_directions: No attention across directions.
        middle_to_side: Each pair of strands starts in the middle of its segment and ends at its
            sides.
        autoregressive: The same permutation and positions, but one token per step.
    """

    directions: int = 1
    tokens_per_direction: int = 1
    vanilla_mask: bool = False
    vanilla_positions: bool = False
    independent_directions: bool = False
    middle_to_side: bool = False
    autoregressive: bool = False

    def __post_init__(self) -> None:
        h, c = self.directions, self.tokens_per_direction
        if h < 1 or c < 1 or (h > 1 and h % 2):
            raise UsageError(
                f"bad generation order {h}x{c}: directions must be 1 or even, "
                "and tokens per direction at least 1"
            )
        one_each = self.independent_directions and c == 1
        for variant, refused, reason in (
            ("vanilla-mask", self.block_size == 1, "changes nothing in a block of one token"),
            ("vanilla-mask", one_each, "changes nothing in independent directions of one token"),
            ("vanilla-positions", h == 1, "changes nothing in one direction"),
            ("independent-directions", h == 1, "needs two directions or more"),
            ("middle-to-side", h == 1, "needs two directions or more"),
            ("autoregressive", h == 1, "needs two directions or more"),
            ("autoregressive", c > 1, "needs one token per direction"),
        ):
            if refused and variant in self.variants:
                raise UsageError(f"bad generation order {self}: {variant} {reason}")

    @classmethod
    def parse(cls, text: str) -> GenerationOrder:
        """The order written as `DIRECTIONSxTOKENS[+VARIANT...]`: `2x1`, `2x2+vanilla-mask`."""
        shape, *variants = text.strip().lower().split("+")
        match = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", shape)
        if match is None:
            raise UsageError(
                f"bad generation order {text!r}: expected DIRECTIONSxTOKENS[+VARIANT...], "
                "such as 2x1 or 2x1+vanilla-mask"
            )
        for variant in variants:
            if variant not in VARIANTS:
                raise UsageError(
                    f"bad generation order {text!r}: unknown variant {variant!r}; "
                    + nearest(variant, VARIANTS)
                )
        switches = {variant.replace("-", "_"): True for variant in variants}
        return cls(int(match[1]), int(match[2]), **switches)

    def __str__(self) -> str:
        return "+".join([f"{self.directions}x{self.tokens_per_direction}", *self.variants])

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants switched on, as they are spelled in text."""
        return tuple(name for name in VARIANTS if getattr(self, name.replace("-", "_")))

    @property
    def block_size(self) -> int:
        """Slots produced by one decoder step: `z = h * c`, or 1 for an autoregressive variant."""
        return 1 if self.autoregressive else self.directions * self.tokens_per_direction

    @property
    def uses_direction_embedding(self) -> bool:
        """From four directions on the position no longer tells the direction: an embedding does."""
        return self.directions >= 4

    def steps(self, length: int) -> int:
        """Decoder steps for a target of `length` tokens and its end symbol."""
        return -(-(length + 1) // self.block_size)

    def padded_length(self, slots: int) -> int:
        """The smallest whole number of blocks that holds `slots`, in slots."""
        return -(-slots // self.block_size) * self.block_size

    @property
    def segments(self) -> int:
        """Stretches of text, each shared by two facing strands: `h / 2`, or all of it if `h` is 1.

        Segment `i` is the strand of direction `i` and then that of direction `i + h/2`.
        """
        return (self.directions + 1) // 2

    @property
    def strands(self) -> tuple[int, ...]:
        """The directions, as their strands stand in the text from left to right."""
        return tuple(
            direction
            for segment in range(self.segments)
            for direction in range(segment, self.directions, self.segments)
        )

    @property
    def one_at_a_time(self) -> GenerationOrder:
        """The order with the same permutation and positions that writes one token per step."""
        several = self.directions > 1
        return replace(self, tokens_per_direction=1, vanilla_mask=False, autoregressive=several)

    def seams(self, length: int) -> list[int]:
        """Where strands meet in a text of `length` tokens: the first tokens of all but one."""
        sizes = [-(-(length - direction) // self.directions) for direction in self.strands]
        return list(accumulate(sizes[:-1]))

    def moves_right(self, direction: int) -> bool:
        """Does the strand of `direction` grow towards the end of the text?"""
        return (direction < self.segments) != self.middle_to_side

    @overload
    def inverse(self, tokens: NDArray[Scalar]) -> NDArray[Scalar]: ...
    @overload
    def inverse(self, tokens: Sequence[Token]) -> list[Token]: ...
    def inverse(self, tokens: Any) -> Any:
        """Generation order to text order: each segment's strands, side by side.

        Needs no length: the strand of direction `d` is `tokens[d::h]`. Earlier segments take the
        extra tokens, and the left of two facing strands the middle one.
        """
        strands = [
            tokens[direction :: self.directions][:: 1 if self.moves_right(direction) else -1]
            for direction in self.strands
        ]
        if isinstance(tokens, np.ndarray):
            return np.concatenate(strands)
        return [token for strand in strands for token in strand]

    def permutation(self, length: int) -> IntArray:
        """The text index of each slot, both from 0, for a target of `length` tokens (Eq. 6, 9).

        Shared, so it is read-only.
        """
        return _permutation(self, length)

    @overload
    def permute(self, tokens: NDArray[Scalar]) -> NDArray[Scalar]: ...
    @overload
    def permute(self, tokens: Sequence[Token]) -> list[Token]: ...
    def permute(self, tokens: Any) -> Any:
        """Text order to generation order. A list gives a list, an array an array."""
        permutation = self.permutation(len(tokens))
        if isinstance(tokens, np.ndarray):
            return tokens[permutation]
        return [tokens[i] for i in permutation]

    def positions(self, length: int) -> IntArray:
        """The signed position of each slot, the argument of the sinusoid (Eq. 5, 7, 10)."""
        slots = np.arange(length)
        if self.directions == 1 or self.vanilla_positions:
            return slots
        if self.directions == 2:
            return np.where(slots % 2 == 0, 1, -1) * (slots // 2 + 1)
        return slots // self.directions

    def direction_ids(self, length: int) -> IntArray:
        """The direction of each slot, from 0."""
        return np.arange(length) % self.directions

    def mask(self, length: int) -> BoolArray:
        """`mask[i, j]`: may slot `i` attend to slot `j`? (Eq. 4)"""
        return self._may_attend(np.arange(length), length)

    def _may_attend(self, queries: IntArray, length: int) -> BoolArray:
        span = 1 if self.vanilla_mask else self.block_size
        i, j = queries[:, None], np.arange(length)[None, :]
        allowed: BoolArray = i // span >= j // span
        if self.independent_directions:
            allowed = allowed & (i % self.directions == j % self.directions)
        return allowed

    def block(self, number: int) -> Block:
        """The slots of decoder step `number`, from 0."""
        return _block(self, number)

    def whole(self, length: int) -> Block:
        """A target of `length` slots as one block, for training and scoring."""
        return Block(self.positions(length), self.direction_ids(length), self.mask(length))

    def target_slots(
        self, targets: Sequence[Sequence[int] | NDArray[np.integer]], end: int, pad: int
    ) -> IntArray:
        """Targets `(S, T)` as the decoder is to produce them, from tokens in text order.

        Permuted, closed by their one end symbol, and padded to whole blocks: every real token is
        then visible to the blocks after it, whatever else is in the batch.
        """
        longest = max(map(len, targets), default=0)
        slots = np.full((len(targets), self.padded_length(longest + 1)), pad, dtype=np.int64)
        for row, target in zip(slots, targets, strict=True):
            length = len(target)
            row[:length] = np.asarray(target, dtype=np.int64)[self.permutation(length)]
            row[length] = end
        return slots

    def shift(self, slots: NDArray[Scalar], start: int) -> NDArray[Scalar]:
        """Decoder input for target slots `(..., length)`: slot `t` is fed slot `t - z`."""
        shifted = np.full_like(slots, start)
        shifted[..., self.block_size :] = slots[..., : -self.block_size]
        return shifted


@lru_cache(maxsize=4096)
def _permutation(order: GenerationOrder, length: int) -> IntArray:
    permutation = np.argsort(order.inverse(np.arange(length)))
    permutation.flags.writeable = False
    return permutation


@lru_cache(maxsize=4096)
def _block(order: GenerationOrder, number: int) -> Block:
    first, end = number * order.block_size, (number + 1) * order.block_size
    return Block(
        order.positions(end)[first:],
        order.direction_ids(end)[first:],
        order._may_attend(np.arange(first, end), end),
    )


#: The variants in the order in which they are printed.
VARIANTS = tuple(
    field.name.replace("_", "-") for field in fields(GenerationOrder) if field.type == "bool"
)
