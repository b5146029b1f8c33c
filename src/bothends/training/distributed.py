"""Several processes that train one model, started by `torchrun`.

Every process holds the whole model and computes the gradients of its share of an update's
micro-batches. One sum over all processes at the end of the update then gives each the gradient of
the whole: with accumulation there is one exchange per update in any scheme, and unlike PyTorch's
`DistributedDataParallel` this one lets a process have no micro-batch at all, so that the update is
the same whatever the number of processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from bothends.errors import BothendsError

#: Words in what PyTorch says when another process does not answer any more.
_LOST = ("gloo", "nccl", "connection closed", "connection reset", "broken pipe", "timed out")


@contextmanager
def telling_of_the_lost() -> Iterator[None]:
    """Say in one line that another process was lost; torchrun starts all of them again."""
    try:
        yield
    except RuntimeError as error:  # of which not all have a class of their own
        text = str(error).strip()
        if not isinstance(error, dist.DistError) and not any(w in text.lower() for w in _LOST):
            raise
        # Without the file of PyTorch that it begins with, and the advice after the first sentence.
        reason = re.sub(r"^\[[^\]]*\]\s*", "", text).split("\n")[0].split(". ")[0]
        raise BothendsError(
            f"another process of this training was lost ({reason or type(error).__name__}); what "
            "was trained since the last checkpoint is done again, by torchrun --max-restarts or by "
            "the same command"
        ) from None


@dataclass(frozen=True)
class Processes:
    """This process among those of the run. A single one exchanges nothing."""

    rank: int
    size: int
    device: torch.device

    @classmethod
    def join(cls, device: str) -> Processes:
        """Find the others by the environment that `torchrun` sets; alone without it."""
        local = int(os.environ.get("LOCAL_RANK", "0"))
        size = int(os.environ.get("WORLD_SIZE", "1"))
        gpu = torch.cuda.is_available()
        if device == "cuda" and not gpu:
            raise BothendsError("device: cuda was asked for, but PyTorch sees no GPU")
        use_gpu = gpu and device != "cpu"
        place = torch.device("cuda", local) if use_gpu else torch.device("cpu")
        if use_gpu:
            torch.cuda.set_device(place)
        if size > 1 and not dist.is_initialized():
            with telling_of_the_lost():
                dist.init_process_group("nccl" if use_gpu else "gloo")
        return cls(int(os.environ.get("RANK", "0")), size, place)

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def share(self, items: Sequence[int]) -> Sequence[int]:
        """The part of some work that is this process's."""
        return items[self.rank :: self.size]

    def share_by_lane(self, lanes: Sequence[int]) -> list[int]:
        """Which items are this process's if each is of a lane, and a lane is of one process."""
        return [number for number, lane in enumerate(lanes) if lane % self.size == self.rank]

    def sum(self, *values: float) -> list[float]:
        """The sums of some numbers over all processes."""
        if self.size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return [float(value) for value in total.tolist()]

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace every gradient by its sum over all processes, in one exchange."""
        if self.size == 1:
            return
        parameters = list(parameters)
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, summed in zip(gradients, torch.split(flat, sizes), strict=True):
            gradient.copy_(summed.view_as(gradient))

    def gather(self, sequences: Sequence[Sequence[int]]) -> list[list[list[int]]]:
        """The lists of token sequences of all processes, in the order of their ranks.

        As padded tensors, because the exchange of Python objects would unpickle them.
        """
        if self.size == 1:
            return [[list(sequence) for sequence in sequences]]
        longest = max((len(sequence) for sequence in sequences), default=0)
        own = torch.tensor([len(sequences), longest], device=self.device)
        shapes = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(shapes, own)
        rows, width = (int(n) for n in torch.stack(shapes).amax(0))
        # A row is its length and then its tokens.
        table = torch.zeros(rows, width + 1, dtype=torch.int64)
        for row, sequence in enumerate(sequences):
            table[row, 0] = len(sequence)
            table[row, 1 : len(sequence) + 1] = torch.tensor(sequence, dtype=torch.int64)
        tables = [torch.empty_like(table, device=self.device) for _ in range(self.size)]
        dist.all_gather(tables, table.to(self.device))
        return [
            [line[1 : line[0] + 1] for line in each[: int(shape[0])].tolist()]
            for each, shape in zip(tables, shapes, strict=True)
        ]

    def wait(self) -> None:
        """Until all are here."""
        if self.size > 1:
            dist.barrier()

    def leave(self) -> None:
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()
