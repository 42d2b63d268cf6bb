"""Where a recipe is: its run folder, run.json, and which attempt it belongs to. Standard library only."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

from seesaw_runner.wire_numbers import encode

SCHEMA_MAJOR = 1


class StageError(RuntimeError):
    """A stage cannot go on. `code` is one of the failure codes of the journal; the message is a sentence with its
    fix.
    """

    def __init__(self, code: str, message: str, where: str | None = None):
        super().__init__(message)
        self.code, self.where = code, where


def load_spec(run: Path) -> dict[str, Any]:
    """run.json, or StageError `preflight` when it is missing, torn or of a newer major version."""
    path = run / "run.json"
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
        major = int(str(spec["schema"]).split(".")[0])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StageError(
            "preflight", f"{path} cannot be read ({error}). Start the stage again from Seesaw; it writes this file."
        ) from error
    if major > SCHEMA_MAJOR:
        raise StageError(
            "preflight",
            f"{path} has schema {spec['schema']}, newer than this runner ({SCHEMA_MAJOR}.x). Update the runner "
            f"on this machine.",
        )
    return spec


def attempt_folder(run: Path) -> Path:
    """The attempt this process belongs to: the agent's, else the newest one, else attempt-0001 (a recipe started by
    hand).
    """
    named = os.environ.get("SEESAW_ATTEMPT")
    if named and re.fullmatch(r"attempt-\d+", Path(named).name) and Path(named).is_dir():
        return Path(named)
    found = sorted(p for p in run.glob("attempt-*") if p.is_dir() and re.fullmatch(r"attempt-\d+", p.name))
    folder = found[-1] if found else run / "attempt-0001"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def attempt_number(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def write_outcome(folder: Path, code: str, message: str, where: str | None = None, **more: Any) -> None:
    """What this process says of its own end. The first one stands: of several processes the first to fail knows why.
    more: further fields, of `paused` and `flag-stop`.

    Never raises: a full disk must not hide the error that is being reported.
    """
    value = {"v": 1, "code": code, "message": message, **({"where": where} if where else {}), **more}
    temporary = folder / f"outcome.json.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as handle:
            json.dump(encode(value), handle)
            handle.flush()
            os.fsync(handle.fileno())
        os.link(temporary, folder / "outcome.json")
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP) and not (folder / "outcome.json").exists():
            os.replace(temporary, folder / "outcome.json")  # a disk without hard links
    finally:
        temporary.unlink(missing_ok=True)


def describe(error: BaseException) -> tuple[str, str, str | None]:
    """(code, message, where) of an unexpected error: its last line, and the innermost frame outside libraries if there
    is one.
    """
    if isinstance(error, StageError):
        return error.code, str(error), error.where
    code = getattr(error, "code", None)
    if type(error).__name__ == "JournalError" and isinstance(code, str):
        return code, str(error), None
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "site-packages" not in f.filename] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno} in {ours[-1].name}" if ours else None
    text = str(error).strip().splitlines()
    if full := no_room(error):
        return "disk-full", room_sentence(full, getattr(error, "filename", None) or "the run folder"), where
    return "exception", f"{type(error).__name__}: {text[-1] if text else 'no message'}", where


def no_room(error: BaseException | None) -> int:
    """ENOSPC or EDQUOT where one of them lies behind an error, else 0; also where a library wraps the system's error in
    one of its own (safetensors, SQLite, tokenizers).
    """
    while error is not None:
        for number in (errno.ENOSPC, errno.EDQUOT):
            said = str(error)
            if isinstance(error, OSError) and error.errno == number:
                return number
            if f"(os error {number})" in said or os.strerror(number) in said:
                return number
        error = error.__cause__ or error.__context__
    return 0


def room_sentence(number: int, place: object) -> str:
    """What to do: a quota is looked at with other programs than a disk, which may have much free space."""
    if number == errno.EDQUOT:
        what = f"Your disk quota is used up ({place}): `quota -s` shows it, on Lustre `lfs quota`"
    else:
        what = f"The disk is full ({place})"
    return f"{what}. Make room and run the stage again; it resumes from its last checkpoint."


def say(text: str) -> None:
    """A line for a person who opens out.log. Nothing reads it back; a closed or full log is no error of the stage."""
    try:
        print(text, flush=True)
    except OSError:
        pass


def report(error: BaseException) -> None:
    """The whole traceback, to the log."""
    traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
