"""Where in a model a tensor belongs: its layer and its module."""

from __future__ import annotations

import re

#: What torch.compile and DistributedDataParallel put before every name.
WRAPPERS = re.compile(r"^(?:(?:_orig_mod|module)\.)+")
_LAYER = re.compile(r"(?:^|\.)(?:layers|layer|h|blocks|block)\.(\d+)\.(.+)$")
_OUTER = re.compile(r"^(?:model|transformer|base_model|gpt_neox|decoder|language_model)\.")


def place(name: str) -> tuple[int | None, str]:
    """`model.layers.3.self_attn.q_proj.weight` → (3, "self_attn.q_proj"); outside the layers the layer is None. Experts
    of one layer are one module: `mlp.experts.*.up_proj`.
    """
    match = _LAYER.search(name)
    layer, rest = (int(match.group(1)), match.group(2)) if match else (None, name)
    while match is None and _OUTER.match(rest):
        rest = _OUTER.sub("", rest, count=1)
    rest = re.sub(r"\.weight$", "", rest)
    return layer, re.sub(r"(?<=\.)\d+(?=\.|$)", "*", rest)


def unwrapped(name: str) -> str:
    """The name without the prefixes of wrappers around the model."""
    return WRAPPERS.sub("", name)
