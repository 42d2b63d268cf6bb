"""Runs a skill's check on greedy answers, and saves most of the generating by what teacher forcing already told.

Greedy decoding follows the reference as long as the reference's next token is the most likely one. So a row whose
tokens all have rank 0 *is* generated as its reference, and any other row is generated only from its first miss on.
Where the two best tokens are closer than `margin` nats, rounding could decide; there the model is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from seesaw_runner.probing.probe_set import ProbeSet
from seesaw_runner.scoring.causal_lm import CausalLM
from seesaw_runner.scoring.encode import EncodedRow
from seesaw_runner.scoring.generate import generate
from seesaw_runner.scoring.scorer import Scores


@dataclass
class Answer:
    """One generated answer and the check's verdict. `text` has no special tokens."""

    text: str
    finish: str
    correct: bool


def known_prefix(
    row: EncodedRow, rank: Sequence[int], best: Sequence[int], gap: Sequence[float], margin: float
) -> tuple[list[int], bool]:
    """Ids that greedy decoding gives for certain, and whether they include the whole reference.

    rank, best (most likely id), gap (log-probability of the best minus the second) are per scored token of the row.
    """
    if row.ids[: row.scored[0]] != row.prompt_ids:  # the generation prompt is no prefix: scores say nothing about it
        return [], False
    out: list[int] = []
    for k, position in enumerate(row.scored):
        if gap[k] <= margin:
            return out, False
        if rank[k] > 0:
            return [*out, int(best[k])], False
        out.append(row.ids[position])
    return out, True


class Evaluator:
    """Greedy answers for probe sets. `ends`: ids that end an answer. `context`: positions that the model has; an answer
    ends there with `length`.
    """

    def __init__(
        self,
        tokenizer,
        *,
        max_new_tokens: int,
        ends: set[int],
        margin: float = 1e-3,
        context: int | None = None,
    ):
        self.context = context
        self.tokenizer = tokenizer
        self.max_new_tokens = max_new_tokens
        self.ends = ends
        self.margin = margin

    def texts(self, lm: CausalLM, rows: Sequence[EncodedRow], scores: Scores | None) -> list[tuple[str, str]]:
        """(text, finish) of each row's greedy answer; `scores` of the same rows under the same model save work."""
        started = [self._start(row, i, scores) for i, row in enumerate(rows)]
        todo = [i for i, (_, finish) in enumerate(started) if finish is None]
        more = generate(
            lm,
            [[*rows[i].prompt_ids, *started[i][0]] for i in todo],
            max_new_tokens=[self._limit(rows[i]) - len(started[i][0]) for i in todo],
            ends=self.ends,
        )
        for i, rest in zip(todo, more, strict=True):
            started[i] = ([*started[i][0], *rest.ids], rest.finish)
        return [(self.tokenizer.decode(ids, skip_special_tokens=True), finish or "length") for ids, finish in started]

    def _limit(self, row: EncodedRow) -> int:
        room = self.max_new_tokens if self.context is None else self.context - len(row.prompt_ids)
        return max(0, min(self.max_new_tokens, room))

    def _start(self, row: EncodedRow, i: int, scores: Scores | None) -> tuple[list[int], str | None]:
        """What is known without generating: ids so far, and the finish if the answer is complete."""
        if scores is None or scores.topk_logprob.shape[-1] < 2:
            return [], None
        cut = scores.row(i)
        best = scores.topk_logprob[cut]
        gap = (best[:, 0] - best[:, 1]).tolist()
        ids, _ = known_prefix(row, scores.rank[cut].tolist(), scores.topk_ids[cut][:, 0].tolist(), gap, self.margin)
        limit = self._limit(row)
        for k, token in enumerate(ids):
            if k >= limit:
                return ids[:k], "length"
            if token in self.ends:
                return ids[:k], "stop"
        return (ids, "length") if len(ids) >= limit else (ids, None)


def judge(probes: ProbeSet, rows: Sequence[int], texts: Sequence[tuple[str, str]]) -> list[Answer]:
    """Verdicts for some of a set's usable rows, by their place among them."""
    return [
        Answer(text, finish, bool(probes.check.passes(text, probes.probes[probes.usable[i]].value)))
        for i, (text, finish) in zip(rows, texts, strict=True)
    ]


def margin_for(dtype: torch.dtype) -> float:
    """How close two best tokens may be before rounding could swap them, nats."""
    return 1e-3 if dtype == torch.float32 else 0.25
