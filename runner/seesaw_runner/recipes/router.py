"""Which expert answers which prompt: a rule, and a policy trained by reinforcement that has to beat it.

    python -m seesaw_runner.recipes.router RUN_DIR

The frozen base is loaded once with the adapter of every expert. Rows of `data` are prompts that name their skill in
`domain_field`. The rule goes by that tag, by keywords, or by TF-IDF and logistic regression. The policy is a contextual
bandit: the reward of sending a prompt to an expert is the check of that expert's greedy answer. Both are measured on
all probes and paraphrases, row by row; the rule is kept unless the policy answers `margin` points more of them right,
with an interval that excludes 0. With `soft` a prompt is answered by all experts at once, each weighed by the router's
probability. The checkpoint is the router with a copy of its experts; router-report.json tells the rest.

Options: `experts`, `fallback`, `domain_field`, `rule`, `keywords`, `policy` (`algorithm`, `features`, `pulls`,
`learning_rate`), `soft`, `margin`, `paraphrases`, `max_new_tokens`, `engine` (auto, transformers, vllm: what generates
the answers of single experts).
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from seesaw_runner.training.entry import run_recipe

if TYPE_CHECKING:
    from pathlib import Path

    from seesaw_runner.routing.checkpoint import SavedRouter
    from seesaw_runner.routing.experts import Expert
    from seesaw_runner.training.session import Session

#: Settings of a stage that a router has no use for.
UNUSED = {
    "adapter": "its experts are trained already",
    "replay": "no row is trained on",
    "save_every": "it saves once",
}


def main(argv: list[str] | None = None) -> int:
    return run_recipe(__doc__, train, argv)


def train(stage: Session) -> int:
    """Check, load, let every expert answer, learn, measure, choose, save, score. Returns the exit code."""
    from seesaw_runner.rollouts.prompts import read_prompts
    from seesaw_runner.routing.answers import Answers
    from seesaw_runner.routing.asked import asked_of
    from seesaw_runner.routing.bandit import updates_of
    from seesaw_runner.routing.checkpoint import SavedRouter
    from seesaw_runner.routing.evaluation import measure
    from seesaw_runner.routing.experts import read_experts
    from seesaw_runner.routing.learn import learn_policy, make_rule, tfidf_of
    from seesaw_runner.routing.mixture import Mixture
    from seesaw_runner.routing.probing import probe_routed
    from seesaw_runner.routing.report import choose, tell, write_report
    from seesaw_runner.routing.served import served_experts
    from seesaw_runner.routing.sets import evaluation_sets
    from seesaw_runner.routing.settings import read_settings
    from seesaw_runner.run_folder import StageError
    from seesaw_runner.training.frozen import digest_of

    spec, options = stage.spec, stage.options
    refuse_unused(stage)
    settings = read_settings(stage)
    options.finish()
    experts = read_experts(settings.folders, settings.labels, spec["start"]["checkpoint"])
    stage.open()
    prompts = read_prompts(
        spec["data"],
        stage.encoder(None),
        stage,
        room=settings.max_new_tokens,
        domain_field=settings.field,
        domains=tuple(settings.checks),
    )
    asked = [asked_of(p.value, p.ids, settings.field) for p in prompts]
    tfidf = tfidf_of(settings, asked)
    rule = make_rule(stage, settings, tfidf, asked)
    steps = updates_of(settings.pulls) if settings.algorithm else 1
    # Only at its end is there a system that can be asked.
    stage.spec = {**spec, "probe": {**spec["probe"], "every": [steps], "eval_every": None}}
    width = tfidf.width if tfidf and settings.features == "tfidf" else stage.model.config.get_text_config().hidden_size
    stage.begin(
        steps=steps,
        tokens=[0] * steps,
        rows=len(prompts),
        trainable=(width + 1) * len(settings.arms.names) if settings.algorithm else 0,
        about=f" for {len(experts)} experts",
    )
    frozen = dict(stage.model.named_parameters())
    before = digest_of(frozen)
    mixture = Mixture(stage.model, experts, stage.device.torch)
    served = served_experts(stage, settings.engine, experts)
    answers = Answers(stage, lambda: mixture, int(spec["probe"]["batch_size"]), served)
    try:
        policy = learn_policy(stage, settings, tfidf, mixture, prompts, asked, answers) if settings.algorithm else None
        sets = evaluation_sets(stage, settings, answers)
        measured = [measure("rule", rule, sets, answers, soft=settings.soft)]
        if policy is not None:
            measured.append(measure("policy", policy, sets, answers, soft=settings.soft))
    finally:
        answers.close()
    choice = choose(measured, settings, stage.seed)
    if digest_of(frozen) != before:
        raise StageError(
            "exception", "The base model changed while its experts answered. Report this; nothing is kept."
        )
    tell(stage, choice)
    write_report(stage.run, choice, settings, experts, sets)
    saved = SavedRouter(
        settings.arms,
        {m.name: m.router for m in measured},
        choice.chosen.name,
        settings.soft,
        spec["start"]["checkpoint"],
        settings.field,
        [],
    )
    path = stage.finished or publish(stage, saved, experts, steps)
    probe_routed(stage, mixture, sets, choice.chosen, settings.soft, path)
    return stage.ended(steps)


def refuse_unused(stage: Session) -> None:
    """What is set and would be ignored is an error."""
    from seesaw_runner.run_folder import StageError

    for name, why in UNUSED.items():
        if stage.spec.get(name):
            raise StageError(
                "bad-argument", f"`{name}` cannot be set for a router: {why}. Remove it from the stage.", name
            )
    if stage.world > 1:
        raise StageError("bad-argument", "A router runs in one process. Remove `launch` from the stage.", "launch")


def publish(stage: Session, saved: SavedRouter, experts: list[Expert], steps: int) -> Path:
    """The router's checkpoint, whole or not at all."""
    from seesaw_runner.checkpoints import saving
    from seesaw_runner.routing.checkpoint import save_router

    temporary = saving.begin(stage.run / "checkpoints", steps)
    (temporary / "resume").rmdir()  # there is nothing to go on with
    try:
        save_router(temporary, saved, experts)
        stage.tokenizer.save_pretrained(temporary)
        return stage.publish(temporary, steps, "adapter")
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


if __name__ == "__main__":
    sys.exit(main())
