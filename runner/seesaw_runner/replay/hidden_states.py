"""Hidden states of buffer rows under the stage's start model, where `diversity` compares rows by them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np
import torch

from seesaw_runner.replay.features import States
from seesaw_runner.replay.quality import ReplayError
from seesaw_runner.routing.hidden import mean_states
from seesaw_runner.scoring.causal_lm import CausalLM

#: Rows that are encoded together; they go through the model in smaller batches of like length.
TOGETHER = 512
BATCH = 16


def states_of(model: torch.nn.Module, encoder) -> States:
    """The mean hidden state of each whole row, prompt and answer."""

    def states(values: Iterable[dict]) -> tuple[np.ndarray, list[bool]]:
        lm = CausalLM(model)
        if lm.backbone is None:
            raise ReplayError("this architecture does not give its hidden states; use features: tfidf")
        parts: list[np.ndarray] = []
        readable: list[bool] = []
        source = iter(values)
        while part := list(islice(source, TOGETHER)):
            rows = [encoder.encode(value, last_only=False) for value in part]
            readable += [row.reason is None for row in rows]
            ids = [row.ids for row in rows if row.reason is None]
            if ids:
                parts.append(mean_states(lm, ids, BATCH).astype(np.float32))
        return np.concatenate(parts) if parts else np.zeros((0, lm.width), np.float32), readable

    return states
