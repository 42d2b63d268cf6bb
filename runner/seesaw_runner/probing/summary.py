"""The numbers of one probe point for the journal: what the tables and charts show without opening a trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from seesaw_runner.scoring.trace import TraceRow, perplexity


def probe_summary(
    rows: Sequence[TraceRow], start_nll: Sequence[float], start_segments: dict[int, float], segments: Sequence[str]
) -> dict[str, Any]:
    """`ProbeSummary` of the journal, without `skipped`.

    rows: scored rows; start_nll: each row's NLL at the stage's start; start_segments: summed NLL of each segment at the
    start. nll and delta_nll are means over rows of sums over tokens; KL is a mean over tokens; perplexity is
    token-weighted.
    """
    nll = [r.nll for r in rows]
    tokens = sum(len(r.ids) for r in rows)
    return {
        "rows": len(rows),
        "skipped": 0,
        "tokens": tokens,
        "nll": _mean(nll),
        "delta_nll": _mean([a - b for a, b in zip(nll, start_nll, strict=True)]),
        "perplexity": perplexity(math.fsum(nll), tokens),
        "kl_start": _kl(rows, "start"),
        "kl_base": _kl(rows, "base"),
        "segments": {name: _segment(rows, i, start_segments.get(i, 0.0)) for i, name in enumerate(segments)},
    }


def _segment(rows: Sequence[TraceRow], index: int, start: float) -> dict[str, Any]:
    """One segment. Means are over the rows that have a token of it."""
    values, kl, having = [], [], 0
    for r in rows:
        picked = [k for k, s in enumerate(r.segment) if s == index]
        having += bool(picked)
        values += [-r.logprob[k] for k in picked]
        if "start" in r.kl:
            kl += [r.kl["start"][k] for k in picked]
    total = math.fsum(values)
    return {
        "tokens": len(values),
        "nll": total / having if having else None,
        "delta_nll": (total - start) / having if having else None,
        "perplexity": perplexity(total, len(values)),
        "kl_start": _mean(kl) if kl else None,
    }


def _kl(rows: Sequence[TraceRow], name: str) -> float | None:
    values = [v for r in rows for v in r.kl.get(name, [])]
    return _mean(values) if values else None


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
