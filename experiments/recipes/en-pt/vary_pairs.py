"""More pairs from a teacher's pairs, by changes that are the same on both sides.

    python vary_pairs.py --source a.en --target a.pt --lines 100000 --output varied

writes varied.en and varied.pt. The teacher itself spoils lines in capitals, addresses and smileys,
so that students learn these from changed pairs: a line in capitals has its translation in capitals;
a number, a name or an address that stands once on each side is exchanged on both. The same
arguments give the same lines.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable
from pathlib import Path

Pair = tuple[str, str]
Change = Callable[[str, str, random.Random], Pair | None]

SYLLABLES = "ka lo mi ra ten dor vel sa nu pe gri bor lin ma to fe ri zan de lu".split()
BEFORE = r"\b(?:to|from|with|contact|ask|call|see|for) "
SMILEYS = "😀 🙂 👍 ❤ 🎉 😂 🚀 ✅ 🙏 :-) ;-)".split()
MARKS = ("- ", "* ", "• ", "1. ", "2) ", "a) ", "# ", "> ")


def capitals(source: str, target: str, draw: random.Random) -> Pair | None:
    """Both sides in capitals."""
    return source.upper(), target.upper()


def numbers(source: str, target: str, draw: random.Random) -> Pair | None:
    """Other digits in the same places; 0 and 1 stay, because plurals depend on them."""
    found = re.findall(r"\d+", source)
    if not found or sorted(found) != sorted(re.findall(r"\d+", target)):
        return None
    others: dict[str, str] = {}
    for number in found:
        digits = "".join(draw.choice("0123456789") for _ in number[1:])
        others[number] = number if int(number) < 2 else draw.choice("23456789") + digits
    return _exchange(source, others), _exchange(target, others)


def _exchange(text: str, others: dict[str, str]) -> str:
    return re.sub(r"\d+", lambda number: others[number[0]], text)


def name(source: str, target: str, draw: random.Random) -> Pair | None:
    """Another name for one that both sides write alike."""
    made = "".join(draw.sample(SYLLABLES, draw.randint(2, 3))).capitalize()
    return _replace(source, target, r"\b(?:Tom|Bob|Ken|Jim)\b", made)


def address(source: str, target: str, draw: random.Random) -> Pair | None:
    """An e-mail address or a link in the place of a name."""
    user, host = ("".join(draw.sample(SYLLABLES, 2)) for _ in range(2))
    ending = draw.choice(("com", "org", "net", "pt", "com.br"))
    made = draw.choice(
        (
            f"{user}@{host}.{ending}",
            f"{user}.{host}{draw.randint(1, 99)}@{host}.{ending}",
            f"https://{host}.{ending}/{user}",
            f"www.{host}.{ending}",
        )
    )
    return _replace(source, target, BEFORE + r"(Tom|Boston|Mary|Australia)\b", made)


def _replace(source: str, target: str, pattern: str, made: str) -> Pair | None:
    found = re.findall(pattern, source)
    if len(found) != 1 or source.count(found[0]) != 1 or target.count(found[0]) != 1:
        return None
    return source.replace(found[0], made), target.replace(found[0], made)


def smiley(source: str, target: str, draw: random.Random) -> Pair | None:
    """A smiley at the end."""
    chosen = draw.choice(SMILEYS)
    return f"{source} {chosen}", f"{target} {chosen}"


def list_mark(source: str, target: str, draw: random.Random) -> Pair | None:
    """An item of a list."""
    chosen = draw.choice(MARKS)
    return chosen + source, chosen + target


def no_full_stop(source: str, target: str, draw: random.Random) -> Pair | None:
    """As people write in chats and headings."""
    if not (source.endswith(".") and target.endswith(".")):
        return None
    return source[:-1], target[:-1]


#: How often each change is tried, relative to the others.
CHANGES: dict[Change, int] = {
    capitals: 4,
    numbers: 6,
    name: 3,
    address: 4,
    smiley: 1,
    list_mark: 1,
    no_full_stop: 2,
}


def vary(pairs: list[Pair], lines: int, draw: random.Random) -> list[Pair]:
    """`lines` changed pairs; a change that does not fit a pair is tried on another."""
    found: dict[Pair, None] = {}
    changes, weights = list(CHANGES), list(CHANGES.values())
    for _ in range(200 * lines):
        if len(found) == lines:
            break
        (change,) = draw.choices(changes, weights)
        changed = change(*draw.choice(pairs), draw)
        # So many tries, because most lines have no number or name: a rare change stays rare.
        if changed is not None:
            found[changed] = None
    return list(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, nargs="+", required=True)
    parser.add_argument("--target", type=Path, nargs="+", required=True)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--output", type=Path, required=True, help="writes OUTPUT.en, OUTPUT.pt")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pairs: list[Pair] = []
    for source, target in zip(options.source, options.target, strict=True):
        sources, targets = (
            path.read_text(encoding="utf-8").split("\n") for path in (source, target)
        )
        pairs += [pair for pair in zip(sources, targets, strict=False) if all(pair)]
    varied = vary(pairs, options.lines, random.Random(options.seed))
    for side, suffix in enumerate(("en", "pt")):
        text = "".join(f"{pair[side]}\n" for pair in varied)
        Path(f"{options.output}.{suffix}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
