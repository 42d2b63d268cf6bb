"""Globs over folders that a stranger's program writes: bounded, links resolved, each place once. Standard library only.

A symbolic link may lead anywhere. One that leaves the workspace is followed only where the workspace is trusted.
"""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

#: A glob that matches more is a mistake (`**/*` over a home folder).
MAX_MATCHES = 5000
_STEP_FOLDER = re.compile(r"(?:^|[-_.])(?:checkpoint|ckpt|iter|step|rollout)s?[-_]?(\d{1,15})(?!\d)", re.IGNORECASE)
_MAGIC = re.compile(r"[*?\[]")


def expand(pattern: str, root: Path | None) -> tuple[list[Path], list[tuple[Path, str]]]:
    """(matches in name order, what was left out with the reason) of an absolute glob. root: links must not lead out of
    it; None: they may. Two names of one place (a `latest` link) give only the one that is no link.
    """
    parts = Path(pattern).parts
    fixed = next((i for i, part in enumerate(parts) if _MAGIC.search(part)), len(parts))
    start = Path(*parts[:fixed]) if fixed else Path(".")
    if fixed == len(parts):
        found = [start] if start.exists() else []
    else:
        try:
            rest = str(Path(*parts[fixed:]))
            found = list(itertools.islice((p for p in start.glob(rest) if ".git" not in p.parts), MAX_MATCHES))
        except (OSError, ValueError):
            found = []
    kept: dict[str, Path] = {}
    left: list[tuple[Path, str]] = []
    for path in sorted(found, key=lambda p: (p.is_symlink(), str(p))):
        if path.is_symlink() and not path.exists():
            left.append((path, f"is a link to {_target(path)}, which is missing"))
            continue
        real = os.path.realpath(path)
        if root is not None and not _inside(real, root) and real != os.path.abspath(path):
            left.append((path, f"is a link that leads out of the workspace ({real})"))
        elif real not in kept:
            kept[real] = path
    return sorted(kept.values()), left


def _inside(real: str, root: Path) -> bool:
    return Path(real).is_relative_to(os.path.realpath(root))


def _target(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return "nowhere"


def folder_number(path: Path, pattern: str) -> int | None:
    """The step in a folder's path: 20 for `checkpoint-20`, `iter_0000020` and `global_step_20/actor/huggingface`. In
    other names, the last number of the deepest part that the glob left open and that has one; None without one.
    """
    base = fixed_part(pattern)
    parts = path.relative_to(base).parts if path.is_relative_to(base) else (path.name,)
    for part in reversed(parts):
        named = _STEP_FOLDER.search(part)
        if named:
            return int(named.group(1))
    for part in reversed(parts if _MAGIC.search(pattern) else ()):
        numbers = re.findall(r"\d+", part)
        if numbers and len(numbers[-1]) <= 15:
            return int(numbers[-1])
    return None


def fixed_part(pattern: str) -> Path:
    """The folders of a glob before its first magic part."""
    parts = Path(pattern).parts
    fixed = next((i for i, part in enumerate(parts) if _MAGIC.search(part)), max(0, len(parts) - 1))
    return Path(*parts[:fixed]) if fixed else Path(".")
