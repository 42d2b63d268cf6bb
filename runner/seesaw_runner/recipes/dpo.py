"""Direct preference optimisation of one stage with TRL's DPOTrainer: full or LoRA, with probes, flags and resume.

    python -m seesaw_runner.recipes.dpo --run RUN_DIR
    python -m torch.distributed.run --nproc_per_node N -m seesaw_runner.recipes.dpo RUN_DIR

Rows of `data` have a chosen and a rejected answer to one prompt. Option `reference`: the model that the margins are
measured against. `start` (the default) is the stage's start; with an `adapter` that is the model with the adapter
switched off, which takes no memory of its own. Journalled: reward margins and accuracies, and the log-probabilities of
both sides, because margins also grow while both answers become less likely.
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
}
METRICS = tuple(f"rewards/{name}" for name in ("margins", "accuracies", "chosen", "rejected"))
METRICS += ("logps/chosen", "logps/rejected")


def main(argv: list[str] | None = None) -> int:
    return run_recipe(__doc__, train, argv, REFUSED_ARGUMENTS)


def train(stage: Session) -> int:
    """Load model and reference, score the start, train with probes, save. Returns the exit code."""
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    from seesaw_runner.run_folder import StageError
    from seesaw_runner.training.arguments import trainer_arguments
    from seesaw_runner.training.compatible import must_share_vocabulary
    from seesaw_runner.training.placement import in_parts
    from seesaw_runner.training.plan import make_plan, total_steps
    from seesaw_runner.training.preferences import read_preferences
    from seesaw_runner.training.stage_trainer import StageTrainer

    class Trainer(StageTrainer, DPOTrainer):
        def _prepare_dataset(self, dataset, *args, **kwargs):
            return dataset  # it is encoded already, by the same code that encodes the probes

    spec, arguments = stage.spec, stage.arguments
    reference = stage.options.take("reference", "start", str)
    if reference != "start":
        must_share_vocabulary(
            spec["start"]["checkpoint"], stage.model_folder(reference, "reference"), "The reference model"
        )
    stage.without_replay("rows of a buffer have no rejected answer")
    stage.open()
    rows = read_preferences(spec["data"], stage.encoder(), stage)
    lengths = [row.length for row in rows]
    steps = total_steps(
        len(rows),
        stage.batch * stage.accumulation * stage.world,
        int(arguments.get("max_steps", -1)),
        float(arguments.get("num_train_epochs", 3)),
    )
    plan = make_plan(
        lengths=lengths,
        own=len(rows),
        steps=steps,
        batch=stage.batch,
        accumulation=stage.accumulation,
        world=stage.world,
        seed=stage.seed,
    )
    stage.begin(
        steps=steps,
        tokens=[sum(lengths[i] for i in plan.rows_of(s)) for s in range(1, steps + 1)],
        rows=len(rows),
        about=" of preferences",
    )
    if stage.finished:
        return stage.probe_finished()

    frozen = None
    if reference != "start":
        stage.loading(f"loading the reference model {reference}")
        frozen = stage.load(stage.model_folder(reference, "reference"), frozen=True, beside_training=True)
    elif not stage.adapter:
        stage.loading("loading the reference model")
        frozen = stage.load(spec["start"]["checkpoint"], frozen=True, beside_training=True)
    if frozen is not None and stage.world > 1 and in_parts(frozen):
        raise StageError(
            "out-of-memory",
            "The reference model does not fit beside the trained one, and parts of it cannot serve several processes. "
            "Train an `adapter` (the reference then takes no memory), or remove `launch` from the stage.",
            "launch",
        )
    trainer = Trainer(
        model=stage.model,
        ref_model=frozen.eval().requires_grad_(False) if frozen is not None else None,
        args=DPOConfig(**trainer_arguments(arguments, stage.run, steps, stage.seed, stage.device)),
        train_dataset=Dataset.from_dict(
            {
                "prompt_ids": [row.prompt for row in rows],
                "chosen_ids": [row.chosen for row in rows],
                "rejected_ids": [row.rejected for row in rows],
            }
        ),
        processing_class=stage.tokenizer,
        peft_config=stage.peft_config(),
    )
    stage.attach(trainer, plan, metrics=METRICS)
    return stage.fit(trainer)


if __name__ == "__main__":
    sys.exit(main())
