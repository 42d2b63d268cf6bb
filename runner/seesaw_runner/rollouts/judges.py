"""How an answer is judged: the check of a skill, or one written in the stage's options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seesaw_runner.checks import CheckError, make_check
from seesaw_runner.checks.base import Check
from seesaw_runner.rollouts.relabel import Judge
from seesaw_runner.run_folder import StageError


def skill_check(spec: dict, skill: str) -> Check:
    """The check of a skill of this run. StageError when there is no such skill, or its check cannot be made."""
    found = next((one for one in spec["skills"] if one["id"] == skill), None)
    if found is None:
        known = ", ".join(one["id"] for one in spec["skills"]) or "none"
        raise StageError("bad-argument", f"There is no skill {skill}; the skills are {known}.", "options")
    return _check(spec, found["check"], f"skill {skill}")


def stage_check(spec: dict, wanted: Any, option: str) -> Check | None:
    """The check that an option asks for: None keeps the stage's own skill's, a text names a skill, a block is a check,
    False means no check (None is returned).
    """
    if wanted is False:
        return None
    if isinstance(wanted, dict):
        return _check(spec, wanted, f"options.{option}")
    if isinstance(wanted, str):
        return skill_check(spec, wanted)
    own = next(
        (one for one in spec["skills"] if one.get("own_stage") == spec["stage"] or one["id"] == spec["stage"]), None
    )
    if own is None:
        raise StageError(
            "bad-argument",
            f"The stage {spec['stage']} has no skill of its own name, so nothing says which answers are right. Name a "
            f"skill or a check in options.{option}.",
            f"options.{option}",
        )
    return _check(spec, own["check"], f"skill {own['id']}")


def judge_of(check: Check | None) -> Judge | None:
    """A check as a reward of 0 or 1."""
    if check is None:
        return None
    return lambda text, row: float(check.passes(text, row))


def tell_errors(stage, checks: Iterable[Check | None]) -> None:
    """A warning for each check function that raised: such an answer counted as wrong."""
    for check in checks:
        errors = getattr(check, "errors", 0)
        if errors:
            stage.warn(
                "check-failed",
                f"A check function raised on {errors} answers; they counted as wrong. The last: {check.last_error}",
                fix="Correct the function; it must judge any text.",
            )


def _check(spec: dict, wanted: dict, where: str) -> Check:
    try:
        return make_check(wanted, trusted=bool(spec["trusted"]), root=spec["pipeline"]["root"])
    except CheckError as error:
        code = "untrusted" if wanted.get("kind") == "function" and not spec["trusted"] else "check"
        raise StageError(code, f"{where}: {error}", where) from error
