"""What a confirmed flag does to its run: nothing, or a pause, or an end. Decided on rank 0, followed by all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seesaw_runner.run_folder import write_outcome

#: What outcome.json calls a training that was halted.
HALTS = ("paused", "flag-stop")


@dataclass(frozen=True)
class Halt:
    """action: pause or stop. flag: `<skill>.<split>`, confirmed at `step`."""

    action: str
    flag: str
    step: int


class Gate:
    """actions: by skill. A flag halts once: who goes on from there has seen it."""

    def __init__(self, actions: dict[str, str]):
        self.actions = actions
        self.halt: Halt | None = None

    def see(self, flag: dict[str, Any]) -> None:
        """Takes a flag as it is journalled. A stop outranks a pause."""
        action = self.actions.get(flag["skill"], "inform")
        if flag["state"] != "confirmed" or action == "inform":
            return
        if self.halt is None or (action == "stop" and self.halt.action == "pause"):
            self.halt = Halt(action, flag["id"], flag["step"])

    def recall(self, standing: Iterable[dict[str, Any]], run: Path) -> None:
        """Flags of earlier attempts that were confirmed and did not come to halt anything: killed in between. standing:
        events that count.
        """
        ends = [_outcome(path) for path in run.glob("attempt-*/outcome.json")]
        seen = max((end["step"] for end in ends if end.get("code") in HALTS and "step" in end), default=-1)
        newest = {e["id"]: e for e in standing if e.get("type") in ("flag.raised", "flag.changed")}
        for flag in newest.values():
            if flag["step"] > seen:
                self.see(flag)


def _outcome(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def halt_of(prober) -> Halt | None:
    """What a confirmed flag of this attempt asks for. None on other ranks than 0: they have no prober."""
    return prober.gate.halt if prober else None


def tell_halt(halt: Halt | None, attempt: Path, step: int) -> int:
    """Writes the outcome of a halted training and gives its exit code. halt None: of a process that follows rank 0.
    step: of the checkpoint that it left.
    """
    if halt is None:
        return 143
    lost = f"The loss of {halt.flag} was confirmed at step {halt.step}"
    saved = f"the checkpoint of step {step} is saved"
    if halt.action == "stop":
        message = f"{lost}, and `on_flag` says stop: {saved}. Look at what moved before the stage is run again."
        write_outcome(attempt, "flag-stop", message, f"step {halt.step}", flag=halt.flag, step=halt.step)
        return 1
    message = f"{lost}, and `on_flag` says pause: {saved}. Run the stage again to go on from there."
    write_outcome(attempt, "paused", message, flag=halt.flag, step=halt.step)
    return 143
