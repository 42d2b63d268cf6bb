"""Probe points of a stage that are not between two training steps: the start, and an end that was written before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_runner.checkpoints import saving
from seesaw_runner.journal import read_events, standing_events
from seesaw_runner.probing.callback import ProbeCallback, lean_steps, planned_points
from seesaw_runner.probing.gate import halt_of, tell_halt
from seesaw_runner.probing.prober import Prober
from seesaw_runner.probing.selection import probes_are_dear
from seesaw_runner.run_folder import say

if TYPE_CHECKING:
    from seesaw_runner.training.session import Session


def probe_start(stage: Session, again: bool, events: list[dict]) -> None:
    """Scores the start checkpoint and sets `stage.prober` and `stage.probing`. again: there were earlier attempts;
    events: what stands of their journal.
    """
    spec, steps = stage.spec, stage.steps
    stage.journal.append("stage.progress", phase="probe", step=0, total=steps, message="scoring the start checkpoint")
    points = planned_points(spec["probe"], steps)
    stage.prober = prober = Prober(spec, stage.run, stage.journal, stage.tokenizer, stage.device, stage.context)
    short = probes_are_dear(points=len(points) + 1, probe_tokens=prober.tokens, train_tokens=sum(stage.tokens))
    prober.start(
        stage.model,
        weights_hash=stage.start_hash,
        identity=stage.start_identity,
        base_identity=stage.base_identity,
        load_base=lambda: stage.load(spec["base"]),
        looks=len(points),
        last=steps,
        short=short,
        lean=lean_steps(spec["probe"], steps),
        events=read_events(stage.run / "journal.jsonl") if again else (),
    )
    say(prober.told)
    stage.probing = ProbeCallback(
        prober,
        stage.journal,
        total=steps,
        clock=stage.clock,
        short=short,
        stopping=lambda: stage.watch.reason is not None,
    )
    if stage.resume and not prober.scored(stage.resume[0], events):
        stage.probing.missed = stage.resume[0]


def probe_finished(stage: Session) -> int:
    """Where an earlier attempt had written the last checkpoint: probes it if need be, and gives the exit code."""
    assert stage.finished is not None
    if stage.prober and stage.probing:
        digest = saving.weights_hash(stage.finished)
        stage.probing.saved = (stage.steps, digest, saving.identity(stage.finished, digest))
        events = standing_events(read_events(stage.run / "journal.jsonl"))
        seen = stage.prober.scored(stage.steps, events)  # one look must not count twice
        stage.probing.probe(stage.load(stage.finished), stage.steps, look=not seen)
    halt = halt_of(stage.prober)
    return tell_halt(halt, stage.attempt, stage.steps) if halt else 0
