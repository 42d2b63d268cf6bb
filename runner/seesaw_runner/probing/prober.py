"""Probing in process: scores the probe sets under the model as it is now, writes traces, runs checks, raises flags.

One `Prober` lives as long as a stage. `start` sees the stage's start checkpoint before any training step and freezes
what later points are compared with; `probe` is called at every probe point. Only rank 0 has a prober.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from seesaw_runner.journal import standing_events
from seesaw_runner.probing.evaluate import Answer, Evaluator, judge, margin_for
from seesaw_runner.probing.flags import Look, SeriesStart, Watch, quantile
from seesaw_runner.probing.probe_set import ProbeSet, load_probe_sets, template_hash, tokenizer_hash
from seesaw_runner.probing.reference_cache import Entry, ReferenceCache, cache_folder
from seesaw_runner.probing.selection import Selection, pick, shortened, token_index, whole
from seesaw_runner.probing.writer import ProbeWriter
from seesaw_runner.scoring.encode import Encoder
from seesaw_runner.scoring.generate import end_ids
from seesaw_runner.scoring.scorer import Reference, Scorer, Scores, row_starts
from seesaw_runner.training.device import Device

#: Reference hidden states beyond this size are kept in main memory instead of the accelerator's.
ON_DEVICE_BYTES = 2 * 1024**3
#: Rows of each set that are scored a second time to measure noise: it belongs to the engine, not to the rows.
NOISE_ROWS = 16


class Prober:
    """spec: run.json. journal: `append(type, **fields)`. context: positions that the model has. `seconds`: time spent
    here so far. `told`: one line for people about the newest probe point.
    """

    def __init__(self, spec: dict, run: Path, journal, tokenizer, device: Device, context: int | None = None):
        self.spec, self.run, self.journal, self.device, self.tokenizer = spec, run, journal, device, tokenizer
        self.options, self.context = spec["probe"], context
        began = time.perf_counter()
        self.encoder = Encoder(tokenizer)
        self.sets: list[ProbeSet] = load_probe_sets(
            spec, self.encoder, lambda **finding: journal.append("warning", **finding), context
        )
        self.rows = [s.probes[i].row for s in self.sets for i in s.usable]
        self.whole = whole(self.sets)
        self.short = shortened(self.sets, self.whole)
        self.writer = ProbeWriter(run, journal, self.sets, self.encoder.bytes, int(self.options["top_k"]))
        self.start_answers: dict[str, list[Answer]] = {}
        self.noise: dict[str, dict[str, float]] = {}
        self.watch: Watch | None = None
        self.same_base = False
        self.told = ""
        self.seconds = time.perf_counter() - began

    @property
    def tokens(self) -> int:
        """Tokens that one scoring of every row sends through the model."""
        return sum(len(row.ids) for row in self.rows)

    # ---- the stage's start

    def start(
        self,
        model: torch.nn.Module,
        *,
        weights_hash: str,
        identity: str,
        base_identity: str,
        load_base: Callable[[], torch.nn.Module],
        looks: int,
        events: Iterable[dict] = (),
    ) -> None:
        """Scores the start checkpoint (step 0), measures noise, freezes the references and opens the watch.

        identity, base_identity: `saving.identity` of the start and the base. looks: planned probe points after step 0,
        for the flags' budget. events: the journal so far, in a later attempt.
        load_base is called only when KL to a base other than the start is wanted and the cache does not have it.
        """
        began = time.perf_counter()
        journalled = list(events)
        events = standing_events(journalled)
        self.scorer = self._scorer(model)
        self._describe(model)
        self.same_base = base_identity == identity
        entry = self.cache.load(identity, self.device.torch) or self._fresh()
        if entry.texts is None:
            entry.texts = self._texts(entry.scores, self.whole.rows)
            self.cache.save(identity, entry)
        self.noise = entry.noise
        self._keep_references(entry.reference, base_identity, load_base)
        scores = entry.scores
        if "base" in self.whole.references:
            hidden = entry.reference.hidden
            scores.kl["base"] = self.scorer.kl(self.whole.references["base"], hidden)
        if "start" in self.whole.references:
            scores.kl["start"] = torch.zeros(len(scores.logprob))
        self._settle_kl(scores)
        self.writer.remember_start(scores)
        self.start_answers = self._judge(self.whole, self.sets, dict(enumerate(entry.texts)))
        self._open_watch(looks, journalled)
        if not self.scored(0, events):
            seconds = time.perf_counter() - began
            self._report(0, self.start_answers, seconds)
            self._write(0, self.whole, scores, self.start_answers, weights_hash, seconds)
        self.told = "step 0: " + ", ".join(
            f"{s.id} {sum(a.correct for a in self.start_answers[s.id])}/{len(s.usable)} right" for s in self.sets
        )
        for kind, body in self.watch.not_measurable():
            self.journal.append(kind, **body)
        self.seconds += time.perf_counter() - began

    def scored(self, step: int, events: Iterable[dict]) -> bool:
        """Whether a journal has every set's scores at a step, and no later attempt made them void."""
        found = {(e["skill"], e["split"]) for e in events if e.get("type") == "probe.scored" and e.get("step") == step}
        return all((s.skill, s.split) in found for s in self.sets)

    def _scorer(self, model: torch.nn.Module) -> Scorer:
        return Scorer(
            model,
            top_k=max(2, int(self.options["top_k"])),
            batch_size=int(self.options["batch_size"]),
            chunk_elements=self.device.chunk_elements,
        )

    def _describe(self, model: torch.nn.Module) -> None:
        lm = self.scorer.lm
        self.evaluator = Evaluator(
            self.tokenizer,
            max_new_tokens=int(self.options["max_new_tokens"]),
            ends=end_ids(lm.model, self.tokenizer),
            margin=margin_for(self.device.dtype),
            context=self.context,
        )
        self.meta = {
            "engine": lm.engine,
            "dtype": self.device.dtype_name,
            "attention": str(getattr(lm.model.config, "_attn_implementation", "eager")),
            "batch_size": int(self.options["batch_size"]),
            "temperature": 1.0,
            "tokenizer_hash": tokenizer_hash(self.tokenizer),
            "template_hash": template_hash(self.tokenizer),
            "top_k": min(int(self.options["top_k"]), lm.vocabulary),
            "mask": self.encoder.method,
            "device": self.device.name,
            "path": lm.path,
            "max_new_tokens": int(self.options["max_new_tokens"]),
        }
        identity = {
            **self.meta,
            "probes": [[s.id, s.hash] for s in self.sets],
            "ends": sorted(self.evaluator.ends),
            "torch": torch.__version__,
            "context": self.context,
            "tokens": _tokens_hash(self.rows),
        }
        self.cache = ReferenceCache(cache_folder(self.run), identity, row_starts(self.rows))
        self.meta |= {"run": self.spec["id"], "stage": self.spec["stage"]}
        if self.encoder.method == "prefix":
            self.meta["mask_note"] = (
                "The chat template has no {% generation %} block: scored tokens were found by comparing ids."
            )
        if lm.path == "whole":
            self.journal.append(
                "warning",
                code="whole-logits",
                severity="info",
                where=self.spec["start"]["checkpoint"],
                message="This architecture's logits are no plain function of its last hidden state: they are "
                "computed whole, a few rows at a time, and KL is not available.",
            )

    def _fresh(self) -> Entry:
        """Scores of the start checkpoint computed now, with its noise."""
        hidden = self.scorer.hidden(self.rows) if self.scorer.lm.split else None
        scores = self.scorer.score(self.rows, None, hidden)
        head = self.scorer.lm.frozen_head() if hidden is not None else None
        return Entry(Reference(hidden, head), scores, None, self._measure_noise(scores))

    def _measure_noise(self, scores: Scores) -> dict[str, dict[str, float]]:
        """A/A: the same checkpoint again, in batches of another size taken from the other end. Pooled over the sets."""
        rows = [i for k in range(len(self.sets)) for i in list(self.whole.part(k))[:NOISE_ROWS]]
        other = max(1, int(self.options["batch_size"]) * 3 // 4)
        before = pick(scores, rows)
        change = self.scorer.logprob([self.rows[i] for i in rows], batch_size=other, reverse=True) - before.logprob
        noise = {
            "nll_q99": quantile([abs(v) for v in before.sums(change)], 0.99),
            "token_q99": quantile(change.abs().tolist(), 0.99),
        }
        return {s.id: noise for s in self.sets}

    def _keep_references(self, start: Reference, base_identity: str, load_base: Callable[[], torch.nn.Module]) -> None:
        """References for KL, for all rows and for the short selection."""
        wanted = self.options.get("kl") or []
        if not self.scorer.lm.split or not wanted:
            return
        if "start" in wanted or self.same_base:
            self.whole.references["start"] = _off_device(start)
        if "base" in wanted and not self.same_base:
            entry = self.cache.load(base_identity, self.device.torch)
            if entry is None:
                base = self._scorer(load_base())
                hidden = base.hidden(self.rows)
                reference = Reference(hidden, base.lm.frozen_head())
            else:
                reference = entry.reference
            self.whole.references["base"] = _off_device(reference)
        index, _ = token_index(row_starts(self.rows), self.short.rows)
        for name, reference in self.whole.references.items():
            self.short.references[name] = Reference(reference.hidden[index.to(reference.hidden.device)], reference.head)

    def _settle_kl(self, scores: Scores) -> None:
        """KL to the base where the base is the start, and nothing that was not asked for."""
        wanted = self.options.get("kl") or []
        if "base" in wanted and self.same_base and "start" in scores.kl:
            scores.kl["base"] = scores.kl["start"]
        for name in [n for n in scores.kl if n not in wanted]:
            del scores.kl[name]

    def _open_watch(self, looks: int, events: list[dict]) -> None:
        flags = self.spec["flags"]
        series = [
            SeriesStart(
                s.skill,
                s.split,
                len(s.usable),
                [a.correct for a in self.start_answers[s.id]],
                self.noise[s.id]["nll_q99"],
            )
            for s in self.sets
        ]
        self.watch = Watch(alpha=flags["alpha"], tolerance=flags["tolerance"], looks=max(1, looks), series=series)
        self.watch.restore(events)

    def let_go(self) -> None:
        """Forgets the model that it scored last, so that its memory is free until the next probe point."""
        self.scorer = None

    # ---- a probe point

    def probe(
        self,
        model: torch.nn.Module,
        step: int,
        *,
        evaluate: bool,
        full: bool,
        weights_hash: str | None = None,
        identity: str | None = None,
        look: bool = True,
    ) -> None:
        """Scores at `step`, looks at every series, runs checks where due or asked for by a flag, writes traces.

        full: every row, else the short selection. weights_hash, identity: of the checkpoint saved at this step, if one
        was. look: False for weights that were looked at before, so that one look does not count twice.
        """
        began = time.perf_counter()
        if self.scorer is None or self.scorer.lm.outer is not model:
            self.scorer = self._scorer(model)
        chosen = self.whole if full else self.short
        rows = [self.rows[i] for i in chosen.rows]
        hidden = self.scorer.hidden(rows) if self.scorer.lm.split else None
        scores = self.scorer.score(rows, chosen.references, hidden)
        self._settle_kl(scores)
        nll = [-v for v in scores.sums(scores.logprob)]
        answers: dict[str, list[Answer]] = {}
        texts: dict[int, tuple[str, str]] = {}
        if evaluate:
            answers = self._evaluate(step, chosen, scores, self.sets, texts)
        deltas = {
            s.id: [nll[j] - self.writer.start_nll[chosen.rows[j]] for j in chosen.part(k)]
            for k, s in enumerate(self.sets)
        }
        looks = {s.id: self.watch.look(step, s.id, deltas[s.id]) if look else Look([], False) for s in self.sets}
        asked = [s for s in self.sets if looks[s.id].needs_check]
        if unanswered := [s for s in asked if s.id not in answers]:
            answers |= self._evaluate(step, chosen, scores, unanswered, texts)
        flags: list[tuple[str, dict[str, Any]]] = []
        drift: list[str] = []
        for k, s in enumerate(self.sets):
            change = deltas[s.id]
            drift.append(f"{s.id} {sum(change) / max(1, len(change)):+.3f}")
            flags += looks[s.id].events
            if s in asked:
                before = [self.start_answers[s.id][i] for i in chosen.within(k, self.whole.offsets[k])]
                flags.append(
                    self.watch.test(step, s.id, [a.correct for a in before], [a.correct for a in answers[s.id]])
                )
            state = self.watch.state(s.id)
            drift[-1] += f" {state}" if state in ("drifting", "confirmed", "recovered") else ""
            if s.id in answers:
                drift[-1] += f" ({sum(a.correct for a in answers[s.id])}/{len(answers[s.id])} right)"
        self.told = f"step {step}: mean change of the answers' NLL in nats: " + ", ".join(drift)
        self._write(step, chosen, scores, answers, weights_hash, time.perf_counter() - began)
        for kind, body in flags:
            self.journal.append(kind, **body)
        if identity and full and hidden is not None and len(texts) == len(self.rows):
            # The next stage starts here. Noise is a matter of the engine, so the start's is this checkpoint's too.
            reference = Reference(hidden, self.scorer.lm.head)
            self.cache.save(identity, Entry(reference, scores, [texts[i] for i in range(len(texts))], self.noise))
        self.seconds += time.perf_counter() - began

    def _texts(self, scores: Scores, rows: list[int]) -> list[tuple[str, str]]:
        return self.evaluator.texts(self.scorer.lm, [self.rows[i] for i in rows], scores)

    def _evaluate(
        self, step: int, chosen: Selection, scores: Scores, sets: list[ProbeSet], texts: dict[int, tuple[str, str]]
    ) -> dict[str, list[Answer]]:
        """Generates for several sets at once (fuller batches), judges and reports; `texts` collects texts by row
        index.
        """
        began = time.perf_counter()
        places = [j for k, s in enumerate(self.sets) if s in sets for j in chosen.part(k)]
        found = self._texts(pick(scores, places), [chosen.rows[j] for j in places])
        texts.update(zip((chosen.rows[j] for j in places), found, strict=True))
        answers = self._judge(chosen, sets, texts)
        self._report(step, answers, time.perf_counter() - began)
        return answers

    def _judge(
        self, chosen: Selection, sets: list[ProbeSet], texts: dict[int, tuple[str, str]]
    ) -> dict[str, list[Answer]]:
        return {
            s.id: judge(s, chosen.within(k, self.whole.offsets[k]), [texts[chosen.rows[j]] for j in chosen.part(k)])
            for k, s in enumerate(self.sets)
            if s in sets
        }

    def _report(self, step: int, answers: dict[str, list[Answer]], seconds: float) -> None:
        for s in self.sets:
            if s.id in answers:
                n, right = len(answers[s.id]), sum(a.correct for a in answers[s.id])
                self.journal.append(
                    "eval.result",
                    step=step,
                    skill=s.skill,
                    split=s.split,
                    n=n,
                    correct=right,
                    seconds=round(seconds / len(answers), 4),
                )

    def _write(
        self, step: int, chosen: Selection, scores: Scores, answers: dict, weights_hash: str | None, seconds: float
    ) -> None:
        self.writer.write(
            step, chosen, scores, answers, {**self.meta, "weights_hash": weights_hash}, self.noise, seconds
        )


def _tokens_hash(rows: list) -> str:
    """Identity of what is scored, id by id: whatever made these ids (tokenizer, template, encoder), it is in them."""
    return hashlib.sha256(json.dumps([[r.ids, r.scored, r.prompt_ids] for r in rows]).encode()).hexdigest()


def _off_device(reference: Reference) -> Reference:
    if reference.hidden.is_cuda and reference.hidden.nbytes > ON_DEVICE_BYTES:
        return Reference(reference.hidden.cpu(), reference.head)
    return reference
