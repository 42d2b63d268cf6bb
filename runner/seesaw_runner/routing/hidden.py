"""The base model's mean hidden state of a prompt, brought to mean 0 and spread 1 over the training prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from seesaw_runner.routing.tfidf import Row
from seesaw_runner.run_folder import StageError
from seesaw_runner.scoring.causal_lm import CausalLM

#: Prompts as token ids → [prompts, width].
States = Callable[[Sequence[Sequence[int]]], np.ndarray]


class Hidden:
    """`states` computes them; it needs the base model, so a router that is only loaded has to be given it."""

    kind = "hidden"

    def __init__(self, mean: np.ndarray, scale: np.ndarray, states: States | None = None):
        self.mean, self.scale, self.states = mean, scale, states

    @property
    def width(self) -> int:
        return len(self.mean)

    @classmethod
    def fit(cls, asked: Sequence, states: States) -> Hidden:
        found = states([one.ids for one in asked])
        if not np.isfinite(found).all():
            raise StageError(
                "bad-checkpoint",
                "Hidden states of the base model are no numbers, so no router can learn from them. Use "
                "`features: tfidf`, or look at the base model.",
            )
        spread = found.std(0)
        return cls(found.mean(0), np.where(spread > 1e-6, spread, 1.0), states)

    def rows(self, asked: Sequence) -> list[Row]:
        if self.states is None:
            raise ValueError("this router sees hidden states and has no model to compute them")
        # Divided by √width, so that a step moves the logits about as much as with TF-IDF.
        found = (self.states([one.ids for one in asked]) - self.mean) / self.scale / np.sqrt(self.width)
        every = np.arange(self.width)
        return [(every, row) for row in found]


def mean_states(lm: CausalLM, prompts: Sequence[Sequence[int]], batch: int) -> np.ndarray:
    """[prompts, width]. StageError where the model does not give its hidden states."""
    if lm.backbone is None:
        raise StageError(
            "bad-argument",
            "This architecture does not give its hidden states. Set `policy.features: tfidf`.",
            "options.policy.features",
        )
    out = np.zeros((len(prompts), lm.width))
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    with torch.no_grad(), lm.evaluating():
        for first in range(0, len(order), batch):
            picked = order[first : first + batch]
            lengths = [len(prompts[i]) for i in picked]
            ids = torch.full((len(picked), max(lengths)), lm.pad_id, dtype=torch.long)
            for k, i in enumerate(picked):
                ids[k, : lengths[k]] = torch.tensor(list(prompts[i]))
            states = lm.hidden(ids, lengths).float()
            for k, i in enumerate(picked):
                out[i] = states[k, : lengths[k]].mean(0).cpu().numpy()
    return out
