"""Prepared corpora: token shards, and how text becomes them."""
