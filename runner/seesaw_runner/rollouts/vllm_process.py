"""The parent's end of `vllm_worker`: starts it, asks it line by line, and ends it for sure."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from seesaw_runner.benchmark.after_stage import child_env
from seesaw_runner.piped_lines import pump

#: Seconds to end by itself after its input was closed, and then after SIGTERM.
GRACE = 30.0


class VllmFailure(RuntimeError):
    """`memory`: it did not have enough of it. `stopped`: the run was told to end meanwhile."""

    def __init__(self, message: str, *, memory: bool = False, stopped: bool = False):
        super().__init__(message)
        self.memory, self.stopped = memory, stopped


class VllmProcess:
    """arguments: keywords of vLLM's LLM. gpu: index of the only device it sees, as this process counts them."""

    def __init__(self, arguments: dict[str, Any], *, gpu: int | None, stopping: Callable[[], bool]):
        self.arguments, self.gpu, self.stopping = arguments, gpu, stopping
        self._process: subprocess.Popen[str] | None = None
        self._replies: queue.Queue[str | None] = queue.Queue()

    def start(self) -> str:
        """Loads the model, which takes minutes. Returns vLLM's version."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "seesaw_runner.rollouts.vllm_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=worker_env(self.gpu),
        )
        threading.Thread(target=pump, args=(self._process.stdout, self._replies), daemon=True).start()
        return str(self.ask(self.arguments)["version"])

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends one line and waits for one. VllmFailure when it said so, ended, or the run is to stop."""
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended: the reply says how
        while True:
            if self.stopping():
                self.close(grace=0)
                raise VllmFailure("the run was stopped", stopped=True)
            try:
                line = self._replies.get(timeout=0.2)
                break
            except queue.Empty:
                continue
        if line is None:
            code = self._process.wait()
            how = f"was killed (signal {-code})" if code < 0 else f"ended with exit code {code}"
            raise VllmFailure(f"its process {how}", memory=code == -9)
        said = json.loads(line)
        if "error" in said:
            raise VllmFailure(said["error"], memory=bool(said.get("memory")))
        return said

    def close(self, grace: float = GRACE) -> None:
        """Ends it; with its process the system takes the memory back."""
        if self._process is None:
            return
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass
        for end, patience in ((lambda: None, grace), (self._process.terminate, GRACE), (self._process.kill, None)):
            end()
            try:
                self._process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                continue
        self._process = None


def worker_env(gpu: int | None) -> dict[str, str]:
    """This process's own without its ranks, and with no other GPU than its own to be seen.

    vLLM's engine stays in the worker itself (VLLM_ENABLE_V1_MULTIPROCESSING=0): its errors then say what went wrong,
    the same seed schedules the same batches, and nothing is left behind when the worker is killed.
    """
    env = child_env()
    if gpu is not None:
        seen = [name.strip() for name in env.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
        env["CUDA_VISIBLE_DEVICES"] = seen[gpu] if gpu < len(seen) else str(gpu)
    env.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    env.setdefault("VLLM_NO_USAGE_STATS", "1")
    env.setdefault("HF_HUB_OFFLINE", "1")
    return env
