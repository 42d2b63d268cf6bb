"""Preference rows as DPO takes them: one prompt, the chosen answer, the rejected one."""

from __future__ import annotations

from dataclasses import dataclass

from seesaw_runner.data.row_shapes import row_format
from seesaw_runner.data.rows import read_rows
from seesaw_runner.run_folder import StageError


@dataclass(frozen=True)
class Preference:
    """Token ids; `prompt` is common to both answers."""

    prompt: list[int]
    chosen: list[int]
    rejected: list[int]

    @property
    def length(self) -> int:
        """Tokens that go through the model for this row."""
        return 2 * len(self.prompt) + len(self.chosen) + len(self.rejected)


def read_preferences(path: str, encoder, stage) -> list[Preference]:
    """Encoded preference rows; the ones that cannot be used are counted, and the first of each reason is told.

    Of a conversation only the last assistant turn counts, and everything before it must be the same on both sides.
    StageError when none is left.
    """
    rows: list[Preference] = []
    bad: dict[str, list[int]] = {}
    cut = 0
    for source in read_rows(path):
        row, reason = None, "The row is no valid JSON object."
        if source.error is None:
            row, reason = _encode(source.value, encoder)
        if row is None:
            bad.setdefault(str(reason), []).append(source.line)
        else:
            cut += row[1]
            rows.append(row[0])
    for reason, lines in list(bad.items())[:10]:
        stage.warn(
            "row-skipped",
            f"{len(lines)} preference rows are left out. Line {lines[0]}: {reason}",
            where=f"{path}:{lines[0]}",
            fix="Correct or remove these rows.",
        )
    if cut:
        stage.warn(
            "row-cut",
            f"{cut} of {len(rows)} preference rows are cut to {encoder.max_length} tokens, so the ends of their "
            f"answers do not count.",
            where=path,
            fix="Raise max_length (up to the model's context), or shorten these rows.",
        )
    if not rows:
        reason, lines = next(iter(bad.items()), ("the file has no rows", [1]))
        raise StageError(
            "template" if "chat template" in reason else "bad-data",
            f"No row of {path} is a usable preference. Line {lines[0]}: {reason}",
            f"{path}:{lines[0]}",
        )
    return rows


def _encode(value: dict, encoder) -> tuple[tuple[Preference, bool] | None, str | None]:
    if row_format(value) != "preference":
        return None, "The row has no chosen and rejected answer."
    if value["chosen"] == value["rejected"]:
        return None, "The chosen answer equals the rejected one, so there is nothing to prefer."
    sides = []
    for name in ("chosen", "rejected"):
        row = encoder.encode({**value, "chosen": value[name]})
        if row.reason is not None:
            return None, f"The {name} answer cannot be used: {row.reason}"
        sides.append((row.ids[: row.scored[0]], row.ids[row.scored[0] :], row.cut))
    (prompt, chosen, cut), (other, rejected, cut_too) = sides
    if prompt != other:
        return None, "The chosen and the rejected answer do not follow the same prompt."
    if chosen == rejected:
        return None, f"Cut to {encoder.max_length} tokens, the chosen answer equals the rejected one."
    return (Preference(prompt, chosen, rejected), cut or cut_too), None
