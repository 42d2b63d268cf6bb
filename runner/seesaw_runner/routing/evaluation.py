"""A router measured: which share it sends to whom, and how many answers are right then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seesaw_runner.probing.probe_set import ProbeSet
from seesaw_runner.routing.answers import Answer, Answers
from seesaw_runner.routing.asked import Arms, Asked, Router, asked_of
from seesaw_runner.routing.mixture import arms_of
from seesaw_runner.routing.statistics import share


@dataclass
class EvaluationSet:
    """One skill × split. `answers` and `correct`: by arm, [rows] and [rows, arms]."""

    probes: ProbeSet
    asked: list[Asked]
    limits: list[int]
    answers: list[list[Answer]] = field(default_factory=list)
    correct: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))

    @property
    def id(self) -> str:
        return self.probes.id

    def judge(self, answers: Sequence[Answer]) -> np.ndarray:
        rows = [self.probes.probes[i].value for i in self.probes.usable]
        return np.array([rewarded(self.probes.check, a[0], row) for a, row in zip(answers, rows, strict=True)], bool)


@dataclass
class Measured:
    """A router on all sets. By set: probabilities [rows, arms], the arm picked, the answers given and whether right."""

    name: str
    router: Router
    probabilities: dict[str, np.ndarray] = field(default_factory=dict)
    picked: dict[str, np.ndarray] = field(default_factory=dict)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    correct: dict[str, np.ndarray] = field(default_factory=dict)

    def all_correct(self) -> list[bool]:
        return [bool(right) for found in self.correct.values() for right in found]


def rewarded(check, text: str, row: dict) -> bool:
    """An empty answer is never right, whatever the check thinks of it."""
    return bool(text.strip()) and bool(check.passes(text, row))


def evaluation_set(probes: ProbeSet, field_name: str, most: int, context: int | None) -> EvaluationSet | None:
    """None without a usable row. A row that does not say what it is about counts as of its set's skill."""
    if not probes.usable:
        return None
    rows = [probes.probes[i] for i in probes.usable]
    asked = [asked_of(p.value, p.row.prompt_ids, field_name, probes.skill) for p in rows]
    room = [most if context is None else max(0, min(most, context - len(one.ids))) for one in asked]
    return EvaluationSet(probes, asked, room)


def measure(name: str, router: Router, sets: Sequence[EvaluationSet], answers: Answers, *, soft: bool) -> Measured:
    """soft: a prompt that several experts answer together is answered anew; else the likeliest one's answer stands."""
    out = Measured(name, router)
    for one in sets:
        p = router.probabilities(one.asked)
        picked = p.argmax(1)
        given = [one.answers[arm][i] for i, arm in enumerate(picked)]
        if soft:
            mixed = [i for arm, places in arms_of(p) if arm is None for i in places]
            found = answers.of(
                f"{name} (soft)",
                one.id,
                [one.asked[i].ids for i in mixed],
                p[mixed],
                [one.limits[i] for i in mixed],
            )
            for i, answer in zip(mixed, found, strict=True):
                given[i] = answer
        out.probabilities[one.id], out.picked[one.id], out.answers[one.id] = p, picked, given
        out.correct[one.id] = one.judge(given)
    return out


def told(measured: Measured, sets: Sequence[EvaluationSet], arms: Arms) -> dict[str, Any]:
    """The report's block of one router. Shares carry Wilson's 95 % interval."""
    splits = list(dict.fromkeys(one.probes.split for one in sets))
    own = {one.id: measured.picked[one.id] == arms.of(one.probes.skill) for one in sets}

    def over(values: dict[str, np.ndarray], split: str | None) -> dict[str, Any]:
        found = [v for one in sets if split in (None, one.probes.split) for v in values[one.id]]
        return share(int(sum(found)), len(found))

    base = [m == len(arms.skills) for one in sets for m in measured.picked[one.id]]
    regret = np.concatenate([one.correct.any(1) * 1.0 - measured.correct[one.id] for one in sets])
    return {
        "kind": measured.router.kind,
        "accuracy": {split: over(measured.correct, split) for split in splits},
        "accuracy_all": over(measured.correct, None),
        "routing": {split: over(own, split) for split in splits},
        "routing_all": over(own, None),
        "confusion": confusion(measured, sets, arms),
        "willingness": willingness(measured, sets, arms),
        "base_share": share(int(sum(base)), len(base)),
        "regret": float(regret.mean()),
    }


def confusion(measured: Measured, sets: Sequence[EvaluationSet], arms: Arms) -> dict[str, Any]:
    """Rows: skills of the prompts; columns: who was picked."""
    skills = list(dict.fromkeys(one.probes.skill for one in sets))
    counts = np.zeros((len(skills), len(arms.names)), dtype=int)
    for one in sets:
        counts[skills.index(one.probes.skill)] += np.bincount(measured.picked[one.id], minlength=len(arms.names))
    return {"skills": skills, "picked": list(arms.names), "counts": counts.tolist()}


def willingness(measured: Measured, sets: Sequence[EvaluationSet], arms: Arms) -> list[dict[str, Any]]:
    """How readily each expert is chosen for each skill's prompts."""
    out = []
    for arm, name in enumerate(arms.names):
        for skill in dict.fromkeys(one.probes.skill for one in sets):
            mine = [one for one in sets if one.probes.skill == skill]
            picked = np.concatenate([measured.picked[one.id] for one in mine]) == arm
            p = np.concatenate([measured.probabilities[one.id][:, arm] for one in mine])
            out.append({"expert": name, "skill": skill, "probability": float(p.mean()), **share(picked.sum(), len(p))})
    return out


def by_set(one: EvaluationSet, measured: Sequence[Measured], arms: Arms) -> dict[str, Any]:
    """One skill × split: every router, every expert alone, and the best that any choice could do."""
    n = len(one.asked)
    return {
        "skill": one.probes.skill,
        "split": one.probes.split,
        "n": n,
        **{
            m.name: {
                "accuracy": share(int(m.correct[one.id].sum()), n),
                "routing": share(int((m.picked[one.id] == arms.of(one.probes.skill)).sum()), n),
            }
            for m in measured
        },
        "experts": {name: share(int(one.correct[:, k].sum()), n) for k, name in enumerate(arms.names)},
        "best": share(int(one.correct.any(1).sum()), n),
    }


def routes(one: EvaluationSet, chosen: Measured, measured: Sequence[Measured], arms: Arms):
    """One line of router-routes.jsonl for each row."""
    for i, index in enumerate(one.probes.usable):
        probe = one.probes.probes[index]
        yield {
            "key": probe.hash,
            "line": probe.line,
            "skill": one.probes.skill,
            "split": one.probes.split,
            "picked": arms.names[chosen.picked[one.id][i]],
            "right": bool(chosen.correct[one.id][i]),
            "routers": {m.name: arms.names[m.picked[one.id][i]] for m in measured},
            "probabilities": [round(float(p), 6) for p in chosen.probabilities[one.id][i]],
            "correct": {name: bool(one.correct[i, k]) for k, name in enumerate(arms.names)},
        }
