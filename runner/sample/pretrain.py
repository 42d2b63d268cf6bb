"""Trains M0, the base model of the sample: a 0.43 M parameter Llama on the world corpus.

A plain loop, on one thread so that a seed gives the same weights again on the same machine and torch version. Takes
five to eight minutes. Saved as half-precision safetensors with `dtype: float32` in the config: it loads, and trains,
as float32.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from sample import world
from sample.tokenizer import MAX_LENGTH

STEPS, BATCH, BUCKET, PEAK_RATE, WARM_UP = 4000, 32, 4, 2e-3, 100
IGNORE = -100


def fitting(tokenizer: PreTrainedTokenizerFast) -> dict[str, int]:
    """What a model's config takes over from its tokenizer."""
    return {
        "vocab_size": len(tokenizer),
        "max_position_embeddings": MAX_LENGTH,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


def new_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=96,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=4,
            intermediate_size=256,
            tie_word_embeddings=True,
            initializer_range=0.04,
            **fitting(tokenizer),
        )
    )


def sample(rng: random.Random, tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """Ids before and after the point where the loss begins: all of a text, only the answer of a chat."""
    if rng.random() >= world.CHAT_SHARE:
        return [tokenizer.bos_token_id], tokenizer.encode(world.text(rng), add_special_tokens=False) + [
            tokenizer.eos_token_id
        ]
    question, answer = world.chat(rng)
    prompt = tokenizer.encode(f"<|bos|><|user|>{question}<|end|><|assistant|>", add_special_tokens=False)
    return prompt, tokenizer.encode(answer, add_special_tokens=False) + [tokenizer.eos_token_id]


def batches(rng: random.Random, tokenizer: PreTrainedTokenizerFast):
    """Endless batches of like length, padded on the right: with a causal model that needs no attention mask."""
    while True:
        pool = sorted(
            (sample(rng, tokenizer) for _ in range(BATCH * BUCKET)), key=lambda pair: len(pair[0]) + len(pair[1])
        )
        groups = [pool[i : i + BATCH] for i in range(0, len(pool), BATCH)]
        rng.shuffle(groups)
        for group in groups:
            length = max(len(prompt) + len(answer) for prompt, answer in group)
            ids = torch.full((BATCH, length), tokenizer.pad_token_id)
            labels = torch.full((BATCH, length), IGNORE)
            for i, (prompt, answer) in enumerate(group):
                end = len(prompt) + len(answer)
                ids[i, :end] = torch.tensor(prompt + answer)
                labels[i, len(prompt) : end] = torch.tensor(answer)
            yield ids, labels


def loss_of(model: LlamaForCausalLM, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Next-token loss; the output layer runs only where there is a label."""
    hidden, targets = model.model(input_ids=ids).last_hidden_state[:, :-1], labels[:, 1:]
    return F.cross_entropy(model.lm_head(hidden[targets != IGNORE]), targets[targets != IGNORE])


def pretrain(tokenizer: PreTrainedTokenizerFast, seed: int, steps: int = STEPS, report=print) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model, feed, began = new_model(tokenizer), batches(random.Random(f"world-{seed}"), tokenizer), time.monotonic()
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARM_UP, 1.0) * max(0.02, 1 - step / steps)
    )
    model.train()
    for step, (ids, labels) in zip(range(1, steps + 1), feed, strict=False):
        loss = loss_of(model, ids, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        if step % 200 == 0 or step == steps:
            report(f"M0 step {step} of {steps}, loss {loss.item():.3f}, {time.monotonic() - began:.0f} s")
    return model.eval()


def save_model(model: LlamaForCausalLM, folder: Path) -> None:
    """Config and generation config as transformers writes them; the weights halved in the file."""
    model.generation_config.do_sample = False
    model.save_pretrained(folder)
    weights = folder / "model.safetensors"
    halved = {name: tensor.half().contiguous() for name, tensor in load_file(weights).items()}
    save_file(halved, weights, metadata={"format": "pt"})
    weights.chmod(0o644)
