"""Does the chat template exist, does it mark the answer, and does it accept the rows? Rendered in jinja's sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from seesaw_runner.data.row_shapes import row_format, to_messages
from seesaw_runner.findings import Finding

_GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")


class TemplateRefusal(Exception):
    """The template called `raise_exception`."""


def load_template(folder: Path) -> tuple[str | None, dict[str, Any]]:
    """The template text and the special tokens it may use; the order of places is that of transformers."""
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = {}
    tokens = {}
    for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
        token = config.get(name)
        tokens[name] = token.get("content") if isinstance(token, dict) else token
    try:
        return (folder / "chat_template.jinja").read_text(encoding="utf-8"), tokens
    except OSError:
        template = config.get("chat_template")
    if isinstance(template, list):  # several, by name
        named = {item.get("name"): item.get("template") for item in template if isinstance(item, dict)}
        template = named.get("default") or next(iter(named.values()), None)
    return template if isinstance(template, str) else None, tokens


def make_renderer(template: str, tokens: dict[str, Any]) -> Callable[..., str] | None:
    """A function `(messages, add_generation_prompt) -> str`, or None without jinja2. Raises jinja2's errors."""
    try:
        from jinja2 import nodes
        from jinja2.ext import Extension
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        return None

    class Generation(Extension):
        """`{% generation %}` only marks its content here."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)

    def refuse(message: str) -> None:
        raise TemplateRefusal(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: "2000-01-01"  # the text does not matter here
    environment.filters["tojson"] = lambda value, indent=None, **_: json.dumps(value, ensure_ascii=False, indent=indent)
    compiled = environment.from_string(template)

    def render(messages: list[dict], add_generation_prompt: bool = False) -> str:
        return compiled.render(
            messages=messages, tools=None, documents=None, add_generation_prompt=add_generation_prompt, **tokens
        )

    return render


def check_template(folder: Path, samples: Iterable[tuple[str, int, Any]]) -> list[Finding]:
    """Findings on the template, and on the sampled rows that it refuses. A refusal belongs to the row, not to
    the file.
    """
    template, tokens = load_template(folder)
    where = str(folder)
    chats = [(path, line, chat) for path, line, value in samples if (chat := _chat(value))]
    if not template:
        missing = Finding(
            "template", "error", "the model has no chat template", "Put a chat_template.jinja into its folder", where
        )
        return [missing] if chats and folder.is_dir() else []
    findings = []
    marked = _GENERATION.search(template) is not None
    if not marked:
        findings.append(
            Finding(
                "template",
                "warning",
                "the chat template has no {% generation %} block: the answer's tokens are found by comparing "
                "the prompt "
                "with the whole conversation (mask: prefix)",
                "Put {% generation %} … {% endgeneration %} around the assistant's text in the template",
                where,
            )
        )
    try:
        render = make_renderer(template, tokens)
    except Exception as error:  # jinja2's own, which cannot be named without it
        return [
            *findings,
            Finding("template", "error", f"the chat template is not valid: {error}", "Correct the template", where),
        ]
    if render is None:
        return [
            *findings,
            Finding(
                "template", "info", "jinja2 is not installed, so the chat template was not tried on the rows", "", where
            ),
        ]
    for path in dict.fromkeys(path for path, _, _ in chats):
        findings += _check_rows(render, path, [(line, chat) for file, line, chat in chats if file == path], marked)
    return findings


def _chat(value: Any) -> list[dict]:
    """The messages that a template gets: up to the last answer, none for plain text."""
    plain = row_format(value) == "prompt-completion" and all(
        isinstance(value[name], str) for name in ("prompt", "completion")
    )
    messages = [] if plain or row_format(value) == "text" else to_messages(value)
    last = max((i for i, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    return messages[: last + 1]


def _check_rows(
    render: Callable[..., str], path: str, rows: list[tuple[int, list[dict]]], marked: bool
) -> list[Finding]:
    refused: dict[str, list[int]] = {}
    shifted: list[tuple[int, int]] = []
    for line, messages in rows:
        try:
            whole = render(messages)
            if not marked and len(messages) > 1:
                index = first_difference(render(messages[:-1], True), whole)
                if index is not None:
                    shifted.append((line, index))
        except Exception as error:  # a template may raise anything
            what = (
                f"the chat template refuses the row: {error}"
                if isinstance(error, TemplateRefusal)
                else f"the chat template fails on the row: {error}"
            )
            refused.setdefault(what, []).append(line)
    findings = []
    for what, lines in refused.items():
        every = len(lines) == len(rows)
        more = f" (and {len(lines) - 1} more of the {len(rows)} rows tried)" if len(lines) > 1 else ""
        findings.append(
            Finding(
                "template",
                "error" if every else "warning",
                f"{what}{more}",
                "Change these rows or the template; nothing is rewritten silently"
                if every
                else "The row is skipped; change it or the template",
                f"{path}:{lines[0]}",
            )
        )
    if shifted:
        line, index = shifted[0]
        findings.append(
            Finding(
                "template",
                "warning",
                "the prompt as the template renders it is not the beginning of the whole conversation in "
                f"{len(shifted)} of {len(rows)} rows tried; "
                f"the first one differs from character {index} on",
                "Put a {% generation %} block into the template; until then the answer's place is found by comparing",
                f"{path}:{line}",
            )
        )
    return findings


def first_difference(prompt: str, whole: str) -> int | None:
    """Where the prompt stops being the beginning of the whole text; None if it never does."""
    if whole.startswith(prompt):
        return None
    return next(
        (i for i, (a, b) in enumerate(zip(prompt, whole, strict=False)) if a != b), min(len(prompt), len(whole))
    )
