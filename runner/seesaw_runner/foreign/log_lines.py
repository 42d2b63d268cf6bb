"""Lines of output → a `MetricSink`, with the step found where a line does not say it. Standard library only.

Hugging Face's trainer prints `{'loss': …, 'epoch': …}` without a step. It is taken from the progress bar, which tqdm
draws again right after such a line; else from the epoch, once trainer_state.json has said how many steps one has; else
such lines are numbered in their order when the command has ended.
"""

from __future__ import annotations

import time

from seesaw_runner.foreign.lines import LineFeed
from seesaw_runner.foreign.metric_sink import MetricSink
from seesaw_runner.foreign.text_metrics import Metrics, read_bar, read_json_line, read_line

#: How long a line waits for the progress bar to be drawn again, in seconds.
PATIENCE = 1.0
#: Lines without a step that are kept for the end.
MAX_HELD = 20_000


class LogLines:
    """Bytes of one log. json_lines: every line is a JSON object. live: the output of a running command. `unnumbered`:
    lines that had to be counted.
    """

    def __init__(self, sink: MetricSink, source: str, json_lines: bool = False, live: bool = False):
        self.sink, self.source, self.live = sink, source, live
        self._read = (lambda text: read_json_line(text) or read_line(text)) if json_lines else read_line
        self._feed = LineFeed()
        self._bar: tuple[int, int] | None = None
        self._total: int | None = None
        self._waiting: list[tuple[Metrics, float]] = []
        self._held: list[Metrics] = []
        self._counted = 0
        self.unnumbered = 0

    def feed(self, data: bytes) -> None:
        for piece in self._feed.feed(data):
            self._piece(piece.text, piece.end)
        self._see_bar(self._feed.rest)
        self._settle()

    def anew(self) -> None:
        """The file begins again; an unfinished line is void."""
        self._feed = LineFeed()

    def look(self) -> None:
        """Time has passed: lines that have waited long enough get their step, if there is a way to tell it."""
        self._settle()

    def close(self) -> None:
        """The log has ended."""
        for piece in self._feed.close():
            self._piece(piece.text, piece.end)
        self._settle(ended=True)
        for found in self._held:
            self._count(found)
        self._held.clear()

    def _piece(self, text: str, end: str) -> None:
        if self._see_bar(text) or end == "\r":
            return
        found = self._read(text)
        if found is None:
            return
        if found.step is None:
            self._waiting.append((found, time.monotonic()))
            return
        if found.total is not None:
            self.sink.at(found.step, found.total)
        self.sink.add(self.source, found.step, found.values, self.live)

    def _see_bar(self, text: str) -> bool:
        bar = read_bar(text)
        if bar is None:
            return False
        if self._total is None or bar[1] == self._total:
            self._bar = bar
            for found, _ in self._waiting:
                self._number(found, bar)
            self._waiting.clear()
            if self._total is not None:
                self.sink.at(*bar)
        return True

    def _number(self, found: Metrics, bar: tuple[int, int]) -> None:
        if self._total is None and any(name == "loss" or name.endswith("/loss") for name in found.values):
            self._total = bar[1]  # a bar of something else (loading, an evaluation) has another total
            self.sink.at(*bar)
        self.sink.add(self.source, bar[0], found.values, self.live)

    def _settle(self, ended: bool = False) -> None:
        now, waiting = time.monotonic(), self._waiting
        self._waiting = []
        for found, since in waiting:
            if not ended and now - since < PATIENCE:
                self._waiting.append((found, since))
            elif self._bar is not None:
                self._number(found, self._bar)
            elif found.epoch is not None and len(self._held) < MAX_HELD:
                self._held.append(found)
            else:
                self._count(found)
        if self._held and self.sink.steps_per_epoch is not None:
            for found in self._held:
                self.sink.add_history(round((found.epoch or 0) * self.sink.steps_per_epoch), found.values)
            self._held.clear()

    def _count(self, found: Metrics) -> None:
        self._counted += 1
        self.unnumbered += 1
        self.sink.add(self.source, self._counted, found.values, self.live)
