"""How every recipe starts and ends: the command line, preflight, and an outcome for whatever goes wrong.

A recipe is `train(session) -> exit code` and a docstring; `run_recipe` does the rest. Exit code 0: done; 1: failed;
143: stopped or paused with a checkpoint to go on from. No torch is imported here: preflight answers before anything
heavy loads.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_runner import environment
from seesaw_runner.preflight.launch import SHARDED
from seesaw_runner.run_folder import (
    StageError,
    attempt_folder,
    attempt_number,
    describe,
    load_spec,
    report,
    say,
    write_outcome,
)

if TYPE_CHECKING:
    from seesaw_runner.training.session import Session

environment.apply(processes=int(os.environ.get("LOCAL_WORLD_SIZE", "1")))

#: Arguments that no recipe can follow, and why.
REFUSED_ARGUMENTS = {
    name: f"{SHARDED[name]}; every process keeps the whole model, start several with `launch`"
    for name in ("deepspeed", "fsdp")
}
#: And none that plans its batches.
SUPERVISED_REFUSED = {
    "packing": "rows are drawn one by one, so that the ledger of draws is exact",
    "padding_free": "rows are padded by length, so that the ledger of draws is exact",
}


def run_recipe(
    doc: str | None,
    train: Callable[[Session], int],
    argv: list[str] | None = None,
    refused: Mapping[str, str] = SUPERVISED_REFUSED,
) -> int:
    """Runs `train` for the run folder on the command line and gives the exit code.

    doc: the recipe's docstring, for --help. refused: further arguments (`args` of the stage) that preflight lets pass
    but this recipe cannot follow, with the reason. Everything the stage has to say goes to the journal, its own end to
    outcome.json, a few lines for people to stdout.
    """
    parser = argparse.ArgumentParser(
        description=doc,
        epilog="Exit code 0: done; 1: failed (outcome.json says why); 143: stopped or paused, with a checkpoint.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", nargs="?", type=Path, help="the run folder, with run.json in it")
    parser.add_argument(
        "--run",
        type=Path,
        help="the same; torchrun takes this option for its own --run-path, so give it the folder alone",
    )
    given = parser.parse_args(argv)
    if not (given.run or given.folder):
        parser.error("which run? Give the run folder.")
    run = (given.run or given.folder).resolve()
    attempt = attempt_folder(run)
    rank = int(os.environ.get("RANK", "0"))
    from seesaw_runner.journal import Journal, NullJournal

    journal = None
    try:
        spec = load_spec(run)
        journal = Journal(run / "journal.jsonl", attempt_number(attempt)) if rank == 0 else NullJournal()
        if rank == 0:
            say(f"Stage {spec['stage']} from {spec['start']['label']}, run {spec['id']}, {attempt.name}")
        preflight(spec, run, journal, {**REFUSED_ARGUMENTS, **refused})
        journal.append("stage.progress", phase="load", step=0, total=0, message="loading libraries")
        from seesaw_runner.training.session import Session

        session = Session(spec, run, attempt, journal)
        code, watch = train(session), session.watch
        del session  # and with it the model: the benchmarks are another process, which needs its memory
        from seesaw_runner.training.device import leave_process_group

        leave_process_group()
        if code == 0 and rank == 0 and spec.get("benchmark"):
            from seesaw_runner.benchmark.after_stage import benchmark_stage

            benchmark_stage(spec, run, journal, stopping=lambda: watch.signal is not None)
        return code
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        code, message, where = describe(error)
        if "torch" in sys.modules:
            from seesaw_runner.training.device import is_out_of_memory

            if is_out_of_memory(error):
                code, message = "out-of-memory", _memory_advice(error)
        if not isinstance(error, StageError):
            report(error)
        if rank == 0:
            say(f"Failed ({code}): {message}")
        write_outcome(attempt, code, message, where)
        return 143 if code == "cancelled" else 1
    finally:
        if journal is not None:
            journal.close()


def preflight(spec: dict, run: Path, journal, refused: Mapping[str, str]) -> None:
    """Everything that can be checked without loading anything. Findings become `warning` events; an error ends the
    run.
    """
    journal.append("stage.progress", phase="preflight", step=0, total=0)
    from seesaw_runner.findings import errors_of, failure_code
    from seesaw_runner.preflight import preflight as check

    findings = check(spec, run)
    for finding in findings:
        journal.append("warning", **finding.to_event())
        if finding.severity != "info" and int(os.environ.get("RANK", "0")) == 0:
            say(str(finding))
    for name, advice in refused.items():
        if spec["args"].get(name):
            raise StageError(
                "bad-argument", f"`args.{name}` cannot be used: {advice}. Remove it from the stage.", f"args.{name}"
            )
    errors = errors_of(findings)
    if errors:
        more = f" ({len(errors) - 1} more in the journal)" if len(errors) > 1 else ""
        raise StageError(
            failure_code(findings) or "preflight",
            f"{errors[0].message}. {errors[0].fix}{more}",
            errors[0].where or None,
        )


def _memory_advice(error: BaseException) -> str:
    from seesaw_runner.training.device import choose, peak_memory

    try:
        peak = f" The peak was {peak_memory(choose()) / 2**30:.1f} GiB."
    except Exception:  # the device itself may be gone
        peak = ""
    first = str(error).strip().splitlines()
    return (
        f"Out of memory: {first[0] if first else type(error).__name__}.{peak} Lower "
        "per_device_train_batch_size (and raise gradient_accumulation_steps), or max_length, or use an adapter."
    )
