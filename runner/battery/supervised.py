"""The trainings of the battery: TRL's trainers on rows, with a callback at the looks."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence

import torch
from datasets import Dataset
from seesaw_runner.scoring.encode import Encoder
from seesaw_runner.training.rows import labels
from transformers import PrinterCallback, TrainerCallback

BATCH = 32


class Looks(TrainerCallback):
    """Calls look(model, step, loss since the last look) after the given steps."""

    def __init__(self, steps: Sequence[int], look: Callable):
        self.steps, self.look, self.losses = set(steps), look, []

    def on_log(self, args, state, control, logs=None, **_) -> None:
        if logs and "loss" in logs:
            self.losses.append(float(logs["loss"]))
            if state.global_step in self.steps:
                losses, self.losses = self.losses, []
                self.look(self.model, state.global_step, sum(losses) / len(losses))

    def on_train_begin(self, args, state, control, model=None, **_) -> None:
        self.model = model


def run(trainer, looks, look) -> None:
    trainer.remove_callback(PrinterCallback)
    if look is not None:
        trainer.add_callback(Looks(looks, look))
    trainer.train()


def settings(rate: float, steps: int, seed: int, folder: str, **more) -> dict:
    return {
        "output_dir": folder,
        "max_steps": steps,
        "learning_rate": rate,
        "lr_scheduler_type": "linear",
        "warmup_steps": 6,
        "adam_beta2": 0.98,
        "seed": seed,
        "per_device_train_batch_size": BATCH,
        "report_to": [],
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": False,
        **more,
    }


def fit(model, tokenizer, rows: list[dict], *, steps: int, rate: float, seed: int, looks=(), look=None, peft=None):
    """Supervised fine-tuning on the answers of `rows`, in a seeded order; the model is changed in place (a LoRA is put
    into it). Gives the trained model.
    """
    from trl import SFTConfig, SFTTrainer

    encoder = Encoder(tokenizer)
    encoded = [encoder.encode(row) for row in rows]
    rng = random.Random(f"order-{seed}")
    order: list[int] = []
    while len(order) < steps * BATCH:
        order += rng.sample(range(len(encoded)), len(encoded))
    # Batches of like length within a window of eight: less padding, and still a random order.
    chosen: list[int] = []
    for first in range(0, steps * BATCH, 8 * BATCH):
        window = sorted(order[first : min(first + 8 * BATCH, steps * BATCH)], key=lambda i: len(encoded[i].ids))
        batches = [window[k : k + BATCH] for k in range(0, len(window), BATCH)]
        rng.shuffle(batches)
        chosen += [i for batch in batches for i in batch]
    data = Dataset.from_dict(
        {"input_ids": [encoded[i].ids for i in chosen], "labels": [labels(encoded[i], False) for i in chosen]}
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = SFTConfig(
            **settings(rate, steps, seed, folder),
            dataset_kwargs={"skip_prepare_dataset": True},
            train_sampling_strategy="sequential",
        )
        trainer = SFTTrainer(
            model=model, args=arguments, train_dataset=data, processing_class=tokenizer, peft_config=peft
        )
        run(trainer, looks, look)
    return trainer.model


def prefer(model, tokenizer, rows: list[dict], *, steps: int, rate: float, seed: int, looks, look):
    """Direct preference optimisation against the start."""
    from trl import DPOConfig, DPOTrainer

    with tempfile.TemporaryDirectory() as folder:
        trainer = DPOTrainer(
            model=model,
            args=DPOConfig(**settings(rate, steps, seed, folder, beta=0.1, per_device_train_batch_size=16)),
            train_dataset=Dataset.from_list(rows).shuffle(seed=seed),
            processing_class=tokenizer,
        )
        run(trainer, looks, look)
    return trainer.model


def reinforce(model, tokenizer, rows: list[dict], judge, *, steps: int, rate: float, seed: int, looks, look):
    """GRPO on a check: judge(text, row) says whether an answer is right."""
    from trl import GRPOConfig, GRPOTrainer

    def reward(completions, row, **_):
        return [
            float(judge(completion[0]["content"], rows[index]))
            for completion, index in zip(completions, row, strict=True)
        ]

    tokenizer.padding_side = "left"
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            args=GRPOConfig(
                **settings(rate, steps, seed, folder, num_generations=8, max_completion_length=28, temperature=1.0)
            ),
            reward_funcs=reward,
            train_dataset=Dataset.from_list([{"prompt": r["messages"][:1], "row": i} for i, r in enumerate(rows)]),
            processing_class=tokenizer,
        )
        run(trainer, looks, look)
    tokenizer.padding_side = "right"
    return trainer.model


def soften(model, share: float) -> None:
    """Multiplies all logits by 1 − share: temperature and nothing else (the last norm's weight, in place)."""
    with torch.no_grad():
        model.get_decoder().norm.weight.mul_(1 - share)
