"""Scores or traces → the numbers of a row that the flags look at. Both ways give the same: a trace holds float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seesaw_runner.flags.margins import row_margins, row_nll, token_margins
from seesaw_runner.probing.probe_set import Probe
from seesaw_runner.scoring.scorer import Scores
from seesaw_runner.scoring.trace import TraceRow


@dataclass(frozen=True)
class RowTokens:
    """What of a probe row never changes: its scored ids, and which of them decide it."""

    ids: list[int]
    decisive: list[bool]


def tokens_of(probe: Probe) -> RowTokens:
    return RowTokens([probe.row.ids[p] for p in probe.row.scored], probe.decisive)


def margins_of(scores: Scores, tokens: Sequence[RowTokens], kind: str) -> np.ndarray | None:
    """One margin a row of `scores`, of all or of its decision tokens; None where there are too few alternatives."""
    gold = [i for row in tokens for i in row.ids]
    found = token_margins(
        gold, scores.logprob.numpy(), scores.rank.numpy(), scores.topk_ids.numpy(), scores.topk_logprob.numpy()
    )
    return None if found is None else _rows(found, scores.starts, tokens, kind)


def nll_of(scores: Scores) -> np.ndarray:
    return row_nll(scores.logprob.numpy(), scores.starts)


@dataclass
class PanelScores:
    """nll and margins a row (margins None without alternatives), and the log-probability of every token, by row."""

    nll: np.ndarray
    margins: np.ndarray | None
    logprob: list[np.ndarray]


def from_scores(scores: Scores, tokens: Sequence[RowTokens], kind: str) -> PanelScores:
    """tokens: of the rows of `scores`, in order."""
    logprob = scores.logprob.numpy()
    return PanelScores(
        nll_of(scores),
        margins_of(scores, tokens, kind),
        [logprob[scores.row(i)] for i in range(len(scores.starts) - 1)],
    )


def from_trace(rows: Sequence[TraceRow], tokens: Sequence[RowTokens], kind: str) -> PanelScores:
    """The same from rows that were read back; all of them must have scores."""
    starts = np.cumsum([0, *(len(row.ids) for row in rows)]).tolist()
    logprob = np.array([v for row in rows for v in row.logprob], dtype=np.float32)
    k = len(rows[0].topk_ids) // max(1, len(rows[0].ids)) if rows else 0
    found = token_margins(
        [i for row in rows for i in row.ids],
        logprob,
        [v for row in rows for v in row.rank],
        np.array([v for row in rows for v in row.topk_ids]).reshape(starts[-1], k),
        np.array([v for row in rows for v in row.topk_logprob], dtype=np.float32).reshape(starts[-1], k),
    )
    margins = None if found is None else _rows(found, starts, tokens, kind)
    return PanelScores(row_nll(logprob, starts), margins, np.split(logprob, starts[1:-1]))


def _rows(found: np.ndarray, starts: Sequence[int], tokens: Sequence[RowTokens], kind: str) -> np.ndarray:
    decisive = np.array([yes for row in tokens for yes in row.decisive]) if kind == "decision" else None
    return row_margins(found, starts, decisive)
