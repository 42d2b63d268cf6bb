"""Llama, Mistral, Qwen2 and Qwen3 as one scoring graph: token ids and weights in, per-token scores out.

The weights are inputs, named as in the checkpoint. So nothing of one checkpoint can be folded into the graph, tensors
of equal content stay apart, and no copy of the weights is made. One row at a time: causal, so nothing is padded.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any

from seesaw_runner.export.onnx_writer import FLOAT, INT32, INT64, Graph

FAMILIES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
#: Rotary embeddings whose frequencies do not depend on the length of the text.
_ROPES = ("default", "linear", "llama3", "yarn")
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


class UnsupportedArchitecture(ValueError):
    """No graph for this model; the text is a sentence that says why."""


@dataclass
class ScoringGraph:
    """`tensors`: name → shape of every weight that is fed; `positions`: most tokens it can score."""

    data: bytes
    tensors: dict[str, list[int]]
    tied: bool
    positions: int
    vocabulary: int


def build_graph(config: Any) -> ScoringGraph:
    """The graph for a transformers config. UnsupportedArchitecture for what it does not compute exactly."""
    _refuse_others(config)
    return _Builder(config).build()


def _refuse_others(config: Any) -> None:
    kind = config.model_type
    if kind not in FAMILIES:
        known = ", ".join(FAMILIES.values())
        raise UnsupportedArchitecture(f"Live scoring knows the architectures {known}, not {kind}.")
    if config.hidden_act not in ("silu", "swish"):
        raise UnsupportedArchitecture(f"Live scoring knows the activation silu, not {config.hidden_act}.")
    rope = _rope_type(config)
    if rope not in _ROPES:
        raise UnsupportedArchitecture(f"Live scoring does not know the rotary embedding {rope}.")
    if getattr(config, "quantization_config", None):
        raise UnsupportedArchitecture("Live scoring reads plain weights, and these are quantized.")
    if getattr(config, "pretraining_tp", 1) not in (None, 1):
        raise UnsupportedArchitecture("Live scoring does not know split weights (pretraining_tp).")


def _rope_type(config: Any) -> str:
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    return str(rope.get("rope_type") or rope.get("type") or "default")


def _positions(config: Any) -> int:
    """Where a sliding window would begin to matter the graph, which attends to everything, is no longer exact."""
    window = getattr(config, "sliding_window", None)
    return min(config.max_position_embeddings, window) if window else config.max_position_embeddings


def _rotary(config: Any) -> tuple[list[float], float]:
    """Frequencies and scale as transformers itself computes them."""
    module = importlib.import_module(f"transformers.models.{config.model_type}.modeling_{config.model_type}")
    rotary = getattr(module, f"{FAMILIES[config.model_type]}RotaryEmbedding")(config)
    return [float(value) for value in rotary.inv_freq], float(rotary.attention_scaling)


class _Builder:
    def __init__(self, config: Any):
        self.config = config
        self.graph = Graph(f"seesaw-{config.model_type}")
        self.tensors: dict[str, list[int]] = {}
        self.width = config.hidden_size
        self.heads = config.num_attention_heads
        self.groups = getattr(config, "num_key_value_heads", None) or self.heads
        self.size = getattr(config, "head_dim", None) or self.width // self.heads
        self.biased = {
            "attention": bool(getattr(config, "attention_bias", False)),
            "qkv": config.model_type == "qwen2" or bool(getattr(config, "attention_bias", False)),
            "mlp": bool(getattr(config, "mlp_bias", False)),
        }
        self.normed_heads = config.model_type == "qwen3"

    def weight(self, name: str, *shape: int) -> str:
        self.tensors[name] = list(shape)
        return self.graph.input(name, FLOAT, shape)

    def linear(self, x: str, name: str, inputs: int, outputs: int, bias: bool) -> str:
        """x · Wᵀ (+ b): Gemm reads the matrix as the checkpoint stores it."""
        weights = [self.weight(f"{name}.weight", outputs, inputs)]
        if bias:
            weights.append(self.weight(f"{name}.bias", outputs))
        return self.graph.node("Gemm", x, *weights, transB=1)

    def norm(self, x: str, name: str, size: int) -> str:
        g = self.graph
        mean = g.node("ReduceMean", g.node("Mul", x, x), axes=[-1], keepdims=1)
        root = g.node("Sqrt", g.node("Add", mean, g.scalar(self.config.rms_norm_eps)))
        return g.node("Mul", g.node("Div", x, root), self.weight(f"{name}.weight", size))

    def build(self) -> ScoringGraph:
        g, c = self.graph, self.config
        ids = g.input("input_ids", INT32, ["tokens"])
        places = g.input("positions", INT32, ["scored"])
        targets = g.input("targets", INT32, ["scored"])
        known = g.input("vocabulary", INT64, [1])
        top = g.input("top_k", INT64, [1])
        embedding = self.weight(EMBEDDING, c.vocab_size, self.width)
        states = g.node("Gather", embedding, ids, axis=0)
        self._angles_and_mask(ids)
        for layer in range(c.num_hidden_layers):
            states = self._layer(states, f"model.layers.{layer}")
        states = self.norm(g.node("Gather", states, places, axis=0), "model.norm", self.width)
        tied = bool(c.tie_word_embeddings)
        head = embedding if tied else self.weight(HEAD, c.vocab_size, self.width)
        logits = g.node("Gemm", states, head, transB=1)
        # Ids beyond the tokenizer (padded rows of the head) get what the caller says: usually the whole vocabulary.
        logits = g.node("Slice", logits, g.ints(0), known, g.ints(1))
        self._scores(g.node("LogSoftmax", logits, axis=1), targets, top)
        return ScoringGraph(g.to_bytes(), self.tensors, tied, _positions(c), c.vocab_size)

    def _angles_and_mask(self, ids: str) -> None:
        """cos and sin [tokens, size] of the rotary embedding, and 0 or −∞-like [tokens, tokens]."""
        g = self.graph
        frequencies, scale = _rotary(self.config)
        length = g.node("Squeeze", g.node("Shape", ids), g.ints(0))
        order = g.node("Range", g.integer(0), length, g.integer(1))
        column, row = g.node("Unsqueeze", order, g.ints(1)), g.node("Unsqueeze", order, g.ints(0))
        self.turned = 2 * len(frequencies)
        angles = g.node("Mul", g.node("Cast", column, to=FLOAT), g.floats([*frequencies, *frequencies]))
        self.cos = g.node("Mul", g.node("Cos", angles), g.scalar(scale))
        self.sin = g.node("Mul", g.node("Sin", angles), g.scalar(scale))
        self.mask = g.node("Where", g.node("Greater", row, column), g.scalar(-3.0e38), g.scalar(0.0))

    def _layer(self, states: str, name: str) -> str:
        g, c = self.graph, self.config
        x = self.norm(states, f"{name}.input_layernorm", self.width)
        attention, repeat = f"{name}.self_attn", self.heads // self.groups
        q = self._heads(x, f"{attention}.q_proj", f"{attention}.q_norm", self.heads)
        k = self._heads(x, f"{attention}.k_proj", f"{attention}.k_norm", self.groups)
        v = self._heads(x, f"{attention}.v_proj", None, self.groups)
        # [groups, repeat, tokens, size] against [groups, 1, …]: heads that share keys are broadcast, never copied.
        q = g.node("Reshape", q, g.ints(self.groups, repeat, -1, self.size))
        k, v = g.node("Unsqueeze", k, g.ints(1)), g.node("Unsqueeze", v, g.ints(1))
        weights = g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2]))
        weights = g.node("Add", g.node("Mul", weights, g.scalar(1.0 / math.sqrt(self.size))), self.mask)
        mixed = g.node("MatMul", g.node("Softmax", weights, axis=-1), v)
        mixed = g.node("Reshape", mixed, g.ints(self.heads, -1, self.size))
        mixed = g.node("Reshape", g.node("Transpose", mixed, perm=[1, 0, 2]), g.ints(-1, self.heads * self.size))
        out = self.linear(mixed, f"{attention}.o_proj", self.heads * self.size, self.width, self.biased["attention"])
        states = g.node("Add", states, out)
        x, inner = self.norm(states, f"{name}.post_attention_layernorm", self.width), c.intermediate_size
        gate = self.linear(x, f"{name}.mlp.gate_proj", self.width, inner, self.biased["mlp"])
        up = self.linear(x, f"{name}.mlp.up_proj", self.width, inner, self.biased["mlp"])
        x = g.node("Mul", g.node("Mul", gate, g.node("Sigmoid", gate)), up)
        return g.node("Add", states, self.linear(x, f"{name}.mlp.down_proj", inner, self.width, self.biased["mlp"]))

    def _heads(self, x: str, name: str, norm: str | None, heads: int) -> str:
        """A projection as [heads, tokens, size], turned by its position unless it holds values."""
        g = self.graph
        x = self.linear(x, name, self.width, heads * self.size, self.biased["qkv"])
        x = g.node("Reshape", x, g.ints(-1, heads, self.size))
        if norm and self.normed_heads:
            x = self.norm(x, norm, self.size)
        x = g.node("Transpose", x, perm=[1, 0, 2])
        return self._turn(x) if norm else x

    def _turn(self, x: str) -> str:
        g, half = self.graph, self.size // 2
        first = g.node("Slice", x, g.ints(0), g.ints(half), g.ints(2))
        second = g.node("Slice", x, g.ints(half), g.ints(self.size), g.ints(2))
        turned = g.node("Concat", g.node("Neg", second), first, axis=2)
        return g.node("Add", g.node("Mul", x, self.cos), g.node("Mul", turned, self.sin))

    def _scores(self, logp: str, targets: str, top: str) -> None:
        """The same five numbers as `scoring/scorer.py`, reduced inside the graph."""
        g = self.graph
        own = g.node("GatherElements", logp, g.node("Unsqueeze", targets, g.ints(1)), axis=1)
        above = g.node("Cast", g.node("Greater", logp, own), to=INT32)
        sums = g.node("ReduceSum", g.node("Mul", g.node("Exp", logp), logp), g.ints(1), keepdims=0)
        values, best = g.nodes("TopK", logp, top, results=2, axis=1, largest=1, sorted=1)
        g.output("logprob", g.node("Squeeze", own, g.ints(1)), FLOAT, ["scored"])
        g.output("entropy", g.node("Neg", sums), FLOAT, ["scored"])
        g.output("rank", g.node("ReduceSum", above, g.ints(1), keepdims=0), INT32, ["scored"])
        g.output("topk_ids", g.node("Cast", best, to=INT32), INT32, ["scored", "k"])
        g.output("topk_logprob", values, FLOAT, ["scored", "k"])
