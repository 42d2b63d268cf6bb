"""Between the prober's scores and `flags.Watch`: which rows make a panel, what they were at the start, what a look
sees, and what earlier attempts saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seesaw_runner.checkpoints.saving import step_name
from seesaw_runner.flags.panel import Noise, SeriesStart
from seesaw_runner.flags.settings import flag_settings
from seesaw_runner.flags.verdict import LookScores
from seesaw_runner.flags.watch import Look, PastLook, Watch, why_not
from seesaw_runner.journal import standing_events
from seesaw_runner.probing.evaluate import Answer
from seesaw_runner.probing.membership import trained_rows
from seesaw_runner.probing.probe_set import ProbeSet
from seesaw_runner.probing.selection import Selection, shortened
from seesaw_runner.probing.token_scores import PanelScores, from_scores, from_trace, tokens_of
from seesaw_runner.scoring.scorer import Scores
from seesaw_runner.scoring.trace import Trace, read_trace

#: Rows that a flag names, and tokens of each.
MOVED_ROWS, MOVED_TOKENS = 5, 3


class Watching:
    """every: all usable rows of the sets. After `open`: `watch`, and `panel[k]`, the places of set k's panel among its
    usable rows.
    """

    def __init__(self, spec: dict, run: Path, sets: list[ProbeSet], every: Selection, journal):
        self.run, self.sets, self.every = run, sets, every
        self.seed = int(spec["seed"]) & 0xFFFFFFFF
        self.settings = flag_settings(spec["flags"])
        self.tokens = [tokens_of(s.probes[i]) for s in sets for i in s.usable]
        self.barred = trained_rows(sets, spec, run, journal)
        self.panel: list[list[int]] = []
        self.watch: Watch

    # ---- the stage's start

    def open(
        self,
        scores: Scores,
        answers: dict[str, list[Answer]],
        noise: dict[str, dict[str, float]],
        *,
        looks: int | None,
        last: int | None,
        short: bool,
        events: Sequence[dict],
    ) -> Selection:
        """Freezes the panels and takes over what earlier attempts saw; gives the rows of points between the ends.

        scores, answers: of the start, all usable rows. looks, last: how many are planned after step 0, and the last
        step; None where that is not known. short: points between take fewer rows. events: the journal, in a later
        attempt.
        """
        standing = standing_events(events)
        self.noise = noise
        self.start = self._earlier(0, standing) or from_scores(scores, self.tokens, self.settings.margin)
        self.right = {s.id: [a.correct for a in answers[s.id]] for s in self.sets}
        clean = [[i for i in range(len(s.usable)) if i not in self.barred[k]] for k, s in enumerate(self.sets)]
        series = [self._series(k, places, places) for k, places in enumerate(clean)]
        watched = [why_not(self.settings, s) is None for s in series]
        between = shortened(self.sets, self.every, watched, self.barred) if short else self.every
        self.panel = [
            between.within(k, self.every.offsets[k]) if watched[k] and short else clean[k]
            for k in range(len(self.sets))
        ]
        series = [self._series(k, self.panel[k], clean[k]) for k in range(len(self.sets))]
        self.watch = Watch(self.settings, looks, series)
        self.watch.restore(events, self._past(events, standing, last))
        return between

    def _series(self, k: int, places: list[int], clean: list[int]) -> SeriesStart:
        s, rows = self.sets[k], self._global(k, places)
        noise, margins = self.noise[s.id], self.start.margins
        sd = noise.get("margin_sd" if self.settings.margin == "all" else "decision_sd", 0.0)
        return SeriesStart(
            s.skill,
            s.split,
            self.start.nll[rows],
            None if margins is None else margins[rows],
            [self.right[s.id][i] for i in clean],
            Noise(noise["nll_q99"], sd),
            self.seed,
            _numbered([s.probes[s.usable[i]].group for i in places]),
            rows=len(s.usable),
            dropped=len(self.barred[k]),
        )

    def _global(self, k: int, places: list[int]) -> list[int]:
        return [self.every.offsets[k] + i for i in places]

    # ---- looks

    def look(self, step: int, progress: float, chosen: Selection, scores: Scores) -> dict[str, Look]:
        """Looks at every series. scores: of the chosen rows, in order; every row of a panel is among them."""
        seen = from_scores(scores, [self.tokens[i] for i in chosen.rows], self.settings.margin)
        at = {row: j for j, row in enumerate(chosen.rows)}
        out = {}
        for k, s in enumerate(self.sets):
            rows = [at[i] for i in self._global(k, self.panel[k]) if i in at]
            if len(rows) < len(self.panel[k]):  # a series that is not watched is shown with fewer rows
                out[s.id] = Look([], False)
                continue
            found = _part(seen, rows)
            look = LookScores(step, progress, found.nll, found.margins)
            out[s.id] = self.watch.look(s.id, look, lambda k=k, found=found: self._moved(k, found))
        return out

    def test(self, step: int, k: int, chosen: Selection, answers: Sequence[Answer]) -> tuple[str, dict[str, Any]]:
        """The paired test of a set that a look asked for. answers: of its chosen rows."""
        s = self.sets[k]
        now = dict(zip(chosen.within(k, self.every.offsets[k]), answers, strict=True))
        places = self.panel[k]
        return self.watch.test(step, s.id, [self.right[s.id][i] for i in places], [now[i].correct for i in places])

    def _moved(self, k: int, now: PanelScores) -> list[dict[str, Any]]:
        """The rows that lost most, and the tokens at which they did. change: of the margin (of the sequence's
        log-probability, for `nll`), nats; negative is a loss.
        """
        s, rows = self.sets[k], self._global(k, self.panel[k])
        if now.margins is None or self.start.margins is None or self.settings.detector == "nll":
            change = self.start.nll[rows] - now.nll
        else:
            change = now.margins - self.start.margins[rows]
        floor = self.noise[s.id]["token_q99"]
        out = []
        for j in np.argsort(change, kind="stable")[:MOVED_ROWS].tolist():
            if change[j] >= 0:
                break
            index = s.usable[self.panel[k][j]]
            fell = self.start.logprob[rows[j]].astype(float) - now.logprob[j].astype(float)
            tokens = [t for t in np.argsort(-fell, kind="stable")[:MOVED_TOKENS].tolist() if fell[t] > floor]
            out.append({"row": index, "line": s.probes[index].line, "tokens": sorted(tokens), "change": change[j]})
        return out

    # ---- a later attempt

    def _past(self, events: Sequence[dict], standing: Sequence[dict], last: int | None) -> list[PastLook]:
        """The looks of earlier attempts, read back from their traces. Where the number of looks is not known, those
        that a resume made void keep their places.
        """
        stands = {id(e) for e in standing}
        looks: dict[tuple[int, int], bool] = {}
        for e in events:
            if e.get("type") == "probe.scored" and e["step"] > 0:
                key = (e["attempt"], e["step"])
                looks[key] = looks.get(key, False) or id(e) in stands
        out: list[PastLook] = []
        for j, ((_, step), counts) in enumerate(looks.items(), 1):
            if last is not None and (not counts or any(p.step == step for p in out)):
                continue
            progress = 1 - 1 / (j + 1) if last is None else step / last
            found = self._earlier(step, standing) if counts else None
            scores = {}
            for k, s in enumerate(self.sets):
                rows = self._global(k, self.panel[k])
                if found is not None and not np.isnan(found.nll[rows]).any():
                    part = _part(found, rows)
                    scores[s.id] = LookScores(step, progress, part.nll, part.margins)
            out.append(PastLook(step, progress, scores))
        return out

    def _earlier(self, step: int, standing: Sequence[dict]) -> PanelScores | None:
        """What the traces of an earlier attempt hold: all usable rows, NaN where one was not scored. None where a trace
        is gone or of other rows; at step 0 also where a row is missing.
        """
        told = {(e["skill"], e["split"]) for e in standing if e.get("type") == "probe.scored" and e["step"] == step}
        if not told:
            return None
        rows, where = [], []
        for k, s in enumerate(self.sets):
            if (s.skill, s.split) not in told:
                continue
            trace = self._trace(step, s)
            if trace is None:
                return None
            for i, index in enumerate(s.usable):
                if trace.rows[index].ids:
                    rows.append(trace.rows[index])
                    where.append(self.every.offsets[k] + i)
        if step == 0 and len(rows) < len(self.tokens):
            return None
        found = from_trace(rows, [self.tokens[i] for i in where], self.settings.margin)
        nll = np.full(len(self.tokens), np.nan)
        nll[where] = found.nll
        margins = None
        if found.margins is not None:
            margins = np.full(len(self.tokens), np.nan)
            margins[where] = found.margins
        logprob = [np.zeros(0, np.float32)] * len(self.tokens)
        for i, values in zip(where, found.logprob, strict=True):
            logprob[i] = values
        return PanelScores(nll, margins, logprob)

    def _trace(self, step: int, s: ProbeSet) -> Trace | None:
        """A set's trace of an earlier attempt, where it is whole and of these rows."""
        try:
            trace = read_trace(self.run / "traces" / step_name(step) / f"{s.id}.trace")
        except Exception:  # gone or damaged: then its level counts as spent and nothing else
            return None
        first = self.every.offsets[self.sets.index(s)]
        same = len(trace.rows) == len(s.probes) and trace.meta.get("probe_set_hash") == s.hash
        for i, index in enumerate(s.usable) if same else ():
            same = same and (not trace.rows[index].ids or trace.rows[index].ids == self.tokens[first + i].ids)
        return trace if same else None


def _part(scores: PanelScores, rows: Sequence[int]) -> PanelScores:
    rows = list(rows)
    margins = None if scores.margins is None else scores.margins[rows]
    return PanelScores(scores.nll[rows], margins, [scores.logprob[i] for i in rows])


def _numbered(groups: Sequence[str | None]) -> list[int] | None:
    """Equal names, equal numbers; −1 for a row of its own. None where no row has a group."""
    if all(group is None for group in groups):
        return None
    numbers: dict[str, int] = {}
    return [-1 if g is None else numbers.setdefault(g, len(numbers)) for g in groups]
