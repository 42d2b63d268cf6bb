"""Probe files → encoded probes: what is scored at every probe point, fixed for the whole run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from seesaw_runner.checks import Check, make_check
from seesaw_runner.data.canonical import row_hashes
from seesaw_runner.data.rows import read_rows
from seesaw_runner.flags.margins import TERMINATOR, decision_segments, decisive_tokens
from seesaw_runner.scoring.encode import EncodedRow, Encoder

MAX_SEGMENTS = 255


@dataclass
class Probe:
    """One probe row. `segment`: index into the set's segment names, one per scored token; `decisive`: whether the
    token decides the row. `prompt_hash`: None for a row without a prompt. `group`: what the row shares with others, of
    which all count once.
    """

    line: int
    hash: str
    value: Any
    row: EncodedRow
    tags: list[str]
    segment: list[int] = field(default_factory=list)
    decisive: list[bool] = field(default_factory=list)
    prompt_hash: str | None = None
    group: str | None = None


@dataclass
class ProbeSet:
    """One skill × split. `usable`: indexes of probes that could be encoded, fixed when first asked for. `hash`: what
    the rows are, in order. `path`: their file.
    """

    skill: str
    split: str
    probes: list[Probe]
    segments: list[str]
    check: Check
    hash: str
    path: str = ""

    @property
    def id(self) -> str:
        return f"{self.skill}.{self.split}"

    @cached_property
    def usable(self) -> list[int]:
        return [i for i, p in enumerate(self.probes) if p.row.reason is None]


def load_probe_sets(
    spec: dict, encoder: Encoder, warn: Callable[..., Any], context: int | None = None
) -> list[ProbeSet]:
    """All probe sets of a run, in the order of the skills, `id` before `ood`. context: positions that the model has.

    warn(code=, message=, fix=, severity=, where=) is told about rows that cannot be scored. OSError when a file is
    gone.
    """
    sets = []
    for skill in spec["skills"]:
        check = make_check(
            skill["check"],
            trusted=bool(spec.get("trusted")),
            root=spec["pipeline"]["root"],
            segments=skill.get("segments") or [],
        )
        for split in ("id", "ood"):
            path = skill["probes"].get(split)
            if path:
                sets.append(_load(skill, split, path, check, encoder, warn, context))
    return sets


def _load(
    about: dict, split: str, path: str, check: Check, encoder: Encoder, warn: Callable[..., Any], context: int | None
) -> ProbeSet:
    probes: list[Probe] = []
    names: dict[str, int] = {}
    skill, decided_by = about["id"], decision_segments(about)
    for source in read_rows(path):
        if source.error is not None:
            row, value = EncodedRow(reason=str(source.error)), source.value
        else:
            value = source.value
            row = encoder.encode(value, last_only=True)
            if row.reason is None and context is not None and len(row.ids) > context:
                # Not cut: half an answer is another probe, and positions beyond the context give no honest score.
                row = EncodedRow(
                    reason=f"The probe has {len(row.ids)} tokens, more than the {context} of the model's context."
                )
        fields = value if isinstance(value, dict) else {}
        tags = [t for t in fields["tags"] if isinstance(t, str)] if isinstance(fields.get("tags"), list) else []
        hashes, group = row_hashes(value), fields.get("group")
        probe = Probe(source.line, hashes.full, value, row, tags, prompt_hash=hashes.prompt)
        probe.group = None if group is None else str(group)
        if row.reason is None:
            probe.segment = _token_segments(row, fields, check, encoder, names)
            listed = list(names)
            probe.decisive = decisive_tokens([listed[i] for i in probe.segment], decided_by)
        probes.append(probe)
    skipped = [p for p in probes if p.row.reason is not None]
    if skipped:
        warn(
            code="probe-skipped",
            severity="warning",
            where=f"{path}:{skipped[0].line}",
            message=f"{len(skipped)} of {len(probes)} probes of {skill}.{split} cannot be scored. Line "
            f"{skipped[0].line}: {skipped[0].row.reason}",
            fix="Correct or remove these rows; the others are scored.",
        )
    digest = hashlib.sha256("\n".join(p.hash for p in probes).encode()).hexdigest()
    return ProbeSet(skill, split, probes, list(names), check, digest, path)


def _token_segments(row: EncodedRow, value: dict, check: Check, encoder: Encoder, names: dict[str, int]) -> list[int]:
    """The segment that most of a token's bytes lie in; special tokens behind the text are the terminator."""

    def index(name: str) -> int:
        return names.setdefault(name, len(names)) if len(names) < MAX_SEGMENTS else names.get(name, 0)

    parts = check.segments(row.reference, value)
    spans = [
        (
            len(row.reference[: p.start].encode("utf-8", "replace")),
            len(row.reference[: p.end].encode("utf-8", "replace")),
            p.name,
        )
        for p in parts
    ]
    out, start, last = [], 0, None
    for position, end in zip(row.scored, row.ends, strict=True):
        if end == start:
            special = row.ids[position] in encoder.bytes.special
            name = TERMINATOR if special or last is None else last
        else:
            overlap = [(min(end, b) - max(start, a), -k) for k, (a, b, _) in enumerate(spans)]
            best = max(overlap, default=(0, 0))
            name = spans[-best[1]][2] if best[0] > 0 else "answer"
            last = name
        out.append(index(name))
        start = end
    return out


def tokenizer_hash(tokenizer) -> str:
    """Identity of what turns text into ids: vocabulary, merges and steps, but not padding or truncation settings.

    From the loaded tokenizer, not its file: `save_pretrained` may spell the same tokenizer differently.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    parts = json.loads(backend.to_str()) if backend is not None else {"vocab": tokenizer.get_vocab()}
    parts.pop("padding", None)
    parts.pop("truncation", None)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def template_hash(tokenizer) -> str:
    """SHA-256 of the chat template's text; of the empty text when there is none."""
    template = tokenizer.chat_template
    return hashlib.sha256((template if isinstance(template, str) else json.dumps(template or "")).encode()).hexdigest()
