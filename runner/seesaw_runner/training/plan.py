"""The batch plan: which row is in which batch of a whole stage, decided before the first step.

The trainer reads rows in the order `plan.order`, so the plan *is* the record of what was drawn: the ledger is exact,
and a resumed run goes on with the batch the lost one would have had next. Rows 0 … own−1 are the stage's own data, rows
own … own+replay−1 the replay buffer.

Layout: `order` holds `steps × accumulation × world × batch` indexes. accelerate hands batch number k to process
k mod world, so the slice of one optimizer step is exactly what all processes together see in that step.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BatchPlan:
    """`order`: row indexes, all batches of all processes in the order they are taken. `own`: number of the stage's own
    rows.
    """

    order: list[int]
    batch: int
    accumulation: int
    world: int
    own: int

    @property
    def per_step(self) -> int:
        """Rows of one optimizer step over all processes and accumulated batches."""
        return self.batch * self.accumulation * self.world

    @property
    def steps(self) -> int:
        return len(self.order) // self.per_step

    def rows_of(self, step: int) -> list[int]:
        """Row indexes drawn in optimizer step `step` (1-based)."""
        return self.order[(step - 1) * self.per_step : step * self.per_step]

    def replay_of(self, step: int) -> Counter[int]:
        """How often each buffer row (index within the buffer) was drawn in `step`."""
        return Counter(i - self.own for i in self.rows_of(step) if i >= self.own)

    def replay_total(self) -> int:
        return sum(1 for i in self.order if i >= self.own)


class PlanSampler:
    """A sampler that yields the plan as it is; torch's DataLoader cuts it into batches of `plan.batch`."""

    def __init__(self, plan: BatchPlan):
        self.plan = plan

    def __iter__(self) -> Iterator[int]:
        return iter(self.plan.order)

    def __len__(self) -> int:
        return len(self.plan.order)


def total_steps(rows: int, per_step: int, max_steps: int, epochs: float) -> int:
    """Optimizer steps of a stage: `max_steps` when positive, else the epochs rounded up to whole steps."""
    if max_steps > 0:
        return max_steps
    return max(1, math.ceil(epochs * rows / per_step))


def replay_counts(batches: int, batch: int, ratio: float, rng: random.Random) -> list[int]:
    """Replay rows in each batch. The sum is exactly round(ratio × batches × batch); a batch has floor or ceil of ratio
    × batch.

    The batches that get the extra row are a seeded sample, so no pattern lines up with accumulation or processes.
    """
    total = round(ratio * batches * batch)
    low = min(total // batches, batch)
    counts = [low] * batches
    for k in rng.sample(range(batches), total - low * batches):
        counts[k] += 1
    return counts


class _Cycle:
    """Row indexes without replacement, reshuffled when all were taken."""

    def __init__(self, rows: Sequence[int], rng: random.Random):
        self._rows, self._rng, self._left = list(rows), rng, []

    def take(self, n: int) -> list[int]:
        out: list[int] = []
        while len(out) < n:
            if not self._left:
                self._left = list(self._rows)
                self._rng.shuffle(self._left)
            cut = min(n - len(out), len(self._left))
            out += self._left[-cut:]
            del self._left[-cut:]
        return out


class _Mixed:
    """All own rows as one pool."""

    def __init__(self, own: int, rng: random.Random):
        self._cycle = _Cycle(range(own), rng)

    def batches(self, sizes: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
        """Rows for batches of these sizes, rows of like length together."""
        rows = iter(sorted(self._cycle.take(sum(sizes)), key=lambda i: lengths[i]))
        return [[next(rows) for _ in range(size)] for size in sizes]


class _Balanced:
    """A pool for each group, all drawn from equally."""

    def __init__(self, groups: Sequence[str], rng: random.Random):
        members: dict[str, list[int]] = {}
        for i, group in enumerate(groups):
            members.setdefault(group, []).append(i)
        self._cycles = [_Cycle(members[name], rng) for name in sorted(members)]
        self._next = 0  # the group that takes the next row that does not divide

    def batches(self, sizes: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
        n = len(self._cycles)
        quotas = []
        for size in sizes:
            quota = [size // n] * n
            for _ in range(size % n):
                quota[self._next] += 1
                self._next = (self._next + 1) % n
            quotas.append(quota)
        out: list[list[int]] = [[] for _ in sizes]
        for g, cycle in enumerate(self._cycles):
            rows = iter(sorted(cycle.take(sum(quota[g] for quota in quotas)), key=lambda i: lengths[i]))
            for batch, quota in zip(out, quotas, strict=True):
                batch += [next(rows) for _ in range(quota[g])]
        return out


def group_shares(plan: BatchPlan, groups: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Rows and draws of each group over the whole plan; draws ÷ rows are its passes."""
    rows = Counter(groups)
    draws = Counter(groups[i] for i in plan.order if i < plan.own)
    return {name: (rows[name], draws[name]) for name in sorted(rows)}


def make_plan(
    *,
    lengths: Sequence[int],
    own: int,
    steps: int,
    batch: int,
    accumulation: int = 1,
    world: int = 1,
    ratio: float = 0.0,
    seed: int = 0,
    window: int = 4,
    groups: Sequence[str] | None = None,
) -> BatchPlan:
    """Plans a stage.

    groups: the group of each own row; every group then gets an equal share of each batch's own rows, whatever its size.
    What does not divide goes round, so that over the stage no group gets more than one row more than another.

    lengths: tokens of every row, own rows first, then the buffer's. window: how many optimizer steps are sorted by
    length together: their rows go to batches of like length (less padding), and the batches are shuffled again, so that
    over a window every row is seen once whatever its length. Raises ValueError when there is nothing to draw from.
    """
    replay_rows = len(lengths) - own
    if own <= 0:
        raise ValueError("The stage has no usable training row. Look at the warnings above for why rows were skipped.")
    if ratio > 0 and replay_rows <= 0:
        raise ValueError(
            "The stage replays from a buffer that has no usable row. Lower its quality limit or remove `replay`."
        )
    rng = random.Random(f"seesaw-plan-{seed}")
    count = steps * accumulation * world
    extra = replay_counts(count, batch, ratio, rng) if ratio > 0 else [0] * count
    own_rows = _Balanced(groups, rng) if groups is not None else _Mixed(own, rng)
    buffer_rows = _Cycle(range(own, len(lengths)), rng)
    order: list[int] = []
    per_window = max(1, window) * accumulation * world
    for first in range(0, count, per_window):
        replays = extra[first : first + per_window]
        mine = own_rows.batches([batch - r for r in replays], lengths)
        old = sorted(buffer_rows.take(sum(replays)), key=lambda i: lengths[i])
        batches, b = [], 0
        for k, r in enumerate(replays):
            rows = mine[k] + old[b : b + r]
            b += r
            rng.shuffle(rows)
            batches.append(rows)
        rng.shuffle(batches)
        for rows in batches:
            order += rows
    return BatchPlan(order, batch, accumulation, world, own)
