"""Does a merged model still answer? Its probe answers beside those of the stage's start, read from the traces."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seesaw_runner.checkpoints.saving import step_name
from seesaw_runner.scoring.trace import TraceRow, read_trace

#: A share of broken answers that is worth a warning, where the start had fewer.
WORTH_TELLING = 0.05
#: How often a piece at the end of an answer has at least begun to make it a loop, and the least characters of a loop.
REPEATS, LOOP_LENGTH = 4, 12


@dataclass
class Answers:
    """One probe set under one checkpoint. `nan`: rows with a log-probability that is no number. `cut`: answers without
    an end. `nll`: mean over the rows that have one.
    """

    rows: int = 0
    answered: int = 0
    correct: int = 0
    empty: int = 0
    looping: int = 0
    cut: int = 0
    nan: int = 0
    nll: float | None = None


def smoke_test(run: Path, skills: list[dict], after: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Per probe set the counts before (step 0) and after, and sentences about what broke."""
    sets, warnings = [], []
    for skill in skills:
        for split in ("id", "ood"):
            name = f"{skill['id']}.{split}"
            paths = [run / "traces" / step_name(step) / f"{name}.trace" for step in (0, after)]
            if not all(path.is_file() for path in paths):
                continue
            before, now = (count(read_trace(path).rows) for path in paths)
            sets.append({"skill": skill["id"], "split": split, "before": asdict(before), "after": asdict(now)})
            warnings += broken(name, before, now)
    return sets, warnings


def count(rows: list[TraceRow]) -> Answers:
    out, nll = Answers(), []
    for row in rows:
        if row.reason is not None:
            continue
        out.rows += 1
        if all(map(math.isfinite, row.logprob)):
            nll.append(row.nll)
        else:
            out.nan += 1
        if row.generated is not None:
            out.answered += 1
            out.correct += bool(row.correct)
            out.empty += not row.generated.strip()
            out.looping += loops(row.generated)
            out.cut += row.finish == "length"
    out.nll = math.fsum(nll) / len(nll) if nll else None
    return out


def broken(name: str, before: Answers, now: Answers) -> list[str]:
    """Sentences about one probe set; NaN is told always, the rest where it became more."""
    out = []
    if now.nan:
        out.append(
            f"{now.nan} of {now.rows} probes of {name} have log-probabilities that are no numbers after the merge."
        )
    for kind, word in (("empty", "are empty"), ("looping", "repeat themselves to the end"), ("cut", "never end")):
        was, count_now = getattr(before, kind), getattr(now, kind)
        if count_now > was and count_now >= WORTH_TELLING * now.answered:
            out.append(f"{count_now} of {now.answered} answers of {name} {word} after the merge; before it {was}.")
    return out


def loops(text: str) -> bool:
    """Whether a text ends in one piece over and over, which makes up at least half of it."""
    text = text.strip()
    for period in range(1, len(text) // (REPEATS - 1) + 1):
        covered = period
        while covered < len(text) and text[-1 - covered] == text[-1 - covered + period]:
            covered += 1
        if covered > (REPEATS - 1) * period and covered >= max(LOOP_LENGTH, len(text) / 2):
            return True
    return False
