"""Prompts of training rows, with their domain. A row needs no answer here: a model will give one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seesaw_runner.data.rows import read_rows
from seesaw_runner.run_folder import StageError

#: Reasons that are told of one file; a file that is wrong in more ways says so with these.
MOST_REASONS = 10


@dataclass(frozen=True)
class Prompt:
    """`value`: the row as read. `ids`: what the generation starts from. `domain` is None where none was asked for."""

    value: dict[str, Any]
    ids: list[int]
    text: str
    line: int
    domain: str | None


def read_prompts(
    path: str, encoder, stage, *, room: int, domain_field: str | None = None, domains: tuple[str, ...] = ()
) -> list[Prompt]:
    """Prompts of a file, in its order; the rows that have none are counted and told.

    room: tokens that an answer needs behind the prompt, within the model's context. domain_field: the rows must name
    one of `domains` there. StageError `bad-data` when none is left.
    """
    prompts: list[Prompt] = []
    bad: dict[str, list[int]] = {}
    longest = None if stage.context is None else stage.context - room
    for row in read_rows(path):
        reason, domain, encoded = None, None, None
        if row.error is not None:
            reason = "The row is no valid JSON object."
        elif domain_field is not None:
            domain = row.value.get(domain_field)
            if not isinstance(domain, str):
                reason = f"The row has no text in the field {domain_field}, which names its domain."
            elif domains and domain not in domains:
                reason = f"The row's {domain_field} is {domain!r}; the stage knows {', '.join(domains)}."
        if reason is None:
            encoded = encoder.prompt(row.value)
            reason = encoded.reason
            if reason is None and not encoded.prompt_ids:
                reason = "The prompt has no token, so there is nothing to continue."
            if reason is None and longest is not None and len(encoded.prompt_ids) > longest:
                reason = f"The prompt leaves less than {room} tokens of the model's {stage.context} for an answer."
        if reason is not None:
            bad.setdefault(reason, []).append(row.line)
        else:
            prompts.append(Prompt(row.value, encoded.prompt_ids, encoded.prompt, row.line, domain))
    for reason, lines in list(bad.items())[:MOST_REASONS]:
        stage.warn(
            "row-skipped",
            f"{len(lines)} prompts are left out. Line {lines[0]}: {reason}",
            where=f"{path}:{lines[0]}",
            fix="Correct or remove these rows.",
        )
    if not prompts:
        reason, lines = next(iter(bad.items()), ("The file has no rows.", [1]))
        raise StageError(
            "bad-data", f"No row of {path} can be answered. Line {lines[0]}: {reason}", f"{path}:{lines[0]}"
        )
    return prompts
