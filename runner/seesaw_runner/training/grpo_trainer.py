"""TRL's GRPOTrainer with planned prompts, prompts encoded as the probes are, and an exact resume."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trl import GRPOTrainer

from seesaw_runner.rollouts.prompts import Prompt
from seesaw_runner.run_folder import StageError
from seesaw_runner.training.plan import BatchPlan, make_plan, total_steps
from seesaw_runner.training.stage_trainer import StageTrainer

#: Steps in which the rewards of every group were equal, one after another, that are worth a word.
MANY_EQUAL_STEPS = 5


@dataclass(frozen=True)
class GroupShape:
    """`generations`: answers per prompt. `prompts`: distinct prompts answered together, over all processes. `repeats`:
    micro-batches that one round of answers serves.
    """

    generations: int
    prompts: int
    repeats: int


def batches_of(stage) -> GroupShape:
    """How TRL will batch this stage. StageError when its numbers do not divide."""
    given = stage.arguments
    generations = int(given.get("num_generations") or 8)
    local = stage.batch * stage.world
    if given.get("generation_batch_size") is not None and given.get("steps_per_generation") is not None:
        raise StageError(
            "bad-argument", "Set generation_batch_size or steps_per_generation, not both.", "args.steps_per_generation"
        )
    together = int(
        given.get("generation_batch_size") or local * int(given.get("steps_per_generation") or stage.accumulation)
    )
    if together % local or together % generations:
        raise StageError(
            "bad-argument",
            f"{together} answers are generated together (per_device_train_batch_size × processes × accumulation). They "
            f"must be whole groups of num_generations = {generations} and whole batches of {local}: change one.",
            "args.num_generations",
        )
    if generations < 2:
        raise StageError(
            "bad-argument",
            "num_generations must be at least 2: an answer is compared with its group.",
            "args.num_generations",
        )
    iterations = int(given.get("num_iterations") or 1)
    return GroupShape(generations, together // generations, together // local * iterations)


def plan_groups(stage, shape: GroupShape, prompts: Sequence[Prompt]) -> tuple[int, BatchPlan]:
    """Optimizer steps, and which prompts are answered in each round."""
    per_step = stage.batch * stage.accumulation * stage.world
    steps = total_steps(
        len(prompts) * shape.generations,
        per_step,
        int(stage.arguments.get("max_steps", -1)),
        float(stage.arguments.get("num_train_epochs", 3)),
    )
    rounds = math.ceil(steps * stage.accumulation / shape.repeats)
    plan = make_plan(
        lengths=[len(prompt.ids) for prompt in prompts],
        own=len(prompts),
        steps=rounds,
        batch=shape.prompts,
        seed=stage.seed,
    )
    return steps, plan


class GroupSampler:
    """Each round's prompts, each `generations` times, the whole `repeats` times: the order GRPOTrainer expects."""

    def __init__(self, plan: BatchPlan, shape: GroupShape):
        self.plan, self.shape = plan, shape

    def __iter__(self) -> Iterator[int]:
        for step in range(1, self.plan.steps + 1):
            answers = [i for i in self.plan.rows_of(step) for _ in range(self.shape.generations)]
            for _ in range(self.shape.repeats):
                yield from answers

    def __len__(self) -> int:
        return len(self.plan.order) * self.shape.generations * self.shape.repeats


class GroupTrainer(StageTrainer, GRPOTrainer):
    """Set up with `prepare_groups` right after construction, before `Session.attach`."""

    def prepare_groups(self, shape: GroupShape, ids: dict[str, list[int]], stage) -> None:
        """ids: each prompt's text → its token ids. A resumed run goes on in the middle of its round's micro-batches."""
        self.shape, self.prompt_ids, self.stage = shape, ids, stage
        self._step = (stage.resume[0] if stage.resume else 0) * stage.accumulation
        self.equal_steps = 0

    def _get_train_sampler(self, dataset=None):
        return GroupSampler(self.plan, self.shape)

    def _tokenize_prompts(self, prompts: list):
        # Rendered and tokenized once, as everywhere in Seesaw; TRL would add the first token again.
        return [list(self.prompt_ids[text]) for text in prompts], None, {}

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        empty = sum(not text.strip() for text in completions) / max(1, len(completions))
        self._metrics["train"]["completions/empty"].append(empty)
        return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        equal = self._metrics["train"].get("frac_reward_zero_std") or []
        if equal:
            self.equal_steps = self.equal_steps + 1 if min(equal) >= 1 else 0
            if self.equal_steps == MANY_EQUAL_STEPS:
                self.stage.warn(
                    "equal-rewards",
                    f"In {MANY_EQUAL_STEPS} steps in a row all answers to a prompt had the same reward: nothing "
                    "is learned from them.",
                    where=f"step {self.state.global_step}",
                    fix="Use easier or harder prompts, more generations, a higher temperature, or a finer reward.",
                )
        super().log(logs, start_time)


def hold_to_start(trainer: GRPOTrainer, stage) -> None:
    """With `beta` above 0 and no adapter, TRL loads the reference by the model's name; make it the start exactly."""
    if trainer.ref_model is not None:
        reference = trainer.accelerator.unwrap_model(trainer.ref_model)
        reference.load_state_dict(stage.load(stage.spec["start"]["checkpoint"]).state_dict())
        reference.eval().requires_grad_(False)
