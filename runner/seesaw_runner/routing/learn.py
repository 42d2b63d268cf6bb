"""What a router learns from the training prompts: the rule's regression, and the policy's table of rewards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seesaw_runner.rollouts.prompts import Prompt
from seesaw_runner.routing.answers import Answers
from seesaw_runner.routing.asked import Arms, Asked, Router
from seesaw_runner.routing.bandit import train_bandit, updates_of
from seesaw_runner.routing.evaluation import rewarded
from seesaw_runner.routing.hidden import Hidden, mean_states
from seesaw_runner.routing.linear import Policy
from seesaw_runner.routing.mixture import Mixture
from seesaw_runner.routing.rules import KeywordRule, TagRule, TfidfRule
from seesaw_runner.routing.settings import Settings
from seesaw_runner.routing.tfidf import Tfidf
from seesaw_runner.run_folder import StageError, say

#: At most so many metric events of one training.
MOST_EVENTS = 200


def tfidf_of(settings: Settings, asked: Sequence[Asked]) -> Tfidf | None:
    """Shared by rule and policy; None where neither looks at words."""
    wanted = settings.rule == "tfidf" or (settings.algorithm and settings.features == "tfidf")
    return Tfidf.fit([one.text for one in asked]) if wanted else None


def make_rule(stage, settings: Settings, tfidf: Tfidf | None, asked: Sequence[Asked]) -> Router:
    """The rule router. StageError, or a warning where nothing is learned from it, for a skill without rows."""
    arms = settings.arms
    _rows_of_each(stage, settings, asked)
    if settings.rule == "tag":
        return TagRule(arms)
    if settings.rule == "keywords":
        return KeywordRule(arms, settings.keywords)
    return TfidfRule.fit(arms, tfidf, asked, [arms.of(one.tag) for one in asked], stage.seed)


def _rows_of_each(stage, settings: Settings, asked: Sequence[Asked]) -> None:
    for skill in settings.arms.skills:
        if any(one.tag == skill for one in asked):
            continue
        what = f"names the skill {skill}, but no row of {stage.spec['data']} has it in {settings.field}"
        if settings.rule == "tfidf" or settings.algorithm:
            raise stage.options.error("experts", what)
        stage.warn("no-rows", f"The option experts {what}.", where=stage.spec["data"], fix="Add rows of this skill.")


def learn_policy(
    stage,
    settings: Settings,
    tfidf: Tfidf | None,
    mixture: Mixture,
    prompts: Sequence[Prompt],
    asked: Sequence[Asked],
    answers: Answers,
) -> Policy | None:
    """None where no choice makes a difference: then nothing can be learned, which is said."""
    rewards = reward_table(stage, settings, prompts, answers)
    differing = int((rewards.max(1) != rewards.min(1)).sum())
    say(f"{differing} of {len(prompts)} training prompts tell experts apart")
    if not differing:
        who = "every expert right" if rewards.all() else "no expert right" if not rewards.any() else "all experts alike"
        stage.warn(
            "router",
            f"All rewards of a prompt are equal, whoever answers it ({who} on each of {len(prompts)} prompts), so the "
            "policy learns nothing and none is trained.",
            where=stage.spec["data"],
            fix="Use prompts that one expert answers and another does not, or look at the checks.",
        )
        return None
    if settings.features == "tfidf":
        features = tfidf
    else:

        def states(ids):
            with mixture.answering(len(mixture.names)):
                return mean_states(mixture.lm, ids, answers.batch)

        features = Hidden.fit(asked, states)
    steps = updates_of(settings.pulls)
    every = max(1, steps // MOST_EVENTS)

    def tell(update: int, values: dict[str, float]) -> None:
        if stage.watch.signal is not None:
            raise StageError(
                "cancelled", "Stopped while the policy learned. Run the stage again; it keeps the answers."
            )
        if update == 1 or update == steps or update % every == 0:
            stage.journal.append("stage.progress", phase="train", step=update, total=steps)
            stage.journal.append("metric", step=update, values=values)

    linear = train_bandit(
        features.rows(asked),
        features.width,
        rewards,
        algorithm=settings.algorithm,
        pulls=settings.pulls,
        learning_rate=settings.learning_rate,
        seed=stage.seed,
        tell=tell,
    )
    return Policy(settings.algorithm, features, linear)


def reward_table(stage, settings: Settings, prompts: Sequence[Prompt], answers: Answers) -> np.ndarray:
    """[prompts, arms]: 1 where the check of the prompt's skill passes the arm's greedy answer."""
    arms: Arms = settings.arms
    checks = [settings.checks[prompt.domain] for prompt in prompts]
    wrong = [(prompt, why) for prompt, c in zip(prompts, checks, strict=True) if (why := c.problem(prompt.value))]
    if wrong:
        line, why = wrong[0][0].line, wrong[0][1]
        stage.warn(
            "check",
            f"{len(wrong)} of {len(prompts)} prompts can hardly be answered right. Line {line}: {why}.",
            where=f"{stage.spec['data']}:{line}",
            fix="Give these rows their right answer, or correct the check.",
        )
    ids, limits = [prompt.ids for prompt in prompts], [settings.max_new_tokens] * len(prompts)
    table = np.zeros((len(prompts), len(arms.names)))
    for arm, name in enumerate(arms.names):
        found = answers.of(name, "train", ids, arms.certain([arm] * len(ids)), limits)
        empty = sum(not text.strip() for text, _ in found)
        table[:, arm] = [rewarded(c, a[0], p.value) for c, a, p in zip(checks, found, prompts, strict=True)]
        say(f"{name}: {int(table[:, arm].sum())} of {len(prompts)} training prompts right")
        stage.journal.append("metric", step=0, values={f"table/{name}": float(table[:, arm].mean())})
        if empty:
            stage.warn(
                "no-answers",
                f"{name} gives an empty answer to {empty} of {len(prompts)} training prompts; each counts as wrong.",
                where=stage.spec["data"],
                fix="Look at the expert's training if this is its own skill.",
            )
    return table
