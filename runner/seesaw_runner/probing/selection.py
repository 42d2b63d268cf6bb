"""Which probe rows a probe point scores: all of them at the start and the end of a stage, and between them too unless
the stage is so short that this would take more than its share; then a few rows of every set, always the same ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import torch

from seesaw_runner.flags.defaults import GOOD_ROWS
from seesaw_runner.probing.probe_set import ProbeSet
from seesaw_runner.scoring.scorer import Reference, Scores

#: Share of a stage that its probes should take at most, by the estimate in `probes_are_dear`.
BUDGET = 0.04
#: Rows of a set between the ends of a short stage: where there is something to watch, and where there is not.
WATCHED_ROWS, SHOWN_ROWS = GOOD_ROWS, 16


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


def shortened(sets: list[ProbeSet], every: Selection, watched: list[bool], barred: list[set[int]]) -> Selection:
    """A few usable rows of each set: WATCHED_ROWS of those that can be watched, SHOWN_ROWS of the others. Those with
    the smallest hashes: a sample that does not depend on how the file is sorted (its first rows may all be easy, or of
    one kind). barred: places among a set's usable rows that count for no flag: they tell nothing where one is watched.
    """
    rows, offsets = [], [0]
    for k, s in enumerate(sets):
        places = [i for i in range(len(s.usable)) if not (watched[k] and i in barred[k])]
        order = _by_hash(s, places)[: WATCHED_ROWS if watched[k] else SHOWN_ROWS]
        rows += sorted(every.offsets[k] + i for i in order)
        offsets.append(len(rows))
    return Selection(rows, offsets)


def only(sets: list[bool], chosen: Selection) -> Selection:
    """Of the chosen rows those of some sets."""
    rows, offsets = [], [0]
    for k, wanted in enumerate(sets):
        rows += [chosen.rows[j] for j in chosen.part(k)] if wanted else []
        offsets.append(len(rows))
    return Selection(rows, offsets)


def _by_hash(s: ProbeSet, places: list[int]) -> list[int]:
    """Places by the hash of their row, but one row of every group before a second one: a group counts once."""
    seen: Counter[str] = Counter()
    ranked = []
    for i in sorted(places, key=lambda i: (s.probes[s.usable[i]].hash, i)):
        group = s.probes[s.usable[i]].group
        ranked.append((0 if group is None else seen[group], len(ranked), i))
        if group is not None:
            seen[group] += 1
    return [i for _, _, i in sorted(ranked)]


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
