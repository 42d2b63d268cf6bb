"""Numbers from several logs of one trainer → `metric` and `stage.progress` events, each quantity once a step.

The same loss may stand in the output, in trainer_state.json and in a TensorBoard file. The first to tell it wins; a
source whose steps go back has started again, and from there on it counts anew. Standard library only; thread-safe.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

#: Seconds between two progress events.
QUIET = 1.0
#: Lines of metrics a second that become events, one by one.
CROWD = 50
#: Steps whose names are remembered; what comes again for an older one is told again.
REMEMBERED = 50_000


class MetricSink:
    """resumed_from: up to this step an earlier attempt has told everything, unless the command starts over.

    `step`, `total`: how far the command is, as far as it says; total 0: unknown.
    """

    def __init__(self, journal, resumed_from: int | None, warn: Callable[..., None]):
        self.journal, self._warn = journal, warn
        self._floor = -1 if resumed_from is None else resumed_from
        self._lock = threading.RLock()
        self._told: dict[int, tuple[int, frozenset[str]]] = {}
        self._names: dict[frozenset[str], frozenset[str]] = {}
        self._last: dict[str, int] = {}
        self._generation = 0
        self._late: tuple[int, dict[str, float]] | None = None
        self._second = (0, 0)
        self._progress = (0, 0)
        self._progress_at = 0.0
        self.step = self.total = 0
        self.events = 0
        self.steps_per_epoch: float | None = None

    def add(self, source: str, step: int, values: dict[str, float], live: bool = False) -> None:
        """Values that a source logs as it goes. live: they come one by one, and not all of too many are needed."""
        with self._lock:
            if step <= self._floor:
                self._start_over(step)
            series = f"{source} {min(values)}"  # lines of one log may count by different clocks
            if step < self._last.get(series, -1):
                self._generation += 1
            self._last[series] = step
            if live and self._crowded() and all(map(math.isfinite, values.values())):
                self._late = (step, values)  # the newest of them is told with the next progress
                self.step = max(self.step, step)
            else:
                self._tell(step, values)

    def add_history(self, step: int, values: dict[str, float], epoch: float | None = None) -> None:
        """A line of a log that is rewritten whole with every checkpoint."""
        with self._lock:
            if epoch and step > 0:
                self.steps_per_epoch = step / epoch
            if step > self._floor:
                self._tell(step, values, again=False)

    def at(self, step: int, total: int | None) -> None:
        """How far the command is."""
        with self._lock:
            self.step = step
            self.total = total or self.total

    def tell_progress(self, phase: str = "train", message: str | None = None) -> None:
        """A `stage.progress` event, if there is news and the last one is a while ago."""
        with self._lock:
            if self._late is not None:
                (step, values), self._late = self._late, None
                self._tell(step, values)
            now = (self.step, self.total)
            if message is None and (now == self._progress or time.monotonic() - self._progress_at < QUIET):
                return
            self._progress, self._progress_at = now, time.monotonic()
            self.journal.append(
                "stage.progress", phase=phase, step=now[0], total=now[1], **({"message": message} if message else {})
            )

    def _crowded(self) -> bool:
        """Whether more is logged than anybody can look at: a loop of a few milliseconds would fill the journal."""
        second = int(time.monotonic())
        if second != self._second[0]:
            self._second = (second, 0)
        self._second = (second, self._second[1] + 1)
        return self._second[1] > CROWD

    def _start_over(self, step: int) -> None:
        self._warn(
            "started-over",
            f"The command logs step {step}, although the checkpoint of step {self._floor} was offered to it: it seems "
            "to have started over.",
            fix="Let it go on from {resume} (or the variable SEESAW_RESUME), if it can.",
            severity="info",
        )
        self._floor = -1

    def _tell(self, step: int, values: dict[str, float], again: bool = True) -> None:
        generation, names = self._told.get(step, (self._generation, frozenset()))
        if again and generation < self._generation:
            names = frozenset()
        new = {name: value for name, value in values.items() if _key(name) not in names}
        if not new:
            return
        known = names | {_key(name) for name in new}
        self._told[step] = (self._generation, self._names.setdefault(known, known))
        while len(self._told) > REMEMBERED:
            del self._told[next(iter(self._told))]
        self.step = max(self.step, step)
        self.journal.append("metric", step=step, values=new)
        self.events += 1


def _key(name: str) -> str:
    """One key for the spellings of one quantity: TensorBoard's `eval/loss` is the trainer's `eval_loss`."""
    return "eval_" + name[len("eval/") :] if name.startswith("eval/") else name
