"""Which way to honour a glossary is better: placeholders, or a search that must use the words?

    python experiments/glossary.py --source lines.en --glossary terms.tsv [--model DIR]

Both translate the lines that hold a term. For each it prints how many places use the term, the
seconds a line takes, and the mean log probability of a token where both used it:
the higher, the more natural the model finds the line.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bothends.documents import DocumentOptions, DocumentResult, Glossary, translate_document
from bothends.errors import BothendsError
from bothends.translator import Translator

Way = Callable[[str], DocumentResult]


def with_placeholders(translator: Translator, glossary: Glossary) -> Way:
    language = translator.description.source_language
    options = DocumentOptions(language=language, glossary=glossary)

    def translate(sentences: Sequence[str]) -> list[str]:
        return [each.text for each in translator.translate(sentences, split_sentences=False)]

    return lambda line: translate_document(line, "lines", translate, options)


def with_constraints(translator: Translator, glossary: Glossary) -> Way:
    def translate(sentences: Sequence[str]) -> list[str]:
        return [each.text for each in translator.translate(sentences, split_sentences=False)]

    def translate_with(sentences: Sequence[str], words: Sequence[Sequence[str]]) -> list[str]:
        return [
            fill(translator, line, include) for line, include in zip(sentences, words, strict=True)
        ]

    language = translator.description.source_language
    options = DocumentOptions(language=language, glossary=glossary, translate_with=translate_with)
    return lambda line: translate_document(line, "lines", translate, options)


def fill(translator: Translator, line: str, include: Sequence[str]) -> str:
    """The best text that holds the words, if its own has not got them already."""
    plain = translator.translate(line, split_sentences=False)
    if all(word in plain.text for word in include):
        return plain.text
    try:
        length = len(plain.tokens) + 4 * len(include)
        (best,) = translator.fill(line, include=include, max_length=length)
    except BothendsError:
        return plain.text
    return best.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--glossary", type=Path, required=True)
    parser.add_argument("--model")
    arguments = parser.parse_args()
    glossary = Glossary.load(arguments.glossary)
    lines = [line for line in arguments.source.read_text().splitlines() if glossary.find(line)]
    with Translator.load(arguments.model) as translator:
        ways = {
            "placeholders": with_placeholders(translator, glossary),
            "constrained": with_constraints(translator, glossary),
        }
        found: dict[str, list[DocumentResult]] = {}
        for name, way in ways.items():
            way(lines[0])
            begin = time.perf_counter()
            found[name] = [way(line) for line in lines]
            seconds = (time.perf_counter() - begin) / len(lines)
            hits = sum(each.report.glossary_hits for each in found[name])
            places = hits + sum(each.report.glossary_misses for each in found[name])
            print(f"{name}: {hits} of {places} places, {1000 * seconds:.0f} ms a line")
        both = [
            number
            for number in range(len(lines))
            if not any(each[number].report.glossary_misses for each in found.values())
        ]
        for name, results in found.items():
            texts = [results[number].text for number in both]
            scores = translator.score([lines[number] for number in both], texts)
            mean = sum(each.logprob / (each.length + 1) for each in scores) / max(1, len(scores))
            print(
                f"{name}: mean logprob of a token {mean:.3f} in {len(both)} lines that both honour"
            )
        for number in range(0, len(lines), max(1, len(lines) // 6)):
            print(lines[number], *(each[number].text for each in found.values()), sep=" | ")


if __name__ == "__main__":
    main()
