"""Which probe rows a probe point scores: all of them at the start and the end of a stage, and between them too unless
the stage is so short that this would take more than its share; then a few rows of every set, always the same ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from seesaw_runner.probing.flags import MIN_ROWS
from seesaw_runner.probing.probe_set import ProbeSet
from seesaw_runner.scoring.scorer import Reference, Scores

#: Share of a stage that its probes should take at most, by the estimate in `probes_are_dear`.
BUDGET = 0.15


@dataclass
class Selection:
    """rows: indexes into the prober's list of usable rows, ascending. offsets[k]:offsets[k+1] are those of set k."""

    rows: list[int]
    offsets: list[int]
    references: dict[str, Reference] = field(default_factory=dict)

    def part(self, k: int) -> range:
        return range(self.offsets[k], self.offsets[k + 1])

    def within(self, k: int, first: int) -> list[int]:
        """The chosen rows of set k, counted within its usable rows; `first` is where those begin among all."""
        return [self.rows[j] - first for j in self.part(k)]


def whole(sets: list[ProbeSet]) -> Selection:
    offsets = [0]
    for s in sets:
        offsets.append(offsets[-1] + len(s.usable))
    return Selection(list(range(offsets[-1])), offsets)


def shortened(sets: list[ProbeSet], every: Selection) -> Selection:
    """MIN_ROWS usable rows of each set: enough for a flag. Those with the smallest hashes: a sample that does not
    depend on how the file is sorted (its first rows may all be easy, or of one kind).
    """
    rows, offsets = [], [0]
    for k, s in enumerate(sets):
        order = sorted(range(len(s.usable)), key=lambda i: (s.probes[s.usable[i]].hash, i))
        rows += sorted(every.offsets[k] + i for i in order[:MIN_ROWS])
        offsets.append(len(rows))
    return Selection(rows, offsets)


def pick(scores: Scores, rows: list[int]) -> Scores:
    """The same scores for some rows, in the given order."""
    if rows == list(range(len(scores.starts) - 1)):
        return scores
    at, starts = token_index(scores.starts, rows)
    return Scores(
        starts,
        scores.logprob[at],
        scores.entropy[at],
        scores.rank[at],
        scores.topk_ids[at],
        scores.topk_logprob[at],
        {n: v[at] for n, v in scores.kl.items()},
    )


def token_index(starts: list[int], rows: list[int]) -> tuple[torch.Tensor, list[int]]:
    """Indexes of the tokens of some rows, and where each of them starts in the result."""
    index, out = [], [0]
    for i in rows:
        index += range(starts[i], starts[i + 1])
        out.append(len(index))
    return torch.tensor(index, dtype=torch.long), out


def probes_are_dear(*, points: int, probe_tokens: int, train_tokens: int) -> bool:
    """Whether scoring every row at every point would take more than BUDGET of a stage.

    By tokens that run through the model: forward 1 for a probe, forward and backward 3 for training (Kaplan et al.
    2020, §2.1). Decided from the plan alone, so that a run on a faster machine has the same traces.
    """
    probing = points * probe_tokens
    return probing > BUDGET * (probing + 3 * train_tokens)
