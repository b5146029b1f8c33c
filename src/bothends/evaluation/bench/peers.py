"""Which other runtimes take part in a benchmark, and what it takes for them to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from bothends.errors import BothendsError, UsageError, nearest
from bothends.evaluation.bench.systems import Label, TimedSystem
from bothends.model.config import ModelConfig
from bothends.model.shortlist import Shortlist
from bothends.model.weights import Weights

PEERS = ("ctranslate2", "transformers")
#: Measured where it is installed, unless a user says otherwise.
DEFAULT_PEER = "ctranslate2"


@dataclass(frozen=True)
class Peers:
    """The peers of a run, and why one that might be missed is not among them."""

    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    #: the user named them, so that one which cannot take part is an error
    asked_for: bool = False


def choose_peers(names: Sequence[str] | None) -> Peers:
    """Those that were named, which must be installed; or the default one, if it is."""
    if names is None:
        if find_spec(DEFAULT_PEER):
            return Peers((DEFAULT_PEER,))
        return Peers((), (f"{DEFAULT_PEER} is not installed: nothing here is compared with it.",))
    for name in names:
        if name not in PEERS:
            raise UsageError(f"--peers: unknown peer {name!r}; {nearest(name, PEERS)}")
        if not find_spec(name):
            raise BothendsError(f"--peers {name}: it is not installed; install it or leave it out")
    return Peers(tuple(dict.fromkeys(names)), asked_for=True)


@dataclass(frozen=True)
class PeerSource:
    """The `1x1` model whose weights the peers are given."""

    family: str
    name: str
    config: ModelConfig
    weights: Weights
    #: for a peer that knows what a shortlist is, in a further row
    shortlist: Shortlist | None = None
    #: whether others of the family are compared with them
    baseline: bool = True

    def label(self, engine: str, precision: str) -> Label:
        return Label(self.family, self.name, "1x1", engine, precision, baseline=self.baseline)


def make_peers(
    peers: Peers, source: PeerSource, precisions: Sequence[str], scratch: Path
) -> Iterator[TimedSystem]:
    """The peers, in each precision that they have. What they load is written under `scratch`."""
    config, weights = source.config, source.weights
    if "ctranslate2" in peers.names:
        from bothends.evaluation.bench.peer_ctranslate2 import CTranslate2, convert, hold_to

        allowed = hold_to(os.environ.get("BOTHENDS_ISA"))
        for precision in precisions:
            directory = scratch / f"{source.name}-ctranslate2-{precision}"
            convert(config, weights, precision, directory, source.shortlist)
            label = replace(source.label("ctranslate2", precision), instruction_set=allowed)
            yield CTranslate2(label, config.special, directory)
            if source.shortlist is not None:
                label = replace(label, shortlist=True, baseline=False)
                yield CTranslate2(label, config.special, directory)
    if "transformers" in peers.names:
        from bothends.evaluation.bench.peer_transformers import Transformers

        yield Transformers(source.label("transformers", "float32"), config, weights)
