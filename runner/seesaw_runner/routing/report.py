"""Rule or policy, decided by paired answers; and `router-report.json`, `router-routes.jsonl` that say why."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seesaw_runner.routing.evaluation import EvaluationSet, Measured, by_set, routes, told
from seesaw_runner.routing.experts import Expert
from seesaw_runner.routing.settings import Settings
from seesaw_runner.routing.statistics import paired_difference
from seesaw_runner.run_folder import say
from seesaw_runner.wire_numbers import encode

FORMAT = 1
REPORT, ROUTES = "router-report.json", "router-routes.jsonl"


@dataclass(frozen=True)
class Choice:
    """`difference`: policy minus rule in points of right answers; None without a policy. `reason`: one sentence."""

    measured: list[Measured]
    chosen: Measured
    difference: dict[str, Any] | None
    reason: str


def choose(measured: Sequence[Measured], settings: Settings, seed: int) -> Choice:
    """The rule, unless the policy answers at least `margin` points more right, with an interval that excludes 0."""
    rule = measured[0]
    if len(measured) == 1:
        why = "no policy was asked for" if settings.algorithm is None else "no choice of expert made a difference"
        return Choice(list(measured), rule, None, f"The rule router ({rule.router.kind}) is used: {why}.")
    policy = measured[1]
    found = paired_difference(rule.all_correct(), policy.all_correct(), seed)
    better = found["estimate"] >= settings.margin and found["low"] > 0
    figures = (
        f"{found['estimate']:+.1f} points of right answers over {found['n']} prompts (95 % interval "
        f"{found['low']:+.1f} to {found['high']:+.1f}), asked for are {settings.margin:g} and an interval above 0"
    )
    if better:
        reason = f"The trained policy ({policy.router.kind}) replaces the rule router ({rule.router.kind}): {figures}."
    else:
        reason = (
            f"The rule router ({rule.router.kind}) is kept, the policy ({policy.router.kind}) is not better: {figures}."
        )
    return Choice(list(measured), policy if better else rule, found, reason)


def tell(stage, choice: Choice) -> None:
    """The sentence in log and journal, and the main numbers as a metric."""
    say(choice.reason)
    stage.warn("router", choice.reason, severity="info")
    right = {m.name: m.all_correct() for m in choice.measured}
    values = {f"{name}/accuracy": sum(found) / len(found) for name, found in right.items()}
    stage.journal.append("metric", step=stage.steps, values=values)


def write_report(
    run: Path, choice: Choice, settings: Settings, experts: Sequence[Expert], sets: Sequence[EvaluationSet]
) -> None:
    """Both files, each whole or not at all."""
    arms = settings.arms
    blocks = {m.name: told(m, sets, arms) for m in choice.measured}
    chosen = blocks[choice.chosen.name]
    policy = blocks.get("policy")
    if policy is not None:
        policy |= {
            "features": settings.features,
            "pulls": settings.pulls,
            "learning_rate": settings.learning_rate,
        }
    report = {
        "v": FORMAT,
        "rule": blocks["rule"],
        "policy": policy,
        "chosen": choice.chosen.name,
        "reason": choice.reason,
        "difference": choice.difference,
        "margin": settings.margin,
        "soft": settings.soft,
        "fallback": arms.fallback,
        "experts": [
            {"skill": e.skill, "label": e.label, "from": str(e.folder), "weights_hash": e.weights_hash, "rank": e.rank}
            for e in experts
        ],
        "confusion": chosen["confusion"],
        "willingness": chosen["willingness"],
        "sets": [by_set(one, choice.measured, arms) for one in sets],
    }
    _write(run / REPORT, [json.dumps(encode(report), indent=1, allow_nan=False)])
    lines = (route for one in sets for route in routes(one, choice.chosen, choice.measured, arms))
    _write(run / ROUTES, (json.dumps(encode(line), allow_nan=False) for line in lines))


def _write(path: Path, lines: Iterable[str]) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
