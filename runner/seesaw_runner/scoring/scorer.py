"""Teacher-forced scores of a model's reference answers: log-probability, entropy, rank, top-k and exact KL, per token.

How: rows are sorted by length and right-padded; the transformer runs once per batch; only the hidden states in front of
scored tokens are kept; the LM head runs on chunks of them and everything is reduced in float32 before the next chunk.
So memory is `chunk × vocabulary`, whatever the number or length of the rows.

Exact KL(reference ‖ model) = Σ_v p_ref(v) · (log p_ref(v) − log p(v)), summed over the whole vocabulary at each prefix
(Rao-Blackwellised over the next token, arXiv 2504.10637). The reference distribution is recomputed chunk by chunk from
the reference's final hidden states, which are kept instead of its logits, and its own frozen LM head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from seesaw_runner.scoring.causal_lm import CausalLM

#: A reference whose distributions take no more bytes than this keeps them between probe points, which saves half the
#: cost of KL. So do small vocabularies; with a vocabulary of 152k it is the room of 110 tokens.
KEEP_BYTES = 128 * 1024**2


@dataclass
class Reference:
    """What another checkpoint computed for the same rows: `hidden` [tokens, width], float; and its LM head.

    kept: its distributions, cut up as `partition` (tokens of a chunk and of a part) says; None while nothing is kept.
    """

    hidden: torch.Tensor
    head: Any
    kept: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list, repr=False)
    partition: tuple[int, int] | None = None


@dataclass
class Scores:
    """Per scored token, rows one after the other. `starts[i]:starts[i+1]` is row i. All on the CPU.

    logprob, entropy: float32 [n] in nats; rank: int32 [n], 0 = most likely; topk_ids int32 [n, k]; topk_logprob float32
    [n, k]; kl: name → float32 [n] in nats, or absent where it could not be computed.
    """

    starts: list[int]
    logprob: torch.Tensor
    entropy: torch.Tensor
    rank: torch.Tensor
    topk_ids: torch.Tensor
    topk_logprob: torch.Tensor
    kl: dict[str, torch.Tensor]

    def row(self, i: int) -> slice:
        return slice(self.starts[i], self.starts[i + 1])

    def sums(self, values: torch.Tensor) -> list[float]:
        """Sum of a per-token array over each row, in float64."""
        wide = values.double()
        return [float(wide[self.row(i)].sum()) for i in range(len(self.starts) - 1)]


class Scorer:
    """Scores rows with one model. `vocabulary`: ids beyond it (padded rows of the head) get no probability."""

    def __init__(
        self,
        model: torch.nn.Module,
        *,
        top_k: int = 8,
        batch_size: int = 64,
        chunk_elements: int = 4 * 1024 * 1024,
        chunk_tokens: int = 256,
        part_elements: int = 2 * 1024 * 1024,
        vocabulary: int | None = None,
        temperature: float = 1.0,
    ):
        self.lm = CausalLM(model)
        self.top_k = top_k
        self.batch_size = batch_size
        self.chunk_elements = chunk_elements
        self.chunk_tokens = chunk_tokens
        self.part_elements = part_elements if self.lm.device.type == "cpu" else chunk_elements
        self.vocabulary = vocabulary
        self.temperature = temperature

    # ---- hidden states

    @torch.no_grad()
    def hidden(
        self, rows: Sequence, *, batch_size: int | None = None, reverse: bool = False, padding: int = 0
    ) -> torch.Tensor:
        """Final hidden states in front of every scored token, [tokens, width], in the order of `rows`.

        rows have `ids` and `scored`. `reverse` takes the batches in the other order and direction, `padding` adds so
        many columns to them (for A/A noise).
        """
        size = batch_size or self.batch_size
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids), reverse=reverse)
        starts = row_starts(rows)
        out: torch.Tensor | None = None
        with self.lm.evaluating():
            for first in range(0, len(order), size):
                picked = order[first : first + size]
                width = max(len(rows[i].ids) for i in picked) - 1 + padding
                ids = torch.full((len(picked), width), self.lm.pad_id, dtype=torch.long)
                where, target = [], []
                for k, i in enumerate(picked):
                    row = rows[i].ids[:-1]
                    ids[k, : len(row)] = torch.tensor(row)
                    where += [k * width + p - 1 for p in rows[i].scored]
                    target += range(starts[i], starts[i + 1])
                lengths = [len(rows[i].ids) - 1 for i in picked]
                states = self.lm.hidden(ids, lengths)
                flat = states.reshape(-1, states.shape[-1])
                chosen = flat[torch.tensor(where, device=flat.device)]
                if out is None:
                    out = torch.empty((starts[-1], chosen.shape[-1]), dtype=chosen.dtype, device=chosen.device)
                out[torch.tensor(target, device=out.device)] = chosen
        if out is None:
            out = torch.empty((0, self.lm.width))
        return out

    def reference(self, rows: Sequence, hidden: torch.Tensor | None = None) -> Reference:
        """Freezes what the model says now about `rows`, for KL of later checkpoints. Copies the head only if it can
        change.
        """
        return Reference(self.hidden(rows) if hidden is None else hidden, self.lm.frozen_head())

    # ---- scores

    @torch.no_grad()
    def score(
        self, rows: Sequence, references: dict[str, Reference] | None = None, hidden: torch.Tensor | None = None
    ) -> Scores:
        """Scores every row's `scored` tokens. `references`: name → Reference for the same rows in the same order."""
        if not self.lm.split:
            return self._score_whole(rows)
        states = self.hidden(rows) if hidden is None else hidden
        targets = torch.tensor([row.ids[p] for row in rows for p in row.scored], dtype=torch.long, device=states.device)
        others = {name: self._distributions(reference) for name, reference in (references or {}).items()}
        parts: list[dict] = []
        for cut, logp in self._logprobs(states, self.lm.head):
            part = reduce_chunk(logp, targets[cut], self.top_k)
            for name, distributions in others.items():
                part[name] = kl_divergence(*next(distributions), logp).cpu()
            parts.append(part)
        return self._join(rows, parts, list(others))

    @torch.no_grad()
    def again(self, rows: Sequence, *, batch_size: int, padding: int) -> Scores:
        """The same scores computed another way, for A/A noise: other batches, from the other end, padded further."""
        if not self.lm.split:
            return self._score_whole(rows, batch_size=batch_size, padding=padding)
        return self.score(rows, None, self.hidden(rows, batch_size=batch_size, reverse=True, padding=padding))

    def chunk(self, vocabulary: int) -> int:
        """Tokens per LM-head chunk: `chunk_elements` logits, but never fewer than `chunk_tokens` tokens.

        Below that the head's matrix is read from memory more often than it is used: at a vocabulary of 152k on a CPU a
        token costs 2.5 ms in chunks of 27 and 1.1 ms in chunks of 256 (148 MiB of float32 logits).
        """
        return max(1, self.chunk_tokens, self.chunk_elements // max(1, vocabulary))

    def part(self, vocabulary: int) -> int:
        """Tokens of a chunk that are reduced together. On a CPU `part_elements` (8 MiB of float32): every one of the
        six passes over a whole chunk of a large vocabulary would go to main memory, and its temporaries to fresh pages.
        """
        return max(1, self.part_elements // max(1, vocabulary))

    def _logprobs(self, hidden: torch.Tensor, head) -> Iterator[tuple[slice, torch.Tensor]]:
        """Float32 log-softmax [tokens, vocabulary] of one part after the other, with its place in `hidden`."""
        step, size = self.chunk(self.lm.vocabulary), self.part(self.lm.vocabulary)
        for a in range(0, len(hidden), step):
            logits = head(hidden[a : a + step])
            for b in range(0, len(logits), size):
                part = logits[b : b + size]
                yield slice(a + b, a + b + len(part)), self._normalise(part)

    def _normalise(self, logits: torch.Tensor) -> torch.Tensor:
        logits = logits.float()
        if self.vocabulary is not None and logits.shape[-1] > self.vocabulary:
            logits = logits[..., : self.vocabulary]
        if self.temperature != 1.0:
            logits = logits / self.temperature
        return torch.log_softmax(logits, dim=-1)

    @torch.no_grad()
    def kl(self, reference: Reference, hidden: torch.Tensor) -> torch.Tensor:
        """KL(reference ‖ this model) of every token, from this model's hidden states of the same rows. float32 on the
        CPU.
        """
        other = self._distributions(reference)
        out = [kl_divergence(*next(other), logp).cpu() for _, logp in self._logprobs(hidden, self.lm.head)]
        return torch.cat(out) if out else torch.empty(0)

    def _distributions(self, reference: Reference) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(probabilities, log-probabilities) of a reference, part by part as `_logprobs`; kept while there is room."""
        partition = self.chunk(self.lm.vocabulary), self.part(self.lm.vocabulary)
        if reference.partition == partition:
            yield from reference.kept
            return
        fits = 8 * len(reference.hidden) * self.lm.vocabulary <= KEEP_BYTES
        kept: list[tuple[torch.Tensor, torch.Tensor]] = []
        for _, logp in self._logprobs(reference.hidden, reference.head):
            found = logp.exp(), logp
            if fits:
                kept.append(found)
            yield found
        if fits:
            reference.kept, reference.partition = kept, partition

    def _score_whole(self, rows: Sequence, batch_size: int | None = None, padding: int = 0) -> Scores:
        """For models whose logits are no plain function of their last hidden state: the model's own logits, few rows at
        a time.

        KL is not computed on this path: it would need the reference's full logits.
        """
        longest = max((len(r.ids) for r in rows), default=1)
        size = max(1, min(batch_size or self.batch_size, self.chunk_elements // (longest * self.lm.vocabulary)))
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
        parts: dict[int, dict] = {}
        with self.lm.evaluating():
            for first in range(0, len(order), size):
                picked = order[first : first + size]
                width = max(len(rows[i].ids) for i in picked) - 1 + padding
                ids = torch.full((len(picked), width), self.lm.pad_id, dtype=torch.long)
                for k, i in enumerate(picked):
                    ids[k, : len(rows[i].ids) - 1] = torch.tensor(rows[i].ids[:-1])
                logits = self.lm.logits(ids, [len(rows[i].ids) - 1 for i in picked])
                for k, i in enumerate(picked):
                    where = torch.tensor([p - 1 for p in rows[i].scored], device=logits.device)
                    targets = torch.tensor([rows[i].ids[p] for p in rows[i].scored], device=logits.device)
                    parts[i] = reduce_chunk(self._normalise(logits[k, where]), targets, self.top_k)
        return self._join(rows, [parts[i] for i in range(len(rows))], [])

    def _join(self, rows: Sequence, parts: list[dict], names: list[str]) -> Scores:
        def cat(key: str, empty: torch.Tensor) -> torch.Tensor:
            return torch.cat([p[key] for p in parts]) if parts else empty

        none, ids = torch.empty(0), torch.empty((0, self.top_k), dtype=torch.int32)
        return Scores(
            row_starts(rows),
            cat("logprob", none),
            cat("entropy", none),
            cat("rank", none.int()),
            cat("topk_ids", ids),
            cat("topk_logprob", ids.float()),
            {name: cat(name, none) for name in names},
        )


def row_starts(rows: Sequence) -> list[int]:
    """Index of each row's first scored token, and the total at the end."""
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row.scored))
    return starts


def reduce_chunk(logp: torch.Tensor, targets: torch.Tensor, top_k: int) -> dict[str, torch.Tensor]:
    """What is kept of a chunk of log-probabilities [n, v], on the CPU. Tokens of probability 0 add 0 to the entropy."""
    own = logp.gather(1, targets[:, None])
    entropy = -torch.linalg.vecdot(logp.exp(), logp)
    if bool(torch.isnan(entropy).any()):  # 0 · −∞
        entropy = -torch.where(logp == -torch.inf, torch.zeros_like(logp), logp.exp() * logp).sum(-1)
    best = torch.topk(logp, min(top_k, logp.shape[-1]), dim=-1)
    return {
        "logprob": own[:, 0].cpu(),
        "entropy": entropy.cpu(),
        "rank": (logp > own).sum(-1, dtype=torch.int32).cpu(),
        "topk_ids": best.indices.int().cpu(),
        "topk_logprob": best.values.cpu(),
    }


def kl_divergence(p: torch.Tensor, log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """Exact KL(p ‖ q) = Σ p · (log p − log q) per row of tables [n, v], nats. Terms with p = 0 are 0, never NaN;
    +∞ where q gives probability 0 to what p uses."""
    kl = torch.linalg.vecdot(p, log_p - log_q)
    if bool(torch.isnan(kl).any()):
        terms = p * (log_p - log_q)
        kl = torch.where(log_p == -torch.inf, torch.zeros_like(terms), terms).sum(-1)
    return kl.clamp_min(0.0)
