"""Which device a stage runs on, in which precision, and how much of its memory one chunk of work may take."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Device:
    """`kind` is cuda, mps or cpu; `dtype` is what weights are loaded in; `autocast_bf16` is mixed precision for
    training.
    """

    kind: str
    index: int
    dtype: torch.dtype
    autocast_bf16: bool

    @property
    def torch(self) -> torch.device:
        return torch.device(self.kind, self.index) if self.kind == "cuda" else torch.device(self.kind)

    @property
    def frozen_dtype(self) -> torch.dtype:
        """For models that are never trained (teachers, references): half the memory where bf16 is fast."""
        return torch.bfloat16 if self.autocast_bf16 else self.dtype

    @property
    def name(self) -> str:
        """For people: `NVIDIA H200`, `Apple GPU`, `CPU (2 threads)`."""
        if self.kind == "cuda":
            return torch.cuda.get_device_name(self.index)
        if self.kind == "mps":
            return "Apple GPU"
        return f"CPU ({torch.get_num_threads()} threads)"

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def chunk_elements(self) -> int:
        """How many float32 logits the LM head may produce at once (elements, not bytes).

        CPU: 4 Mi elements (16 MiB) stay near the last-level cache; accelerators: 64 Mi (256 MiB), so that a vocabulary
        of 152k still gets 440 tokens a chunk.
        """
        return (4 if self.kind == "cpu" else 64) * 1024 * 1024


def choose(force_cpu: bool = False) -> Device:
    """The best device of this process. CUDA takes LOCAL_RANK; weights stay float32 and training uses bf16 autocast
    there.

    Full-precision master weights are kept because small updates vanish when they are added to bf16 weights.
    """
    if not force_cpu and torch.cuda.is_available():
        index = int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count()
        torch.cuda.set_device(index)
        return Device("cuda", index, torch.float32, torch.cuda.is_bf16_supported())
    if not force_cpu and torch.backends.mps.is_available():
        return Device("mps", 0, torch.float32, False)
    return Device("cpu", 0, torch.float32, False)


def peak_memory(device: Device) -> int:
    """Highest memory use of this process so far, in bytes (device memory on CUDA, resident memory elsewhere)."""
    if device.kind == "cuda":
        return torch.cuda.max_memory_allocated(device.index)
    try:
        # Not ru_maxrss: Linux hands that on from the process that started this one, however large it was.
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
        import sys

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    except ImportError:  # Windows
        return 0


def is_out_of_memory(error: BaseException) -> bool:
    """True for MemoryError, CUDA's out-of-memory error and the CPU allocator's message."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("can't allocate memory" in text or "out of memory" in text)


def leave_process_group() -> None:
    """Joins torch.distributed's threads; every recipe does it before it ends.

    Left to the interpreter's end, they now and then abort a finished process (SIGABRT, "terminate called without an
    active exception"), and a run that is done would be called failed.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
