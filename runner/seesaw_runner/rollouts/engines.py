"""Who generates answers: transformers in this process, or vLLM in a process of its own.

vLLM keeps most of a GPU for its cache, starts further processes and changes what torch.distributed knows. In a process
of its own none of that reaches the training: when it has ended, the system has its memory back, whatever vLLM kept.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from seesaw_runner.rollouts.vllm_process import VllmFailure, VllmProcess
from seesaw_runner.run_folder import StageError
from seesaw_runner.scoring.generate import Generated
from seesaw_runner.training.placement import loaded_bytes

ENGINES = ("auto", "transformers", "vllm")
#: Share of the free memory that vLLM may take where nothing else runs meanwhile, and where the base model also answers.
ALONE, SHARED = 0.9, 0.6
#: Of that, what weights may take: the rest is for the cache.
WEIGHTS = 0.85
#: Prompts of one call: between calls a stop is obeyed and progress told.
CALL = 512
#: Ranks that vLLM can be told as the largest.
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
TRANSFORMERS_INSTEAD = "Set `engine: transformers`"


@dataclass(frozen=True)
class Lora:
    """An adapter that is put on the model for one call. number: above 0, one for each."""

    name: str
    number: int
    folder: Path


@dataclass(frozen=True)
class Wanted:
    """How answers are sampled. temperature 0 is greedy; then all samples of a prompt are the same answer."""

    temperature: float = 0.0
    top_p: float = 1.0
    samples: int = 1
    seed: int = 0


def uses_vllm(stage, wanted: str, option: str = "engine") -> bool:
    """Whether vLLM generates. auto: where it is installed and there is a CUDA device. StageError where it was asked for
    by name and is not installed.
    """
    installed = importlib.util.find_spec("vllm") is not None
    if wanted == "vllm" and not installed:
        raise StageError(
            "bad-argument",
            "The option engine is vllm, but vLLM is not installed in the Python of this target. Install it there "
            f"(`pip install vllm`; it needs Linux and a GPU). {TRANSFORMERS_INSTEAD} to generate without it.",
            f"options.{option}",
        )
    return wanted == "vllm" or (wanted == "auto" and installed and stage.device.kind == "cuda")


def fits_vllm(folder: str | Path, device, share: float) -> bool:
    """Whether the weights leave vLLM room for its cache on a GPU."""
    if device.kind != "cuda":
        return True
    free = torch.cuda.mem_get_info(device.index)[0]
    return loaded_bytes(folder, device.frozen_dtype.itemsize) <= free * share * WEIGHTS


@dataclass
class Engine:
    """A running vLLM with one model. `ends`: ids that end an answer."""

    process: VllmProcess
    stage: object
    ends: set[int]

    def answers(
        self,
        prompts: Sequence[Sequence[int]],
        limits: Sequence[int],
        wanted: Wanted,
        *,
        lora: Lora | None = None,
        told: str = "sampling answers",
    ) -> list[list[Generated]]:
        """`wanted.samples` answers of each prompt, in order. A prompt without room for an answer gets an empty one.
        StageError when vLLM fails, and `cancelled` after a signal.
        """
        out: list[list[Generated]] = [[Generated([], "length") for _ in range(wanted.samples)] for _ in prompts]
        order = [i for i in range(len(prompts)) if limits[i] > 0]
        greedy = wanted.temperature == 0
        for first in range(0, len(order), CALL):
            part = order[first : first + CALL]
            request = {
                "prompts": [list(prompts[i]) for i in part],
                "params": [sampling_arguments(wanted, limits[i], self.ends, wanted.seed + i) for i in part],
                "lora": None if lora is None else [lora.name, lora.number, str(lora.folder)],
            }
            try:
                said = self.process.ask(request)
            except VllmFailure as error:
                raise _failed(error) from error
            for i, found in zip(part, said["answers"], strict=True):
                rows = [self._row(ids, finish, limits[i]) for ids, finish in found]
                out[i] = rows * wanted.samples if greedy else rows
            self.stage.journal.append(
                "stage.progress",
                phase="generate",
                step=min(len(order), first + CALL),
                total=len(order),
                message=told,
            )
        return out

    def _row(self, ids: list[int], finish: str | None, limit: int) -> Generated:
        """vLLM gives the end token among the ids; Seesaw's answers are without it."""
        ended = bool(ids) and ids[-1] in self.ends
        return Generated(ids[:-1] if ended else ids[:limit], "stop" if ended or finish == "stop" else "length")


def sampling_arguments(wanted: Wanted, limit: int, ends: set[int], seed: int) -> dict:
    """Keywords of vLLM's SamplingParams. Each prompt has a seed of its own, so that calls can be cut anywhere."""
    greedy = wanted.temperature == 0
    return {
        "n": 1 if greedy else wanted.samples,
        "temperature": wanted.temperature,
        "top_p": 1.0 if greedy else wanted.top_p,
        "max_tokens": limit,
        "seed": None if greedy else seed,
        "stop_token_ids": sorted(ends),
        "detokenize": False,
    }


def model_arguments(
    folder: str | Path, *, dtype: str, seed: int, length: int, share: float | None, rank: int | None
) -> dict:
    """Keywords of vLLM's LLM. share: of all memory of the GPU; None off CUDA. rank: of the largest adapter.

    Prompts and answers are ids, so it needs no tokenizer. Weights come from safetensors only, and the model's own
    generation config would bring a limit and penalties that nobody has asked for.
    """
    arguments = {
        "model": str(folder),
        "dtype": dtype,
        "seed": seed,
        "max_model_len": length,
        "load_format": "safetensors",
        "generation_config": "vllm",
        "skip_tokenizer_init": True,
        "trust_remote_code": False,
    }
    if share is not None:
        arguments["gpu_memory_utilization"] = round(share, 4)
    if rank is not None:
        arguments |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": next(r for r in RANKS if r >= rank)}
    return arguments


@contextmanager
def vllm_engine(
    stage, folder: str | Path, *, length: int, seed: int, share: float = ALONE, rank: int | None = None
) -> Iterator[Engine]:
    """vLLM with a checkpoint, for the time of the block; an adapter checkpoint is merged first, into the run folder.
    length: of prompt and answer together, at most. Behind the block its process has ended.
    """
    from seesaw_runner.training.loading import save_merged

    device = stage.device
    with tempfile.TemporaryDirectory(prefix=".merged-", dir=stage.run) as scratch:
        if (Path(folder) / "adapter_config.json").is_file():
            save_merged(folder, scratch, device.frozen_dtype)
            model: str | Path = scratch
        else:
            model = folder
        part = None
        if device.kind == "cuda":
            torch.cuda.empty_cache()
            free, whole = torch.cuda.mem_get_info(device.index)
            part = share * free / whole
        arguments = model_arguments(
            model,
            dtype=str(device.frozen_dtype).removeprefix("torch."),
            seed=seed,
            length=length,
            share=part,
            rank=rank,
        )
        stage.loading(f"starting vLLM with {folder}")
        process = VllmProcess(
            arguments,
            gpu=device.index if device.kind == "cuda" else None,
            stopping=lambda: stage.watch.signal is not None,
        )
        try:
            try:
                version = process.start()
            except VllmFailure as error:
                raise _failed(error) from error
            stage.warn("engine", f"vLLM {version} generates the answers of {folder}.", severity="info")
            yield Engine(process, stage, end_ids_of(model, stage.tokenizer))
        finally:
            process.close()


def end_ids_of(folder: str | Path, tokenizer) -> set[int]:
    """Ids that end an answer, as `scoring.generate.end_ids` says of a loaded model: read from its files."""
    found: set[int | None] = {tokenizer.eos_token_id}
    for name in ("generation_config.json", "config.json"):
        path = Path(folder) / name
        if path.is_file():
            said = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id")
            found |= set(said) if isinstance(said, list) else {said}
            break
    return {int(i) for i in found if i is not None}


def _failed(error: VllmFailure) -> StageError:
    if error.stopped:
        return StageError("cancelled", "Stopped while vLLM generated answers; nothing was learned yet.")
    fix = (
        "Free memory on the GPU, or use a smaller max_new_tokens or model"
        if error.memory
        else "See out.log for what it wrote"
    )
    return StageError(
        "out-of-memory" if error.memory else "exception",
        f"vLLM failed: {str(error).rstrip('.')}. {fix}. {TRANSFORMERS_INSTEAD} to generate without it.",
        "options.engine",
    )
