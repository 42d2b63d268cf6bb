"""The user's own training, whatever it is: run it, score its checkpoints as they appear, read its logs.

    python -m seesaw_runner.recipes.command --run RUN_DIR

Options: `run` (a list of words, or a shell line), `cwd`, `checkpoints` and `logs` (globs), `format`, `score_on`.
Placeholders {start} {data} {run} {output} {seed} {resume} {python} are filled in, and set as SEESAW_START and so on.
Checkpoints stay where the command writes them. Its output goes to out.log; metrics are read from it, from `logs`, and
from trainer_state.json. The command has priority: scoring runs beside it on the CPU, niced, unless `score_on` says
otherwise. A new attempt starts the command again and offers it the newest checkpoint to resume from.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

_GIVEN = dict(os.environ)  # before our own settings come: the command gets what the user has

from seesaw_runner.run_folder import StageError  # noqa: E402
from seesaw_runner.training.entry import run_recipe  # noqa: E402

if TYPE_CHECKING:
    from seesaw_runner.training.session import Session

#: Settings of a stage that belong to Seesaw's own training.
UNUSED = {
    "args": "put its arguments into `options.run`",
    "adapter": "the command decides what it trains",
    "replay": "the command decides what it trains on",
    "save_every": "the command decides when it saves",
}


@dataclass
class Settings:
    """`run` as written. checkpoints, logs: absolute globs, placeholders filled in."""

    run: list[str] | str
    cwd: Path
    checkpoints: list[str]
    logs: str | None
    format: str
    score_on: str
    values: dict[str, str]


def main(argv: list[str] | None = None) -> int:
    return run_recipe(__doc__, train, argv, refused={})


def train(stage: Session) -> int:
    """Check, score the start, run the command with its checkpoints scored beside it, score what is left."""
    from seesaw_runner.foreign.command_run import CommandRun

    refuse_unused(stage)
    settings = read_settings(stage)
    stage.options.finish()
    stage.arguments["use_cpu"] = settings.score_on == "cpu"
    if ":" in settings.score_on:
        os.environ["LOCAL_RANK"] = settings.score_on.partition(":")[2]  # how `device.choose` counts
    stage.open(weights=bool(stage.spec["skills"]))
    return CommandRun(stage, settings, _GIVEN).go()


def refuse_unused(stage: Session) -> None:
    """Trust first; and what is set and would be ignored is an error."""
    if not stage.spec.get("trusted"):
        raise StageError(
            "untrusted", "A command runs only in a workspace that you trust. Trust it, then run the stage again."
        )
    for name, why in UNUSED.items():
        if stage.spec.get(name):
            raise StageError("bad-argument", f"`{name}` has no effect on a command: {why}. Remove it.", name)
    if stage.world > 1 or stage.spec["launch"]["kind"] != "python":
        raise StageError(
            "bad-argument", "`launch` has no effect on a command: write torchrun into `options.run`.", "launch"
        )


def read_settings(stage: Session) -> Settings:
    from seesaw_runner.foreign.checkpoints import FORMATS
    from seesaw_runner.foreign.placeholders import fill, used

    take, root = stage.options.take, Path(stage.spec["pipeline"]["root"])
    run = take("run", None, (list, str))
    if not run or (isinstance(run, list) and not all(isinstance(word, str) for word in run)):
        raise stage.options.error("run", "must be a list of words, such as [python, train.py], or a shell line")
    if isinstance(run, list) and not run[0].strip():
        raise stage.options.error("run", "begins with an empty word; its first word is the program")
    cwd = root / take("cwd", str(root), str)
    if not cwd.is_dir():
        raise stage.options.error("cwd", f"names {cwd}, which is no folder")
    patterns, logs = take("checkpoints", None, str), take("logs", None, str)
    form = take("format", "auto", str, among=FORMATS)
    score_on = take("score_on", "cpu", str)
    if score_on not in ("cpu", "gpu") and not score_on.removeprefix("gpu:").isdigit():
        raise stage.options.error("score_on", f"is {score_on!r}; it can be cpu, gpu or gpu:1")
    values = placeholder_values(stage)
    written = {*used(run), *used([patterns or "", logs or ""])}
    if "data" in written and not stage.spec.get("data"):
        raise stage.options.error("run", "uses {data}, but the stage has no `data`")
    if "resume" in used([patterns or "", logs or ""]):
        raise stage.options.error("checkpoints" if "{resume}" in (patterns or "") else "logs", "cannot use {resume}")
    (stage.run / "output").mkdir(exist_ok=True)
    globs = [patterns] if patterns else ["{output}", "{output}/*"]
    absolute = [os.path.normpath(root / fill(glob, values)) for glob in globs]
    return Settings(
        run, cwd, absolute, os.path.normpath(root / fill(logs, values)) if logs else None, form, score_on, values
    )


def placeholder_values(stage: Session) -> dict[str, Any]:
    """What {start} and the others stand for; `resume` is filled in when it is known."""
    return {
        "start": stage.spec["start"]["checkpoint"],
        "data": stage.spec.get("data") or "",
        "run": str(stage.run),
        "output": str(stage.run / "output"),
        "seed": str(stage.seed),
        "resume": "",
        "python": sys.executable,
    }


if __name__ == "__main__":
    sys.exit(main())
