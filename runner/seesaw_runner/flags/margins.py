"""From the scores of tokens to one margin a row: how far the right answer is from losing to its best rival.

μ = log p(gold) − max over all other ids of log p, of a token; the margin of a row is the smallest μ of its tokens (or
of its decision tokens): above 0 exactly when greedy decoding along the reference gives the reference. Everything comes
from what a trace holds (log-probability, rank, top-k), so that who reads traces gets the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seesaw_runner.flags.defaults import MARGIN_CLIP, NLL_CLIP

TERMINATOR = "terminator"
#: Segments that a row is decided in, by kind of check. None: every token.
DECISION_SEGMENTS: dict[str, tuple[str, ...] | None] = {
    "number-after": ("answer",),
    "text": ("answer",),
    "format": ("answer",),
    "regex": ("answer",),
    "json-tool-call": ("tool name", "argument value"),
    "function": None,
}
FIRST_TOKENS = 5


def token_margins(gold: Any, logprob: Any, rank: Any, topk_ids: Any, topk_logprob: Any) -> np.ndarray | None:
    """μ of every token, float64 [tokens], cut at ±MARGIN_CLIP. None where fewer than two alternatives were kept.

    gold, logprob, rank: [tokens]; topk_*: [tokens, k], the most likely first. The rival of a gold token of rank 0 is
    the best other id, of any other token the most likely one. A score that is no number counts as lost.
    """
    topk_ids, topk = np.asarray(topk_ids), np.asarray(topk_logprob, dtype=np.float64)
    if topk.ndim != 2 or topk.shape[1] < 2:
        return None
    first_is_gold = (topk_ids[:, 0] == np.asarray(gold)) & (np.asarray(rank) == 0)
    rival = np.where(first_is_gold, topk[:, 1], topk[:, 0])
    with np.errstate(invalid="ignore"):
        margin = np.asarray(logprob, dtype=np.float64) - rival
    return np.clip(np.where(np.isnan(margin), -MARGIN_CLIP, margin), -MARGIN_CLIP, MARGIN_CLIP)


def row_margins(tokens: np.ndarray, starts: Sequence[int], decisive: np.ndarray | None = None) -> np.ndarray:
    """The smallest margin of each row, float64 [rows]. starts[i]:starts[i+1] are row i's tokens (at least one each);
    decisive: which tokens count, at least one a row; None: all.
    """
    if len(starts) < 2:
        return np.zeros(0)
    values = tokens if decisive is None else np.where(decisive, tokens, np.inf)
    return np.minimum.reduceat(values, np.asarray(starts[:-1]))


def row_nll(logprob: Any, starts: Sequence[int]) -> np.ndarray:
    """−Σ log p of each row in nats, float64 [rows], cut at NLL_CLIP; what is no number counts as impossible."""
    if len(starts) < 2:
        return np.zeros(0)
    sums = -np.add.reduceat(np.asarray(logprob, dtype=np.float64), np.asarray(starts[:-1]))
    return np.clip(np.where(np.isnan(sums), NLL_CLIP, sums), -NLL_CLIP, NLL_CLIP)


def decision_segments(skill: dict) -> list[str] | str:
    """What a skill of run.json is decided by: segment names, "all", or "first-5" (its own `decision`, else its
    check's).
    """
    asked = skill.get("decision")
    if isinstance(asked, list):
        return [str(name) for name in asked]
    if asked in ("all", "first-5"):
        return asked
    names = ("answer",) if asked == "answer" else DECISION_SEGMENTS.get(skill["check"]["kind"])
    return "all" if names is None else list(names)


def decisive_tokens(segments: Sequence[str], names: list[str] | str) -> list[bool]:
    """Which tokens of one row decide it, from the names of their segments: those of the named ones, and the terminator.
    All, where no token is in a named segment: no row stands on its end alone.
    """
    if names == "first-5":
        return [k < FIRST_TOKENS for k in range(len(segments))]
    named = [name in names for name in segments]
    if names == "all" or not any(named):
        return [True] * len(segments)
    return [yes or name == TERMINATOR for yes, name in zip(named, segments, strict=True)]
