"""Work in pieces: stages that know what they were made from, and a pool of workers.

`stages` decides what is up to date, by digests; chains and experiments build on it. `pool` hands
tasks to workers, in this process or in others; distillation builds on that.
"""

#: Lines of a shard, unless told otherwise: half a minute of one core, more or less.
SHARD_LINES = 2000
