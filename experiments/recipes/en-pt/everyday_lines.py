"""English lines of programs, offices, shops and homes, which the texts of the recipe hardly have.

    python everyday_lines.py --lines 30000 > everyday.en
    python everyday_lines.py --sentences > sentences.en

Parliament, dictionaries and example sentences seldom say "Sign in", "invoice" or "dishwasher". The
teacher knows these words; students learn them from its translations of these lines. Words and
templates are in everyday_lines.yaml; everyday_sentences.txt has what people say in turns of their
own ("How do I unsubscribe?"): fewer lines, to be repeated more often. The same arguments give the
same lines.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable
from pathlib import Path

import yaml

WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
THINGS: dict[str, list[str]] = WORDS["things"]
NAMES = "John Anna Peter Laura David Sofia Paul Julia Mark Emma Daniel Clara".split()
MONTHS = (
    "January February March April May June July August September October November December".split()
)
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
#: Blanks that `draw_figures` fills.
FIGURE = re.compile(
    r"\{(?:time|date|money|year|small|number|many|amount|percent|code|phone|flight)2?\}"
)


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


def draw_things(draw: random.Random) -> dict[str, str]:
    """Two things of each kind: "office" and "office2" and so on."""
    chosen = {kind: draw.sample(things, 2) for kind, things in THINGS.items()}
    values = {kind: things[0] for kind, things in chosen.items()}
    return values | {f"{kind}2": things[1] for kind, things in chosen.items()}


def draw_figures(draw: random.Random) -> dict[str, str]:
    """Times, dates, sums and other figures, two of each kind."""

    def time() -> str:
        hour, half = draw.randint(1, 12), draw.choice(("am", "pm"))
        minutes = draw.choice(("", "", f":{draw.randint(0, 11) * 5:02}"))
        forms = (
            f"{hour}{minutes} {half}",
            f"{hour}{minutes}{half}",
            f"{hour}{minutes} {half[0]}.m.",
        )
        return draw.choice((*forms, f"{draw.randint(0, 23)}:{draw.randint(0, 59):02}"))

    def date() -> str:
        return f"{draw.choice(MONTHS)} {draw.randint(1, 28)}{draw.choice(('', '', 'th'))}"

    def money() -> str:
        sign, sum_ = draw.choice("$$$€£"), draw.randint(1, 10 ** draw.randint(1, 6))
        return f"{sign}{sum_:,}{draw.choice(('', f'.{draw.randint(1, 99):02}'))}"

    makers: dict[str, Callable[[], object]] = {
        "time": time,
        "date": date,
        "money": money,
        "year": lambda: draw.randint(1930, 2035),
        "small": lambda: draw.randint(2, 12),
        "number": lambda: draw.randint(10, 99),
        "many": lambda: f"{draw.randint(1_000, 900_000):,}",
        "amount": lambda: draw.choice(
            (draw.randint(2, 900), f"{draw.randint(1, 90)}.{draw.randint(1, 9)}")
        ),
        "percent": lambda: draw.choice(
            (draw.randint(2, 99), f"{draw.randint(1, 20)}.{draw.randint(1, 9)}")
        ),
        "code": lambda: draw.choice(
            (
                f"{draw.randint(2020, 2030)}-{draw.randint(1, 9999):04}",
                f"A{draw.randint(1000, 99999)}",
            )
        ),
        "phone": lambda: f"{draw.choice(('', '800-', '212-'))}555-{draw.randint(100, 9999):04}",
        "flight": lambda: f"{draw.choice(('TP', 'LA', 'BA', 'AF'))} {draw.randint(10, 9999)}",
    }
    return {f"{kind}{second}": str(make()) for kind, make in makers.items() for second in ("", "2")}


def fill(template: str, things: dict[str, str], draw: random.Random) -> str:
    words = {"name": draw.choice(NAMES), "day": draw.choice(DAYS), **things}
    if FIGURE.search(template):
        words |= draw_figures(draw)
    return with_articles(template.format(**words)).replace("..", ".")


def message_line(draw: random.Random) -> str:
    """A line of a message, with things of several kinds."""
    things = draw_things(draw)
    return fill(draw.choice(WORDS["messages"]), things, draw)


def everyday_lines(draw: random.Random, count: int) -> list[str]:
    """What programs say, every thing by itself, and `count` things in a sentence."""
    things = [thing for kind in THINGS.values() for thing in kind]
    lines = [*WORDS["interface"], *things, *(f"the {thing}" for thing in things)]
    lines += map(begin_with_capital, things)
    makers = [thing_line, thing_line, message_line]
    return lines + [draw.choice(makers)(draw) for _ in range(count)]


def sentence_lines(draw: random.Random, fillings: int = 10, figures: int = 40) -> list[str]:
    """Whole sentences; those with blanks several times, most often those with figures."""
    templates = Path(__file__).with_name("everyday_sentences.txt").read_text(encoding="utf-8")

    def times(template: str) -> int:
        if FIGURE.search(template):
            return figures
        return fillings if "{" in template else 1

    return [
        fill(template, draw_things(draw), draw)
        for template in templates.splitlines()
        for _ in range(times(template))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=30_000, help="lines from templates")
    parser.add_argument("--sentences", action="store_true", help="the sentences instead")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    lines = sentence_lines(draw) if options.sentences else everyday_lines(draw, options.lines)
    for line in dict.fromkeys(lines):
        print(line)


if __name__ == "__main__":
    main()
