"""The A/A floor: the start checkpoint scored a second time, computed another way. What changes is no drift."""

from __future__ import annotations

from typing import Any

import numpy as np

from seesaw_runner.flags.statistics import quantile
from seesaw_runner.probing.probe_set import ProbeSet
from seesaw_runner.probing.selection import Selection, pick
from seesaw_runner.probing.token_scores import RowTokens, margins_of
from seesaw_runner.scoring.scorer import Scorer, Scores

#: Rows of each set that are scored again.
NOISE_ROWS = 16
#: Columns that the batches are padded by besides, where the model has room for them.
PADDING = 7
#: Told apart in the cache: entries of another kind of noise are none.
KIND = "per set, with margins"


def measure_noise(
    scorer: Scorer,
    scores: Scores,
    sets: list[ProbeSet],
    every: Selection,
    tokens: list[RowTokens],
    rows: list[Any],
    *,
    context: int | None,
) -> dict[str, dict[str, float]]:
    """By set: nll_q99 (99th percentile over rows of |ΔNLL|), token_q99 (over tokens of |Δlog p|), margin_sd and
    decision_sd (root mean square over rows of the change of a row's margin, of all and of its decision tokens).

    Other batches (three quarters as many rows, from the longest on) and other padding. scores: of all rows.
    """
    chosen = [i for k in range(len(sets)) for i in list(every.part(k))[:NOISE_ROWS]]
    longest = max((len(rows[i].ids) for i in chosen), default=0)
    padding = PADDING if context is None or longest + PADDING <= context else 0
    before = pick(scores, chosen)
    again = scorer.again([rows[i] for i in chosen], batch_size=max(1, scorer.batch_size * 3 // 4), padding=padding)
    change = (again.logprob - before.logprob).abs()
    sums = np.abs(np.array(before.sums(again.logprob - before.logprob)))
    margins = {}
    for kind in ("all", "decision"):
        one, two = (margins_of(s, [tokens[i] for i in chosen], kind) for s in (before, again))
        margins[kind] = None if one is None or two is None else two - one
    out, first = {}, 0
    for k, s in enumerate(sets):
        last = first + min(NOISE_ROWS, len(every.part(k)))
        cut = slice(before.starts[first], before.starts[last])
        out[s.id] = {
            "nll_q99": quantile(sums[first:last].tolist(), 0.99),
            "token_q99": quantile(change[cut].tolist(), 0.99),
            **{
                name: float(np.sqrt((d[first:last] ** 2).mean())) if last > first else 0.0
                for name, d in (("margin_sd", margins["all"]), ("decision_sd", margins["decision"]))
                if d is not None
            },
        }
        first = last
    return out
