"""When to probe: the trainer callback around `Prober`, and the spacing of probe points."""

from __future__ import annotations

import os
import time
from typing import Any

from transformers import TrainerCallback

from seesaw_runner.probing.prober import Prober
from seesaw_runner.run_folder import say


def probe_steps(every: int | list[int] | str, total: int) -> list[int]:
    """Steps after 0 at which all probes are scored, ascending; the last step always.

    every: each n-th step; or these steps; or "log": 1, 2, 3, 6, 12, 24, … (dense where a stage changes fastest).
    """
    if every == "log":
        steps, k = [1, 2], 3
        while k < total:
            steps.append(k)
            k *= 2
    elif isinstance(every, int):
        steps = list(range(every, total, every)) if every > 0 else []
    else:
        steps = [int(s) for s in every]
    return sorted({s for s in steps if 0 < s < total} | {total})


def eval_steps(every: int | list[int] | str | None, total: int) -> list[int]:
    """Steps after 0 at which every check runs, read like `every`; None: only the last step.

    Of regular steps one that lies closer to the end than half its spacing is left out: generating every answer twice in
    a row would cost more than it tells.
    """
    if every is None:
        return [total]
    steps = probe_steps(every, total)
    return [s for s in steps if s == total or not isinstance(every, int) or total - s >= every / 2]


class ProbeCallback(TrainerCallback):
    """Probes at its steps: after the checkpoint was saved where both fall on one step, so that a probe never costs
    weights.

    `missed`: the step that the stage resumes from, where its probe point did not come about (killed in between).

    `clock` is when the stage's own work began (perf_counter); `probe.cost` is journalled at every probe point. `short`:
    points before the last take only the short selection of rows.
    """

    def __init__(self, prober: Prober, journal, *, total: int, clock: float, short: bool, stopping):
        options = prober.options
        self.prober, self.journal, self.total, self.clock, self.short, self.stopping = (
            prober,
            journal,
            total,
            clock,
            short,
            stopping,
        )
        self.steps = set(probe_steps(options["every"], total))
        self.eval_steps = set(eval_steps(options.get("eval_every"), total))
        self.saved: tuple[int, str, str] | None = None  # step, weights hash and identity of the newest checkpoint
        self.missed: int | None = None
        self._done = -1

    def on_step_end(self, args, state, control, model=None, **_: Any) -> None:
        if not control.should_save:
            self._maybe(model, state.global_step)

    def on_save(self, args, state, control, model=None, **_: Any) -> None:
        self._maybe(model, state.global_step)

    def on_train_begin(self, args, state, control, model=None, **_: Any) -> None:
        if self.missed is not None and self.missed == state.global_step:
            self._maybe(model, state.global_step)

    def _maybe(self, model, step: int) -> None:
        if step == self._done or self.stopping() or (step not in self.steps and step not in self.eval_steps):
            return
        self._done = step
        self.probe(model, step)

    def probe(self, model, step: int) -> None:
        """Probes now, whatever the plan says, and reports the cost so far."""
        self.journal.append("stage.progress", phase="probe", step=step, total=self.total)
        full = step >= self.total or not self.short
        digest, identity = self.saved[1:] if self.saved and self.saved[0] == step else (None, None)
        evaluate = step in self.eval_steps
        self.prober.probe(model, step, evaluate=evaluate, full=full, weights_hash=digest, identity=identity)
        say(self.prober.told)
        self._cost()

    def _cost(self) -> None:
        """Journals what probing has cost so far: seconds, and their share of the stage's time as a person waits for
        it.
        """
        after_loading = time.perf_counter() - self.clock
        stage = max(process_seconds(), after_loading)
        self.journal.append(
            "probe.cost",
            probe_s=round(self.prober.seconds, 3),
            stage_s=round(stage, 3),
            after_loading_s=round(after_loading, 3),
            share=round(self.prober.seconds / stage if stage > 0 else 0.0, 4),
        )


def process_seconds() -> float:
    """Wall-clock seconds since this process started, imports included; 0 where the system does not say."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as handle:
            ticks = float(handle.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime", encoding="ascii") as handle:
            return float(handle.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
