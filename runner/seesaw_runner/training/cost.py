"""What an attempt has cost: peak memory, seconds, tokens. One `cost.measured` event when its training has ended, so
that the prediction made before the start (run.json's `predicted`) can be held against it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

from seesaw_runner.training.device import Device, peak_memory


class CostMeter:
    """Made before the model is loaded: what the process takes by then is Python and its libraries."""

    def __init__(self, device: Device):
        self.device = device
        self.before = 0 if device.kind == "cuda" else resident_memory()
        self._start = self._began = 0.0
        self._paused = 0.0
        if device.kind == "cuda":
            torch.cuda.reset_peak_memory_stats(device.index)

    def begin(self, probed: float = 0.0) -> None:
        """The training is about to begin; `probed`: seconds of probing so far, which are not training."""
        self._start, self._began, self._paused = peak_memory(self.device), time.perf_counter(), probed

    def tell(self, journal, *, step: int, tokens: int, probed: float) -> None:
        """The event. tokens: trained by this attempt; probed: seconds of probing of the whole attempt."""
        trained = time.perf_counter() - self._began - (probed - self._paused) if self._began else 0.0
        cuda = self.device.kind == "cuda"
        journal.append(
            "cost.measured",
            step=step,
            memory={
                "kind": "device" if cuda else "resident",
                "before": self.before,
                "start": int(self._start),
                "peak": peak_memory(self.device),
                "reserved": torch.cuda.max_memory_reserved(self.device.index) if cuda else None,
            },
            train_s=round(max(0.0, trained), 3),
            probe_s=round(probed, 3),
            tokens=int(tokens),
        )


def resident_memory() -> int:
    """Bytes of this process in memory now; where the system tells only the peak, that."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * _page_size()
    except (OSError, ValueError, IndexError):
        return peak_memory(Device("cpu", 0, torch.float32, False))


def _page_size() -> int:
    if sys.platform == "win32":
        return 4096
    import resource

    return resource.getpagesize()
