"""One frozen base that carries every expert: each prompt is answered under its own expert, or under several at once.

An expert is switched on, never merged: what an adapter adds is computed beside the base's layer, so nothing can be
added twice and the base cannot change. `soft` weighs each expert's output row by row, base(x) + Σ wₖ·sₖ·Bₖ·Aₖ·x, which
is the exact weighted sum of their changes (PEFT's `add_weighted_adapter` adds A's and B's and is another model).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from seesaw_runner.routing.experts import Expert
from seesaw_runner.run_folder import StageError
from seesaw_runner.scoring.causal_lm import CausalLM
from seesaw_runner.scoring.generate import Generated, generate


class Mixture:
    """`model`: the base with all adapters, each under its skill's name. Arm k is expert k; any arm behind the last
    expert is the base alone.
    """

    def __init__(self, base: torch.nn.Module, experts: Sequence[Expert], device: torch.device):
        from peft import PeftModel

        self.experts = list(experts)
        # A number in front: a skill may be called as an attribute of the modules is (`items`, `keys`).
        self.names = [f"{k}-{expert.skill}" for k, expert in enumerate(experts)]
        self.model = base
        for name, expert in zip(self.names, experts, strict=True):
            try:
                if self.model is base:
                    self.model = PeftModel.from_pretrained(base, str(expert.folder), adapter_name=name)
                else:
                    self.model.load_adapter(str(expert.folder), adapter_name=name, torch_device=str(device))
            except Exception as error:
                first = (str(error).strip().splitlines() or [type(error).__name__])[0]
                raise StageError(
                    "bad-checkpoint",
                    f"The expert of {expert.skill} ({expert.label}) cannot be put on the base: {first}",
                    str(expert.folder),
                ) from error
        self.model.requires_grad_(False).eval().to(device)
        self._rows: torch.Tensor | None = None
        self._active: int | str | None = None
        for layer in self._layers():
            for k, name in enumerate(self.names):
                if name in layer.lora_B:
                    layer.lora_B[name].register_forward_hook(self._weigh(k))
        self._switch(None)
        self.lm = CausalLM(self.model)

    def _layers(self) -> Iterator[torch.nn.Module]:
        from peft.tuners.lora import LoraLayer

        return (module for module in self.model.modules() if isinstance(module, LoraLayer))

    def _weigh(self, k: int):
        def hook(_module, _inputs, output: torch.Tensor) -> torch.Tensor | None:
            if self._rows is None:
                return None
            if len(output) != len(self._rows):
                raise StageError(
                    "bad-argument",
                    "This architecture joins the rows of a batch inside its layers, so experts cannot be weighed by "
                    "row. Set `soft: false`.",
                    "options.soft",
                )
            return output * self._rows[:, k].to(output).reshape(-1, *[1] * (output.dim() - 1))

        return hook

    def _switch(self, to: int | str | None) -> None:
        """To one expert, to `all`, or to None of them."""
        tuner = self.model.base_model
        if to is None:
            tuner.disable_adapter_layers()
        elif to != self._active:
            tuner.enable_adapter_layers()
            tuner.set_adapter(self.names if to == "all" else [self.names[to]])
        self._active = to
        if any(layer.merged for layer in self._layers()):
            raise RuntimeError("an expert was merged into the frozen base")

    @contextlib.contextmanager
    def answering(self, arm: int) -> Iterator[None]:
        """For this time the model is the base under one expert, or the base alone."""
        self._switch(arm if arm < len(self.names) else None)
        try:
            yield
        finally:
            self._switch(None)

    @contextlib.contextmanager
    def weighing(self) -> Iterator[None]:
        """For this time every row is under all experts, by the weights that `weigh` has set last."""
        self._switch("all")
        try:
            yield
        finally:
            self._rows = None
            self._switch(None)

    def weigh(self, weights: np.ndarray) -> None:
        """[rows of the batch, arms]."""
        rows = np.ascontiguousarray(weights[:, : len(self.names)])
        self._rows = torch.tensor(rows, dtype=torch.float32, device=self.lm.device)

    def answers(
        self,
        prompts: Sequence[Sequence[int]],
        weights: np.ndarray,
        *,
        limits: Sequence[int],
        ends: set[int],
        batch: int,
    ) -> list[Generated]:
        """Greedy answers, each under its own row of weights [prompts, arms]."""
        out: list[Generated] = [Generated([], "length") for _ in prompts]
        for arm, places in arms_of(weights):
            mine = [prompts[i] for i in places]
            options = {"max_new_tokens": [limits[i] for i in places], "ends": ends, "batch_size": batch}
            if arm is None:
                own = weights[places]
                with self.weighing():
                    found = generate(self.lm, mine, **options, follow=lambda rows, own=own: self.weigh(own[rows]))
            else:
                with self.answering(arm):
                    found = generate(self.lm, mine, **options)
            for i, one in zip(places, found, strict=True):
                out[i] = one
        return out


def arms_of(weights: np.ndarray) -> list[tuple[int | None, list[int]]]:
    """Rows by the one arm that has all of their weight; the rows that are mixed come last, under None."""
    whole: dict[int | None, list[int]] = {}
    for i, row in enumerate(weights):
        at = int(row.argmax())
        whole.setdefault(at if row[at] == 1.0 else None, []).append(i)
    return sorted(whole.items(), key=lambda pair: (pair[0] is None, pair[0] or 0))
