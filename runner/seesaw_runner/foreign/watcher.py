"""Watches the folders that a command writes, and hands out its checkpoints once each is whole and at rest."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from seesaw_runner.foreign.checkpoints import Found, is_checkpoint, look_at, resumable, signature, tracked
from seesaw_runner.foreign.globs import expand, folder_number

#: Seconds for which a whole checkpoint must not have changed.
SETTLE = 1.0
#: Seconds after which an unfinished folder that does not change is told.
PATIENCE = 60.0
#: Folders that are told one by one; more of them are counted.
MAX_TOLD = 20


@dataclass
class _Seen:
    signature: str
    since: float
    found: Found | None = None  # what it was with this signature
    given: str = ""  # the signature it was handed out with


class Watcher:
    """patterns: absolute globs. root: symbolic links must not lead out of it; None: they may. left_alone: path →
    signature of folders that were there before the run began: they count only once they have changed.
    """

    def __init__(
        self,
        patterns: list[str],
        form: str,
        root: Path | None,
        warn: Callable[..., None],
        left_alone: dict[str, str] | None = None,
    ):
        self.patterns, self.form, self.root, self._warn = patterns, form, root, warn
        self.left_alone = dict(left_alone or {})
        self._seen: dict[Path, _Seen] = {}
        self._told: set[str] = set()
        self.settle = SETTLE

    def folders(self) -> list[tuple[Path, int | None]]:
        """(folder, step of its name) of all that match and look like checkpoints."""
        out: dict[Path, int | None] = {}
        for pattern in self.patterns:
            kept, left = expand(pattern, self.root)
            for path, why in left:
                if path.suffix:  # a file; what it does to its folder is said there
                    continue
                self._tell(Found(path, None, "refused", "", why, "Put the checkpoints into the workspace"))
            for path in kept:
                if path.is_dir() and path not in out and is_checkpoint(path):
                    out[path] = folder_number(path, pattern)
        return list(out.items())

    def snapshot(self) -> dict[str, str]:
        """Path → signature of everything there now."""
        return {str(path): signature(path) for path, _ in self.folders()}

    def given_before(self, path: Path) -> None:
        """An earlier attempt has dealt with this folder as it is now."""
        self._seen[path] = _Seen(mark := signature(path), time.monotonic(), None, mark)

    def forget(self, path: Path) -> None:
        """As if the folder had never been handed out."""
        self._seen.pop(path, None)

    def ready(self, ended: bool = False) -> list[Found]:
        """Checkpoints that are whole and have not been handed out as they are now, by number; those without one come
        last, and only when the command has ended. `ended`: nobody writes any more, so no settling is waited for.
        """
        now = time.monotonic()
        out: dict[Path, Found] = {}
        for path, number in self.folders():
            seen = self._rested(path, now, ended)
            if seen is None:
                continue
            if seen.found is None or seen.found.state != "ready":
                seen.found = look_at(path, number, self.form)
            found = seen.found
            if found.state != "ready":
                if found.state == "refused" or ended or now - seen.since > PATIENCE:
                    self._tell(found)
            elif found.path != path and self._rested(found.path, now, ended) is None:
                continue  # the Hugging Face copy of an iteration: one checkpoint, at rest or given on its own
            elif found.step is not None or ended:
                out.setdefault(found.path, found)
        return sorted(out.values(), key=_order)

    def _rested(self, path: Path, now: float, ended: bool) -> _Seen | None:
        """What is known of a folder that is at rest and has not been handed out as it is."""
        mark = signature(path)
        if not mark or self.left_alone.get(str(path)) == mark:
            return None
        seen = self._seen.get(path)
        if seen is None or seen.signature != mark:
            seen = self._seen[path] = _Seen(mark, now, None, seen.given if seen else "")
        return None if seen.given == mark or (now - seen.since < self.settle and not ended) else seen

    def hand_out(self, found: Found) -> None:
        """`found` has been dealt with as it is now."""
        for path, seen in self._seen.items():
            if path == found.path or (seen.found is not None and seen.found.path == found.path):
                seen.given = seen.signature

    def newest(self) -> Found | None:
        """The whole checkpoint with the highest number that a trainer can go on from."""
        whole = [
            look
            for path, number in self.folders()
            if self.left_alone.get(str(path)) != signature(path)
            for look in [_for_resume(path, number, self.form)]
            if look is not None
        ]
        return max(whole, key=lambda f: f.step or 0, default=None)

    def _tell(self, found: Found) -> None:
        """One sentence for a folder that is not scored, once."""
        key = f"{found.path} {found.why}"
        if key in self._told:
            return
        self._told.add(key)
        if len(self._told) > MAX_TOLD:
            return
        megatron, why = found.kind == "megatron", found.why.rstrip(".")
        self._warn(
            "checkpoint-skipped",
            f"{found.path.name} is not scored: {'it ' if re.match(r'(is|has|holds) ', why) else ''}{why}"
            + ("" if why.endswith("?") else "."),
            where=str(found.path),
            fix=f"{found.fix}." if found.fix else "",
            severity="info" if megatron else "warning",
        )


def _for_resume(path: Path, number: int | None, form: str) -> Found | None:
    """Megatron's own folders count here: their trainer can read them."""
    if re.fullmatch(r"iter_\d+", path.name) and form in ("auto", "slime"):
        newest = tracked(path.parent)
        return Found(path, number, "ready") if isinstance(newest, int) and (number or 0) <= newest else None
    if path.name.startswith("hf_iter_"):
        return None
    found = look_at(path, number, form)
    return found if found.state == "ready" and found.step is not None and resumable(path) else None


def _order(found: Found) -> tuple[bool, int, str]:
    return found.step is None, found.step or 0, str(found.path)
