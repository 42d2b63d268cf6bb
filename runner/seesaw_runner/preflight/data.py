"""The files of a run: can they be read, what is in them, do the checks fit, and does any probe also occur in
what is trained on?
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seesaw_runner.checks import Check, CheckError, make_check
from seesaw_runner.data.canonical import row_hashes
from seesaw_runner.data.row_summary import Summary, summarize
from seesaw_runner.data.rows import Row, read_rows
from seesaw_runner.findings import Finding
from seesaw_runner.replay.nearness import named_rows, none_there, spoken

SAMPLES = 64
#: Seconds for all files together; a larger set is checked in part, and that is said.
BUDGET = 20.0
_FORM_NOTES = ("archive-cut", "archive-damaged", "archive-too-large", "array-open", "array-comma")
_UNUSABLE = ("unknown-format", "no-trainable-text", "empty-conversation", "not-an-object")
#: Recipes whose rows are prompts: an answer is made, and one that is there is not learned.
PROMPT_RECIPES = ("grpo", "self-distill", "oracle-sft", "distill", "router")
#: What is no problem of a prompt.
_ANSWER_PROBLEMS = ("no-trainable-text", "no-label", "turn-order")


@dataclass
class DataReport:
    """`samples`: a few good rows of each file (path, line, value); `train_rows`: usable rows of the stage's own
    data.
    """

    findings: list[Finding] = field(default_factory=list)
    samples: list[tuple[str, int, Any]] = field(default_factory=list)
    train_rows: int = 0


class _Files:
    """Reads every file once, hashes its rows, and stops when the time is up."""

    def __init__(self, report: DataReport) -> None:
        self.report, self.deadline = report, time.monotonic() + BUDGET
        self.partial: dict[str, int] = {}
        self.prompts: dict[str, dict[str, set[str | None]]] = {}

    def read(self, path: str, role: str, check: Check | None = None, *, prompts_only: bool = False) -> Summary | None:
        """Findings on one file; None if it cannot be read. prompts_only: its rows need no answer."""
        failed: list[tuple[int, str]] = []
        try:
            reader = read_rows(path)
            summary = summarize(self._seen(path, iter(reader), check, failed))
        except OSError as error:
            self.report.findings.append(
                Finding(
                    "bad-data", "error", f"the {role} cannot be read: {error.strerror or error}", "Check the path", path
                )
            )
            return None
        if prompts_only:
            for code in _ANSWER_PROBLEMS:
                del summary.problems[code]
        self._describe(path, role, summary)
        for note in reader.notes:
            if note.code in _FORM_NOTES:
                self.report.findings.append(Finding("bad-data", "warning", note.message, "Write the file again", path))
        if failed:
            every = len(failed) == summary.good
            self.report.findings.append(
                Finding(
                    "check",
                    "error" if every else "warning",
                    f"{len(failed)} of {summary.good} rows of the {role} cannot pass: {failed[0][1]}",
                    "Correct the check or the rows",
                    f"{path}:{failed[0][0]}",
                )
            )
        return summary

    def _seen(
        self, path: str, rows: Iterator[Row], check: Check | None, failed: list[tuple[int, str]]
    ) -> Iterator[Row]:
        taken, prompts = 0, self.prompts.setdefault(path, {})
        for count, row in enumerate(rows):
            if count % 256 == 255 and time.monotonic() > self.deadline:
                self.partial[path] = count
                return
            if row.error is None:
                hashes = row_hashes(row.value)
                if hashes.prompt:
                    prompts.setdefault(hashes.prompt, set()).add(hashes.answer)
                if taken < SAMPLES:
                    taken += 1
                    self.report.samples.append((path, row.line, row.value))
                problem = check.problem(row.value) if check else None
                if problem:
                    failed.append((row.line, problem))
            yield row

    def _describe(self, path: str, role: str, summary: Summary) -> None:
        add = self.report.findings.append
        if not summary.good:
            first = f": {summary.errors[0]}" if summary.errors else "; the file is empty"
            add(Finding("bad-data", "error", f"the {role} has no usable row{first}", "Correct the file", path))
            return
        if summary.error_count:
            listed = "; ".join(summary.errors[:3]) + ("; …" if summary.error_count > 3 else "")
            add(
                Finding(
                    "bad-data",
                    "warning",
                    f"{summary.error_count} of {summary.rows} rows of the {role} cannot be read and are left "
                    f"out: {listed}",
                    "Correct or remove these lines",
                    f"{path}:{summary.errors[0].split(',')[0].removeprefix('line ')}",
                )
            )
        unusable = max((summary.problems[code] for code in _UNUSABLE), default=0)
        for code, count in summary.problems.most_common():
            severity = (
                "error"
                if code in _UNUSABLE and unusable == summary.good and count == unusable
                else "info"
                if code in ("other-parts", "prompt-repeated", "no-label", "non-finite", "overflow")
                else "warning"
            )
            add(
                Finding(
                    "bad-data",
                    severity,
                    f"{count} of {summary.good} rows of the {role}: {summary.examples[code]}",
                    "Look at these rows" if severity != "info" else "",
                    path,
                )
            )
        if summary.dropped:
            add(
                Finding(
                    "bad-data",
                    "info",
                    f"a trainer that wants strictly alternating turns would drop {summary.dropped} of "
                    f"{summary.good} rows of the {role}",
                    "",
                    path,
                )
            )


def check_data(spec: dict) -> DataReport:
    """Reads the stage's data, the probes of all skills and the replay's sources."""
    report = DataReport()
    files = _Files(report)
    trained = {spec["data"]: "training data"} if spec.get("data") else {}
    trained |= {
        source["data"]: f"replay source {source['stage']}"
        for source in (spec.get("replay") or {}).get("from", ())
        if source["data"] != spec["data"]
    }
    for path, role in trained.items():
        own = path == spec["data"]
        summary = files.read(path, role, prompts_only=own and spec["recipe"] in PROMPT_RECIPES)
        if summary and own:
            report.train_rows = summary.good - max((summary.problems[code] for code in _UNUSABLE), default=0)
    for skill in spec.get("skills") or ():
        check = _check(skill, spec, report)
        for split, path in skill["probes"].items():
            if path and files.read(path, f"{split} probes of the skill {skill['id']}", check) is not None:
                for other, role in trained.items():
                    _overlap(report, files, path, f"{split} probes of the skill {skill['id']}", other, role)
    report.findings += _near(spec.get("replay") or {})
    for path, count in files.partial.items():
        report.findings.append(
            Finding(
                "bad-data", "info", f"only the first {count} rows were checked, to start without a long wait", "", path
            )
        )
    return report


def _near(replay: dict) -> list[Finding]:
    """The rows that a buffer takes near ones of are there."""
    near = replay.get("near")
    if not near:
        return []
    path, fix = near["rows"], "Correct the lines of `near` in seesaw.yaml, or leave `near` out"
    try:
        named = named_rows(near)
    except OSError as error:
        said = f"the rows that `near` of the buffer {replay['buffer']} names cannot be read: {error.strerror or error}"
        return [Finding("bad-data", "error", said, "Check the path", path)]
    if not named.values:
        return [Finding("bad-data", "error", none_there(replay), fix, path)]
    if not named.missing:
        return []
    said = f"`near` of the buffer {replay['buffer']} names rows that are not there: {spoken(named.missing)}"
    return [Finding("bad-data", "warning", said, fix, f"{path}:{named.missing[0]}")]


def _check(skill: dict, spec: dict, report: DataReport) -> Check | None:
    try:
        return make_check(
            skill["check"],
            trusted=bool(spec.get("trusted")),
            root=spec["pipeline"]["root"],
            segments=skill.get("segments"),
        )
    except CheckError as error:
        untrusted = skill["check"].get("kind") == "function" and not spec.get("trusted")
        report.findings.append(
            Finding(
                "untrusted" if untrusted else "check",
                "error",
                f"skill {skill['id']}: {error}",
                "Trust the workspace, or use another check" if untrusted else "Correct the check in seesaw.yaml",
                f"skills.{skill['id']}.check",
            )
        )
        return None


def _overlap(report: DataReport, files: _Files, probes: str, role: str, other: str, other_role: str) -> None:
    """A probe that is trained on measures memory; it would hide forgetting."""
    if Path(probes).resolve() == Path(other).resolve():
        report.findings.append(
            Finding(
                "contamination",
                "warning",
                f"the {role} are the {other_role}: the same file",
                "Keep the probes out of what is trained on",
                probes,
            )
        )
        return
    ours, theirs = files.prompts.get(probes, {}), files.prompts.get(other, {})
    kinds = Counter(
        "same" if answers & theirs[prompt] else "other" for prompt, answers in ours.items() if prompt in theirs
    )
    if kinds:
        report.findings.append(
            Finding(
                "contamination",
                "warning",
                f"{kinds.total() if hasattr(kinds, 'total') else sum(kinds.values())} of {len(ours)} {role} "
                f"also occur in the {other_role} "
                f"({kinds['same']} with the same answer, {kinds['other']} with another); they measure memory, "
                "not the skill",
                "Remove them from one of the two files",
                probes,
            )
        )
