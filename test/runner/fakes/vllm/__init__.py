"""Stands in for vLLM where it cannot be installed: the same names, arguments and refusals as vLLM 0.2x has for what
Seesaw uses, with answers that a real model gives. What it was asked is appended to the file $FAKE_VLLM_LOG.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

__version__ = "0.99-fake"

_DTYPES = ("auto", "float32", "float16", "bfloat16")
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


def _log(**what) -> None:
    with open(os.environ["FAKE_VLLM_LOG"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"pid": os.getpid(), **what}) + "\n")


@dataclass(kw_only=True)
class SamplingParams:
    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop_token_ids: list[int] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    detokenize: bool = True

    def __post_init__(self) -> None:
        if self.temperature == 0 and self.n > 1:
            raise ValueError(f"n must be 1 when using greedy sampling, got {self.n}.")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}.")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p}.")


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: str | None


@dataclass
class RequestOutput:
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]


class LLM:
    def __init__(
        self,
        model: str,
        *,
        dtype: str = "auto",
        seed: int = 0,
        gpu_memory_utilization: float = 0.9,
        max_model_len: int | None = None,
        load_format: str = "auto",
        generation_config: str = "auto",
        skip_tokenizer_init: bool = False,
        trust_remote_code: bool = False,
        tensor_parallel_size: int = 1,
        enable_lora: bool = False,
        max_loras: int = 1,
        max_lora_rank: int = 16,
    ):
        from seesaw_runner.training.loading import load_model

        assert dtype in _DTYPES and 0 < gpu_memory_utilization <= 1 and not trust_remote_code
        assert not enable_lora or max_lora_rank in _RANKS
        if os.environ.get("FAKE_VLLM_FAILS"):
            raise RuntimeError(os.environ["FAKE_VLLM_FAILS"])
        if not (Path(model) / "config.json").is_file():
            raise ValueError(f"Invalid repository ID or local directory specified: '{model}'.")
        print("INFO: what vLLM prints must not disturb anybody")  # it really writes its log to stdout
        self.length, self.lora, self.rank = max_model_len, enable_lora, max_lora_rank
        self.path, self.dtype = model, torch.float32 if dtype == "auto" else getattr(torch, dtype)
        self.model = load_model(model, self.dtype, torch.device("cpu")).eval()
        self._adapted: dict[int, torch.nn.Module] = {}
        self.tokenized = not skip_tokenizer_init
        _log(llm={"model": model, "dtype": dtype, "seed": seed, "max_model_len": max_model_len,
                  "load_format": load_format, "generation_config": generation_config,
                  "enable_lora": enable_lora, "max_lora_rank": max_lora_rank, "max_loras": max_loras,
                  "gpu_memory_utilization": gpu_memory_utilization})  # fmt: skip

    def generate(self, prompts, sampling_params=None, *, use_tqdm=True, lora_request=None) -> list[RequestOutput]:
        from seesaw_runner.scoring.generate import Sampling, generate

        many = sampling_params if isinstance(sampling_params, (list, tuple)) else [sampling_params] * len(prompts)
        if len(many) != len(prompts):
            raise ValueError("The lengths of prompts and sampling_params must be the same.")
        model = self.model if lora_request is None else self._with(lora_request)
        _log(generate=len(prompts), params=asdict(many[0]), lora=getattr(lora_request, "lora_name", None))
        out = []
        for prompt, asked in zip(prompts, many, strict=True):
            ids = prompt["prompt_token_ids"]
            if self.length is not None and len(ids) >= self.length:
                raise ValueError(f"The decoder prompt (length {len(ids)}) is longer than the maximum model length.")
            if not self.tokenized and asked.detokenize:
                raise ValueError("detokenize needs a tokenizer")
            room = asked.max_tokens if self.length is None else min(asked.max_tokens, self.length - len(ids))
            sampling = None
            if asked.temperature > 0:
                generator = torch.Generator().manual_seed(asked.seed or 0)
                sampling = Sampling(asked.temperature, asked.top_p, generator)
            ends = set(asked.stop_token_ids or ())
            found = generate(model, [ids] * asked.n, max_new_tokens=room, ends=ends, sampling=sampling)
            outputs = [
                CompletionOutput(k, "", (*one.ids, min(ends)) if one.finish == "stop" else tuple(one.ids), one.finish)
                for k, one in enumerate(found)
            ]
            out.append(RequestOutput(ids, outputs))
        return out

    def _with(self, request) -> torch.nn.Module:
        from peft import PeftModel
        from seesaw_runner.training.loading import load_model

        assert self.lora and request.lora_int_id > 0
        if request.lora_int_id not in self._adapted:
            base = load_model(self.path, self.dtype, torch.device("cpu"))
            adapted = PeftModel.from_pretrained(base, request.lora_path)
            rank = max(config.r for config in adapted.peft_config.values())
            if rank > self.rank:
                raise ValueError(f"LoRA rank {rank} is greater than max_lora_rank {self.rank}.")
            self._adapted[request.lora_int_id] = adapted.merge_and_unload().eval()
        return self._adapted[request.lora_int_id]

    def shutdown(self) -> None:
        _log(shutdown=True)
