"""What a preflight has to say: one problem, its place and its fix, in words a person can act on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]

#: Codes that are failure codes of the journal too (`.github/contracts.md` §6); every other error is a
# `preflight` failure.
FAILURE_CODES = ("bad-argument", "bad-data", "bad-checkpoint", "template", "disk-full", "untrusted")


@dataclass(frozen=True)
class Finding:
    """`message` says what is wrong, `fix` what to do, `where` in which file (and line: `file:12`) or setting."""

    code: str
    severity: Severity
    message: str
    fix: str = ""
    where: str = ""

    def to_event(self) -> dict[str, str]:
        """The fields of a `warning` event of the journal; empty ones are left out."""
        return {name: value for name, value in asdict(self).items() if value or name in ("code", "message", "severity")}

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{self.severity}: {place}{self.message}{'. ' if self.fix else ''}{self.fix}"


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """Those that stop a run."""
    return [finding for finding in findings if finding.severity == "error"]


def failure_code(findings: Iterable[Finding]) -> str | None:
    """The journal's failure code for the first error, or None when nothing stops the run."""
    first = next(iter(errors_of(findings)), None)
    return None if first is None else first.code if first.code in FAILURE_CODES else "preflight"
