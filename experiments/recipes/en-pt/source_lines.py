"""English lines that running text hardly has: dates, money, times, codes, greetings, single words.

    python source_lines.py --words TEXT... --lines 20000 > templates.en

The teacher translates them like any other text. `--words` are English texts whose commonest words
become lines of their own. The same arguments give the same lines.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from pathlib import Path

MONTHS = (
    "January February March April May June July August September October November December".split()
)
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NAMES = (
    "John Anna Peter Laura David Sofia Paul Julia Mark Emma Daniel Clara Miller Silva Brown Costa"
).split()
PLACES = "London Lisbon Paris Berlin Boston Madrid Rome Vienna Porto Recife Tokyo Chicago".split()
THINGS = "chairs tickets books boxes rooms pages files users orders houses messages people".split()
GREETINGS = (
    "Hello! Hi! Good morning! Good afternoon. Good evening. Good night! Goodbye! See you soon! "
    "See you tomorrow. Thank you! Thanks a lot. Thank you very much for your help. You're welcome. "
    "Welcome! Congratulations! Happy birthday! Merry Christmas! Happy New Year! Please. Sorry! "
    "Excuse me. How are you? I'm fine, thanks. Nice to meet you. Have a nice day! Good luck! "
    "Best regards, Kind regards, Yours sincerely, Dear Sir or Madam, To whom it may concern: "
    "Yes. No. Maybe. Of course. OK. I don't know. What? Why? When? Where? Who? How much is it?"
)

TEMPLATES = (
    "The meeting is on {weekday}, {month} {day}, {year}.",
    "It opens at {hour}:{minute}.",
    "The train to {place} leaves at {hour}:{minute} from platform {small}.",
    "{name} was born on {month} {day}, {year}.",
    "Your order no. {code} was shipped on {day}/{number_of_month}/{year}.",
    "Invoice {code}: total ${thousands}.{cents}",
    "The price is {thousands} euros.",
    "We sold {number} {things} in {year}.",
    "There are {number} {things} in the room.",
    "{number} of {thousands} {things} were checked.",
    "Dear {name},",
    "Hi {name}, thank you for your message of {month} {day}.",
    "Please call {name} at {phone}.",
    "Version {small}.{number} was released in {month} {year}.",
    "The temperature is {small} degrees in {place}.",
    "It is {number} km from {place} to {other_place}.",
    "About {small}% of the {things} come from {place}.",
    "Chapter {small}",
    "Page {number} of {thousands}",
    "Deadline: {weekday}, {hour}:{minute}",
    "From: {name}",
    "Subject: your {things} for {month} {year}",
    "{name}, {other_name} and I need {number} {things}.",
    "Can you send me the {number} {things} by {weekday}?",
    "In {year}, {name} moved from {place} to {other_place}.",
    "Flight {flight} to {place} is {number} minutes late.",
    "The code is {code}.",
    "{small} + {number} is more than {small}.",
    "Room {number}, floor {small}",
    "The company had {thousands} employees in {year} and {other_thousands} in {other_year}.",
)


def template_line(draw: random.Random) -> str:
    """One template with everything filled in."""
    names, places = draw.sample(NAMES, 2), draw.sample(PLACES, 2)
    thousands = [f"{draw.randint(1, 999)},{draw.randint(0, 999):03d}" for _ in range(2)]
    years = [str(draw.randint(1850, 2035)) for _ in range(2)]
    return draw.choice(TEMPLATES).format(
        weekday=draw.choice(WEEKDAYS),
        month=draw.choice(MONTHS),
        number_of_month=draw.randint(1, 12),
        day=draw.randint(1, 28),
        year=years[0],
        other_year=years[1],
        hour=draw.randint(0, 23),
        minute=f"{draw.randint(0, 59):02d}",
        small=draw.randint(2, 99),
        number=draw.randint(2, 9999),
        thousands=thousands[0],
        other_thousands=thousands[1],
        cents=f"{draw.randint(0, 99):02d}",
        code=draw.choice("ABCDEFGHKLMNPRSTX") + str(draw.randint(1000, 99999)),
        flight=draw.choice(("BA", "LH", "TP", "AF", "UA")) + str(draw.randint(100, 9999)),
        phone=f"+{draw.randint(1, 99)} {draw.randint(100, 999)} {draw.randint(100000, 999999)}",
        name=names[0],
        other_name=names[1],
        place=places[0],
        other_place=places[1],
        things=draw.choice(THINGS),
    )


def common_words(paths: list[Path], most: int) -> list[str]:
    """The commonest words of some texts, each as it is most often written."""
    counts: Counter[str] = Counter()
    for path in paths:
        counts.update(re.findall(r"[A-Za-z][a-z'-]+", path.read_text(encoding="utf-8")))
    return [word for word, _ in counts.most_common(most)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=Path, nargs="*", default=[])
    parser.add_argument("--lines", type=int, default=20000, help="lines from templates")
    parser.add_argument("--common-words", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    lines = re.findall(r"[^.!?,:]+[.!?,:]", GREETINGS)
    lines += common_words(options.words, options.common_words)
    lines += [template_line(draw) for _ in range(options.lines)]
    for line in dict.fromkeys(map(str.strip, lines)):
        print(line)


if __name__ == "__main__":
    main()
