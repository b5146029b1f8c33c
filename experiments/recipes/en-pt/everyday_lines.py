"""English lines of programs, offices, shops and homes, which the texts of the recipe hardly have.

    python everyday_lines.py --lines 30000 > everyday.en

Parliament, dictionaries and example sentences seldom say "Sign in", "invoice" or "dishwasher". The
teacher knows these words; students learn them from its translations of these lines. Words and
templates are in everyday_lines.yaml. The same arguments give the same lines.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

import yaml

WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
THINGS: dict[str, list[str]] = WORDS["things"]
NAMES = "John Anna Peter Laura David Sofia Paul Julia Mark Emma Daniel Clara".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def begin_with_capital(text: str) -> str:
    return text[0].upper() + text[1:]


def with_articles(line: str) -> str:
    """An "a" before a vowel becomes "an"."""
    return re.sub(r"\b([Aa]) (?=[aeiouX])(?!u[ns][aeiou])", r"\1n ", line)


def thing_line(draw: random.Random) -> str:
    """One thing in a sentence of its kind."""
    kind = draw.choice(list(WORDS["templates"]))
    thing = draw.choice(THINGS[kind])
    template = draw.choice(WORDS["templates"][kind])
    return with_articles(template.format(thing=thing, Thing=begin_with_capital(thing)))


def message_line(draw: random.Random) -> str:
    """A line of a message, with things of several kinds."""
    chosen = {kind: draw.sample(things, 2) for kind, things in THINGS.items()}
    values = {kind: things[0] for kind, things in chosen.items()}
    values |= {f"{kind}2": things[1] for kind, things in chosen.items()}
    template = draw.choice(WORDS["messages"])
    return with_articles(template.format(name=draw.choice(NAMES), day=draw.choice(DAYS), **values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=30_000, help="lines from templates")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    things = [thing for kind in THINGS.values() for thing in kind]
    lines = [*WORDS["interface"], *things, *(f"the {thing}" for thing in things)]
    lines += map(begin_with_capital, things)
    makers = [thing_line, thing_line, message_line]
    lines += [draw.choice(makers)(draw) for _ in range(options.lines)]
    for line in dict.fromkeys(lines):
        print(line)


if __name__ == "__main__":
    main()
