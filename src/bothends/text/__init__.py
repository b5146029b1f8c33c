"""Text on its way in and out: lines, vocabularies, pairs, repeats, splicing."""
