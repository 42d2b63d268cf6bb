"""Greedy generation for the checks, and sampling for recipes: many prompts at once, with a KV cache, on any causal LM.

`model.generate` costs several milliseconds of Python per step; for checks the loop below is enough: left padding,
prompts sorted by length, the largest logit at every step, finished rows taken out of the batch when enough of it is
done. Equal to `model.generate(do_sample=False)` (a test compares them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from transformers.cache_utils import DynamicCache

from seesaw_runner.scoring.causal_lm import CausalLM

#: Rows generated together, at most; bytes that their key-value cache and activations may take: fixed off CUDA, there
#: a share of what is free, since training's own memory is resident at the same time.
MOST_ROWS = 512
ROOM_BYTES = 1024**3
ROOM_SHARE = 0.25


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn. temperature > 0; top_p: only the likeliest tokens that together hold this share.

    `generator` lives on the model's device; the same state and batches give the same answers.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    generator: torch.Generator | None = None

    def draw(self, logits: torch.Tensor) -> torch.Tensor:
        """One id for each row of logits [rows, vocabulary]."""
        probabilities = (logits.float() / self.temperature).softmax(-1)
        if self.top_p < 1:
            ordered, index = probabilities.sort(-1, descending=True)
            # A token stays while what is likelier than it holds less than top_p: the likeliest always does.
            ordered[ordered.cumsum(-1) - ordered >= self.top_p] = 0
            probabilities = torch.zeros_like(ordered).scatter_(-1, index, ordered)
        return torch.multinomial(probabilities, 1, generator=self.generator)[:, 0]


@dataclass
class Generated:
    """`ids`: the new ids without the end token. `finish`: `stop` (an end token came) or `length` (cut)."""

    ids: list[int]
    finish: str


def end_ids(model: torch.nn.Module, tokenizer) -> set[int]:
    """Ids that end an answer: the tokenizer's and the generation config's."""
    found = {tokenizer.eos_token_id}
    configured = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    found |= set(configured) if isinstance(configured, (list, tuple)) else {configured}
    return {int(i) for i in found if i is not None}


@torch.no_grad()
def generate(
    model: torch.nn.Module | CausalLM,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int | Sequence[int],
    ends: set[int],
    batch_size: int | None = None,
    sampling: Sampling | None = None,
    follow: Callable[[list[int]], object] | None = None,
) -> list[Generated]:
    """Continuations of id lists, greedy or sampled, in their order. `max_new_tokens` may differ per prompt. Empty
    prompts are refused. batch_size None: as many rows as the memory allows, MOST_ROWS at most. follow: told which
    prompts the rows of the batch are, whenever that changes; for models that treat every row differently.

    Raises ValueError for an empty prompt: there is no position to predict from.
    """
    lm = model if isinstance(model, CausalLM) else CausalLM(model)
    if any(len(p) == 0 for p in prompts):
        raise ValueError(
            "A prompt has no token, so there is nothing to continue. Give the row a prompt or the template a "
            "start token."
        )
    limits = [max_new_tokens] * len(prompts) if isinstance(max_new_tokens, int) else list(max_new_tokens)
    out: list[Generated] = [Generated([], "length") for _ in prompts]
    order = sorted((i for i in range(len(prompts)) if limits[i] > 0), key=lambda i: len(prompts[i]))
    size = batch_size or rows_that_fit(lm, max((len(prompts[i]) + limits[i] for i in order), default=1))
    with lm.evaluating():
        for first in range(0, len(order), size):
            picked = order[first : first + size]
            rows, most = [list(prompts[i]) for i in picked], [limits[i] for i in picked]
            _run(lm, rows, most, ends, [out[i] for i in picked], sampling, picked, follow)
    return out


def rows_that_fit(lm: CausalLM, tokens: int) -> int:
    """How many rows of so many tokens can be generated together, between 1 and MOST_ROWS.

    A token takes 2 · layers · key-value heads · head width numbers in the cache, and about twelve hidden widths while
    the prompt is read.
    """
    config = lm.model.config.get_text_config()
    width, heads = int(getattr(config, "hidden_size", 1024)), int(getattr(config, "num_attention_heads", 1))
    head = int(getattr(config, "head_dim", None) or width // max(1, heads))
    kept = 2 * int(getattr(config, "num_hidden_layers", 32)) * head
    kept *= int(getattr(config, "num_key_value_heads", None) or heads)
    each = (kept + 12 * width) * next(lm.model.parameters()).element_size() * max(1, tokens)
    room = ROOM_BYTES
    if lm.device.type == "cuda":
        room = int(torch.cuda.mem_get_info(lm.device)[0] * ROOM_SHARE)
    return max(1, min(MOST_ROWS, room // each))


def _run(
    lm: CausalLM,
    prompts: list[list[int]],
    limits: list[int],
    ends: set[int],
    out: list[Generated],
    sampling: Sampling | None,
    places: list[int],
    follow: Callable[[list[int]], object] | None,
) -> None:
    if follow:
        follow(places)
    device = lm.device
    width = max(map(len, prompts))
    ids = torch.full((len(prompts), width), lm.pad_id, dtype=torch.long)
    mask = torch.zeros((len(prompts), width), dtype=torch.long)
    for k, prompt in enumerate(prompts):
        ids[k, width - len(prompt) :] = torch.tensor(prompt)
        mask[k, width - len(prompt) :] = 1
    ids, mask = ids.to(device), mask.to(device)
    padded = bool((mask == 0).any())
    position = (mask.cumsum(1) - 1).clamp_min(0)
    cache = DynamicCache(config=lm.model.config)
    live = list(range(len(prompts)))  # rows of the batch → rows of `out`
    while live:
        logits = _last_logits(lm, ids, mask if padded else None, position, cache)
        chosen = sampling.draw(logits) if sampling else logits.argmax(-1)
        picked = chosen.tolist()
        keep = []
        for k, i in enumerate(live):
            if i < 0:
                continue
            if picked[k] in ends:
                out[i].finish = "stop"
                live[k] = -1
                continue
            out[i].ids.append(picked[k])
            if len(out[i].ids) >= limits[i]:
                live[k] = -1
                continue
            keep.append(k)
        if not keep:
            return
        if len(keep) <= 0.75 * len(live):  # compacting copies the cache, so not for every single row
            index = torch.tensor(keep, device=device)
            cache.batch_select_indices(index)
            live, chosen, mask, position = [live[k] for k in keep], chosen[index], mask[index], position[index]
            padded = padded and bool((mask == 0).any())
            places = [places[k] for k in keep]
            if follow:
                follow(places)
        ids = chosen[:, None]
        mask = torch.cat([mask, mask.new_ones((len(live), 1))], dim=1)
        position = position[:, -1:] + 1


def _last_logits(lm: CausalLM, ids, mask, position, cache) -> torch.Tensor:
    """Logits behind the last id of every row, [rows, vocabulary]."""
    if lm.split:
        states = lm.backbone(
            input_ids=ids, attention_mask=mask, position_ids=position, past_key_values=cache, use_cache=True
        )
        return lm.head(states.last_hidden_state[:, -1])
    out = lm.model(input_ids=ids, attention_mask=mask, position_ids=position, past_key_values=cache, use_cache=True)
    return out.logits[:, -1].float()
