"""What a model makes of numbers and signs that must not change, and of the placeholders for them.

    python experiments/protected_spans.py [--model DIR] [--show KIND]

Each sentence below marks one span with ⟦ ⟧. It is translated as it is, and with a placeholder for
the span. For each kind it prints how many spans come back to the letter, how many with all of
their digits, and how many placeholders come back, so that the span does without exception; and in
how many sentences `find_protected` finds the span, i.e. what documents do today.
"""

# Signs look like others to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

import argparse
import re

from bothends.documents.placeholders import NUMBERED_LETTER
from bothends.documents.protected import find_protected
from bothends.translator import Translator

SENTENCES: dict[str, list[str]] = {
    "phone": [
        "Call me at ⟦+1 555 123 4567⟧ before noon.",
        "Our number is ⟦(555) 123-4567⟧.",
        "Please phone ⟦+44 20 7946 0958⟧ for help.",
        "Dial ⟦555-0134-7788⟧ and ask for Anna.",
        "You can reach the office at ⟦+49 30 901820⟧.",
        "Send a message to ⟦+5511987654321⟧.",
        "Her new mobile is ⟦612 345 678⟧.",
        "The fax number is ⟦0800.555.1234⟧.",
        "If it breaks, call ⟦1-800-555-0199⟧ at once.",
        "Text ⟦+33 6 12 34 56 78⟧ to take part.",
        "The hotline ⟦0711/123456⟧ is free.",
        "My old number was ⟦3333-4444⟧, but it no longer works.",
    ],
    "address of a host": [
        "The server has the address ⟦192.168.1.10⟧.",
        "Open ⟦10.0.0.1⟧ in your browser.",
        "Requests from ⟦203.0.113.77⟧ are blocked.",
        "The network ⟦172.16.0.0/12⟧ is private.",
        "It listens on ⟦127.0.0.1:8080⟧ by default.",
        "Ping ⟦8.8.8.8⟧ to test the connection.",
        "Use ⟦255.255.255.0⟧ as the mask.",
        "The gateway ⟦192.168.178.1⟧ does not answer.",
        "We moved the database to ⟦10.23.45.67⟧ last night.",
        "An address such as ⟦2001:db8::ff00:42:8329⟧ is longer.",
        "The loopback is ⟦fe80:0:0:0:202:b3ff:fe1e:8329⟧ here.",
        "Replace ⟦198.51.100.23⟧ by the name of your host.",
    ],
    "IBAN": [
        "Transfer the money to ⟦DE89 3704 0044 0532 0130 00⟧.",
        "My account is ⟦GB29NWBK60161331926819⟧.",
        "Please use ⟦FR14 2004 1010 0505 0001 3M02 606⟧ from now on.",
        "The rent goes to ⟦NL91 ABNA 0417 1643 00⟧ every month.",
        "We paid to ⟦ES9121000418450200051332⟧ last week.",
        "Is ⟦PT50 0002 0123 1234 5678 9015 4⟧ your account?",
        "Donations to ⟦CH93 0076 2011 6238 5295 7⟧ are welcome.",
        "The number ⟦AT61 1904 3002 3457 3201⟧ is wrong.",
        "Check ⟦BE68 5390 0754 7034⟧ before you pay.",
        "His bank gave him ⟦IT60X0542811101000000123456⟧.",
        "The club has ⟦PL61 1090 1014 0000 0712 1981 2874⟧.",
        "Write ⟦SE45 5000 0000 0583 9825 7466⟧ on the form.",
    ],
    "ISBN": [
        "The book has the ISBN ⟦978-3-16-148410-0⟧.",
        "Order ⟦978-0-306-40615-7⟧ in any shop.",
        "ISBN ⟦0-306-40615-2⟧ is out of print.",
        "Look for ⟦9783161484100⟧ in the catalogue.",
        "The second edition is ⟦978-85-359-0277-5⟧.",
        "She wrote ⟦978-1-86197-876-9⟧ on the list.",
        "The library does not have ⟦0-19-852663-6⟧.",
        "Scan ⟦978 0 13 110362 7⟧ at the desk.",
        "Do you know ⟦978-0-201-63361-0⟧?",
        "The number ⟦978-2-07-036822-8⟧ belongs to a novel.",
        "Its ISBN, ⟦0-8044-2957-X⟧, ends in a letter.",
        "We returned ⟦978-0-14-044913-6⟧ yesterday.",
    ],
    "digits": [
        "Your customer number is ⟦48213097⟧.",
        "The code ⟦739204⟧ expires in ten minutes.",
        "Enter ⟦90210⟧ as the postal code.",
        "Ticket ⟦1093847⟧ was closed yesterday.",
        "The parcel ⟦00340434161094042557⟧ is on its way.",
        "My student number was ⟦20193847⟧ at that time.",
        "Use the password ⟦58210436⟧ only once.",
        "Invoice ⟦774120⟧ has not been paid.",
        "The bus leaves from stop ⟦60417⟧.",
        "Patient ⟦3381946⟧ is waiting in the hall.",
        "Member ⟦5550123⟧ has won the prize.",
        "The serial number ⟦83920174655⟧ is on the back.",
    ],
    "count": [
        "About ⟦10000⟧ people live there.",
        "They sold ⟦25000⟧ books last year.",
        "The prize is ⟦50000⟧ dollars.",
        "More than ⟦300000⟧ users signed up.",
        "The lake is ⟦12000⟧ years old.",
        "We planted ⟦150000⟧ trees.",
        "The town has ⟦40000⟧ inhabitants.",
        "Over ⟦1000000⟧ copies were printed.",
        "He earns ⟦75000⟧ euros a year.",
        "Some ⟦20000⟧ fans came to the game.",
        "It cost them ⟦18000⟧ pounds.",
        "Nearly ⟦60000⟧ soldiers died.",
    ],
    "with #": [
        "Your order ⟦#4711⟧ has been sent.",
        "See issue ⟦#1024⟧ for the reason.",
        "Question ⟦#7⟧ is the hardest.",
        "We closed ⟦#38291⟧ last night.",
        "Room ⟦#12⟧ is free.",
        "The bug in ⟦#333⟧ is back.",
        "Bring ticket ⟦#90⟧ to the desk.",
        "Player ⟦#23⟧ scored twice.",
        "Is ⟦#5518⟧ the same as the other one?",
        "Reason ⟦#1⟧: it is too slow.",
        "Please read pull request ⟦#208⟧ before you vote.",
        "Order ⟦#2024001⟧ was cancelled.",
    ],
    "version": [
        "You need Python ⟦3.11.2⟧ or newer.",
        "We released ⟦v2.0.1⟧ on Monday.",
        "The bug was fixed in ⟦1.26.4⟧.",
        "Update to ⟦10.15.7⟧ before you go on.",
        "Version ⟦4.2.0-rc1⟧ is for testers.",
        "It runs with kernel ⟦5.15.0⟧ as well.",
        "Do not use ⟦0.9.8⟧, it is broken.",
        "Since ⟦22.04.3⟧ the name has changed.",
        "The library ⟦1.2.3.4⟧ is missing.",
        "Install version ⟦3.12⟧ from the site.",
        "They support ⟦2.7.18⟧ no longer.",
        "Section ⟦4.3.1⟧ explains the rest.",
    ],
    "date": [
        "We met on ⟦2024-05-01⟧ in Lisbon.",
        "The form is due by ⟦12/05/2024⟧.",
        "Sales ended on ⟦31/12/2023⟧.",
        "It was signed on ⟦01.02.2022⟧.",
        "The backup of ⟦2023-11-30⟧ is lost.",
        "She was born on ⟦1987-03-15⟧.",
        "The contract ends on ⟦2025/06/30⟧.",
        "He left on ⟦5/6/2021⟧ without a word.",
        "On ⟦2019-09-09⟧ the shop was closed.",
        "The photo is from ⟦07-08-2020⟧.",
        "Valid until ⟦30.06.2026⟧.",
        "The trip begins on ⟦2026-02-14⟧.",
    ],
    "amount": [
        "The city has ⟦1,234,567⟧ people.",
        "They sold ⟦12,500⟧ books last year.",
        "About ⟦3,000⟧ workers were there.",
        "The lake is ⟦10,000⟧ years old.",
        "We counted ⟦45,210⟧ birds.",
        "More than ⟦2,500,000⟧ users signed up.",
        "The value is ⟦0.75⟧ on average.",
        "It grew by a factor of ⟦1.5⟧.",
        "He walked ⟦8,300⟧ steps today.",
        "The index fell to ⟦98.6⟧ points.",
        "They planted ⟦150,000⟧ trees.",
        "The prize was ⟦5,000⟧ dollars.",
    ],
    "year": [
        "The house was built in ⟦1987⟧.",
        "In ⟦2024⟧ they moved to Porto.",
        "The war ended in ⟦1945⟧.",
        "Prices rose from ⟦2019⟧ on.",
        "The law of ⟦1888⟧ changed everything.",
        "He died in ⟦1616⟧.",
        "By ⟦2050⟧ it will be warmer.",
        "The summer of ⟦2003⟧ was hot.",
        "She has lived here since ⟦1999⟧.",
        "The season ⟦2019-2020⟧ was cut short.",
        "The city was founded in ⟦1554⟧.",
        "Nothing happened in ⟦2010⟧.",
    ],
    "sign": [
        "⟦©⟧ 2024 by the authors.",
        "All names are trademarks⟦™⟧ of their owners.",
        "The brand Acme⟦®⟧ is well known.",
        "Choose File ⟦→⟧ Save to keep it.",
        "Press ⟦←⟧ to go back.",
        "The relation A ⟦↔⟧ B holds.",
        "See ⟦§⟧ 5 of the law.",
        "The dagger ⟦†⟧ marks the dead.",
        "A second note has ⟦‡⟧ in front.",
        "Red ⟦•⟧ green and blue.",
        "The sum is ⟦≈⟧ 5 in the end.",
        "A value ⟦≤⟧ 3 is good.",
        "It is done ⟦✓⟧ and sent.",
        "The area is 3 ⟦×⟧ 4 in all.",
        "Turn it by ⟦±⟧ 5 steps.",
        "The symbol ⟦∞⟧ means without end.",
    ],
    "dash": [
        "The book ⟦—⟧ a novel of love.",
        "He came ⟦–⟧ at last.",
        "It rained ⟦—⟧ again.",
        "Monday ⟦–⟧ Friday it is open.",
        "She said yes ⟦—⟧ and left.",
        "Only one thing is missing ⟦–⟧ money.",
    ],
    "notation": [
        "We write it in ⟦C#⟧ today.",
        "She learned ⟦C++⟧ at school.",
        "The area grows with ⟦x^2⟧ here.",
        "If ⟦x < 5⟧ the loop ends.",
        "The test found ⟦p < 0.05⟧ again.",
        "It fails if ⟦n >= 10⟧ holds.",
        "They prefer ⟦F#⟧ for numbers.",
        "Compile it with ⟦g++⟧ first.",
        "It takes ⟦n^3⟧ steps.",
        "Here ⟦a = b⟧ is a mistake.",
        "Stop when ⟦i > 100⟧ is true.",
        "There are ⟦2^10⟧ ways.",
    ],
}
_MARKED = re.compile("(.*)⟦(.*)⟧(.*)")


def digits(text: str) -> str:
    return "".join(character for character in text if character.isdecimal())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--show", metavar="KIND", help="print the translations of this kind")
    arguments = parser.parse_args()
    name = NUMBERED_LETTER.make(0)
    print("kind\tsentences\tto the letter\tall digits\tplaceholder\tprotected today")
    with Translator.load(arguments.model) as translator:
        for kind, marked in SENTENCES.items():
            parts = [match.groups() for match in map(_MARKED.fullmatch, marked) if match]
            plain = [before + span + after for before, span, after in parts]
            texts = [each.text for each in translator.translate(plain)]
            masked = translator.translate([before + name + after for before, _, after in parts])
            letter = sum(span in text for (_, span, _), text in zip(parts, texts, strict=True))
            same = sum(
                digits(line) == digits(text) for line, text in zip(plain, texts, strict=True)
            )
            copied = sum(NUMBERED_LETTER.find(each.text, [0]) is not None for each in masked)
            found = sum(
                any(span in line[start:end] for start, end, _ in find_protected(line))
                for (_, span, _), line in zip(parts, plain, strict=True)
            )
            print(kind, len(parts), letter, same, copied, found, sep="\t")
            if kind == arguments.show:
                for line, text, each in zip(plain, texts, masked, strict=True):
                    print(f"  {line} | {text} | {each.text}")


if __name__ == "__main__":
    main()
