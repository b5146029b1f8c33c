"""Beam search over any engine (Algorithm 1), its options, and forced scores."""
