"""Teachers asked once: their own answers and what they say of them, stored before the training.

Cheaper than asking at every step (the teachers are not needed while training), but the student learns on the teachers'
answers and not on its own, so it is not told how to get out of its own mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from seesaw_runner.distillation.teachers import LocalTeachers, Rolled, Target, score_rows
from seesaw_runner.distillation.trainer import Example
from seesaw_runner.rollouts.prompts import Prompt
from seesaw_runner.rollouts.relabel import Sampler
from seesaw_runner.run_folder import attempt_number, say

FILE = "teacher_outputs.safetensors"


def stored_examples(
    stage, prompts: Sequence[Prompt], teachers: LocalTeachers, sampler: Sampler, *, top_k: int, batch: int
) -> list[Example]:
    """Examples with the teachers' answers and top-k log-probabilities; made once, read again by later attempts.

    Answers without a token are left out. The file holds flat arrays; `place` are indexes of prompts.
    """
    path = stage.run / FILE
    if not path.exists() or attempt_number(stage.attempt) == 1:
        _ask(stage, prompts, teachers, sampler, top_k, batch, path)
    else:
        say(f"uses the teachers' answers of an earlier attempt ({FILE})")
    data = load_file(path)
    out, at = [], 0
    for place, length in zip(data["place"].tolist(), data["length"].tolist(), strict=True):
        cut = slice(at, at + length)
        at += length
        prompt = prompts[place]
        target = Target(data["topk_logprob"][cut].float().log_softmax(-1), data["topk_ids"][cut].long())
        out.append(Example(prompt.ids, prompt.domain, data["answer"][cut].tolist(), target))
    return out


@torch.no_grad()
def _ask(stage, prompts, teachers: LocalTeachers, sampler: Sampler, top_k: int, batch: int, path: Path) -> None:
    place, length, answer, topk_ids, topk_logprob = [], [], [], [], []
    eos = stage.tokenizer.eos_token_id
    for domain in teachers.folders:
        mine = [k for k, prompt in enumerate(prompts) if prompt.domain == domain]
        if not mine:
            continue
        with teachers.model(domain) as model:
            found = sampler.answers(model, [prompts[k] for k in mine], 1)
            rows = []
            for k, [one] in zip(mine, found, strict=True):
                ids = [*one.ids, eos] if one.finish == "stop" else one.ids
                if ids:
                    rows.append((k, Rolled([*prompts[k].ids, *ids], len(prompts[k].ids))))
            for first in range(0, len(rows), batch):
                part = rows[first : first + batch]
                for (k, row), target in zip(part, score_rows(model, [row for _, row in part]), strict=True):
                    best = target.logprob.topk(min(top_k, target.logprob.shape[-1]))
                    place.append(k)
                    length.append(len(row.ids) - row.start)
                    answer += row.ids[row.start :]
                    topk_ids.append(best.indices.int().cpu())
                    topk_logprob.append(best.values.half().cpu())
    temporary = path.with_name(path.name + ".tmp")
    save_file(
        {
            "place": torch.tensor(place, dtype=torch.int32),
            "length": torch.tensor(length, dtype=torch.int32),
            "answer": torch.tensor(answer, dtype=torch.int32),
            "topk_ids": torch.cat(topk_ids),
            "topk_logprob": torch.cat(topk_logprob),
        },
        temporary,
    )
    temporary.replace(path)
