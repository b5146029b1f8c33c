"""The training loop: read a recipe's corpus update by update until the run is over."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from bothends.errors import BothendsError
from bothends.model.torch.checkpoint import load_model
from bothends.training.batches import Update, collate
from bothends.training.curves import draw_curves
from bothends.training.distributed import Processes, telling_of_the_lost
from bothends.training.interruption import Interruption
from bothends.training.optimiser import WeightOptimiser
from bothends.training.precision import trains_in_bfloat16
from bothends.training.recipe import Recipe
from bothends.training.report import Log, Screen, time_left
from bothends.training.run import OPTIMISER, Progress, RunDirectory
from bothends.training.schedule import learning_rate
from bothends.training.setup import Setup, seed_of
from bothends.training.step import Tensors, summed_loss
from bothends.training.validation import Validator

#: Seconds to wait for the run directory's lock: a file server frees that of a lost host in time.
_PATIENCE = 120.0


@dataclass(frozen=True)
class RunEnd:
    """How a run ended."""

    update: int
    checkpoint: Path
    #: the signal that interrupted it, or 0
    signal: int
    best_update: int
    best_value: float | None


def train(recipe: Recipe) -> RunEnd:
    """Train, or go on training, the model of a recipe in its run directory."""
    if recipe.threads is not None:
        torch.set_num_threads(recipe.threads)
    torch.set_flush_denormal(True)  # tiny probabilities and moments are slow, and mean nothing
    processes = Processes.join(recipe.device)
    try:
        with ExitStack() as stack:
            stack.callback(processes.leave)
            stack.callback(torch.set_flush_denormal, False)  # others in this process count on them
            if processes.size > 1:
                stack.enter_context(telling_of_the_lost())
            return _Training(recipe, processes, stack).run()
    except RuntimeError as error:
        # PyTorch's own, of which only that of a GPU has a class.
        if any(words in str(error) for words in ("can't allocate memory", "out of memory")):
            raise MemoryError(
                "lower batch.micro_tokens, or make the model smaller (model.width, "
                "model.feed_forward, layers)"
            ) from None
        raise


class _Training:
    def __init__(self, recipe: Recipe, processes: Processes, stack: ExitStack) -> None:
        assert recipe.run is not None  # `load_recipe` names a directory where the user does not
        self.recipe, self.processes = recipe, processes
        self.bfloat16 = trains_in_bfloat16(recipe.precision, processes.device)
        self.screen = Screen(silent=not processes.first)
        self.setup = Setup.of(recipe)
        self.validator = Validator(self.setup.validation_corpus, recipe, processes)
        self.directory = RunDirectory(recipe.run)
        lanes = recipe.batch.lanes
        if lanes > 1 and lanes < processes.size:
            raise BothendsError(
                f"batch.lanes={lanes} is fewer than the {processes.size} processes; make it a "
                "multiple of them"
            )
        if processes.first:
            # After a host was lost, whoever wrote before may need a moment to notice.
            patience = _PATIENCE if processes.size > 1 else 0.0
            stack.enter_context(self.directory.locked(patience))
            self.directory.open(recipe)
        processes.wait()
        self._check_shared()
        self.model = self.setup.new_model(recipe.seed)
        if recipe.init is not None and not self.directory.complete():
            self.screen.say(self.setup.begin_with(recipe.init, self.model))
        self.model = self.model.to(processes.device)
        self.setup.freeze(recipe.freeze, self.model)
        self.optimiser = WeightOptimiser(self.model, recipe.optimiser)
        self.trained = list(self.optimiser.trained.values())
        self.progress = self._resume()
        self.log: Log | None = None
        if processes.first:
            self.log = Log(self.directory.log, self.progress.log_bytes, recipe.tensorboard)

    def run(self) -> RunEnd:
        """The loop."""
        recipe, progress = self.recipe, self.progress
        self._announce()
        self.model.train()
        signalled = 0
        finished = self._is_over()
        if self._must_judge():  # a signal came before it could be done
            finished = self._validate_and_save(signalled)
        seconds_since_log = tokens_since_log = 0.0
        with Interruption() as interruption:
            for update in self.setup.stream.updates(progress.position):
                if finished or signalled:
                    break
                started = time.perf_counter()
                progress.update += 1
                rate = self._learning_rate()
                loss = self._accumulate(update)
                norm = self._clip()
                self.optimiser.step(rate)

                elapsed = time.perf_counter() - started
                # The processes agree on the loss, on a signal to any of them, and on the time.
                loss, signalled_sum, elapsed = self.processes.sum(
                    loss, interruption.signal, elapsed if self.processes.first else 0.0
                )
                signalled = int(signalled_sum) and (interruption.signal or signal.SIGTERM)
                if not math.isfinite(loss) or not math.isfinite(norm):
                    raise BothendsError(
                        f"the loss or its gradient is not finite at update {progress.update}; try "
                        "a lower optimiser.learning_rate, a longer optimiser.warmup, or "
                        f"optimiser.clip_norm; {self.directory.path} keeps the last checkpoint"
                    )
                progress.position = update.next
                progress.target_tokens += update.target_tokens
                progress.seconds += elapsed
                progress.loss_sum += loss
                progress.loss_tokens += update.target_tokens
                seconds_since_log += elapsed
                tokens_since_log += update.target_tokens

                finished = self._is_over()
                due = progress.update % recipe.log_every == 0 or finished
                self._log_training(update, rate, norm, tokens_since_log / seconds_since_log, due)
                if due:
                    seconds_since_log = tokens_since_log = 0.0
                finished = self._validate_and_save(signalled)
        return self._end(signalled)

    def _accumulate(self, update: Update) -> float:
        """Add up the gradients of an update's micro-batches; its summed loss in this process."""
        total = 0.0
        model, device = self.model, self.processes.device
        special, frame = model.config.special, model.config.frame
        for number in self._own(update):
            pairs = self.setup.stream.pairs
            arrays = collate(
                [pairs[int(i)] for i in update.micro_batches[number].pairs],
                model.order,
                special,
                frame,
            )
            # Dropout follows from the place in the run: nothing to save, the same in any process.
            torch.manual_seed(seed_of(self.recipe.seed, self.progress.update, number))
            with torch.autocast(device.type, torch.bfloat16, enabled=self.bfloat16):
                batch = Tensors.of(arrays, special, device)
                loss = summed_loss(model, batch, self.recipe.loss.label_smoothing)
            (loss / update.target_tokens).backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        self.processes.sum_gradients(self.trained)
        return total

    def _own(self, update: Update) -> Sequence[int]:
        """Which micro-batches of an update this process computes."""
        if self.recipe.batch.lanes == 1:
            return self.processes.share(range(len(update.micro_batches)))
        return self.processes.share_by_lane([batch.lane for batch in update.micro_batches])

    def _learning_rate(self) -> float:
        return learning_rate(
            self.progress.update,
            self.recipe.optimiser,
            self.model.config.width,
            self.recipe.training.updates,
        )

    def _clip(self) -> float:
        """Clip the gradient if the recipe says so; its norm before that."""
        gradients = [p.grad for p in self.trained if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        limit = self.recipe.optimiser.clip_norm
        if limit:
            torch.nn.utils.clip_grads_with_norm_(self.trained, limit, norm)
        return float(norm)

    def _is_over(self) -> bool:
        length, progress = self.recipe.training, self.progress
        patience = self.recipe.validation.patience
        return (
            (length.updates is not None and progress.update >= length.updates)
            or (length.epochs is not None and progress.position.epoch >= length.epochs)
            or (length.minutes is not None and progress.seconds >= 60 * length.minutes)
            or (0 < patience <= progress.validations_since_best)
        )

    def _must_judge(self) -> bool:
        progress = self.progress
        due = _is_due(progress.update, self.recipe.validation.every) or self._is_over()
        return due and progress.validated_update < progress.update

    def _validate_and_save(self, signalled: int) -> bool:
        """Do what is due after an update; whether the run is over."""
        best = False
        if self._must_judge() and not signalled:
            best = self._validate()
        finished = self._is_over()  # patience may have run out
        scheduled = finished or _is_due(self.progress.update, self.recipe.checkpoints.every)
        if scheduled or best or signalled:
            self._save(scheduled)
        return finished

    def _validate(self) -> bool:
        """Validate the model; whether it is the best so far."""
        started = time.perf_counter()
        progress, metric = self.progress, self.recipe.validation.metric
        result = self.validator.validate(self.model)
        record: dict[str, Any] = {
            "update": progress.update,
            "loss": result.loss,
            "perplexity": result.perplexity,
        }
        text = f"loss {result.loss:.4f}  perplexity {result.perplexity:.2f}"
        if result.score is not None:
            record[metric] = result.score.value
            record["signature"] = result.score.signature
            text += f"  {metric} {result.score.value:.2f}"
        progress.validated_update = progress.update
        best = progress.best_value is None or result.value > progress.best_value
        if best:
            progress.best_value, progress.best_update = result.value, progress.update
            progress.validations_since_best = 0
        else:
            progress.validations_since_best += 1
        elapsed = time.perf_counter() - started if self.processes.first else 0.0
        progress.seconds += self.processes.sum(elapsed)[0]
        if self.log is not None:
            self.log.write("validation", {**record, "seconds": progress.seconds})
            self.screen.say(f"update {progress.update}  validation {text}{'  best' * best}")
            draw_curves(self.directory.log)
        return best

    def _save(self, scheduled: bool) -> None:
        if self.log is None:
            return
        self.progress.log_bytes = self.log.sync()
        self.directory.save(
            replace(self.progress, scheduled=scheduled),
            self.recipe.checkpoints.keep,
            lambda path: self.setup.write_model(path, self.model, update=self.progress.update),
            self.optimiser.moments(),
        )

    def _check_shared(self) -> None:
        """All processes must see one run directory, or each would go on from a point of its own."""
        newest = self.directory.newest_update()
        if len({seen for ((seen,),) in self.processes.gather([[newest]])}) > 1:
            raise BothendsError(
                f"{self.directory.path}: not the same directory for all processes; machines "
                "that train together need a shared one (run=DIR)"
            )

    def _resume(self) -> Progress:
        """Load the newest checkpoint, if there is one."""
        complete = self.directory.complete()
        if not complete:
            return Progress()
        checkpoint = complete[-1]
        saved, description = load_model(checkpoint)
        if description.provenance.get("data") != self.setup.description.provenance["data"]:
            names = ", ".join(str(corpus.path) for corpus in self.recipe.data.prepared)
            raise BothendsError(
                f"{self.directory.path}: was begun with an earlier version of {names}; "
                "name another directory (run=DIR) or remove this one"
            )
        self.model.load_state_dict(saved.state_dict())
        progress, moments = self.directory.load(checkpoint)
        self.optimiser.restore(moments, checkpoint / OPTIMISER)
        self.screen.say(f"resuming {self.directory.path} after update {progress.update}")
        return progress

    def _announce(self) -> None:
        stream, model = self.setup.stream, self.model
        parameters = sum(parameter.numel() for parameter in model.parameters())
        too_long = stream.too_long()
        self.screen.say(
            f"{model.order}, {parameters:,} parameters, {len(stream.pairs):,} pairs, "
            f"{self.processes.size} x {self.processes.device}"
            f"{' in bfloat16' * self.bfloat16}, in {self.directory.path}"
        )
        if too_long.pairs:
            settings = self.recipe.batch
            self.screen.say(
                f"left out as too long: {too_long.pairs:,} pairs ({too_long.source:,} with more "
                f"than {settings.max_source_length} source tokens, {too_long.target:,} with more "
                f"than {settings.max_target_length} target tokens)"
            )
        if too_long.pairs == len(stream.pairs):
            raise BothendsError(
                "no pairs to train on: the corpus is empty, or batch.max_source_length and "
                "batch.max_target_length leave all of it out"
            )

    def _log_training(
        self, update: Update, rate: float, norm: float, speed: float, due: bool
    ) -> None:
        progress = self.progress
        loss = progress.loss_sum / progress.loss_tokens
        if due:
            progress.loss_sum, progress.loss_tokens = 0.0, 0
        if self.log is None:
            return
        left = time_left(
            self.recipe.training, progress.update, progress.position.epoch, progress.seconds
        )
        limit = self.recipe.training.updates
        self.screen.progress(
            f"update {progress.update}{f'/{limit}' if limit else ''}  epoch {update.epoch + 1}  "
            f"loss {loss:.4f}  {speed:,.0f} tokens/s  {left} left",
            lasting=due,
        )
        if due:
            record = {
                "update": progress.update,
                "epoch": update.epoch + 1,
                "loss": loss,
                "learning_rate": rate,
                "gradient_norm": norm,
                "target_tokens": progress.target_tokens,
                "tokens_per_second": round(speed, 1),
                "seconds": round(progress.seconds, 3),
            }
            self.log.write("training", record)

    def _end(self, signalled: int) -> RunEnd:
        progress = self.progress
        if self.log is not None:
            self.log.close()
            if draw_curves(self.directory.log) is None:
                self.screen.say("no learning curves: they need pip install 'bothends[eval]'")
        self.processes.wait()  # until the first one has written
        checkpoint = self.directory.complete()[-1]
        if signalled:
            name = signal.Signals(signalled).name
            self.screen.say(
                f"stopped by {name} after update {progress.update}; {checkpoint} is complete, and "
                "the same command goes on from there"
            )
        else:
            best = f"; best at update {progress.best_update}" if progress.best_update else ""
            self.screen.say(f"done after update {progress.update}: {checkpoint}{best}")
        return RunEnd(
            progress.update, checkpoint, signalled, progress.best_update, progress.best_value
        )


def _is_due(update: int, every: int) -> bool:
    return every > 0 and update % every == 0
