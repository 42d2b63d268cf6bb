"""Scores and answers of one probe point → trace files and `probe.scored` events."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from seesaw_runner.checkpoints.saving import step_name
from seesaw_runner.probing.evaluate import Answer
from seesaw_runner.probing.probe_set import ProbeSet
from seesaw_runner.probing.selection import Selection
from seesaw_runner.probing.summary import probe_summary
from seesaw_runner.scoring.scorer import Scores
from seesaw_runner.scoring.tokenbytes import TokenBytes
from seesaw_runner.scoring.trace import TraceRow, write_trace

#: Traces that are written at a time.
SIDE_BY_SIDE = 8
#: Why a usable row has no scores at some points of a short stage.
NOT_AT_THIS_POINT = (
    "Scored only at the start and the end: this stage is so short that scoring every row more "
    "often would cost more than it tells."
)


class ProbeWriter:
    """`start_nll[i]` and `start_segments[i]` (segment → NLL) of every usable row are filled at step 0, before the first
    write.
    """

    def __init__(self, run: Path, journal, sets: list[ProbeSet], tokens: TokenBytes, top_k: int):
        self.run, self.journal, self.sets, self.tokens, self.top_k = run, journal, sets, tokens, top_k
        self.start_nll: list[float] = []
        self.start_segments: list[dict[int, float]] = []

    def remember_start(self, scores: Scores) -> None:
        """Takes the stage's start from the scores of all usable rows."""
        self.start_nll = [-v for v in scores.sums(scores.logprob)]
        values, i = scores.logprob.tolist(), 0
        for s in self.sets:
            for index in s.usable:
                sums: dict[int, float] = {}
                for segment, value in zip(s.probes[index].segment, values[scores.row(i)], strict=True):
                    sums[segment] = sums.get(segment, 0.0) - value
                self.start_segments.append(sums)
                i += 1

    def write(
        self,
        step: int,
        chosen: Selection,
        scores: Scores,
        answers: dict[str, list[Answer]],
        meta: dict[str, Any],
        noise: dict[str, dict],
        seconds: float,
    ) -> None:
        """One trace and one event per set. scores and answers are those of the chosen rows, in order. The traces are
        written side by side: most of a small one's time is the wait for the disk.
        """
        lists = {
            "logprob": scores.logprob.tolist(),
            "entropy": scores.entropy.tolist(),
            "rank": scores.rank.tolist(),
            "topk_ids": scores.topk_ids[:, : self.top_k].tolist(),
            "topk_logprob": scores.topk_logprob[:, : self.top_k].tolist(),
            **{f"kl_{n}": v.tolist() for n, v in scores.kl.items()},
        }
        looked = [k for k, s in enumerate(self.sets) if not s.usable or chosen.part(k)]
        rows_of = {k: self._rows(k, self.sets[k], chosen, scores, lists, answers.get(self.sets[k].id)) for k in looked}
        names = {k: f"traces/{step_name(step)}/{self.sets[k].id}.trace" for k in looked}

        def write_one(k: int) -> None:
            s = self.sets[k]
            own = {"skill": s.skill, "split": s.split, "probe_set_hash": s.hash, "noise": noise[s.id]}
            about = {**meta, "step": step, **own}
            write_trace(self.run / names[k], about, rows_of[k], s.segments, self._vocab(rows_of[k]))

        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            list(pool.map(write_one, looked))
        for k in looked:
            s, rows = self.sets[k], rows_of[k]
            at_start: dict[int, float] = {}
            for i in (chosen.rows[j] for j in chosen.part(k)):
                for segment, value in self.start_segments[i].items():
                    at_start[segment] = at_start.get(segment, 0.0) + value
            scored = [r for r in rows if r.reason is None]
            summary = probe_summary(
                scored, [self.start_nll[chosen.rows[j]] for j in chosen.part(k)], at_start, s.segments
            )
            summary["skipped"] = len(rows) - len(scored)
            self.journal.append(
                "probe.scored",
                step=step,
                skill=s.skill,
                split=s.split,
                trace=names[k],
                summary=summary,
                seconds=round(seconds / len(self.sets), 4),
            )

    def _rows(
        self,
        k: int,
        s: ProbeSet,
        chosen: Selection,
        scores: Scores,
        lists: dict[str, list],
        answers: list[Answer] | None,
    ) -> list[TraceRow]:
        out, part = [], chosen.part(k)
        first = sum(len(other.usable) for other in self.sets[:k])
        place = {s.usable[i]: j for i, j in zip(chosen.within(k, first), part, strict=True)}
        for index, probe in enumerate(s.probes):
            row = TraceRow(probe.line, probe.hash, probe.row.prompt, probe.row.reference, probe.tags, probe.row.reason)
            out.append(row)
            if row.reason is not None:
                continue
            if index not in place:
                row.reason = NOT_AT_THIS_POINT
                continue
            j = place[index]
            cut = scores.row(j)
            row.ids = [probe.row.ids[p] for p in probe.row.scored]
            row.ends, row.segment = probe.row.ends, probe.segment
            row.logprob, row.entropy, row.rank = lists["logprob"][cut], lists["entropy"][cut], lists["rank"][cut]
            row.topk_ids = [v for token in lists["topk_ids"][cut] for v in token]
            row.topk_logprob = [v for token in lists["topk_logprob"][cut] for v in token]
            row.kl = {n: lists[f"kl_{n}"][cut] for n in scores.kl}
            if answers is not None:
                answer = answers[j - part.start]
                row.correct, row.generated, row.finish = answer.correct, answer.text, answer.finish
        return out

    def _vocab(self, rows: list[TraceRow]) -> dict[int, bytes]:
        ids = {i for r in rows for i in r.ids} | {i for r in rows for i in r.topk_ids}
        return {i: self.tokens(i) for i in ids}
