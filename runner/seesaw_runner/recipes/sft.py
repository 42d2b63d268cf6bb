"""Supervised fine-tuning of one stage with TRL's SFTTrainer: full or LoRA, with replay, probes, flags and resume.

    python -m seesaw_runner.recipes.sft --run RUN_DIR
    python -m torch.distributed.run --nproc_per_node N -m seesaw_runner.recipes.sft RUN_DIR

Reads RUN_DIR/run.json and nothing else. To write another recipe, copy this file: `train` reads from top to bottom and
is the list of what happens; what all recipes share is in `seesaw_runner.training`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from seesaw_runner.training.entry import run_recipe

if TYPE_CHECKING:
    from seesaw_runner.training.session import Session

#: Arguments that preflight lets pass but this recipe cannot follow, and why.
REFUSED_ARGUMENTS = {
    "packing": "rows are drawn one by one, so that the ledger of draws is exact",
    "padding_free": "rows are padded by length, so that the ledger of draws is exact",
}


def main(argv: list[str] | None = None) -> int:
    return run_recipe(__doc__, train, REFUSED_ARGUMENTS, argv)


def train(stage: Session) -> int:
    """Load, score the start, train with probes, save. Returns the exit code."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    from seesaw_runner.training.arguments import trainer_arguments
    from seesaw_runner.training.plan import make_plan, total_steps
    from seesaw_runner.training.rows import labels, read_training_rows, replay_rows
    from seesaw_runner.training.session import bad_data
    from seesaw_runner.training.stage_trainer import StageTrainer

    class Trainer(StageTrainer, SFTTrainer):
        pass

    spec, arguments = stage.spec, stage.arguments
    stage.open()

    # Data: own rows and replayed rows, encoded by the same code that encodes the probes.
    every_token = not arguments.get("assistant_only_loss", True)
    encoder = stage.encoder()
    own = read_training_rows(spec["data"], encoder, stage.journal, scored=not every_token)
    buffer, old = replay_rows(spec, stage.run, encoder, stage.journal, stage.attempt)
    rows = own + [row for _, row in old]
    lengths = [len(row.ids) for row in rows]
    steps = total_steps(
        len(own),
        stage.batch * stage.accumulation * stage.world,
        int(arguments.get("max_steps", -1)),
        float(arguments.get("num_train_epochs", 3)),
    )
    try:
        plan = make_plan(
            lengths=lengths,
            own=len(own),
            steps=steps,
            batch=stage.batch,
            accumulation=stage.accumulation,
            world=stage.world,
            ratio=float(spec["replay"]["ratio"]) if buffer else 0.0,
            seed=stage.seed,
        )
    except ValueError as error:
        raise bad_data(error) from error
    dataset = Dataset.from_dict({"input_ids": [r.ids for r in rows], "labels": [labels(r, every_token) for r in rows]})

    # Start: score M(k−1) on every probe before anything moves.
    stage.begin(
        steps=steps,
        tokens=[sum(lengths[i] for i in plan.rows_of(s)) for s in range(1, steps + 1)],
        rows=len(own),
        replay_rows=len(old),
        about=f" and {len(old)} to replay" if buffer else "",
    )
    if stage.finished:
        return stage.probe_finished()

    # Train.
    encoded = {"dataset_kwargs": {"skip_prepare_dataset": True}, "assistant_only_loss": False}
    trainer = Trainer(
        model=stage.model,
        args=SFTConfig(**trainer_arguments(arguments, stage.run, steps, stage.seed, stage.device, encoded)),
        train_dataset=dataset,
        processing_class=stage.tokenizer,
        peft_config=stage.peft_config(),
    )
    stage.attach(trainer, plan)
    if buffer:
        stage.keep_ledger(trainer, plan, [row_hash for row_hash, _ in old])
    return stage.fit(trainer)


if __name__ == "__main__":
    sys.exit(main())
