"""Supervised fine-tuning of one stage with TRL's SFTTrainer: full or LoRA, with replay, probes, flags and resume.

    python -m seesaw_runner.recipes.sft --run RUN_DIR
    python -m torch.distributed.run --nproc_per_node N -m seesaw_runner.recipes.sft RUN_DIR

Reads RUN_DIR/run.json and nothing else. Everything it has to say goes to the journal, its own end to outcome.json,
a few lines for people to stdout. Exit code 0: done; 1: failed; 143: stopped with a checkpoint to go on from. To write
another recipe, copy this file: it reads from top to bottom, and `main` is the list of what happens.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from seesaw_runner import environment

environment.apply(processes=int(os.environ.get("LOCAL_WORLD_SIZE", "1")))

from seesaw_runner.run_folder import (  # noqa: E402
    StageError,
    attempt_folder,
    attempt_number,
    describe,
    load_spec,
    report,
    say,
    write_outcome,
)

#: Arguments that preflight lets pass but this recipe cannot follow, and why.
REFUSED_ARGUMENTS = {
    "packing": "rows are drawn one by one, so that the ledger of draws is exact",
    "padding_free": "rows are padded by length, so that the ledger of draws is exact",
    "deepspeed": "only one process per GPU with whole weights is supported",
    "fsdp": "only one process per GPU with whole weights is supported",
}
#: Accepted, and done by the batch plan instead.
PLANNED_ARGUMENTS = (
    "train_sampling_strategy",
    "group_by_length",
    "assistant_only_loss",
    "logging_steps",
    "max_steps",
    "num_train_epochs",
)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
        preflight(spec, run, journal)
        code = train(spec, run, attempt, journal)
        from seesaw_runner.training.device import leave_process_group

        leave_process_group()
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
        return 1
    finally:
        if journal is not None:
            journal.close()


# ---- before torch


def preflight(spec: dict, run: Path, journal) -> None:
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
    for name, advice in REFUSED_ARGUMENTS.items():
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


# ---- the stage


def train(spec: dict, run: Path, attempt: Path, journal) -> int:
    """Load, score the start, train with probes, save. Returns the exit code."""
    journal.append("stage.progress", phase="load", step=0, total=0, message="loading libraries")
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback, set_seed
    from transformers.utils import logging as library_logging
    from trl import SFTConfig, SFTTrainer

    from seesaw_runner.checkpoints import saving
    from seesaw_runner.journal import read_events, standing_events
    from seesaw_runner.probing.callback import ProbeCallback, eval_steps, probe_steps
    from seesaw_runner.probing.prober import Prober
    from seesaw_runner.probing.selection import probes_are_dear
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.training.callbacks import LedgerCallback, ProgressCallback, SaveCallback, StopWatch
    from seesaw_runner.training.device import choose
    from seesaw_runner.training.loading import context_length, load_model, load_tokenizer
    from seesaw_runner.training.plan import make_plan, total_steps
    from seesaw_runner.training.stage_trainer import StageTrainer

    class Trainer(StageTrainer, SFTTrainer):
        pass

    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    arguments, seed = dict(spec["args"]), int(spec["seed"])
    library_logging.disable_progress_bar()
    watch = StopWatch(journal)
    watch.install()
    device = choose(force_cpu=bool(arguments.get("use_cpu")))
    set_seed(seed)

    # Model: the start checkpoint in full precision, or under an adapter in the device's own.
    start = spec["start"]["checkpoint"]
    journal.append("stage.progress", phase="load", step=0, total=0, message="loading the model")
    tokenizer = load_tokenizer(start)
    model = load_model(start, device.dtype, device.torch)
    start_hash = saving.weights_hash(start)
    start_identity = saving.identity(start, start_hash)
    base_identity = start_identity if spec["base"] == start else saving.identity(spec["base"])

    # Data: own rows and replayed rows, encoded by the same code that encodes the probes.
    context = context_length(model)
    longest = min((n for n in (arguments.get("max_length", 1024), context) if n), default=None)
    encoder = Encoder(tokenizer, longest)
    own = read_training_rows(spec["data"], encoder, journal, scored=arguments.get("assistant_only_loss", True))
    buffer, old = replay_rows(spec, run, encoder, journal, attempt)
    rows = own + [row for _, row in old]
    batch, accumulation = (
        int(arguments.get("per_device_train_batch_size", 8)),
        int(arguments.get("gradient_accumulation_steps", 1)),
    )
    steps = total_steps(
        len(own),
        batch * accumulation * world,
        int(arguments.get("max_steps", -1)),
        float(arguments.get("num_train_epochs", 3)),
    )
    try:
        plan = make_plan(
            lengths=[len(r.ids) for r in rows],
            own=len(own),
            steps=steps,
            batch=batch,
            accumulation=accumulation,
            world=world,
            ratio=float(spec["replay"]["ratio"]) if buffer else 0.0,
            seed=seed,
        )
    except ValueError as error:  # nothing to draw from
        raise StageError("bad-data", str(error)) from error
    every_token = not arguments.get("assistant_only_loss", True)
    dataset = Dataset.from_dict({"input_ids": [r.ids for r in rows], "labels": [labels(r, every_token) for r in rows]})

    # Start: score M(k−1) on every probe before anything moves. Its clock is what the probes' share is measured against.
    clock = time.perf_counter()
    points = {*probe_steps(spec["probe"]["every"], steps), *eval_steps(spec["probe"].get("eval_every"), steps)}
    lengths = [len(r.ids) for r in rows]
    tokens = [sum(lengths[i] for i in plan.rows_of(s)) for s in range(1, steps + 1)]
    again = attempt_number(attempt) > 1
    if again and rank == 0:
        saving.remove_leftovers(run)
    kept = saving.complete_checkpoints(run / "checkpoints") if again else []
    finished = kept[-1][1] if kept and kept[-1][0] == steps and saving.intact(kept[-1][1]) else None
    resume = saving.newest_resumable(run / "checkpoints") if again and not finished else None
    resumed = steps if finished else resume[0] if resume else None
    journal.append(
        "run.started",
        stage=spec["stage"],
        recipe=spec["recipe"],
        device=device.name,
        dtype="bfloat16 (autocast)" if device.autocast_bf16 else device.dtype_name,
        parameters=sum(p.numel() for p in model.parameters()),
        trainable=trainable_parameters(model, spec["adapter"]),
        total_steps=steps,
        start_label=spec["start"]["label"],
        rows=len(own),
        replay_rows=len(old),
        resumed_from=resumed,
        packages=versions(),
        processes=world,
    )
    events = standing_events(read_events(run / "journal.jsonl")) if again else []
    told = {e["step"] for e in events if e["type"] == "checkpoint.saved"}
    for step, path in kept:  # the process died between writing a checkpoint and saying so
        if step <= (resumed or 0) and step not in told and saving.intact(path):
            about = json.loads((path / "seesaw.json").read_text(encoding="utf-8"))
            tell_saved(journal, run, step, path, about["kind"], step == steps, about["weights_hash"])
    if rank == 0:
        replayed = f" and {len(old)} to replay" if buffer else ""
        say(f"{device.name}, {device.dtype_name}: {steps} steps over {len(own)} rows{replayed}")
        if resumed is not None:
            say(f"goes on from step {resumed}")
    prober = probing = None
    if rank == 0 and spec["skills"]:
        journal.append("stage.progress", phase="probe", step=0, total=steps, message="scoring the start checkpoint")
        prober = Prober(spec, run, journal, tokenizer, device, context)
        prober.start(
            model,
            weights_hash=start_hash,
            identity=start_identity,
            base_identity=base_identity,
            load_base=lambda: load_model(spec["base"], device.dtype, device.torch),
            looks=len(points),
            events=read_events(run / "journal.jsonl") if again else (),
        )
        say(prober.told)
        short = probes_are_dear(points=len(points) + 1, probe_tokens=prober.tokens, train_tokens=sum(tokens))
        probing = ProbeCallback(
            prober, journal, total=steps, clock=clock, short=short, stopping=lambda: watch.reason is not None
        )
        if resume and not prober.scored(resume[0], events):
            probing.missed = resume[0]
    if finished:
        # The weights were complete when the last attempt ended: what may be missing is their probe point.
        if probing:
            digest = saving.weights_hash(finished)
            probing.saved = (steps, digest, saving.identity(finished, digest))
            probing.probe(load_model(str(finished), device.dtype, device.torch), steps)
        return 0

    # Train.
    config = SFTConfig(**trainer_arguments(arguments, run, steps, seed, device))
    trainer = Trainer(
        model=model,
        args=config,
        train_dataset=dataset,
        processing_class=tokenizer,
        peft_config=lora_config(spec["adapter"]) if spec["adapter"] else None,
    )

    def saved(step: int, path: Path, kind: str, final: bool, digest: str, size: int) -> None:
        if probing:
            probing.saved = (step, digest, saving.identity(path, digest))
        tell_saved(journal, run, step, path, kind, final, digest, size)

    trainer.prepare_stage(
        plan=plan,
        folder=run / "checkpoints",
        about={"stage": spec["stage"], "run": spec["id"], "index": spec["index"]},
        saved=saved,
        tokenizer=tokenizer,
    )
    watch.trainer = trainer
    trainer.remove_callback(PrinterCallback)  # it prints every log line; the journal has them
    trainer.add_callback(watch)
    trainer.add_callback(SaveCallback(spec.get("save_every"), watch))
    if buffer and rank == 0:
        from seesaw_runner.replay.ledger import Ledger

        ledger = Ledger(run / "ledger.jsonl", attempt_number(attempt), resume[0] if resume else None)
        trainer.add_callback(
            LedgerCallback(
                ledger, journal, plan, [h for h, _ in old], spec["replay"]["buffer"], resume[0] if resume else None
            )
        )
    if rank == 0:
        trainer.add_callback(
            ProgressCallback(
                journal, tokens, int(arguments.get("logging_steps", 1)), lambda: prober.seconds if prober else 0.0
            )
        )
    if probing:
        trainer.add_callback(probing)
    if trainer.args.world_size > 1:
        torch.distributed.barrier()  # rank 0 has been probing
    trainer.train(resume_from_checkpoint=str(resume[1]) if resume else None)
    if watch.reason == "cancelled":
        write_outcome(
            attempt,
            "cancelled",
            f"Stopped at step {trainer.state.global_step} of {steps}; a checkpoint was saved. Run the stage "
            f"again to go on from there.",
        )
        return 143
    if watch.reason == "nan-loss":
        step, name, value = watch.bad
        write_outcome(
            attempt,
            "nan-loss",
            f"{name} was {value} at step {step}. Lower the learning rate or look for broken rows; earlier "
            f"checkpoints are intact.",
            f"step {step}",
        )
        return 1
    if rank == 0:
        from seesaw_runner.export.graphs import leave_graphs

        leave_graphs(run, [spec["base"], run / "checkpoints" / saving.step_name(steps)], journal)
        label, share = f"M{spec['index']}", f", {prober.seconds:.1f} s of it probing" if prober else ""
        say(f"Done: {label} is checkpoints/{saving.step_name(steps)}; {time.perf_counter() - clock:.1f} s{share}")
    return 0


# ---- parts


def tell_saved(
    journal, run: Path, step: int, path: Path, kind: str, final: bool, digest: str, size: int | None = None
) -> None:
    """The `checkpoint.saved` event of a published checkpoint."""
    if size is None:
        size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    journal.append(
        "checkpoint.saved",
        step=step,
        path=path.relative_to(run).as_posix(),
        kind=kind,
        final=final,
        weights_hash=digest,
        bytes=size,
    )
    say(f"step {step}: checkpoint saved in {path.relative_to(run).as_posix()}")


def read_training_rows(path: str, encoder, journal, *, scored: bool) -> list:
    """Encoded rows; the ones that cannot be used are counted, and the first of each reason is told. StageError when
    none is left.
    """
    from seesaw_runner.data.rows import read_rows

    rows, bad = [], {}
    for source in read_rows(path):
        row = encoder.encode(source.value, last_only=False) if source.error is None else None
        reason = str(source.error) if row is None else row.reason
        if reason is None:
            rows.append(row)
        else:
            bad.setdefault(reason if row is not None else "The row is no valid JSON object.", []).append(
                (source.line, reason)
            )
    for places in list(bad.values())[:10]:
        journal.append(
            "warning",
            code="row-skipped",
            severity="warning",
            where=f"{path}:{places[0][0]}",
            message=f"{len(places)} training rows are left out. Line {places[0][0]}: {places[0][1]}",
            fix="Correct or remove these rows.",
        )
    cut = [row for row in rows if row.cut]
    if cut:
        journal.append(
            "warning",
            code="row-cut",
            severity="warning",
            where=path,
            message=f"{len(cut)} of {len(rows)} training rows are cut to {encoder.max_length} tokens, so the end of "
            "their answers is not learned.",
            fix="Raise max_length (up to the model's context), or shorten these rows.",
        )
    if not rows:
        first = next(iter(bad.values()), [(1, "the file has no rows")])[0]
        code = "template" if "chat template" in first[1] else "bad-data"
        raise StageError(code, f"No row of {path} can be trained on. Line {first[0]}: {first[1]}", f"{path}:{first[0]}")
    return rows


def replay_rows(spec: dict, run: Path, encoder, journal, attempt: Path) -> tuple[Any, list]:
    """The frozen buffer of this run and its encoded rows as (hash, row). Built once; later attempts read
    buffer.json.
    """
    if not spec.get("replay"):
        return None, []
    from seesaw_runner.replay.buffer import Buffer, ReplayError, build_buffer

    path, root = run / "buffer.json", spec["pipeline"]["root"]
    try:
        if path.exists() and attempt_number(attempt) > 1:
            buffer = Buffer.load(path)
        else:
            buffer = build_buffer(
                spec["replay"], skills=spec["skills"], seed=int(spec["seed"]), root=root, trusted=bool(spec["trusted"])
            )
            if int(os.environ.get("RANK", "0")) == 0:
                buffer.save(path)
        values = buffer.values(root)
    except ReplayError as error:
        raise StageError("bad-data", f"{error}.", str(path)) from error
    out = []
    for row, value in zip(buffer.rows, values, strict=True):
        encoded = encoder.encode(value, last_only=False)
        if encoded.reason is None:
            out.append((row.hash, encoded))
        else:
            journal.append(
                "warning",
                code="row-skipped",
                severity="warning",
                where=f"{row.source}:{row.line}",
                message=f"A replay row is left out: {encoded.reason}",
            )
    return buffer, out


def labels(row, every_token: bool) -> list[int]:
    """Ids to learn, −100 elsewhere."""
    if every_token:
        return list(row.ids)
    learned = set(row.scored)
    return [token if k in learned else -100 for k, token in enumerate(row.ids)]


def trainer_arguments(arguments: dict, run: Path, steps: int, seed: int, device) -> dict[str, Any]:
    """The stage's `args` with Seesaw's own; what the user set wins except where the run folder depends on it."""
    given = {k: v for k, v in arguments.items() if k not in PLANNED_ARGUMENTS}
    mixed = any(given.get(k) is not None for k in ("bf16", "fp16"))
    usual = {
        "gradient_checkpointing": device.kind != "cpu",  # TRL's default; on a CPU it only costs time
        "dataloader_pin_memory": device.kind == "cuda",
        **({} if mixed else {"bf16": device.autocast_bf16, "fp16": False}),
    }
    own = {
        "output_dir": str(run / "checkpoints"),
        "max_steps": steps,
        "seed": seed,
        "report_to": [],
        "save_strategy": "no",
        "eval_strategy": "no",
        "logging_strategy": "steps",
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "disable_tqdm": True,
        "use_cpu": device.kind == "cpu",
        "dataset_kwargs": {"skip_prepare_dataset": True},
        "assistant_only_loss": False,
        "push_to_hub": False,
        "ddp_find_unused_parameters": False,
    }
    return {**usual, **given, **own}


def lora_config(adapter: dict):
    """`adapter:` of the stage → PEFT's LoraConfig. StageError `bad-argument` names an unknown key."""
    from peft import LoraConfig

    try:
        return LoraConfig(**{"task_type": "CAUSAL_LM", **adapter})
    except TypeError as error:
        raise StageError(
            "bad-argument", f"`adapter` of the stage has something that LoraConfig does not know: {error}", "adapter"
        ) from error


def trainable_parameters(model, adapter: dict | None) -> int:
    """For run.started, before PEFT has changed the model: the whole model, or what LoRA adds on linear layers."""
    if not adapter:
        return sum(p.numel() for p in model.parameters() if p.requires_grad)
    import copy

    from peft import get_peft_model
    from torch import device as torch_device

    with torch_device("meta"):
        ghost = type(model)(copy.deepcopy(model.config))  # not a copy of the model: that would double the memory
        return sum(p.numel() for p in get_peft_model(ghost, lora_config(adapter)).parameters() if p.requires_grad)


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    out = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("torch", "transformers", "trl", "peft", "accelerate", "datasets"):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            continue
    return out


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


if __name__ == "__main__":
    sys.exit(main())
