"""What every recipe's trainer does differently from Hugging Face's: planned batches, and checkpoints as in `saving.py`.

Used as the first base: `class Trainer(StageTrainer, SFTTrainer)`. Written against transformers 5.17 (names checked by a
test).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from seesaw_runner.checkpoints import saving
from seesaw_runner.training.plan import BatchPlan, PlanSampler


class StageTrainer:
    """Set up with `prepare_stage` right after construction."""

    def prepare_stage(self, *, plan: BatchPlan, folder: Path, about: dict[str, Any], saved, tokenizer) -> None:
        """folder: `checkpoints/`. about: stage, run, index of seesaw.json. saved(step, path, kind, final, hash, bytes)
        is told.
        """
        self.plan, self.stage_folder, self.about, self.saved, self.stage_tokenizer = (
            plan,
            folder,
            about,
            saved,
            tokenizer,
        )
        self.step_losses: list[torch.Tensor] = []
        self.last_grad_norm: Any = None

    # ---- batches

    def _get_train_sampler(self, train_dataset=None):
        return PlanSampler(self.plan)

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        self.step_losses.append(loss.detach())
        return loss

    def _get_grad_norm(self, *args, **kwargs):
        self.last_grad_norm = super()._get_grad_norm(*args, **kwargs)
        return self.last_grad_norm

    # ---- writing

    def _save_checkpoint(self, model, trial) -> None:
        """Temporary folder, everything into it, rename. Every process adds its random state; rank 0 does the rest.

        When it fails (a full disk), nothing is left of it: the room may be what the next attempt needs.
        """
        temporary: list[Path] = []
        try:
            self._save_whole(temporary)
        except BaseException:
            for folder in temporary:
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def _save_whole(self, started: list[Path]) -> None:
        step, final = self.state.global_step, self.state.global_step >= self.state.max_steps
        rank, main = self.args.process_index, self.args.process_index == 0
        temporary = saving.begin(self.stage_folder, step) if main else None
        started += [temporary] if temporary else []
        if self.args.world_size > 1:
            name = [str(temporary)]
            _share_text(name)
            temporary = Path(name[0])
        if not final:
            saving.save_random(temporary / "resume", rank)
        if main:
            self._save_weights(temporary)
            if not final:
                self._save_optimizer_and_scheduler(str(temporary / "resume"))
                self.state.save_to_json(str(temporary / "trainer_state.json"))
            else:
                (temporary / "resume").rmdir()
            kind = "adapter" if (temporary / "adapter_config.json").exists() else "full"
            digest = saving.weights_hash(temporary)
            label = f"M{self.about['index']}" if final else f"M{self.about['index']}@{step}"
            saving.write_json(
                temporary / "seesaw.json",
                {
                    "v": 1,
                    "step": step,
                    "stage": self.about["stage"],
                    "run": self.about["run"],
                    "label": label,
                    "kind": kind,
                    "weights_hash": digest,
                    **({"base": self.about["base"]} if kind == "adapter" and self.about.get("base") else {}),
                },
            )
        if self.args.world_size > 1:
            dist.barrier()
        if main:
            path = saving.publish(temporary, step)
            self.saved(step, path, kind, final, digest, saving.folder_bytes(path))

    def _save_weights(self, folder: Path) -> None:
        model = self.accelerator.unwrap_model(self.model, keep_torch_compile=False)
        model.save_pretrained(folder)
        self.stage_tokenizer.save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)  # PEFT's model card template

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        saving.save_optimizer(Path(output_dir), self.optimizer)
        saving.save_scheduler(Path(output_dir), self.lr_scheduler)

    def _save_rng_state(self, output_dir: str) -> None:
        saving.save_random(Path(output_dir) / "resume", self.args.process_index)

    # ---- reading

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model=None) -> None:
        """Weights of a checkpoint of this run into the model as it is (base and adapter were built the same way)."""
        folder = Path(resume_from_checkpoint)
        target = self.accelerator.unwrap_model(self.model if model is None else model)
        if (folder / "adapter_config.json").exists():
            from peft import set_peft_model_state_dict
            from safetensors.torch import load_file

            found = set_peft_model_state_dict(target, load_file(folder / "adapter_model.safetensors"))
            if found.unexpected_keys:
                raise saving.CheckpointError(
                    f"{folder} does not fit this stage's adapter (unexpected {found.unexpected_keys[0]}). Remove "
                    f"the folder to start over."
                )
            return
        from seesaw_runner.training.loading import load_model

        parameter = next(target.parameters())
        loaded = load_model(str(folder), parameter.dtype, torch.device("cpu"))
        target.load_state_dict(loaded.state_dict())

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            saving.load_optimizer(Path(checkpoint) / "resume", self.optimizer)
            saving.load_scheduler(Path(checkpoint) / "resume", self.lr_scheduler)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            saving.load_random(Path(checkpoint) / "resume", self.args.process_index)


def _share_text(value: list[str], size: int = 4096) -> None:
    """Rank 0's text to all processes, as plain bytes (broadcast_object_list would pickle it)."""
    data = value[0].encode()[:size]
    device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    buffer = torch.zeros(size, dtype=torch.uint8, device=device)
    if dist.get_rank() == 0:
        buffer[: len(data)] = torch.tensor(list(data), dtype=torch.uint8)
    dist.broadcast(buffer, 0)
    value[0] = bytes(buffer.tolist()).rstrip(b"\0").decode()
