"""The experts of a router behind vLLM: one base, and for each call the adapter of the expert that answers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence

import numpy as np

from seesaw_runner.rollouts.engines import (
    RANKS,
    SHARED,
    TRANSFORMERS_INSTEAD,
    Engine,
    Lora,
    Wanted,
    fits_vllm,
    uses_vllm,
    vllm_engine,
)
from seesaw_runner.routing.experts import Expert
from seesaw_runner.routing.mixture import arms_of
from seesaw_runner.run_folder import StageError
from seesaw_runner.scoring.generate import Generated

#: Lengths are rounded up to this, so that a few tokens more do not start vLLM again.
STEP = 256


class Served:
    """vLLM is started at the first answer, and again when one is longer than it was told; `close` ends it."""

    def __init__(self, stage, experts: Sequence[Expert]):
        self.stage, self.experts = stage, list(experts)
        self._stack = contextlib.ExitStack()
        self._engine: Engine | None = None
        self._length = 0

    def answers(
        self, prompts: Sequence[Sequence[int]], weights: np.ndarray, limits: Sequence[int], *, told: str
    ) -> list[Generated]:
        """Greedy answers, each by the one arm that has all of its row's weight [prompts, arms]."""
        out: list[Generated] = [Generated([], "length") for _ in prompts]
        longest = max((len(p) + limit for p, limit in zip(prompts, limits, strict=True)), default=1)
        for arm, places in arms_of(weights):
            if arm is None:
                raise ValueError("vLLM answers with one expert at a time")
            lora = None
            if arm < len(self.experts):
                lora = Lora(self.experts[arm].skill, arm + 1, self.experts[arm].folder)
            found = self._started(longest).answers(
                [prompts[i] for i in places], [limits[i] for i in places], Wanted(), lora=lora, told=told
            )
            for i, answers in zip(places, found, strict=True):
                out[i] = answers[0]
        return out

    def close(self) -> None:
        self._stack.close()
        self._engine, self._length = None, 0

    def _started(self, longest: int) -> Engine:
        if self._engine is None or longest > self._length:
            self.close()
            length = -(-longest // STEP) * STEP
            self._length = length if self.stage.context is None else max(longest, min(length, self.stage.context))
            self._engine = self._stack.enter_context(
                vllm_engine(
                    self.stage,
                    self.stage.spec["start"]["checkpoint"],
                    length=self._length,
                    seed=self.stage.seed,
                    share=SHARED,
                    rank=max(expert.rank for expert in self.experts),
                )
            )
        return self._engine


def served_experts(stage, wanted: str, experts: Sequence[Expert]) -> Served | None:
    """None where transformers answers. StageError where vLLM was asked for by name and cannot take these experts."""
    if not uses_vllm(stage, wanted):
        return None
    why = unservable(experts)
    if why is None and wanted == "auto" and not fits_vllm(stage.spec["start"]["checkpoint"], stage.device, SHARED):
        why = "the base leaves vLLM no room on the GPU"
    if why is None:
        return Served(stage, experts)
    if wanted == "vllm":
        raise StageError(
            "bad-argument", f"vLLM cannot answer for these experts: {why}. {TRANSFORMERS_INSTEAD}.", "options.engine"
        )
    stage.warn("engine", f"transformers generates the experts' answers: {why}.", severity="info")
    return None


def unservable(experts: Sequence[Expert]) -> str | None:
    """What vLLM would get wrong or refuse. It takes one rank and one alpha from an adapter's config for all layers."""
    for expert in experts:
        if expert.rank > RANKS[-1]:
            return f"the rank of {expert.label} is {expert.rank}, and vLLM takes {RANKS[-1]} at most"
        config = json.loads((expert.folder / "adapter_config.json").read_text(encoding="utf-8"))
        for name in ("rank_pattern", "alpha_pattern"):
            if config.get(name):
                return f"{expert.label} has a {name}, which vLLM does not read"
    return None
