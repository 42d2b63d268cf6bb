"""One attempt of a `command` stage: the process and its logs, with its checkpoints scored beside it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seesaw_runner.foreign.checkpoint_scorer import CheckpointScorer
from seesaw_runner.foreign.checkpoints import Found
from seesaw_runner.foreign.child import Child, own_environment
from seesaw_runner.foreign.globs import expand
from seesaw_runner.foreign.last_words import LastWords
from seesaw_runner.foreign.metric_sink import MetricSink
from seesaw_runner.foreign.placeholders import fill_words, shell_line, shown, variables
from seesaw_runner.foreign.trainer_logs import TrainerLogs
from seesaw_runner.foreign.watcher import Watcher
from seesaw_runner.probing.gate import tell_halt
from seesaw_runner.run_folder import attempt_number, say, write_outcome

if TYPE_CHECKING:
    from seesaw_runner.recipes.command import Settings
    from seesaw_runner.training.session import Session

#: Seconds between two looks at the folders and the logs.
POLL = 0.5
#: Seconds of the agent's grace that are kept for ourselves, to say how it ended.
RESERVE = 3.0
STATE = "command.json"


class CommandRun:
    """given: the environment that this process was started with. `go` gives the exit code."""

    def __init__(self, stage: Session, settings: Settings, given: dict[str, str]):
        self.stage, self.settings, self.given = stage, settings, given
        self.journal, self.run = stage.journal, stage.run
        self.again = attempt_number(stage.attempt) > 1
        self.state = self._read_state()
        trusted = bool(stage.spec.get("trusted"))
        self.root = None if trusted else Path(stage.spec["pipeline"]["root"])
        left = self.state.get("left_alone")
        self.watcher = Watcher(settings.checkpoints, settings.format, self.root, stage.warn, left)
        if left is None:
            self.state["left_alone"] = self.watcher.left_alone = self.watcher.snapshot()
            self._write_state()
        self.scorer = CheckpointScorer(stage, settings, self.watcher)
        self.child: Child | None = None
        self.spec_env = _attempt_spec(stage.attempt)

    @property
    def stopping(self) -> bool:
        return self.stage.watch.signal is not None

    def go(self) -> int:
        if self.state["left_alone"] and not self.again:
            names = sorted(Path(path).name for path in self.state["left_alone"])
            listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
            self.stage.warn(
                "folder-reused",
                f"{len(names)} checkpoints were there before the command began and are left alone: {listed}.",
                where=self.settings.checkpoints[-1],
                fix="Write every run into a folder of its own, such as {output}.",
                severity="info",
            )
        resume = self.watcher.newest() if self.again else None
        sink = MetricSink(self.journal, resume.step if resume else None, self.stage.warn)
        self.scorer.begin(resume)
        logs = TrainerLogs(sink, self.settings.logs, self.stage.warn, self.root)
        words = LastWords()
        code = 0
        if not self.state.get("ended"):
            code = self._execute(logs, words, resume)
            if self.stopping:
                return self._stopped()
            if code == 0:
                self.state["ended"] = True
                self._write_state()
            elif self.scorer.halt:
                return self._halted()
        self.journal.append("stage.progress", phase="probe", step=sink.step, total=sink.total)
        self.scorer.forget_void()
        self.scorer.score_ready(ended=True, unnumbered=code == 0, step=sink.step)
        if self.stopping:
            return self._stopped()
        if code != 0:
            return self._failed(code, words)
        self.scorer.finish()
        return self._halted() if self.scorer.halt else 0

    # ---- the command

    def _execute(self, logs: TrainerLogs, words: LastWords, resume: Found | None) -> int:
        settings = self.settings
        values = {**settings.values, "resume": str(resume.path) if resume else ""}
        run = settings.run
        command = shell_line(run) if isinstance(run, str) else fill_words(run, values)
        env = own_environment(self.given, self.spec_env.get("env") or {}, self.stage.spec.get("env") or {})
        env |= variables(values)
        say(f"Seesaw: runs in {settings.cwd}: {shown(run if isinstance(run, str) else command)}")
        if resume:
            say(f"Seesaw: offers {resume.path} to resume from")
        self.journal.append("stage.progress", phase="train", step=0, total=0, message="the command runs")
        states = self._trainer_states()
        for path in states:
            logs.pass_state(path)

        def heard(data: bytes) -> None:
            words.feed(data)
            logs.feed_output(data)

        if self.stopping:
            return 0
        self.child = child = Child(command, settings.cwd, env, heard)
        handlers = [(n, signal.signal(n, self._on_signal)) for n in (signal.SIGTERM, signal.SIGINT)]
        over = threading.Event()
        reader = threading.Thread(target=self._read_logs, args=(logs, over), name="logs", daemon=True)
        reader.start()
        if hasattr(os, "nice"):
            os.nice(10)  # the command has priority; it was started before
        grace = max(1.0, float(self.spec_env.get("grace_s", 10)) - RESERVE)
        try:
            if self.stopping:  # it came before there was a child to pass it on to
                child.stop()
            while not child.ended:
                if not self.stopping and not self.scorer.halt:
                    self.scorer.score_ready()
                if self.scorer.halt:
                    child.stop()
                if ending := self.stopping or self.scorer.halt is not None:
                    child.kill_after(grace)
                time.sleep(0.05 if ending else POLL)
            code = child.end()
        finally:
            child.kill()
            over.set()
            reader.join()
            for number, handler in handlers:
                signal.signal(number, handler)
        self._read_states(logs)
        logs.close()
        say(f"Seesaw: the command ended with {_ending(code)}")
        return code

    def _on_signal(self, number: int, _frame: Any) -> None:
        self.stage.watch.signal = number
        if self.child is not None:
            self.child.stop()

    def _read_logs(self, logs: TrainerLogs, over: threading.Event) -> None:
        while not over.wait(POLL):
            try:
                self._read_states(logs)
                logs.look()
            except Exception as error:  # a log that nobody foresaw takes nothing else down
                self.stage.warn("log-unreadable", f"The logs could not be read: {type(error).__name__}: {error}.")
                return

    def _trainer_states(self) -> list[Path]:
        out: dict[Path, None] = {}
        for pattern in self.settings.checkpoints:
            for path in expand(pattern, self.root)[0]:
                out[path / "trainer_state.json"] = None
        return [path for path in out if path.is_file()]

    def _read_states(self, logs: TrainerLogs) -> None:
        for path in self._trainer_states():
            logs.read_state(path)

    # ---- ends

    def _stopped(self) -> int:
        newest = self.scorer.newest
        after = (
            f"Step {newest[0]} is the newest checkpoint. Run the stage again: the command is offered it to resume from."
            if newest
            else "There is no checkpoint yet: run again, the command starts over."
        )
        write_outcome(self.stage.attempt, "cancelled", f"Stopped. {after}")
        return 143

    def _halted(self) -> int:
        """A confirmed flag has paused or stopped the run, and with it the command."""
        step = self.scorer.newest[0] if self.scorer.newest else 0
        return tell_halt(self.scorer.halt, self.stage.attempt, step)

    def _failed(self, code: int, words: LastWords) -> int:
        """A signal stays one, told or passed on by a shell as 128 + n: the agent names it, and looks for the reason."""
        if code < 0 or code in (129, 130, 131, 134, 136, 137, 139, 143):
            return 128 - code if code < 0 else code
        kind, said, where = words.tell()
        write_outcome(self.stage.attempt, kind, f"The command ended with {_ending(code)}: {said}", where)
        return 1

    # ---- what outlives an attempt

    def _read_state(self) -> dict[str, Any]:
        try:
            state = json.loads((self.run / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {"v": 1}
        return state if isinstance(state, dict) else {"v": 1}

    def _write_state(self) -> None:
        temporary = self.run / f"{STATE}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(self.state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.run / STATE)


def _attempt_spec(attempt: Path) -> dict[str, Any]:
    try:
        spec = json.loads((attempt / "spec.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return spec if isinstance(spec, dict) else {}


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return signal.Signals(-code).name if -code in list(signal.Signals) else f"signal {-code}"
