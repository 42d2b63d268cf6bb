"""`flags` of run.json, with defaults for what an older one does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seesaw_runner.flags import defaults
from seesaw_runner.flags.detectors import DETECTORS
from seesaw_runner.run_folder import StageError

#: What a confirmed flag does to its run.
ACTIONS = ("inform", "pause", "stop")


@dataclass(frozen=True)
class FlagSettings:
    """alpha: false alarms allowed per run. tolerance: harmless loss in points of accuracy; tolerance_nats: of `nll`.
    margin: "all" or "decision" tokens.
    """

    alpha: float = defaults.ALPHA
    tolerance: float = defaults.TOLERANCE
    tolerance_nats: float = defaults.TOLERANCE_NATS
    detector: str = defaults.DETECTOR
    margin: str = defaults.MARGIN
    scale: float = defaults.SCALE


def flag_settings(flags: Mapping[str, Any]) -> FlagSettings:
    """From run.json. Where `tolerance_nats` is absent, an older Seesaw wrote it and its `tolerance` was in nats."""
    detector = flags.get("detector") or defaults.DETECTOR
    if detector not in DETECTORS:
        raise StageError(
            "bad-argument", f"There is no detector {detector!r}; `flags.detector` is one of {', '.join(DETECTORS)}."
        )
    older = flags.get("tolerance_nats") is None
    tolerance = flags.get("tolerance")
    nats = tolerance if older else flags["tolerance_nats"]
    points = None if older else tolerance
    return FlagSettings(
        alpha=float(flags.get("alpha", defaults.ALPHA)),
        tolerance=float(defaults.TOLERANCE if points is None else points),
        tolerance_nats=float(defaults.TOLERANCE_NATS if nats is None else nats),
        detector=detector,
    )


def flag_actions(spec: Mapping[str, Any]) -> dict[str, str]:
    """What a confirmed flag of each skill does: the skill's `on_flag`, else the pipeline's, else inform."""
    common = spec["flags"].get("on_flag") or "inform"
    found = {skill["id"]: skill.get("on_flag") or common for skill in spec["skills"]}
    for skill, action in found.items():
        if action not in ACTIONS:
            raise StageError(
                "bad-argument", f"`on_flag` of {skill} is {action!r}; it can be {', '.join(ACTIONS)}.", "flags"
            )
    return found


def flags_may_halt(spec: Mapping[str, Any]) -> bool:
    """Whether a flag of this run can pause or stop it."""
    return any(action != "inform" for action in flag_actions(spec).values())
