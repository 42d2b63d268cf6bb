"""Training rows as the trainer takes them: the stage's own, and those of the replay buffer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from seesaw_runner.run_folder import StageError, attempt_number


def read_training_rows(path: str, encoder, journal, *, scored: bool, group_field: str | None = None) -> list:
    """Encoded rows; the ones that cannot be used are counted, and the first of each reason is told. StageError when
    none is left.

    group_field: each row must have a text in this field; it becomes the row's `group`.
    """
    from seesaw_runner.data.rows import read_rows

    rows, bad = [], {}
    for source in read_rows(path):
        row = encoder.encode(source.value, last_only=False) if source.error is None else None
        reason = str(source.error) if row is None else row.reason
        if reason is None and group_field is not None:
            row.group = source.value.get(group_field)
            if not isinstance(row.group, str):
                reason = f"The row has no text in the field {group_field}, which the batches are balanced by."
        if reason is None:
            rows.append(row)
        else:
            bad.setdefault(reason if row is not None else "The row is no valid JSON object.", []).append(
                (source.line, reason)
            )
    for places in list(bad.values())[:10]:
        journal.append(
            "warning",
            code="row-skipped",
            severity="warning",
            where=f"{path}:{places[0][0]}",
            message=f"{len(places)} training rows are left out. Line {places[0][0]}: {places[0][1]}",
            fix="Correct or remove these rows.",
        )
    cut = [row for row in rows if row.cut]
    if cut:
        journal.append(
            "warning",
            code="row-cut",
            severity="warning",
            where=path,
            message=f"{len(cut)} of {len(rows)} training rows are cut to {encoder.max_length} tokens, so the end of "
            "their answers is not learned.",
            fix="Raise max_length (up to the model's context), or shorten these rows.",
        )
    if not rows:
        first = next(iter(bad.values()), [(1, "the file has no rows")])[0]
        code = "template" if "chat template" in first[1] else "bad-data"
        raise StageError(code, f"No row of {path} can be trained on. Line {first[0]}: {first[1]}", f"{path}:{first[0]}")
    return rows


def replay_rows(spec: dict, run: Path, encoder, journal, attempt: Path) -> tuple[Any, list]:
    """The frozen buffer of this run and its encoded rows as (hash, row). Built once; later attempts read
    buffer.json.
    """
    if not spec.get("replay"):
        return None, []
    from seesaw_runner.replay.buffer import Buffer, ReplayError, build_buffer

    path, root = run / "buffer.json", spec["pipeline"]["root"]
    try:
        if path.exists() and attempt_number(attempt) > 1:
            buffer = Buffer.load(path)
        else:
            buffer = build_buffer(
                spec["replay"], skills=spec["skills"], seed=int(spec["seed"]), root=root, trusted=bool(spec["trusted"])
            )
            if int(os.environ.get("RANK", "0")) == 0:
                buffer.save(path)
        values = buffer.values(root)
    except ReplayError as error:
        raise StageError("bad-data", f"{error}.", str(path)) from error
    out = []
    for row, value in zip(buffer.rows, values, strict=True):
        encoded = encoder.encode(value, last_only=False)
        if encoded.reason is None:
            out.append((row.hash, encoded))
        else:
            journal.append(
                "warning",
                code="row-skipped",
                severity="warning",
                where=f"{row.source}:{row.line}",
                message=f"A replay row is left out: {encoded.reason}",
            )
    return buffer, out


def labels(row, every_token: bool) -> list[int]:
    """Ids to learn, −100 elsewhere."""
    if every_token:
        return list(row.ids)
    learned = set(row.scored)
    return [token if k in learned else -100 for k, token in enumerate(row.ids)]
