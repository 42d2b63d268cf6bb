"""Everything that can be found out about a run before torch is imported: each problem a finding with its fix.

Standard library only (jinja2 renders the template if it is there), and quick: a preflight that takes long is
switched off.
"""

from __future__ import annotations

from pathlib import Path

from seesaw_runner.checkpoints.files import Checkpoint, inspect_checkpoint
from seesaw_runner.findings import Finding
from seesaw_runner.preflight.arguments import check_arguments
from seesaw_runner.preflight.data import check_data
from seesaw_runner.preflight.launch import check_launch
from seesaw_runner.preflight.packages import check_packages
from seesaw_runner.preflight.space import check_space
from seesaw_runner.preflight.template import check_template

__all__ = ["preflight"]


def preflight(spec: dict, run_dir: str | Path | None = None) -> list[Finding]:
    """Findings on a run that run.json describes, errors first. No error: the run may start."""
    root = Path(spec["pipeline"]["root"])
    run_dir = Path(run_dir) if run_dir else root / ".seesaw" / "runs" / spec["id"]
    start = inspect_checkpoint(spec["start"]["checkpoint"])
    base = start if _same(spec["base"], start.folder) else inspect_checkpoint(spec["base"])
    data = check_data(spec)
    findings = [
        *check_packages(spec),
        *check_launch(spec),
        *check_arguments(spec["recipe"], spec.get("args") or {}),
        *start.findings,
        *(base.findings if base is not start and _needs_base(spec, start) else []),
        *data.findings,
        *check_template(_with_tokenizer(start, base), data.samples),
        *check_space(spec, run_dir, start, base, data.train_rows),
    ]
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(findings, key=lambda finding: order[finding.severity])


def _same(path: str, folder: Path) -> bool:
    return Path(path).resolve() == folder.resolve()


def _needs_base(spec: dict, start: Checkpoint) -> bool:
    return start.kind == "adapter" or "base" in (spec.get("probe") or {}).get("kl", ())


def _with_tokenizer(start: Checkpoint, base: Checkpoint) -> Path:
    """An adapter folder may come without the tokenizer of its base."""
    has_own = any((start.folder / name).is_file() for name in ("tokenizer_config.json", "chat_template.jinja"))
    return start.folder if has_own else base.folder
