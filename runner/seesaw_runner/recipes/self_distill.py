"""Self-distilled fine-tuning: the model before the stage answers the stage's prompts, its right answers are learned.

    python -m seesaw_runner.recipes.self_distill RUN_DIR

Learning one's own words moves a model less than learning a stranger's, so less is forgotten; what the model cannot
answer at all, it does not learn this way. Not to be mixed up with `oracle-sft`, where specialists answer (ACLArena
calls that SDFT), nor with TRL's SDFT trainer (privileged context).

Options: `labeller` (start, or another checkpoint), `check` (or `domain_field`: each row is judged by the check of the
skill that the field names, for a file of several skills), `samples`, `keep`, `temperature`, `top_p`,
`max_new_tokens`, `batch_size`, `engine` (auto, transformers, vllm: what generates). The rows that are learned are in
relabelled.jsonl.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from seesaw_runner.training.entry import run_recipe

if TYPE_CHECKING:
    from seesaw_runner.training.session import Session


def main(argv: list[str] | None = None) -> int:
    return run_recipe(__doc__, train, argv)


def train(stage: Session) -> int:
    """Sample, judge, write down, learn. Returns the exit code."""
    from seesaw_runner.rollouts.judges import judge_of, skill_check, stage_check, tell_errors
    from seesaw_runner.rollouts.prompts import read_prompts
    from seesaw_runner.rollouts.relabel import keep_answers, relabelled_rows, tell_tallies
    from seesaw_runner.rollouts.settings import sampler_of
    from seesaw_runner.training.rows import read_training_rows, replay_rows
    from seesaw_runner.training.supervised import fit_rows, learns_every_token

    spec, options = stage.spec, stage.options
    labeller = options.take("labeller", "start", str)
    samples = options.take("samples", 1, int, least=1)
    keep = options.take("keep", "first", str, among=("first", "all", "shortest"))
    field = options.take("domain_field", None, str)
    wanted = options.take("check", None, (str, dict, bool))
    if field is None:
        check, checks = stage_check(spec, wanted, "check"), {}
    elif wanted is not None:
        raise options.error("check", "cannot be set with domain_field: each row is judged by its domain's skill")
    else:
        check, checks = None, {skill["id"]: skill_check(spec, skill["id"]) for skill in spec["skills"]}
    stage.open()
    sampler = sampler_of(stage, engines=True)
    options.finish()
    encoder = stage.encoder()

    def label() -> list[dict]:
        prompts = read_prompts(
            spec["data"], encoder, stage, room=sampler.max_new_tokens, domain_field=field, domains=tuple(checks)
        )
        folder = spec["start"]["checkpoint"] if labeller == "start" else stage.model_folder(labeller, "labeller")
        rows, tallies = keep_answers(
            prompts,
            sampler.answers_of(
                folder,
                lambda: stage.model if labeller == "start" else stage.load(folder, frozen=True),
                prompts,
                samples,
            ),
            stage.tokenizer,
            lambda prompt: judge_of(checks[prompt.domain] if checks else check),
            threshold=1.0,
            keep=keep,
            source=spec["data"],
            model=spec["start"]["label"] if labeller == "start" else spec["models"][labeller]["label"],
        )
        tell_errors(stage, [check, *checks.values()])
        tell_tallies(stage, tallies, spec["data"])
        return rows

    path = relabelled_rows(stage, label)
    own = read_training_rows(str(path), encoder, stage.journal, scored=not learns_every_token(stage))
    _, old = replay_rows(stage, encoder)
    return fit_rows(stage, own, old, about=" that the model itself has written")


if __name__ == "__main__":
    sys.exit(main())
