"""Sequence-level distillation: a teacher translates the training sources, a student learns from it.

A corpus is cut into shards of so many source lines. A shard is translated by one process on one
core and written whole or not at all, so what is in it depends on the teacher, the settings and its
lines alone: who did it, how many others there were, and what was interrupted leave no trace.
"""
