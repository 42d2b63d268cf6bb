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

from seesaw_runner.flags.settings import flag_actions
from seesaw_runner.flags.watch import Look
from seesaw_runner.journal import standing_events
from seesaw_runner.probing.evaluate import Answer, Evaluator, judge, margin_for
from seesaw_runner.probing.gate import Gate
from seesaw_runner.probing.noise import KIND, measure_noise
from seesaw_runner.probing.probe_set import ProbeSet, load_probe_sets, template_hash, tokenizer_hash
from seesaw_runner.probing.reference_cache import Entry, ReferenceCache, cache_folder
from seesaw_runner.probing.selection import Selection, only, pick, token_index, whole
from seesaw_runner.probing.watching import Watching
from seesaw_runner.probing.writer import ProbeWriter
from seesaw_runner.scoring.encode import Encoder
from seesaw_runner.scoring.generate import end_ids
from seesaw_runner.scoring.scorer import Reference, Scorer, Scores, row_starts
from seesaw_runner.training.device import Device

#: Reference hidden states beyond this size are kept in main memory instead of the accelerator's.
ON_DEVICE_BYTES = 2 * 1024**3
#: A margin needs the two most likely tokens.
LEAST_TOP_K = 2


class Prober:
    """spec: run.json. journal: `append(type, **fields)`. context: positions that the model has. `seconds`: time spent
    here so far. `told`: one line for people about the newest probe point. `gate`: whether a flag halts the run.
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
        self.whole = self.short = self.watched = whole(self.sets)
        self.lean: frozenset[int] = frozenset()
        self.top_k = max(LEAST_TOP_K, int(self.options["top_k"]))
        self.writer = ProbeWriter(run, journal, self.sets, self.encoder.bytes, self.top_k)
        self.watching = Watching(spec, run, self.sets, self.whole, journal)
        self.gate = Gate(flag_actions(spec))
        self.start_answers: dict[str, list[Answer]] = {}
        self.noise: dict[str, dict[str, float]] = {}
        self.last: int | None = None
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
        looks: int | None,
        last: int | None,
        short: bool = False,
        lean: Iterable[int] = (),
        events: Iterable[dict] = (),
    ) -> None:
        """Scores the start checkpoint (step 0), measures noise, freezes the references and opens the watch.

        identity, base_identity: `saving.identity` of the start and the base. looks, last: how many probe points are
        planned after step 0, and the last of them, for the flags' budget; None where that is not known. short: points
        between the ends score fewer rows, and at the `lean` ones only those of series that are watched. events: the
        journal so far, in a later attempt.
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
        self.last = last
        self.short = self.watching.open(
            scores, self.start_answers, self.noise, looks=looks, last=last, short=short, events=journalled
        )
        if short:
            watch = self.watching.watch
            self.watched, self.lean = only([s.id in watch.measurable for s in self.sets], self.short), frozenset(lean)
            self._keep_references_of(self.short)
            self._keep_references_of(self.watched)
        self.gate.recall(events, self.run)
        if not self.scored(0, events):
            seconds = time.perf_counter() - began
            self._report(0, self.start_answers, seconds)
            self._write(0, self.whole, scores, self.start_answers, weights_hash, seconds)
        self.told = "step 0: " + ", ".join(
            f"{s.id} {sum(a.correct for a in self.start_answers[s.id])}/{len(s.usable)} right" for s in self.sets
        )
        for kind, body in self.watching.watch.not_measurable():
            self.journal.append(kind, **body)
        self.seconds += time.perf_counter() - began

    def scored(self, step: int, events: Iterable[dict]) -> bool:
        """Whether a journal has every set's scores at a step, and no later attempt made them void. At a lean point
        only of the sets that are scored there.
        """
        found = {(e["skill"], e["split"]) for e in events if e.get("type") == "probe.scored" and e.get("step") == step}
        chosen = self.between(step)
        return all((s.skill, s.split) in found for k, s in enumerate(self.sets) if chosen.part(k) or not s.usable)

    def between(self, step: int) -> Selection:
        """The rows of a point between the ends."""
        return self.watched if step in self.lean else self.short

    def _scorer(self, model: torch.nn.Module) -> Scorer:
        return Scorer(
            model,
            top_k=self.top_k,
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
            "top_k": min(self.top_k, lm.vocabulary),
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
            "noise": KIND,
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
        noise = measure_noise(
            self.scorer, scores, self.sets, self.whole, self.watching.tokens, self.rows, context=self.context
        )
        return Entry(Reference(hidden, head), scores, None, noise)

    def _keep_references(self, start: Reference, base_identity: str, load_base: Callable[[], torch.nn.Module]) -> None:
        """References for KL, for all rows."""
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

    def _keep_references_of(self, chosen: Selection) -> None:
        """The same for some of the rows."""
        index, _ = token_index(row_starts(self.rows), chosen.rows)
        for name, reference in self.whole.references.items():
            chosen.references[name] = Reference(reference.hidden[index.to(reference.hidden.device)], reference.head)

    def _settle_kl(self, scores: Scores) -> None:
        """KL to the base where the base is the start, and nothing that was not asked for."""
        wanted = self.options.get("kl") or []
        if "base" in wanted and self.same_base and "start" in scores.kl:
            scores.kl["base"] = scores.kl["start"]
        for name in [n for n in scores.kl if n not in wanted]:
            del scores.kl[name]

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
        progress: float | None = None,
    ) -> None:
        """Scores at `step`, looks at every series, runs checks where due or asked for by a flag, writes traces.

        full: every row, else those of `between`. weights_hash, identity: of the checkpoint saved at this step, if one
        was. look: False for weights that were looked at before, so that one look does not count twice. progress: share
        of the flags' budget that may be spent by now; default: of the planned steps.
        """
        began = time.perf_counter()
        if self.scorer is None or self.scorer.lm.outer is not model:
            self.scorer = self._scorer(model)
        chosen = self.whole if full else self.between(step)
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
        looks = {s.id: Look([], False) for s in self.sets}
        if look:
            share = min(1.0, step / self.last) if progress is None and self.last else progress or 1.0
            looks = self.watching.look(step, share, chosen, scores)
        asked = [s for s in self.sets if looks[s.id].needs_check]
        if unanswered := [s for s in asked if s.id not in answers]:
            answers |= self._evaluate(step, chosen, scores, unanswered, texts)
        flags: list[tuple[str, dict[str, Any]]] = []
        drift: list[str] = []
        for k, s in enumerate(self.sets):
            change = deltas[s.id]
            if not change:
                continue
            drift.append(f"{s.id} {sum(change) / max(1, len(change)):+.3f}")
            flags += looks[s.id].events
            if s in asked:
                flags.append(self.watching.test(step, k, chosen, answers[s.id]))
            state = self.watching.watch.state(s.id)
            drift[-1] += f" {state}" if state in ("drifting", "confirmed", "recovered") else ""
            if s.id in answers:
                drift[-1] += f" ({sum(a.correct for a in answers[s.id])}/{len(answers[s.id])} right)"
        self.told = f"step {step}: mean change of the answers' NLL in nats: " + ", ".join(drift)
        self._write(step, chosen, scores, answers, weights_hash, time.perf_counter() - began)
        for kind, body in flags:
            self.journal.append(kind, **body)
            self.gate.see(body)
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
