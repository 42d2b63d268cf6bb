"""What is measured at a look: the panel as the runner would see it, and what no team could afford, the truth."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from seesaw_runner.checks import make_check
from seesaw_runner.probing.evaluate import Evaluator, judge
from seesaw_runner.probing.probe_set import TERMINATOR, ProbeSet, load_probe_sets
from seesaw_runner.scoring.encode import Encoder
from seesaw_runner.scoring.generate import end_ids
from seesaw_runner.scoring.scorer import Reference, Scorer, Scores

from battery.rows import CHECKS, DECISION, held_out_rows

CLIP = 50.0
NEW_TOKENS = 28


class Group:
    """Probe sets of one kind (`panel`, `bench` or `oracle`), all skills behind each other."""

    def __init__(self, kind: str, skills: Sequence[str], tokenizer, seed: int, folder: Path):
        self.encoder = Encoder(tokenizer)
        names = []
        for skill in skills:
            path = folder / f"{skill}.{kind}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in held_out_rows(skill, seed)[kind]))
            names.append({"id": skill, "check": CHECKS[skill], "probes": {"id": str(path)}})
        spec = {"skills": names, "trusted": False, "pipeline": {"root": str(folder)}}
        self.sets: list[ProbeSet] = load_probe_sets(spec, self.encoder, _refuse)
        self.rows = [probe.row for s in self.sets for probe in s.probes]
        self.starts = [0]
        for s in self.sets:
            self.starts.append(self.starts[-1] + len(s.probes))

    def part(self, k: int) -> range:
        return range(self.starts[k], self.starts[k + 1])


def _refuse(**finding) -> None:
    raise AssertionError(finding["message"])


class Meter:
    """Scores groups under a model and judges its answers."""

    def __init__(self, tokenizer, batch_size: int = 128):
        self.tokenizer, self.batch_size = tokenizer, batch_size

    def scores(self, group: Group, model, *, references=None, top_k: int = 2, batch: int = 0, reverse=False) -> Scores:
        scorer = Scorer(model, top_k=top_k, batch_size=batch or self.batch_size)
        hidden = scorer.hidden(group.rows, reverse=reverse)
        return scorer.score(group.rows, references, hidden)

    def reference(self, group: Group, model) -> Reference:
        scorer = Scorer(model, top_k=2, batch_size=self.batch_size)
        return scorer.reference(group.rows)

    def right(self, group: Group, model, scores: Scores) -> dict[str, str]:
        """By skill, one character a row: whether the greedy answer passes its check."""
        scorer = Scorer(model, top_k=2)
        evaluator = Evaluator(self.tokenizer, max_new_tokens=NEW_TOKENS, ends=end_ids(scorer.lm.model, self.tokenizer))
        texts = evaluator.texts(scorer.lm, group.rows, scores)
        return {
            s.skill: "".join(
                "01"[answer.correct] for answer in judge(s, range(len(s.probes)), [texts[i] for i in group.part(k)])
            )
            for k, s in enumerate(group.sets)
        }


def panel_numbers(group: Group, scores: Scores) -> dict[str, dict]:
    """By skill: `nll`, `margin`, `decision` of every row (nats), and the mean exact KL to the start per token."""
    gold, top = scores.logprob.double(), scores.topk_logprob.double()
    rival = torch.where(scores.rank == 0, top[:, 1], top[:, 0])
    margin = (gold - rival).clamp(-CLIP, CLIP)
    out: dict[str, dict] = {}
    for k, s in enumerate(group.sets):
        wanted = {i for i, name in enumerate(s.segments) if name in (*DECISION[s.skill], TERMINATOR)}
        nll, lowest, decision = [], [], []
        for i, probe in zip(group.part(k), s.probes, strict=True):
            cut = scores.row(i)
            own = margin[cut].tolist()
            chosen = [m for m, segment in zip(own, probe.segment, strict=True) if segment in wanted]
            nll.append(round(-float(gold[cut].sum()), 4))
            lowest.append(round(min(own), 4))
            decision.append(round(min(chosen or own), 4))
        tokens = slice(scores.starts[group.starts[k]], scores.starts[group.starts[k + 1]])
        out[s.skill] = {"nll": nll, "margin": lowest, "decision": decision}
        if "start" in scores.kl:
            out[s.skill]["kl"] = round(float(scores.kl["start"][tokens].mean()), 6)
    return out


class Clock:
    """Seconds of processor time of this thread, by name: the machine may be busy with other things."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def of(self, name: str):
        clock = self

        class Part:
            def __enter__(self) -> None:
                self.began = time.process_time()

            def __exit__(self, *_: object) -> None:
                clock.seconds[name] = clock.seconds.get(name, 0.0) + time.process_time() - self.began

        return Part()


def weight_drift(start: dict[str, torch.Tensor], model) -> float:
    """The largest relative Frobenius change of one matrix; LoRA's product counts as the change of its matrix."""
    worst = 0.0
    for module in model.modules():
        if hasattr(module, "get_delta_weight") and getattr(module, "active_adapters", None):
            change = module.get_delta_weight(module.active_adapters[0]).detach()
            worst = max(worst, float(change.norm() / module.get_base_layer().weight.norm()))
    for name, value in model.named_parameters():
        if name in start and value.ndim == 2:
            worst = max(worst, float((value.detach() - start[name]).norm() / start[name].norm().clamp_min(1e-9)))
    return round(worst, 6)


def check_of(skill: str):
    return make_check(CHECKS[skill], trusted=False, root=".")
