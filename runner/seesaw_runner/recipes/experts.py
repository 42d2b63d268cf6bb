"""One expert: a LoRA adapter for one skill on the frozen base, trained by itself in a run folder of its own.

    python -m seesaw_runner.recipes.experts RUN_DIR

Experts know nothing of each other: each is a stage that starts from the base model, can be trained again or thrown away
alone, and to roll one back is not to load it. The recipe `router` picks one for each prompt. After the training it is
checked that the base model has not moved by a single bit.
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
    """Trains the adapter, and proves that nothing else changed. Returns the exit code."""
    from seesaw_runner.run_folder import StageError
    from seesaw_runner.training.frozen import digest_of
    from seesaw_runner.training.rows import read_training_rows, replay_rows
    from seesaw_runner.training.supervised import fit_rows, learns_every_token

    if not stage.adapter:
        raise StageError("bad-argument", "An expert is an adapter: describe it under `adapter`.", "adapter")
    stage.open()
    balance = stage.options.take("balance", None, str)
    encoder, scored = stage.encoder(), not learns_every_token(stage)
    own = read_training_rows(stage.spec["data"], encoder, stage.journal, scored=scored, group_field=balance)
    _, old = replay_rows(stage, encoder)
    frozen = dict(stage.model.named_parameters())
    before = digest_of(frozen)
    code = fit_rows(stage, own, old, balanced=balance is not None)
    if digest_of(frozen) != before:
        raise StageError(
            "exception",
            "The base model changed while the expert was trained. Its adapter is not to be used; report this with the "
            "stage's `adapter` block.",
        )
    return code


if __name__ == "__main__":
    sys.exit(main())
