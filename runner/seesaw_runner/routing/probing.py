"""The routed system under the probes: every row is scored under the expert that the router chooses for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from seesaw_runner.checkpoints.saving import weights_hash
from seesaw_runner.journal import read_events, standing_events
from seesaw_runner.probing.selection import pick
from seesaw_runner.routing.answers import Answer
from seesaw_runner.routing.evaluation import EvaluationSet, Measured
from seesaw_runner.routing.mixture import Mixture, arms_of
from seesaw_runner.scoring.encode import EncodedRow
from seesaw_runner.scoring.scorer import Scorer, Scores, row_starts


class RoutedScorer(Scorer):
    """weights: by `id` of a row, one number an arm. The output head is the base's for every row: experts do not change
    it, so only hidden states have to be computed by expert.
    """

    def __init__(self, mixture: Mixture, weights: Mapping[int, np.ndarray], **options):
        super().__init__(mixture.model, **options)
        self.mixture, self.weights = mixture, weights

    def hidden(self, rows: Sequence[EncodedRow], *, batch_size: int | None = None, reverse: bool = False):
        starts = row_starts(rows)
        out: torch.Tensor | None = None
        for places in self._switched(rows, batch_size or self.batch_size, reverse):
            found = super().hidden([rows[i] for i in places], batch_size=batch_size, reverse=reverse)
            out = found.new_empty((starts[-1], found.shape[-1])) if out is None else out
            out[torch.tensor([t for i in places for t in range(starts[i], starts[i + 1])], device=out.device)] = found
        return super().hidden(rows) if out is None else out

    def _score_whole(self, rows: Sequence[EncodedRow], batch_size: int | None = None) -> Scores:
        parts, order = [], []
        for places in self._switched(rows, 1):
            parts.append(super()._score_whole([rows[i] for i in places], batch_size))
            order += places
        if not parts:
            return super()._score_whole(rows, batch_size)
        starts = row_starts([rows[i] for i in order])
        names = ("logprob", "entropy", "rank", "topk_ids", "topk_logprob")
        joined = Scores(starts, *(torch.cat([getattr(part, name) for part in parts]) for name in names), kl={})
        return pick(joined, np.argsort(order).tolist())

    def _switched(self, rows: Sequence[EncodedRow], size: int, reverse: bool = False) -> Iterator[list[int]]:
        """Places of rows that are scored together, with the model switched to them meanwhile. Mixed rows come in
        batches of `size` of one length order, so that the scorer's batch is the same rows in the same order.
        """
        weights = np.stack([self.weights[id(row)] for row in rows]) if rows else np.zeros((0, 1))
        for arm, places in arms_of(weights):
            if arm is not None:
                with self.mixture.answering(arm):
                    yield places
                continue
            ordered = sorted(places, key=lambda i: len(rows[i].ids), reverse=reverse)
            with self.mixture.weighing():
                for first in range(0, len(ordered), size):
                    part = ordered[first : first + size]
                    self.mixture.weigh(weights[part])
                    yield part


class KnownAnswers:
    """Stands where the prober's evaluator does: the routed answers have been generated already."""

    def __init__(self, answers: Mapping[int, Answer]):
        self.answers = answers

    def texts(self, _lm, rows: Sequence[EncodedRow], _scores) -> list[Answer]:
        return [self.answers[id(row)] for row in rows]


def probe_routed(
    stage, mixture: Mixture, sets: Sequence[EvaluationSet], chosen: Measured, soft: bool, path: Path
) -> None:
    """The probe point of the stage's end: traces, checks, flags, as of any checkpoint."""
    events = standing_events(read_events(stage.run / "journal.jsonl"))
    if stage.finished and stage.prober.scored(stage.steps, events):
        return
    prober = stage.prober
    weights: dict[int, np.ndarray] = {}
    answers: dict[int, Answer] = {}
    for one in sets:
        p = chosen.probabilities[one.id]
        given = p if soft else np.eye(p.shape[1])[chosen.picked[one.id]]
        for k, index in enumerate(one.probes.usable):
            row = one.probes.probes[index].row
            weights[id(row)], answers[id(row)] = given[k], chosen.answers[one.id][k]
    prober.scorer = RoutedScorer(
        mixture,
        weights,
        top_k=max(2, int(prober.options["top_k"])),
        batch_size=int(prober.options["batch_size"]),
        chunk_elements=stage.device.chunk_elements,
    )
    prober.evaluator = KnownAnswers(answers)
    # Without an identity: no stage starts from a router, so nothing of it is kept for the next one.
    stage.probing.saved = (stage.steps, weights_hash(path), None)
    stage.probing.probe(mixture.model, stage.steps)
