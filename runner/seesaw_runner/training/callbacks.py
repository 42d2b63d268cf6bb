"""What a stage does after each optimizer step: watch for NaN and signals, save, keep the ledger, tell the journal."""

from __future__ import annotations

import math
import signal
import time
from typing import Any

import torch
import torch.distributed as dist
from transformers import TrainerCallback

#: Seconds between two events of one kind. The last step is always told.
QUIET = 0.25
#: What a metric event may carry; the rest of a trainer's log (runtime, epoch …) repeats other events.
METRICS = ("loss", "grad_norm", "learning_rate", "mean_token_accuracy", "entropy", "aux_loss", "num_tokens")


class StopWatch(TrainerCallback):
    """Ends the training after a step: on SIGTERM or SIGINT (with a checkpoint), on a loss or gradient that is no number
    (without).

    `reason` is None, "cancelled" or "nan-loss". All processes stop at the same step.
    """

    def __init__(self, journal):
        self.journal = journal
        self.reason: str | None = None
        self.signal: int | None = None
        self.bad: tuple[int, str, float] | None = None
        self.trainer: Any = None

    def install(self) -> None:
        """From now on SIGTERM and SIGINT mean: finish the step, save, end."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: Any) -> None:
        self.signal = number

    def on_step_end(self, args, state, control, **_: Any) -> None:
        losses = self.trainer.step_losses
        loss = float(torch.stack(losses).mean()) if losses else 0.0
        losses.clear()
        norm = self.trainer.last_grad_norm
        norm = float(norm) if norm is not None else 0.0
        stop, bad = self.signal is not None, not (math.isfinite(loss) and math.isfinite(norm))
        if args.world_size > 1:
            both = torch.tensor([float(stop), float(bad)], device=args.device)
            dist.all_reduce(both, op=dist.ReduceOp.MAX)
            stop, bad = bool(both[0] > 0), bool(both[1] > 0)
        if bad and self.bad is None:
            name, value = ("loss", loss) if not math.isfinite(loss) else ("grad_norm", norm)
            self.bad = (state.global_step, name, value)
            self.reason = "nan-loss"
            self.journal.append(
                "warning",
                code="nan-loss",
                severity="error",
                where=f"step {state.global_step}",
                message=f"{name} is {value} at step {state.global_step} (loss {loss:.4g}, grad_norm {norm:.4g}). "
                f"The stage stops here; the weights of this step are not saved.",
                fix="Lower the learning rate, add warm-up or max_grad_norm, or look for broken rows near this "
                "step; then run the stage again.",
            )
            control.should_training_stop = True
        elif stop and state.global_step < state.max_steps:
            self.reason = "cancelled"
            control.should_save = True
            control.should_training_stop = True


class SaveCallback(TrainerCallback):
    """Saves every `every` steps and at the last one."""

    def __init__(self, every: int | None, watch: StopWatch):
        self.every, self.watch = every, watch

    def on_step_end(self, args, state, control, **_: Any) -> None:
        if self.watch.reason == "nan-loss":
            control.should_save = False
        elif state.global_step >= state.max_steps or (self.every and state.global_step % self.every == 0):
            control.should_save = True


class LedgerCallback(TrainerCallback):
    """Writes each step's draws from the replay buffer. `hashes[i]` is buffer row i's. Events carry totals since step
    1.
    """

    def __init__(self, ledger, journal, plan, hashes: list[str], buffer: str, resumed_from: int | None):
        self.ledger, self.journal, self.plan, self.hashes, self.buffer = ledger, journal, plan, hashes, buffer
        self.rows, self.seen, self._told = 0, set(), 0.0
        for step in range(1, (resumed_from or 0) + 1):
            self._count(step)

    def _count(self, step: int) -> list[str]:
        drawn = [self.hashes[i] for i, n in self.plan.replay_of(step).items() for _ in range(n)]
        self.rows += len(drawn)
        self.seen.update(drawn)
        return drawn

    def on_step_end(self, args, state, control, **_: Any) -> None:
        self.ledger.draw(state.global_step, self._count(state.global_step), self.buffer)
        now = time.monotonic()
        if now - self._told >= QUIET or state.global_step >= state.max_steps or control.should_training_stop:
            self._told = now
            self.journal.append(
                "ledger.drawn", step=state.global_step, buffer=self.buffer, rows=self.rows, distinct=len(self.seen)
            )


class ProgressCallback(TrainerCallback):
    """`stage.progress` and `metric` events, at most four a second of each, the last always.

    tokens[s−1]: tokens of step s over all processes. every: only steps divisible by it give a metric event (and the
    last); its loss is the mean over the steps since the one before. paused() gives seconds spent probing, kept out of
    tokens/s. metrics: names of the trainer's log to tell, besides `METRICS`.
    """

    def __init__(self, journal, tokens: list[int], every: int, paused, metrics: tuple[str, ...] = ()):
        self.journal, self.tokens, self.every, self.paused = journal, tokens, max(1, every), paused
        self.metrics = (*METRICS, *metrics)
        self._losses: list[float] = []
        self._progress = self._metric = 0.0
        self._first = 0

    def on_train_begin(self, args, state, control, **_: Any) -> None:
        self._began, self._paused, self._first = time.monotonic(), self.paused(), state.global_step
        self.journal.append("stage.progress", phase="train", step=state.global_step, total=state.max_steps)

    def on_step_end(self, args, state, control, **_: Any) -> None:
        step, now = state.global_step, time.monotonic()
        last = step >= state.max_steps or control.should_training_stop
        if now - self._progress < QUIET and not last:
            return
        self._progress = now
        elapsed = now - self._began
        training = max(1e-6, elapsed - (self.paused() - self._paused))
        done = step - self._first
        self.journal.append(
            "stage.progress",
            phase="train",
            step=step,
            total=state.max_steps,
            tokens_per_s=round(sum(self.tokens[self._first : step]) / training, 1),
            eta_s=round(elapsed / max(1, done) * (state.max_steps - step), 1),
        )

    def on_log(self, args, state, control, logs=None, **_: Any) -> None:
        if not logs or "loss" not in logs:
            return
        state.log_history.clear()  # it would be copied into every checkpoint; the journal has it all
        self._losses.append(float(logs["loss"]))
        now, last = time.monotonic(), state.global_step >= state.max_steps or control.should_training_stop
        due = state.global_step % self.every == 0 or state.global_step == 1
        if not last and (not due or now - self._metric < QUIET):
            return
        self._metric = now
        values = {k: float(logs[k]) for k in self.metrics if isinstance(logs.get(k), (int, float))}
        values["loss"] = sum(self._losses) / len(self._losses)
        self._losses.clear()
        self.journal.append("metric", step=state.global_step, values=values)
