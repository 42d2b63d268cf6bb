"""A stage without training: checkpoints merged in weight space, then scored and looked at like any other.

    python -m seesaw_runner.recipes.merge --run RUN_DIR

Average, linear, SLERP, task arithmetic, TIES and DARE (`seesaw_runner.merging.methods` has the formulas). Weights are
streamed from safetensors to safetensors; adapters of one base become one adapter, exactly. `merge-report.json` says
what rounding to the storage type left of the change, and what the answers look like after the merge.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_runner.run_folder import StageError, say, write_outcome
from seesaw_runner.training.entry import run_recipe

if TYPE_CHECKING:
    from seesaw_runner.training.session import Session
    from seesaw_runner.weights.source import WeightSource

#: Settings of a stage that a merge has no use for.
UNUSED = {"adapter": "trains no adapter", "replay": "trains on no rows", "save_every": "saves once"}
REPORT = "merge-report.json"


class Stopped(Exception):
    """SIGTERM or SIGINT came during the merge."""


def main(argv: list[str] | None = None) -> int:
    return run_recipe(__doc__, train, argv=argv)


def train(stage: Session) -> int:
    """Score the start, merge, publish, score again, look at the answers. Returns the exit code."""
    from seesaw_runner.checkpoints import saving
    from seesaw_runner.merging.options import read_options
    from seesaw_runner.merging.smoke import smoke_test

    refuse_unused(stage)
    options = read_options(stage.options.values)
    for name in stage.options.values:
        stage.options.take(name)
    probed = bool(stage.spec["skills"])
    if not probed and options.smoke:
        stage.warn(
            "smoke-test",
            "There are no skills to score, so nothing looks at the merged model's answers.",
            severity="info",
        )
    stage.open(weights=probed)
    stage.begin(steps=1, tokens=[0], rows=0, trainable=0)
    stage.model = None
    if stage.prober:
        stage.prober.let_go()  # the start's memory is free while the merge runs

    if stage.finished:
        path = stage.finished
        stage.probe_finished()
    else:
        try:
            path = merge_models(stage, options)
        except Stopped:
            saving.remove_leftovers(stage.run)
            write_outcome(
                stage.attempt, "cancelled", "Stopped during the merge. Run the stage again; a merge starts over."
            )
            return 143
        if stage.probing:
            stage.probing.probe(stage.load(path), 1)
    if options.smoke and probed:
        report = json.loads((stage.run / REPORT).read_text(encoding="utf-8"))
        report["smoke"], warnings = smoke_test(stage.run, stage.spec["skills"], after=1)
        for sentence in warnings:
            stage.warn(
                "smoke-test", sentence, where=path.name, fix="Merge with smaller weights, or choose another method."
            )
        write_report(stage.run, report)
    return stage.ended(1)


def refuse_unused(stage: Session) -> None:
    """What is set and would be ignored is an error."""
    for name, why in UNUSED.items():
        if stage.spec.get(name):
            raise StageError("bad-argument", f"`{name}` cannot be set: a merge {why}. Remove it from the stage.", name)
    if stage.world > 1:
        raise StageError("bad-argument", "A merge runs in one process. Remove `launch` from the stage.", "launch")


def merge_models(stage: Session, options) -> Path:
    """The merged checkpoint, published; its report is written first, so that it is there whenever the checkpoint is."""
    from seesaw_runner.checkpoints import saving
    from seesaw_runner.merging.merge import merge

    stage.journal.append("stage.progress", phase="train", step=0, total=1, message=f"merging ({options.method})")
    found = [source(stage, reference) for reference, _ in options.models]
    models, hashes = [s for s, _ in found], [h for _, h in found]
    base, _ = source(stage, options.base)
    temporary = saving.begin(stage.run / "checkpoints", 1)
    (temporary / "resume").rmdir()  # there is nothing to go on with
    try:
        report = merge(options, models, base, temporary, hashes=hashes, seed=stage.seed, tell=progress(stage))
        for sentence in report["notes"]:
            stage.warn("merge", sentence, severity="info")
        for sentence in report["warnings"]:
            stage.warn("merge-rounding", sentence)
        write_report(stage.run, {**report, "smoke": None})
        path = stage.publish(temporary, 1, report["output"])
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    total = report["total"]
    values = {
        f"merge/{k}": total[k] for k in ("changed", "cosine", "wanted", "stored", "error") if total[k] is not None
    }
    stage.journal.append("metric", step=1, values=values)
    stage.journal.append("stage.progress", phase="train", step=1, total=1)
    changed = f"{total['changed']:.1%} of the entries changed"
    say(f"merged {len(models)} models ({options.method}) in {report['seconds']:.1f} s; {changed}")
    return path


def source(stage: Session, reference: str) -> tuple[WeightSource, str]:
    """A model that the options name, and the hash of its weights."""
    from seesaw_runner.checkpoints.saving import weights_hash
    from seesaw_runner.weights.source import WeightSource

    found = (stage.spec.get("models") or {}).get(reference)
    if found is None and reference == "base":
        found = {"checkpoint": stage.spec["base"], "label": "M0"}
    if found is None:
        raise stage.options.error("models", f"names {reference!r}, which run.json has no checkpoint for")
    label = str(found.get("label") or reference)
    named = label if label in (reference, "M0") else f"{label} ({reference})"
    return WeightSource(found["checkpoint"], named), found.get("weights_hash") or weights_hash(found["checkpoint"])


def progress(stage: Session):
    """Tells of the tensors that are done, at most once a second; raises Stopped after a signal."""
    import time

    told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        if stage.watch.signal is not None:
            raise Stopped
        if time.monotonic() - told >= 1:
            told = time.monotonic()
            message = f"merging: {done} of {total} tensors"
            stage.journal.append("stage.progress", phase="train", step=0, total=1, message=message)

    return tell


def write_report(run: Path, report: dict) -> None:
    """Whole or not at all."""
    from seesaw_runner.wire_numbers import encode

    temporary = run / f"{REPORT}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(encode(report), file, indent=1, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, run / REPORT)


if __name__ == "__main__":
    sys.exit(main())
