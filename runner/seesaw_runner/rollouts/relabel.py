"""A model answers prompts; the answers that are good enough become training rows, written down before any is learned.

`relabelled.jsonl` in the run folder holds them with where they came from. It is written whole or not at all, and a
later attempt of the run reads it instead of asking again: what was learned can always be looked at.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from seesaw_runner.data.row_shapes import row_format, to_messages
from seesaw_runner.rollouts.engines import ALONE, Wanted, fits_vllm, uses_vllm, vllm_engine
from seesaw_runner.rollouts.prompts import Prompt
from seesaw_runner.run_folder import StageError, attempt_number, say
from seesaw_runner.scoring.causal_lm import CausalLM
from seesaw_runner.scoring.generate import Generated, Sampling, end_ids, generate, rows_that_fit

FILE = "relabelled.jsonl"
#: `(answer, row) → reward`; a check gives 0 or 1.
Judge = Callable[[str, dict], float]


@dataclass
class Tally:
    """What became of the answers of one domain."""

    prompts: int = 0
    answers: int = 0
    passed: int = 0
    empty: int = 0
    cut: int = 0
    failed: int = 0
    kept: int = 0

    def sentence(self, domain: str | None) -> str:
        of = f"{domain}: " if domain else ""
        lost = ", ".join(
            f"{n} {what}"
            for n, what in (
                (self.empty, "empty"),
                (self.cut, "cut at max_new_tokens"),
                (self.failed, "failed the check"),
            )
            if n
        )
        return (
            f"{of}{self.passed} of {self.answers} answers to {self.prompts} prompts are good enough"
            f"{f' ({lost})' if lost else ''}; {self.kept} rows are learned"
        )


@dataclass
class Sampler:
    """Samples answers. `seed` and the order of the prompts decide them, not what was sampled before. `engine`: what
    `answers_of` generates with; `answers` always takes the model that it is given.
    """

    stage: Any
    temperature: float
    top_p: float
    max_new_tokens: int
    batch_size: int | None
    seed: int
    told: int = field(default=0)
    engine: str = "transformers"

    def answers_of(
        self, folder: str | Path, load: Callable[[], torch.nn.Module], prompts: Sequence[Prompt], samples: int
    ) -> list[list[Generated]]:
        """`samples` answers of each prompt by the checkpoint in `folder`. load: the same, for transformers."""
        if not uses_vllm(self.stage, self.engine):
            return self.answers(load(), prompts, samples)
        if self.engine == "auto" and not fits_vllm(folder, self.stage.device, ALONE):
            self.stage.warn(
                "engine",
                f"The model in {folder} leaves vLLM no room on the GPU, so transformers generates its answers.",
                severity="info",
            )
            return self.answers(load(), prompts, samples)
        longest = max(len(p.ids) for p in prompts) + self.max_new_tokens
        with vllm_engine(self.stage, folder, length=longest, seed=self.seed) as engine:
            return engine.answers(
                [p.ids for p in prompts],
                [self.max_new_tokens] * len(prompts),
                Wanted(self.temperature, self.top_p, samples, self.seed),
            )

    def answers(self, model: torch.nn.Module, prompts: Sequence[Prompt], samples: int) -> list[list[Generated]]:
        """`samples` answers of each prompt. Progress is told, and a stop is obeyed between batches."""
        lm = CausalLM(model)
        ends = end_ids(model, self.stage.tokenizer)
        sampling = None
        if self.temperature > 0:
            generator = torch.Generator(device=lm.device).manual_seed(self.seed)
            sampling = Sampling(self.temperature, self.top_p, generator)
        wanted = [k for k in range(len(prompts)) for _ in range(samples)]
        longest = max(len(p.ids) for p in prompts) + self.max_new_tokens
        size = self.batch_size or rows_that_fit(lm, longest)
        out: list[list[Generated]] = [[] for _ in prompts]
        for first in range(0, len(wanted), size):
            if self.stage.watch.signal is not None:
                raise StageError("cancelled", "Stopped while answers were being sampled; nothing was learned yet.")
            part = wanted[first : first + size]
            found = generate(
                lm,
                [prompts[k].ids for k in part],
                max_new_tokens=self.max_new_tokens,
                ends=ends,
                batch_size=size,
                sampling=sampling,
            )
            for k, one in zip(part, found, strict=True):
                out[k].append(one)
            self.stage.journal.append(
                "stage.progress",
                phase="generate",
                step=min(len(wanted), first + size),
                total=len(wanted),
                message="sampling answers",
            )
        return out


def keep_answers(
    prompts: Sequence[Prompt],
    answers: Sequence[Sequence[Generated]],
    tokenizer,
    judge: Callable[[Prompt], Judge | None],
    *,
    threshold: float,
    keep: str,
    source: str,
    model: str,
) -> tuple[list[dict], dict[str | None, Tally]]:
    """Training rows of the answers whose reward reaches `threshold`, and a tally for each domain.

    judge(prompt): how its answers are judged, or None to keep every answer. keep: `first`, `all` or `shortest` of a
    prompt's good answers. An empty answer, or one that was cut, is never good: learned, it would teach to say nothing
    or never to end. source and model are written into each row.
    """
    rows: list[dict] = []
    tallies: dict[str | None, Tally] = {}
    for prompt, found in zip(prompts, answers, strict=True):
        tally = tallies.setdefault(prompt.domain, Tally())
        tally.prompts += 1
        decide = judge(prompt)
        good: list[tuple[int, str]] = []
        for one in found:
            tally.answers += 1
            text = tokenizer.decode(one.ids, skip_special_tokens=True)
            if not text.strip():
                tally.empty += 1
            elif one.finish != "stop":
                tally.cut += 1
            elif decide is not None and not decide(text, prompt.value) >= threshold:
                tally.failed += 1
            else:
                tally.passed += 1
                if text not in [other for _, other in good]:
                    good.append((len(one.ids), text))
        if keep == "shortest":
            good.sort(key=lambda pair: pair[0])
        for _, text in good if keep == "all" else good[:1]:
            tally.kept += 1
            about = {"source": source, "line": prompt.line, "model": model}
            rows.append({**with_answer(prompt.value, text), "relabelled": about})
    return rows, tallies


def with_answer(value: dict, text: str) -> dict:
    """The row with `text` as its answer, every other field kept. Turns behind the old answer are dropped with it."""
    kept = {k: v for k, v in value.items() if k not in _SHAPE}
    if isinstance(value.get("prompt"), str) and row_format(value) in ("prompt-completion", "slime"):
        return {**kept, "prompt": value["prompt"], "completion": text}
    messages = to_messages(value)
    answers = [k for k, m in enumerate(messages) if m["role"] == "assistant"]
    messages = messages[: answers[-1]] if answers else messages
    return {**kept, "messages": [*messages, {"role": "assistant", "content": text}]}


#: Fields that hold the conversation in one of the row formats, or speak of the answer that is replaced.
_SHAPE = (
    "messages prompt completion chosen rejected conversations instruction input output text label reward score"
).split()


def relabelled_rows(stage, make: Callable[[], list[dict]]) -> Path:
    """`relabelled.jsonl` of the run: made by `make` in the first attempt, read again in later ones."""
    path = stage.run / FILE
    if path.exists() and attempt_number(stage.attempt) > 1:
        say(f"learns the answers of an earlier attempt ({FILE})")
        return path
    temporary = path.with_name(f"{FILE}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as out:
            for row in make():
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def tell_tallies(stage, tallies: dict[str | None, Tally], path: str) -> None:
    """The tallies as metric and info events. StageError when no answer at all was good enough."""
    total: Counter[str] = Counter()
    for domain, tally in sorted(tallies.items(), key=lambda pair: str(pair[0])):
        total.update(vars(tally))
        prefix = f"rollout/{domain}/" if domain else "rollout/"
        values = {f"{prefix}{name}": float(n) for name, n in vars(tally).items()}
        stage.journal.append("metric", step=0, values=values)
        say(tally.sentence(domain))
        if domain and tally.kept == 0:
            stage.warn(
                "no-answers",
                f"Of the domain {domain} nothing is learned: {tally.sentence(None)}.",
                where=path,
                fix="Sample more answers, raise max_new_tokens, or look at the check.",
            )
    if not total["kept"]:
        told = "; ".join(tally.sentence(domain) for domain, tally in tallies.items())
        raise StageError(
            "bad-data",
            f"No answer is good enough to learn from. {told}. Sample more answers, raise max_new_tokens, let another "
            "model answer, or look at the check.",
            path,
        )
