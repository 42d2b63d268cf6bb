"""Any `AutoModelForCausalLM` seen as a transformer and an LM head, with the wrappers of PEFT and DDP taken off.

The split is not assumed: it is checked once, on a tiny batch, against the model's own logits. Three paths follow:
`head` (logits = head(hidden)), `scaled` (with `logit_scale` and `final_logit_softcapping` from the config) and `whole`
(the model's own logits, a few rows at a time, no exact KL); a model in parts is always `whole`.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

import torch

from seesaw_runner.training.placement import in_parts, input_device


def unwrap(model: torch.nn.Module) -> torch.nn.Module:
    """The causal LM inside DDP and PEFT. LoRA layers stay in place: PEFT puts them into the module tree."""
    while True:
        if hasattr(model, "module") and isinstance(model.module, torch.nn.Module):
            model = model.module
        elif hasattr(model, "get_base_model") and hasattr(model, "peft_config"):
            model = model.get_base_model()
        else:
            return model


class Head:
    """The LM head with what follows it: multiplication by `scale`, then soft capping cap·tanh(x/cap). float32 out."""

    def __init__(self, module: torch.nn.Module, scale: float = 1.0, cap: float | None = None):
        self.module, self.scale, self.cap = module, scale, cap

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        weight = next(self.module.parameters())
        logits = self.module(hidden.to(weight.device, weight.dtype)).float()
        if self.scale != 1.0:
            logits = logits * self.scale
        if self.cap:
            logits = torch.tanh(logits / self.cap) * self.cap
        return logits


class CausalLM:
    """`path` is head, scaled or whole; `split` is True for the first two; `pass_mask` says whether padding needs a
    mask.
    """

    def __init__(self, model: torch.nn.Module):
        self.outer = model
        self.model = unwrap(model)
        config = self.model.config.get_text_config()
        self.vocabulary = int(config.vocab_size)
        self.width = int(getattr(config, "hidden_size", 0) or 0)
        pad = getattr(config, "pad_token_id", None)
        self.pad_id = pad if isinstance(pad, int) and 0 <= pad < self.vocabulary else 0
        self.device = input_device(self.model)
        self.head = Head(self.model.get_output_embeddings()) if self.model.get_output_embeddings() is not None else None
        self.backbone = self._backbone()
        self.pass_mask = True
        self.path = self._choose_path(config)

    @property
    def split(self) -> bool:
        return self.path != "whole"

    @property
    def engine(self) -> str:
        """Written into traces; the paths agree to rounding, so only the library counts."""
        import transformers

        return f"transformers {transformers.__version__}"

    def _backbone(self) -> torch.nn.Module | None:
        found = self.model.base_model if getattr(self.model, "base_model_prefix", "") else None
        if found is None or found is self.model:
            found = self.model.get_decoder() if hasattr(self.model, "get_decoder") else None
        return None if found is self.model else found

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """model.eval() for the time of scoring (no dropout), then back to what every module was."""
        training = self.outer.training
        self.outer.eval()
        try:
            yield
        finally:
            self.outer.train(training)

    def _mask(self, ids: torch.Tensor, lengths: list[int]) -> torch.Tensor | None:
        if not self.pass_mask or min(lengths) == ids.shape[1]:
            return None
        at = torch.arange(ids.shape[1])[None, :]
        return (at < torch.tensor(lengths)[:, None]).long().to(self.device)

    def hidden(self, ids: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """Last hidden states [rows, width of batch, hidden] of right-padded ids."""
        assert self.backbone is not None
        out = self.backbone(input_ids=ids.to(self.device), attention_mask=self._mask(ids, lengths), use_cache=False)
        return out.last_hidden_state

    def logits(self, ids: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """The model's own logits, float32 [rows, width of batch, vocabulary]."""
        return self.model(
            input_ids=ids.to(self.device), attention_mask=self._mask(ids, lengths), use_cache=False
        ).logits.float()

    def frozen_head(self) -> Head:
        """A head that later training cannot change: a copy if its weights are trained (tied embeddings are), else
        itself.
        """
        assert self.head is not None
        module = self.head.module
        if any(p.requires_grad for p in module.parameters()):
            with torch.no_grad():
                module = copy.deepcopy(module)
            module.requires_grad_(False)
        return Head(module, self.head.scale, self.head.cap)

    @torch.no_grad()
    def _choose_path(self, config) -> str:
        """Compares hidden → head with the model's own logits on two rows of unlike length; also decides `pass_mask`."""
        top = min(self.vocabulary, 64)
        ids = torch.tensor(
            [[(3 * k + 1) % top for k in range(7)], [(5 * k + 2) % top for k in range(4)] + [self.pad_id] * 3]
        )
        with self.evaluating():
            own = self.logits(ids, [7, 4])
            tolerance = 1e-4 * float(own.abs().max().clamp_min(1.0)) if own.dtype == torch.float32 else 2e-2
            if next(self.model.parameters()).dtype != torch.float32:
                tolerance = 2e-2 * float(own.abs().max().clamp_min(1.0))

            def near(a: torch.Tensor, b: torch.Tensor) -> bool:
                """Equal at the seven and the four real positions."""
                return all(float((a[r, :n] - b[r, :n]).abs().max()) <= tolerance for r, n in ((0, 7), (1, 4)))

            self.pass_mask = False
            try:
                self.pass_mask = not near(self.logits(ids, [7, 4]), own)
            except Exception:  # an architecture that insists on a mask
                self.pass_mask = True
            if self.backbone is None or self.head is None or in_parts(self.model):
                return "whole"
            try:
                states = self.hidden(ids, [7, 4])
                if near(self.head(states), own):
                    return "head"
                scale = getattr(config, "logit_scale", None)
                cap = getattr(config, "final_logit_softcapping", None)
                self.head = Head(self.head.module, 1.0 if scale is None else float(scale), cap)
                if near(self.head(states), own):
                    return "scaled"
            except Exception:  # no last_hidden_state, or a backbone with other inputs
                pass
        return "whole"
