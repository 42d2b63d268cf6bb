"""Reinforcement learning of one stage with TRL's GRPOTrainer: full or LoRA, on checked answers, with probes and resume.

    python -m seesaw_runner.recipes.grpo --run RUN_DIR
    python -m torch.distributed.run --nproc_per_node N -m seesaw_runner.recipes.grpo RUN_DIR

Rows of `data` are prompts; each is answered `args.num_generations` times, and an answer's advantage is its reward
against the others of its group. Option `rewards`: a weighted sum of skills' checks, other checks, and functions of your
own (answer, row) → number; default: the check of the stage's own skill. `args.beta` above 0 holds the model to its
start by KL. Journalled: reward mean and spread, the share of groups whose rewards are all equal (they teach nothing),
lengths, KL, entropy, the shares cut and empty. `args.use_vllm` generates with vLLM where it is installed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from seesaw_runner.training.entry import SUPERVISED_REFUSED, run_recipe

if TYPE_CHECKING:
    from seesaw_runner.training.session import Session

REFUSED_ARGUMENTS = {
    **SUPERVISED_REFUSED,
    "sync_ref_model": "the moving copy of the reference is in no checkpoint, so a resumed run would differ",
    "reward_weights": "set `weight` of each reward under options.rewards",
    "log_completions": "answers of probes are in the traces; those of the training would fill the disk",
    "shuffle_dataset": "the order of the prompts is planned",
}
METRICS = ("reward", "reward_std", "frac_reward_zero_std", "kl", "clip_ratio/region_mean")
METRICS += tuple(
    f"completions/{name}" for name in ("mean_length", "min_length", "max_length", "clipped_ratio", "empty")
)


def main(argv: list[str] | None = None) -> int:
    return run_recipe(__doc__, train, argv, REFUSED_ARGUMENTS)


def train(stage: Session) -> int:
    """Load, read prompts and rewards, score the start, roll out and learn, save. Returns the exit code."""
    from datasets import Dataset
    from trl import GRPOConfig

    from seesaw_runner.rewards.reward import rewards_of
    from seesaw_runner.rollouts.prompts import read_prompts
    from seesaw_runner.training.arguments import trainer_arguments
    from seesaw_runner.training.grpo_trainer import GroupTrainer, batches_of, hold_to_start, plan_groups

    spec, arguments = stage.spec, stage.arguments
    stage.without_replay("its rows are prompts that the model answers")
    rows: list[dict] = []
    rewards = rewards_of(stage, rows)
    try:
        stage.open()
        room = int(arguments.get("max_completion_length") or 256)
        prompts = read_prompts(spec["data"], stage.encoder(None), stage, room=room)
        rows += [prompt.value for prompt in prompts]
        shape = batches_of(stage)
        steps, plan = plan_groups(stage, shape, prompts)
        per_step = stage.batch * stage.accumulation * stage.world
        mean = sum(len(prompt.ids) for prompt in prompts) // len(prompts) + room // 2  # answers are not there yet
        stage.begin(
            steps=steps,
            tokens=[mean * per_step] * steps,
            rows=len(prompts),
            about=f" of prompts, {shape.generations} answers each",
        )
        if stage.finished:
            return stage.probe_finished()
        trainer = GroupTrainer(
            model=stage.model,
            args=GRPOConfig(
                **trainer_arguments(
                    arguments,
                    stage.run,
                    steps,
                    stage.seed,
                    stage.device,
                    {"reward_weights": [reward.weight for reward in rewards], "num_generations": shape.generations},
                )
            ),
            reward_funcs=rewards,
            train_dataset=Dataset.from_dict(
                {"prompt": [prompt.text for prompt in prompts], "index": list(range(len(prompts)))}
            ),
            processing_class=stage.tokenizer,
            peft_config=stage.peft_config(),
        )
        hold_to_start(trainer, stage)
        trainer.prepare_groups(shape, {prompt.text: prompt.ids for prompt in prompts}, stage)
        names = tuple(f"rewards/{reward.name}/{what}" for reward in rewards for what in ("mean", "std"))
        stage.attach(trainer, plan, metrics=METRICS + names)
        return stage.fit(trainer)
    finally:
        for reward in rewards:
            reward.close()


if __name__ == "__main__":
    sys.exit(main())
