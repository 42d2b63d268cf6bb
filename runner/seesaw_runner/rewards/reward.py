"""The weighted rewards of a stage, as its option `rewards` names them, in the form TRL calls them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from seesaw_runner.rewards.function_reward import FunctionReward
from seesaw_runner.rollouts.judges import judge_of, stage_check
from seesaw_runner.run_folder import StageError

#: Batches in which not one answer could be rewarded, one after another, after which the stage gives up.
MOST_SILENT_BATCHES = 3
_KEYS = ("skill", "check", "function", "path", "weight", "timeout")


@dataclass
class Reward:
    """One reward. Called as TRL calls a reward function; a number for each answer, None where there was none.

    `score(answer, row)` gives a number, None or not-a-number. `failed` counts answers without a usable number.
    """

    name: str
    weight: float
    score: Callable[[str, dict], float | None]
    rows: list[dict]
    warn: Callable[..., None]
    reason: Callable[[], str] = lambda: ""
    close: Callable[[], None] = lambda: None
    failed: int = 0
    silent: int = field(default=0)

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, completions: list[str], index: list[int], **_: Any) -> list[float | None]:
        """Rewards of answers to rows `index`."""
        out: list[float | None] = []
        for answer, place in zip(completions, index, strict=True):
            value = self.score(answer, self.rows[place])
            usable = value is not None and math.isfinite(value)
            if not usable:
                why = self.reason() if value is None else f"it returned {value}"
                if self.failed == 0:
                    self.warn(
                        "reward-failed",
                        f"The reward {self.name} gave no number for an answer: {why}. Such answers count as 0 in it.",
                        where="options.rewards",
                        fix="Correct the function; it must return a finite number for any text.",
                    )
                self.failed += 1
            out.append(float(value) if usable else None)
        self.silent = self.silent + 1 if out and all(value is None for value in out) else 0
        if self.silent >= MOST_SILENT_BATCHES:
            raise StageError(
                "bad-argument",
                f"The reward {self.name} gave no number in {self.silent} batches one after another ({self.reason()}). "
                "Correct it and run the stage again; it goes on from its last checkpoint.",
                "options.rewards",
            )
        return out


def rewards_of(stage, rows: list[dict]) -> list[Reward]:
    """Reads `rewards`; the default is the check of the stage's own skill. rows[i]: the row that index i means."""
    spec, options = stage.spec, stage.options
    wanted = options.take("rewards", None, list)
    if not wanted:
        check = stage_check(spec, None, "rewards")
        return [Reward("check", 1.0, judge_of(check), rows, stage.warn)]
    found: list[Reward] = []
    for k, one in enumerate(wanted):
        where = f"rewards[{k}]"
        if not isinstance(one, dict):
            raise options.error(where, "must be a block with a skill, a check or a function")
        kinds = [name for name in ("skill", "check", "function") if one.get(name) is not None]
        unknown = [name for name in one if name not in _KEYS]
        if unknown or len(kinds) != 1:
            raise options.error(
                where, f"has {', '.join(unknown or kinds or ['nothing'])}; give one of skill, check, function"
            )
        weight = one.get("weight", 1.0)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight):
            raise options.error(f"{where}.weight", f"must be a number, but is {weight!r}")
        if kinds[0] == "function":
            found.append(_function(stage, one, float(weight), rows, where))
            continue
        for name in ("path", "timeout"):
            if one.get(name) is not None:
                raise options.error(f"{where}.{name}", "is only of a function")
        check = stage_check(spec, one[kinds[0]], where)
        name = one["skill"] if kinds[0] == "skill" else one["check"]["kind"]
        found.append(Reward(name, float(weight), judge_of(check), rows, stage.warn))
    for k, reward in enumerate(found):  # TRL keeps metrics by name
        if any(other.name == reward.name for other in found[:k]):
            reward.name = f"{reward.name}-{k + 1}"
    return found


def _function(stage, one: dict, weight: float, rows: list[dict], where: str) -> Reward:
    if not stage.spec["trusted"]:
        raise StageError(
            "untrusted",
            f"The reward function {one['function']} is code of this workspace, which is not trusted. Trust the "
            "workspace to run it.",
            f"options.{where}",
        )
    timeout = one.get("timeout", 10.0)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise stage.options.error(f"{where}.timeout", f"must be more than 0 seconds, but is {timeout!r}")
    worker = FunctionReward(one["function"], one.get("path") or stage.spec["pipeline"]["root"], float(timeout))
    name = one["function"].rpartition(":")[2]
    return Reward(name, weight, worker.score, rows, stage.warn, lambda: worker.last_error, worker.close)
