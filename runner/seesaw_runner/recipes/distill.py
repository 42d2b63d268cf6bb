"""On-policy distillation from one teacher per domain: the student answers, the teacher of the row's domain scores it.

    python -m seesaw_runner.recipes.distill --run RUN_DIR
    python -m torch.distributed.run --nproc_per_node N -m seesaw_runner.recipes.distill RUN_DIR

Rows of `data` are prompts that name their domain in `domain_field`; `teachers` says who scores which. A teacher is a
checkpoint of the same vocabulary, or an OpenAI-compatible endpoint that returns log-probabilities of a prompt. TRL has
one teacher per trainer, so the loop is our own, on transformers' Trainer.

Options: `teachers`, `domain_field`, `loss` (reverse-kl, forward-kl, gkd with `beta`, entropy-aware with
`entropy_threshold`), `temperature`, `top_p`, `max_new_tokens`, `load` (auto, together, one-by-one), `top_k` (of
endpoints and stored outputs), `offline` (teachers answer once, beforehand). Told for each domain: loss, tokens, length,
entropies, the share cut or empty, and the rows dropped (no score) or masked (no token).
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
    """Load the student and what teachers fit, score the start, roll out and learn, save. Returns the exit code."""
    from datasets import Dataset
    from transformers import TrainingArguments

    from seesaw_runner.distillation.losses import LOSSES
    from seesaw_runner.distillation.offline import stored_examples
    from seesaw_runner.distillation.pool import teacher_pool
    from seesaw_runner.distillation.trainer import Distilling, DistillTrainer, Example, metric_names
    from seesaw_runner.rollouts.prompts import read_prompts
    from seesaw_runner.rollouts.settings import sampler_of
    from seesaw_runner.training.arguments import trainer_arguments
    from seesaw_runner.training.plan import make_plan, total_steps

    spec, options, arguments = stage.spec, stage.options, stage.arguments
    loss = options.take("loss", "reverse-kl", str, among=LOSSES)
    beta = options.take("beta", 0.5, float, least=0.0, most=1.0)
    threshold = options.take("entropy_threshold", 0.8, float, least=0.0)
    for name, needed in (("beta", "gkd"), ("entropy_threshold", "entropy-aware")):
        if name in options and loss != needed:
            raise options.error(name, f"is only of the loss {needed}, and the loss is {loss}")
    field = options.take("domain_field", "data_source", str)
    top_k = options.take("top_k", 16, int, least=1)
    offline = options.take("offline", False, bool)
    stage.without_replay("its rows are prompts that the student answers")
    stage.open()
    pool = teacher_pool(stage, top_k=top_k, offline=offline)
    sampler = sampler_of(stage)
    domains = tuple(pool.domains)
    encoder = stage.encoder(None)
    prompts = read_prompts(
        spec["data"], encoder, stage, room=sampler.max_new_tokens, domain_field=field, domains=domains
    )
    options.finish()
    if offline:
        examples = stored_examples(stage, prompts, pool.local, sampler, top_k=top_k, batch=stage.batch)
    else:
        examples = [Example(prompt.ids, prompt.domain) for prompt in prompts]
    steps = total_steps(
        len(examples),
        stage.batch * stage.accumulation * stage.world,
        int(arguments.get("max_steps", -1)),
        float(arguments.get("num_train_epochs", 3)),
    )
    plan = make_plan(
        lengths=[len(example.prompt) for example in examples],
        own=len(examples),
        steps=steps,
        batch=stage.batch,
        accumulation=stage.accumulation,
        world=stage.world,
        seed=stage.seed,
    )
    guess = sampler.max_new_tokens // 2  # answers are not there yet
    stage.begin(
        steps=steps,
        tokens=[sum(len(examples[i].prompt) + guess for i in plan.rows_of(s)) for s in range(1, steps + 1)],
        rows=len(examples),
        about=f" of {len(domains)} domains; {pool.told}",
    )
    if stage.finished:
        return stage.probe_finished()
    trainer = DistillTrainer(
        model=stage.with_adapter(),
        args=TrainingArguments(
            **trainer_arguments(arguments, stage.run, steps, stage.seed, stage.device, {"remove_unused_columns": False})
        ),
        train_dataset=Dataset.from_dict({"index": list(range(len(examples)))}),
        processing_class=stage.tokenizer,
        tokenizer=stage.tokenizer,
    )
    trainer.examples = examples
    trainer.how = Distilling(
        pool.score, loss, beta, threshold, sampler.temperature, sampler.top_p, sampler.max_new_tokens, stage.seed
    )
    stage.attach(trainer, plan, metrics=metric_names(domains))
    return stage.fit(trainer)


if __name__ == "__main__":
    sys.exit(main())
