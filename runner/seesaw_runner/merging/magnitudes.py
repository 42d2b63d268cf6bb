"""The k-th largest magnitude of a tensor that is never held whole: two counting passes over the bits of its numbers.

The bits of non-negative float32 numbers are ordered like the numbers. The first pass counts their upper sixteen bits,
the second the lower fifteen within the one bucket that holds the k-th: the answer is exact, and takes 64 Ki counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

_LOW = 15


def kth_magnitude(blocks: Callable[[], Iterable[torch.Tensor]], k: int) -> float:
    """`blocks()` gives the tensor again each time it is called. k counts from 1, the largest."""
    high = torch.zeros(1 << 16, dtype=torch.int64)
    for block in blocks():
        high += torch.bincount(_bits(block) >> _LOW, minlength=1 << 16)
    bucket, above = _from_the_top(high, k)
    low = torch.zeros(1 << _LOW, dtype=torch.int64)
    for block in blocks():
        bits = _bits(block)
        low += torch.bincount(bits[(bits >> _LOW) == bucket] & ((1 << _LOW) - 1), minlength=1 << _LOW)
    rest, _ = _from_the_top(low, k - above)
    return float(torch.tensor((bucket << _LOW) | rest, dtype=torch.int32).view(torch.float32))


def _bits(block: torch.Tensor) -> torch.Tensor:
    return block.reshape(-1).abs().contiguous().view(torch.int32)


def _from_the_top(counts: torch.Tensor, k: int) -> tuple[int, int]:
    """(bucket of the k-th largest, how many lie in buckets above it)."""
    below = counts.flip(0).cumsum(0)
    place = int(torch.searchsorted(below, torch.tensor(k)))
    return len(counts) - 1 - place, int(below[place - 1]) if place else 0
