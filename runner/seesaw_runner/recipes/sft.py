"""Supervised fine-tuning of one stage with TRL's SFTTrainer: full or LoRA, with replay, probes, flags and resume.

    python -m seesaw_runner.recipes.sft --run RUN_DIR
    python -m torch.distributed.run --nproc_per_node N -m seesaw_runner.recipes.sft RUN_DIR

Reads RUN_DIR/run.json and nothing else. Option `balance: <field>`: an equal share of every batch for each value of that
field. To write another recipe, copy this file: `train` is the list of what happens; what all recipes share is in
`seesaw_runner.training`.
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
    """Load, score the start, train with probes, save. Returns the exit code."""
    from seesaw_runner.training.rows import read_training_rows, replay_rows
    from seesaw_runner.training.supervised import fit_rows, learns_every_token

    stage.open()
    balance = stage.options.take("balance", None, str)
    # Own rows and replayed rows are encoded by the same code that encodes the probes.
    encoder, scored = stage.encoder(), not learns_every_token(stage)
    own = read_training_rows(stage.spec["data"], encoder, stage.journal, scored=scored, group_field=balance)
    _, old = replay_rows(stage, encoder)
    return fit_rows(stage, own, old, balanced=balance is not None)


if __name__ == "__main__":
    sys.exit(main())
