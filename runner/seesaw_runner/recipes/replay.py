"""A short round on the rows of a replay buffer, after a stage has taught something else.

    python -m seesaw_runner.recipes.replay RUN_DIR

Option `buffer`: which one. The buffer is built as for mixed replay (quality gate, near-duplicates, coverage, quotas),
frozen in buffer.json, and every draw is in ledger.jsonl. How long: `args.max_steps`, or `args.num_train_epochs` over
the buffer.
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
    """Builds the buffer, trains on it alone. Returns the exit code."""
    from seesaw_runner.run_folder import StageError
    from seesaw_runner.training.rows import replay_rows
    from seesaw_runner.training.supervised import fit_rows

    stage.open()
    stage.options.take("buffer", None, str)
    if not stage.spec.get("replay"):
        raise StageError("bad-argument", "The recipe replay needs options.buffer, the buffer to train on.", "options")
    _, rows = replay_rows(stage, stage.encoder())
    return fit_rows(stage, [], rows, buffer_only=True, about=f" of the buffer {stage.spec['replay']['buffer']}")


if __name__ == "__main__":
    sys.exit(main())
