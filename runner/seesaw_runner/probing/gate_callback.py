"""The trainer callback that halts a training where the gate asks for it."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from transformers import TrainerCallback

from seesaw_runner.probing.callback import planned_points
from seesaw_runner.probing.gate import halt_of


class GateCallback(TrainerCallback):
    """Halts the training after the probe point that asked for it, with a checkpoint of that step. Comes after the
    callback that probes, in every process. `steps`: those at which a probe may have asked.
    """

    def __init__(self, stage):
        self.prober, self.watch = stage.prober, stage.watch
        self.steps = planned_points(stage.spec["probe"], stage.steps)

    def on_step_end(self, args, state, control, **_: Any) -> None:
        if not control.should_save and self._asked(args, state):
            control.should_save = True
            control.should_training_stop = True

    def on_save(self, args, state, control, **_: Any) -> None:
        if self._asked(args, state):
            control.should_training_stop = True

    def _asked(self, args, state) -> bool:
        """Whether to halt now; the same in every process."""
        if self.watch.reason is not None:
            return False
        asked = halt_of(self.prober) is not None
        if args.world_size > 1:
            if state.global_step not in self.steps:
                return False
            value = torch.tensor([float(asked)], device=args.device)
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
            asked = bool(value[0] > 0)
        if asked:
            self.watch.reason = "halted"
        return asked
