"""Quality against a reference: BLEU, chrF, ROUGE, OTEM, and how sure a difference is."""
