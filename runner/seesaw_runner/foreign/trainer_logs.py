"""All logs of a trainer: its output, the files of a glob, and `trainer_state.json` of its checkpoints."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path

from seesaw_runner.foreign.globs import expand
from seesaw_runner.foreign.lines import FileTail
from seesaw_runner.foreign.log_lines import LogLines
from seesaw_runner.foreign.metric_sink import MetricSink
from seesaw_runner.foreign.tensorboard import EventFeed
from seesaw_runner.foreign.text_metrics import of_mapping, short

#: A trainer_state.json beyond this is not read: it would be no log any more.
MAX_STATE = 256 << 20


class TrainerLogs:
    """`output` is the reader for the command's own output. pattern: an absolute glob of log files, or None.

    What stands in the files now, before the command begins, belongs to an earlier run (or attempt) and is left out.
    """

    def __init__(self, sink: MetricSink, pattern: str | None, warn: Callable[..., None], trusted_root: Path | None):
        self.sink, self.pattern, self._warn, self._root = sink, pattern, warn, trusted_root
        self.output = LogLines(sink, "output", live=True)
        self._lock = threading.Lock()
        self._tails: dict[Path, FileTail] = {}
        self._lines: dict[Path, LogLines] = {}
        self._events: dict[Path, EventFeed] = {}
        self._states: dict[Path, tuple[int, int]] = {}
        self._told: set[str] = set()
        for path in self._files():
            self._add(path, path.stat().st_size if path.exists() else 0)

    def feed_output(self, data: bytes) -> None:
        with self._lock:
            self.output.feed(data)

    def look(self) -> None:
        """Reads what is new in the files."""
        with self._lock:
            self.output.look()
            for path in self._files():
                if path not in self._tails:
                    self._add(path, 0)
                self._read(path)
        self.sink.tell_progress()

    def close(self) -> None:
        """The command has ended and its output is read."""
        self.look()
        with self._lock:
            for lines in (self.output, *self._lines.values()):
                lines.close()
            for tail in self._tails.values():
                tail.close()
        counted = self.output.unnumbered + sum(lines.unnumbered for lines in self._lines.values())
        if counted:
            self._warn(
                "unnumbered-metrics",
                f"{counted} lines of metrics do not say their step: they are numbered in their order.",
                fix="Print the step in them, such as {'step': 20, 'loss': 0.5}.",
                severity="info",
            )

    def pass_state(self, path: Path) -> None:
        """A trainer_state.json of before: only once it changes it is news."""
        about = path.stat()
        self._states[path] = (about.st_mtime_ns, about.st_size)

    def read_state(self, path: Path) -> None:
        """`log_history` of a Hugging Face trainer_state.json, if it changed since it was last read."""
        try:
            about = path.stat()
            stamp = (about.st_mtime_ns, about.st_size)
            if self._states.get(path) == stamp or about.st_size > MAX_STATE:
                return
            state = json.loads(path.read_text(encoding="utf-8", errors="replace"))  # NaN is read as such
            self._states[path] = stamp
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError) as error:
            self._once(path, f"cannot be read ({error})")
            return
        with self._lock:
            history = state.get("log_history") if isinstance(state, dict) else None
            steps = state.get("max_steps") if isinstance(state, dict) else None
            if isinstance(steps, int) and not isinstance(steps, bool) and steps > 0:
                self.sink.at(max(self.sink.step, _whole(state.get("global_step"))), steps)
            for line in history if isinstance(history, list) else []:
                found = of_mapping(line) if isinstance(line, dict) else None
                if found is not None and found.step is not None:
                    self.sink.add_history(found.step, found.values, found.epoch)

    def _files(self) -> list[Path]:
        return [p for p in expand(self.pattern, self._root)[0] if p.is_file()] if self.pattern else []

    def _add(self, path: Path, offset: int) -> None:
        self._tails[path] = FileTail(path, offset)
        if "tfevents" in path.name:
            self._events[path] = EventFeed()
        elif path.name != "trainer_state.json":
            self._lines[path] = LogLines(self.sink, str(path), path.suffix == ".jsonl")

    def _read(self, path: Path) -> None:
        if path.name == "trainer_state.json":
            self._lock.release()  # `read_state` takes it
            try:
                self.read_state(path)
            finally:
                self._lock.acquire()
            return
        while True:
            data, anew = self._tails[path].read()
            events, lines = self._events.get(path), self._lines.get(path)
            if anew and lines is not None:
                lines.anew()
            if anew and events is not None:
                events = self._events[path] = EventFeed()
            if lines is not None:
                lines.feed(data)
            if events is not None:
                for step, scalars in itertools.groupby(events.feed(data), lambda scalar: scalar.step):
                    self.sink.add(str(path.parent), step, {short(s.tag): s.value for s in scalars})
                if events.problem:
                    self._once(path, events.problem)
            if not data:
                return

    def _once(self, path: Path, problem: str) -> None:
        if f"{path} {problem}" not in self._told:
            self._told.add(f"{path} {problem}")
            self._warn("log-unreadable", f"{path.name}: {problem}.", where=str(path), fix="The rest is read.")


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
