"""The prompts that routers are measured on: the probes of every skill, and paraphrases where some are given."""

from __future__ import annotations

import numpy as np

from seesaw_runner.probing.probe_set import load_probe_sets
from seesaw_runner.routing.answers import Answers
from seesaw_runner.routing.asked import BASE
from seesaw_runner.routing.evaluation import EvaluationSet, evaluation_set
from seesaw_runner.routing.settings import Settings
from seesaw_runner.run_folder import StageError

PARAPHRASE = "paraphrase"


def evaluation_sets(stage, settings: Settings, answers: Answers) -> list[EvaluationSet]:
    """With every expert's answer to every row; the base's are those of the stage's start. StageError when no row can
    be used.
    """
    prober, spec = stage.prober, stage.spec
    probes = list(prober.sets)
    for skill in spec["skills"]:
        if path := settings.paraphrases.get(skill["id"]):
            only = {**spec, "skills": [{**skill, "probes": {"id": path}}]}
            for found in load_probe_sets(only, prober.encoder, stage.warn, stage.context):
                found.split = PARAPHRASE
                probes.append(found)
    most = int(prober.options["max_new_tokens"])
    sets = [s for s in (evaluation_set(p, settings.field, most, stage.context) for p in probes) if s]
    if not sets:
        raise StageError("bad-data", "No probe can be used, so no router can be measured. Look at the probe files.")
    if settings.rule == "tag":
        _tell_tags(stage, settings, sets)
    names = settings.arms.names
    for one in sets:
        ids = [a.ids for a in one.asked]
        for arm, name in enumerate(names):
            if name == BASE and one.id in prober.start_answers:
                one.answers.append([(a.text, a.finish) for a in prober.start_answers[one.id]])
            else:
                one.answers.append(answers.of(name, one.id, ids, settings.arms.certain([arm] * len(ids)), one.limits))
        one.correct = np.stack([one.judge(found) for found in one.answers], axis=1)
    return sets


def _tell_tags(stage, settings: Settings, sets: list[EvaluationSet]) -> None:
    rows = [one.probes.probes[i].value for one in sets for i in one.probes.usable]
    silent = sum(not isinstance(row.get(settings.field), str) for row in rows)
    if silent:
        stage.warn(
            "router",
            f"{silent} of {len(rows)} probes have no {settings.field}: the rule `tag` takes the skill of their file, "
            "so it cannot be wrong on them.",
            severity="info",
        )
