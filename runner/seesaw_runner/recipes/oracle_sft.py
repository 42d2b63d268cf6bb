"""One specialist per domain answers, and the right answers of all are learned as one balanced mixture.

    python -m seesaw_runner.recipes.oracle_sft RUN_DIR

This is what the authors of ACLArena call SDFT; here it is named for what it does, because `self-distill` is another
thing. Rows of `data` name their domain in `domain_field`; `oracles` says whose checkpoint answers which. An answer is
kept when its reward (the domain's check: 0 or 1) reaches `threshold`. The specialists are loaded one after another.

Options: `oracles`, `domain_field`, `samples`, `threshold`, `balance`, `temperature`, `top_p`, `max_new_tokens`,
`batch_size`, `engine` (auto, transformers, vllm: what generates). The rows that are learned are in relabelled.jsonl.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from seesaw_runner.training.entry import run_recipe

if TYPE_CHECKING:
    from seesaw_runner.training.session import Session


def main(argv: list[str] | None = None) -> int:
    return run_recipe(__doc__, train, argv)


def train(stage: Session) -> int:
    """Roll out every specialist, judge, write down, learn the mixture. Returns the exit code."""
    from seesaw_runner.rollouts.judges import judge_of, skill_check, tell_errors
    from seesaw_runner.rollouts.prompts import read_prompts
    from seesaw_runner.rollouts.relabel import keep_answers, relabelled_rows, tell_tallies
    from seesaw_runner.rollouts.settings import sampler_of
    from seesaw_runner.training.compatible import must_share_vocabulary
    from seesaw_runner.training.rows import read_training_rows, replay_rows
    from seesaw_runner.training.supervised import fit_rows, learns_every_token

    spec, options = stage.spec, stage.options
    oracles = options.take("oracles", None, dict)
    if not oracles:
        raise options.error("oracles", "is missing: name a checkpoint for each domain")
    field = options.take("domain_field", "data_source", str)
    samples = options.take("samples", 1, int, least=1)
    threshold = options.take("threshold", 1.0, float)
    balance = options.take("balance", True, bool)
    checks = {domain: skill_check(spec, domain) for domain in oracles}
    folders = {domain: stage.model_folder(name, f"oracles.{domain}") for domain, name in oracles.items()}
    for domain, folder in folders.items():
        must_share_vocabulary(spec["start"]["checkpoint"], folder, f"The oracle of {domain}")
    stage.open()
    sampler = sampler_of(stage, engines=True)
    options.finish()
    encoder = stage.encoder()

    def roll_out() -> list[dict]:
        prompts = read_prompts(
            spec["data"],
            encoder,
            stage,
            room=sampler.max_new_tokens,
            domain_field=field,
            domains=tuple(oracles),
        )
        rows, tallies = [], {}
        for domain, name in oracles.items():
            mine = [prompt for prompt in prompts if prompt.domain == domain]
            if not mine:
                raise options.error("oracles", f"names the domain {domain}, but no row of {spec['data']} is of it")
            stage.loading(f"loading the oracle of {domain}")
            folder = folders[domain]
            kept, tally = keep_answers(
                mine,
                sampler.answers_of(folder, partial(stage.load, folder, frozen=True), mine, samples),
                stage.tokenizer,
                lambda prompt: judge_of(checks[prompt.domain]),
                threshold=threshold,
                keep="all",
                source=spec["data"],
                model=spec["models"][name]["label"],
            )
            rows += [{**row, field: domain} for row in kept]
            tallies |= tally
        tell_errors(stage, checks.values())
        tell_tallies(stage, tallies, spec["data"])
        return rows

    path = relabelled_rows(stage, roll_out)
    group = field if balance else None
    own = read_training_rows(str(path), encoder, stage.journal, scored=not learns_every_token(stage), group_field=group)
    _, old = replay_rows(stage, encoder)
    return fit_rows(stage, own, old, balanced=balance, about=" that the specialists have written")


if __name__ == "__main__":
    sys.exit(main())
