"""The user's command as a process: its own group, its output copied to ours and shown to the reader of metrics."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from seesaw_runner.environment import RUNNER_ENV
from seesaw_runner.run_folder import StageError

#: Seconds to wait for the end of the output after the command itself has ended: a helper may hold the pipe.
DRAIN = 2.0


class Child:
    """Started by the constructor. heard(bytes) gets all it prints. StageError `spawn` when it cannot be started."""

    def __init__(
        self, command: list[str] | str, cwd: Path, env: Mapping[str, str], heard: Callable[[bytes], None]
    ) -> None:
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
        try:
            self.process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            what = cwd if not cwd.is_dir() else argv[0]
            reason = getattr(error, "strerror", None) or str(error)
            raise StageError(
                "spawn",
                f"The command cannot be started: {what}: {reason}. Correct `run` or `cwd` of the stage.",
                "options.run" if cwd.is_dir() else "options.cwd",
            ) from error
        self._heard = heard
        self._asked: float | None = None
        self._pump = threading.Thread(target=self._copy, name="output", daemon=True)
        self._pump.start()

    @property
    def ended(self) -> bool:
        """Whether its first process is over. It is not collected yet, so that its number still names the group."""
        if not hasattr(os, "waitid"):
            return self.process.poll() is not None
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def stop(self) -> None:
        """SIGTERM to the whole group; a second call does nothing. Safe in a signal handler."""
        if self._asked is None:
            self._asked = time.monotonic()
            self._signal(signal.SIGTERM)

    def kill_after(self, seconds: float) -> None:
        """SIGKILL once a stop was asked for so long ago and something of the group still lives."""
        if self._asked is not None and time.monotonic() - self._asked > seconds:
            self._signal(signal.SIGKILL)

    def end(self) -> int:
        """What it ended with: an exit code, or minus the signal that killed it. Its output has been read by then, and
        what it left behind in its group is ended: a command is over when its first process is.
        """
        while not self.ended:
            time.sleep(0.05)
        self._signal(signal.SIGTERM)
        self._pump.join(DRAIN)
        self._signal(signal.SIGKILL)
        return self.process.wait()

    def kill(self) -> None:
        """Ends it at once, with all of its group. Does nothing after `end`."""
        if self.process.returncode is None:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def _copy(self) -> None:
        assert self.process.stdout is not None
        read = self.process.stdout.fileno()
        while True:
            try:
                data = os.read(read, 1 << 16)
            except OSError:
                return
            if not data:
                return
            try:
                os.write(1, data)
            except OSError:  # a full disk or a closed log does not stop a training
                pass
            try:
                self._heard(data)
            except Exception as error:  # never let the pipe fill up
                print(f"The output could not be read for metrics: {error}", file=sys.stderr)


def own_environment(given: Mapping[str, str], attempt: Mapping[str, str], stage: Mapping[str, str]) -> dict[str, str]:
    """The environment that the user would have without us.

    given: what this process was started with. attempt: what the launcher added (spec.json's env). stage: `env` of the
    stage, which stays. Seesaw's own settings (offline, threads, its PYTHONPATH) are for its recipes, not for a command.
    """
    env = dict(given)
    for name in (*RUNNER_ENV, "OMP_NUM_THREADS"):
        if name in attempt and name not in stage and name != "PYTHONUNBUFFERED":
            env.pop(name, None)
    ours = str(Path(__file__).resolve().parents[2])
    places = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p and os.path.realpath(p) != ours]
    env.pop("PYTHONPATH", None)
    if places:
        env["PYTHONPATH"] = os.pathsep.join(places)
    env.setdefault("PYTHONUNBUFFERED", "1")  # metrics are to come when they are printed
    return env
