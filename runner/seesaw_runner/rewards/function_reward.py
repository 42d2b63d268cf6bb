"""A user's reward function behind a worker process that may raise, hang or die without taking the stage with it."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from seesaw_runner.piped_lines import pump
from seesaw_runner.run_folder import StageError

#: Seconds for the import of the user's module.
START_TIMEOUT = 60.0


class FunctionReward:
    """`score` gives a number, or None with the reason in `last_error`. The worker is started when first needed, and
    again after it hung or died.
    """

    def __init__(self, name: str, folder: str | Path, timeout: float):
        self.name, self.folder, self.timeout = name, str(folder), timeout
        self.last_error = ""
        self._process: subprocess.Popen[str] | None = None
        self._replies: queue.Queue[str | None] = queue.Queue()

    def score(self, answer: str, row: dict[str, Any]) -> float | None:
        """The reward of one answer; None when the function raised, returned no number, or took too long."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"answer": answer, "row": row}) + "\n")
            self._process.stdin.flush()
        except OSError:
            return self._lost("died")
        return self._read()

    def close(self) -> None:
        """Ends the worker."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None

    def _read(self) -> float | None:
        try:
            line = self._replies.get(timeout=self.timeout)
        except queue.Empty:
            return self._lost(f"took longer than {self.timeout:g} s")
        if line is None:
            return self._lost("ended its process")
        said = json.loads(line)
        if "error" in said:
            self.last_error = said["error"]
            return None
        return float(said["reward"])

    def _lost(self, how: str) -> None:
        self.last_error = how
        self.close()
        return None

    def _start(self) -> None:
        self.close()
        self._replies = queue.Queue()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "seesaw_runner.rewards.worker", self.name, self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=self.folder,
            env={**_environment()},
        )
        threading.Thread(target=pump, args=(self._process.stdout, self._replies), daemon=True).start()
        try:
            line = self._replies.get(timeout=START_TIMEOUT)
        except queue.Empty:
            line = None
        said = json.loads(line) if line else {"error": "its module did not load in time, or ended the process"}
        if not said.get("ready"):
            self.close()
            raise StageError(
                "bad-argument",
                f"The reward function {self.name} cannot be used from {self.folder}: {said['error']}.",
                "options.rewards",
            )


def _environment() -> dict[str, str]:
    import os

    runner = str(Path(__file__).resolve().parents[2])
    paths = [runner, *[p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
