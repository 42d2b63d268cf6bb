"""The supervised round that most recipes end with: planned batches, TRL's SFTTrainer, probes, ledger, resume."""

from __future__ import annotations

from collections.abc import Sequence

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from seesaw_runner.run_folder import say
from seesaw_runner.training.arguments import trainer_arguments
from seesaw_runner.training.plan import BatchPlan, group_shares, make_plan, total_steps
from seesaw_runner.training.rows import labels
from seesaw_runner.training.session import Session, bad_data
from seesaw_runner.training.stage_trainer import StageTrainer


class Trainer(StageTrainer, SFTTrainer):
    """SFTTrainer that takes planned batches and saves as Seesaw does."""


def learns_every_token(stage: Session) -> bool:
    """Whether prompts are learned as well (`args.assistant_only_loss: false`)."""
    return not stage.arguments.get("assistant_only_loss", True)


def fit_rows(
    stage: Session,
    own: Sequence,
    replayed: Sequence[tuple[str, object]] = (),
    *,
    balanced: bool = False,
    buffer_only: bool = False,
    about: str = "",
) -> int:
    """Trains the opened stage on encoded rows and gives the exit code.

    own: the stage's rows (`EncodedRow`). replayed: buffer rows as (hash, row), mixed in at the stage's replay ratio.
    balanced: equal share of every batch for each `group` of own. buffer_only: there are no own rows, every batch comes
    from the buffer.
    """
    old = [row for _, row in replayed]
    rows = [*own, *old]
    lengths = [len(row.ids) for row in rows]
    fresh = len(old) if buffer_only else len(own)
    arguments = stage.arguments
    steps = total_steps(
        fresh,
        stage.batch * stage.accumulation * stage.world,
        int(arguments.get("max_steps", -1)),
        float(arguments.get("num_train_epochs", 3)),
    )
    groups = [row.group for row in own] if balanced else None
    try:
        plan = make_plan(
            lengths=lengths,
            own=fresh,
            steps=steps,
            batch=stage.batch,
            accumulation=stage.accumulation,
            world=stage.world,
            ratio=float(stage.spec["replay"]["ratio"]) if replayed and not buffer_only else 0.0,
            seed=stage.seed,
            groups=groups,
        )
    except ValueError as error:
        raise bad_data(error) from error
    if buffer_only:
        plan = BatchPlan(plan.order, plan.batch, plan.accumulation, plan.world, own=0)
    if groups:
        tell_shares(stage, plan, groups)
    every_token = learns_every_token(stage)
    dataset = Dataset.from_dict({"input_ids": [r.ids for r in rows], "labels": [labels(r, every_token) for r in rows]})
    stage.begin(
        steps=steps,
        tokens=[sum(lengths[i] for i in plan.rows_of(s)) for s in range(1, steps + 1)],
        rows=len(own),
        replay_rows=len(old),
        about=about or (f" and {len(old)} to replay" if replayed else ""),
    )
    if stage.finished:
        return stage.probe_finished()
    encoded = {"dataset_kwargs": {"skip_prepare_dataset": True}, "assistant_only_loss": False}
    trainer = Trainer(
        model=stage.model,
        args=SFTConfig(**trainer_arguments(arguments, stage.run, steps, stage.seed, stage.device, encoded)),
        train_dataset=dataset,
        processing_class=stage.tokenizer,
        peft_config=stage.peft_config(),
    )
    stage.attach(trainer, plan)
    if replayed:
        stage.keep_ledger(trainer, plan, [row_hash for row_hash, _ in replayed])
    return stage.fit(trainer)


def tell_shares(stage: Session, plan: BatchPlan, groups: Sequence[str]) -> None:
    """Says before the start how often each domain is passed over; equal shares of unequal domains repeat the small."""
    if stage.rank != 0:
        return
    for name, (rows, draws) in group_shares(plan, groups).items():
        passes = draws / rows
        seen = f"{1 - passes:.0%} of it is never seen" if passes < 1 else "every row is seen"
        text = f"{name}: {rows} rows, {draws} draws, {passes:.2f} passes; {seen}"
        say(text)
        stage.warn("balance", f"{text}.", where=stage.spec["data"] or "", severity="info")
