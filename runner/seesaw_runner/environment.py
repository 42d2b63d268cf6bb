"""Environment variables a training process needs. The launcher mirrors `RUNNER_ENV`; a recipe sets what is missing.

Standard library only: read before torch is imported.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

#: Name → value. Values that the user's own environment or `seesaw.yaml` sets are kept.
RUNNER_ENV: dict[str, str] = {
    # Nothing is ever fetched: models and data are local folders.
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # The fast tokenizers warn and slow down when a process forks after using their threads.
    "TOKENIZERS_PARALLELISM": "false",
    # Spinning OpenMP threads are disastrous when other work shares the cores; a passive wait costs nothing.
    "OMP_WAIT_POLICY": "passive",
    # glibc gives large blocks back to the kernel after each step and faults them in again: keep them.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
    "PYTHONUNBUFFERED": "1",
}


def threads_per_process(processes: int = 1) -> int:
    """CPU threads for one of `processes` training processes on this machine, at least 1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity call
        cores = os.cpu_count() or 1
    return max(1, cores // max(1, processes))


def apply(environ: MutableMapping[str, str] = os.environ, processes: int = 1) -> None:
    """Fills in what is missing; never overwrites. Call before importing torch."""
    for name, value in RUNNER_ENV.items():
        environ.setdefault(name, value)
    environ.setdefault("OMP_NUM_THREADS", str(threads_per_process(processes)))
