"""Room for the run: disk for its checkpoints, a folder that can be written, and memory for the training."""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import tempfile
from pathlib import Path

from seesaw_runner.checkpoints.files import Checkpoint
from seesaw_runner.findings import Finding

_OTHER = 64 << 20  # traces, journal, log, tokenizer copies
_ADAPTER_SHARE = 0.05  # a LoRA adapter is rarely larger


def check_space(spec: dict, run_dir: Path, start: Checkpoint, base: Checkpoint, rows: int) -> list[Finding]:
    """Estimates, rounded up: a wrong alarm is cheaper than a disk that is full at the last step."""
    parent = next((folder for folder in (run_dir, *run_dir.parents) if folder.exists()), Path("/"))
    findings = _writable(parent, run_dir)
    model = base if start.kind == "adapter" and base.tensors else start
    if not model.tensors or findings:
        return findings
    need, free = disk_need(spec, model, rows), shutil.disk_usage(parent).free
    if need > 0.9 * free:
        severity = "error" if need > free else "warning"
        findings.append(
            Finding(
                "disk-full",
                severity,
                f"the run needs about {_gb(need)} for {save_count(spec, rows)} checkpoints, and {_gb(free)} are free",
                "Free some space, or set a larger save_every",
                str(parent),
            )
        )
    # A merge streams; only its probes hold a model, as a file of its size.
    return findings if spec["recipe"] == "merge" else findings + _memory(spec, model)


def save_count(spec: dict, rows: int) -> int:
    """Checkpoints that the stage will write."""
    args, every = spec.get("args") or {}, spec.get("save_every")
    steps = _number(args.get("max_steps"), 0)
    if steps <= 0:
        batch = _number(args.get("per_device_train_batch_size"), 8) * _number(
            args.get("gradient_accumulation_steps"), 1
        )
        batch *= (spec.get("launch") or {}).get("processes") or 1
        steps = math.ceil(rows * _number(args.get("num_train_epochs"), 3) / max(1, batch))
    return max(1, math.ceil(steps / every)) if every else 1


def disk_need(spec: dict, model: Checkpoint, rows: int) -> int:
    """Weights in float32 for each save, and two optimizer moments for each but the last one."""
    count = save_count(spec, rows)
    trained = model.parameters * (_ADAPTER_SHARE if spec.get("adapter") else 1)
    return int(trained * 4 * count + trained * 8 * max(0, count - 1) + _OTHER)


def _number(value: object, default: float) -> float:
    return (
        value if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) else default
    )


def _writable(parent: Path, run_dir: Path) -> list[Finding]:
    try:
        with tempfile.NamedTemporaryFile(dir=parent, prefix=".seesaw-") as handle:
            handle.write(b"\0" * 16384)  # an empty file is within every quota
            handle.flush()
            os.fsync(handle.fileno())
            return []
    except OSError as error:
        code = "disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "not-writable"
        room = "Make room: `quota -s`, or `lfs quota` on Lustre, shows what you may use"
        room = room if error.errno == errno.EDQUOT else "Free some space"
        return [
            Finding(
                code,
                "error",
                f"nothing can be written to the run's folder: {error.strerror or error}",
                room if code == "disk-full" else "Change its permissions",
                str(run_dir),
            )
        ]


def _memory(spec: dict, model: Checkpoint) -> list[Finding]:
    """A hint for training on the CPU; what a GPU has is known only to torch."""
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd"):
        return []
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return []
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    free = int(match.group(1)) * 1024 if match else None
    trained = model.parameters * (_ADAPTER_SHARE if spec.get("adapter") else 1)
    need = int(model.parameters * 4 + trained * 12)  # weights, then gradient and two moments of what is trained
    if free is None or need < free:
        return []
    return [
        Finding(
            "memory",
            "warning",
            f"training needs at least {_gb(need)} of memory, and {_gb(free)} are available",
            "Use an adapter, a smaller model or another target",
        )
    ]


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
