"""How often a translator copies what must be copied: numbers, codes, names, addresses, capitals.

    python check_copies.py > checks.en
    bothends translate --model MODEL checks.en > checks.pt
    python check_copies.py --judge checks.pt

prints, for each kind of line, the share that is right and the first lines that are wrong. No
template is one that the training text is made from (`source_lines.py`).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from dataclasses import dataclass
from pathlib import Path

NUMBERS = (
    "She counted {a} birds and {b} fish.",
    "My grandmother lived to be {a} years old.",
    "He ran {a} metres in {b} seconds.",
    "The library has {a} books about history.",
    "Bus {a} stops here every {b} minutes.",
    "In {y} the village had {a} inhabitants.",
    "They built the bridge in {y}.",
    "I paid {a} dollars for this bicycle.",
    "Add {a} grams of sugar and {b} grams of flour.",
    "Only {a} of the {b} answers were right.",
)
NAMES = (
    "Yesterday I had lunch with {n}.",
    "{n} has forgotten the keys again.",
    "Have you ever met {n}?",
    "This is the house that {n} bought.",
)
ADDRESSES = (
    "Write to {e} if you have questions.",
    "You can find the report at {u} today.",
    "My new address is {e}.",
)
CAPITALS = (
    "THE STORE IS CLOSED TODAY.",
    "DO NOT OPEN THIS DOOR!",
    "WE NEED MORE TIME.",
    "MY BROTHER LIVES IN A SMALL TOWN.",
    "WHERE ARE THE CHILDREN?",
)
SYLLABLES = "ba cor di fan gal hen jo kel lum mor nis pat quin ros sul tar vin wal".split()


@dataclass(frozen=True)
class Check:
    """A line, and what its translation must have."""

    kind: str
    line: str
    copied: tuple[str, ...]

    def passes(self, translation: str) -> bool:
        if self.kind == "capitals":
            letters = [letter for letter in translation if letter.isalpha()]
            return bool(letters) and all(letter.isupper() for letter in letters)
        if self.kind == "numbers":
            # Portuguese writes 1,234 as 1.234 and may write it without a sign.
            return sorted(re.findall(r"\d+", translation)) == sorted(self.copied)
        return all(translation.count(each) == 1 for each in self.copied)


def checks(seed: int = 7) -> list[Check]:
    """500 lines with numbers and 165 of other kinds, always the same."""
    draw = random.Random(seed)

    def made(syllables: int) -> str:
        return "".join(draw.sample(SYLLABLES, syllables))

    found = []
    for _ in range(500):
        fields = {
            "a": draw.randint(2, 9999),
            "b": draw.randint(2, 99),
            "y": draw.randint(1500, 2030),
        }
        template = draw.choice(NUMBERS)
        copied = [str(fields[key]) for key in re.findall(r"{(\w)}", template)]
        found.append(Check("numbers", template.format(**fields), tuple(copied)))
    for _ in range(100):
        name = made(2).capitalize()
        found.append(Check("names", draw.choice(NAMES).format(n=name), (name,)))
    for _ in range(60):
        template = draw.choice(ADDRESSES)
        address = (
            f"{made(2)}.{made(1)}@{made(2)}.com" if "{e}" in template else f"www.{made(3)}.org"
        )
        found.append(Check("addresses", template.format(e=address, u=address), (address,)))
    found += [Check("capitals", line, ()) for line in CAPITALS]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", type=Path, metavar="FILE", help="translations of the lines")
    options = parser.parse_args()
    if options.judge is None:
        print("\n".join(check.line for check in checks()))
        return
    translations = options.judge.read_text(encoding="utf-8").splitlines()
    if len(translations) != len(checks()):
        sys.exit(f"{options.judge}: {len(translations)} lines, expected {len(checks())}")
    judged = list(zip(checks(), translations, strict=True))
    for kind in dict.fromkeys(check.kind for check in checks()):
        of_kind = [(check, text) for check, text in judged if check.kind == kind]
        wrong = [(check, text) for check, text in of_kind if not check.passes(text)]
        right = len(of_kind) - len(wrong)
        print(f"{kind}: {right} of {len(of_kind)} right, {100 * right / len(of_kind):.1f} %")
        for check, text in wrong[:3]:
            print(f"    {check.line}  ->  {text}")


if __name__ == "__main__":
    main()
