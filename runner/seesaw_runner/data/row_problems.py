"""What is wrong with a row as training data, although it can be read. One sentence for each problem, with the
turn it is about.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from seesaw_runner.data.row_shapes import (
    WHITE_SPACE,
    message_parts,
    preference_parts,
    row_format,
    split_turns,
    to_turns,
)

#: What a trainer that wants strictly alternating turns drops a row for.
ORDER_CODES = ("turn-order", "unknown-role", "empty-conversation")
_ROLES = ("system", "user", "assistant", "tool", "function", "observation", "function_call", "developer")


class Problem(NamedTuple):
    """`turn` counts from 0. `severity` is "warning" (the row will not teach what it should) or "info"."""

    code: str
    message: str
    turn: int | None = None
    severity: str = "warning"


def _blank(text: Any) -> bool:
    return isinstance(text, str) and not text.strip(WHITE_SPACE)


def row_problems(value: Any) -> list[Problem]:
    """All problems of a row's content. Bad JSON is not one of them: that is `Row.error`."""
    kind = row_format(value)
    if kind == "not-an-object":
        return [Problem("not-an-object", "the row is not an object")]
    if kind == "unknown":
        keys = ", ".join(list(value)[:5]) or "none"
        return [
            Problem(
                "unknown-format",
                f"no known row format; its keys are {keys}. Known: messages, prompt + completion, chosen + "
                "rejected, conversations, instruction, prompt, text",
            )
        ]
    problems = [*_text_problems(value, kind), *_message_problems(value)]
    if kind == "sharegpt":
        problems += _order_problems(value)
    if kind == "preference":
        problems += _preference_problems(value)
    return problems


def _text_problems(value: dict, kind: str) -> list[Problem]:
    prompt, answer = split_turns(value)
    problems = []
    if kind == "slime" and answer is None:
        problems.append(Problem("no-label", "no label: the row cannot be rewarded by exact match", severity="info"))
    elif answer is None:
        problems.append(Problem("no-trainable-text", "no trainable text: there is no assistant turn"))
    elif not any(turn.tool_calls or not _blank(turn.text) for turn in [*to_turns(value)] if turn.role == "assistant"):
        problems.append(
            Problem("no-trainable-text", "no trainable text: the assistant's text is empty or only white space")
        )
    if kind in ("prompt-completion", "alpaca", "slime") and all(_blank(turn.text) for turn in prompt):
        problems.append(Problem("empty-prompt", "empty prompt"))
    return problems


def _message_problems(value: dict) -> list[Problem]:
    head, tail = message_parts(value)
    problems, skipped = [], 0
    for i, message in enumerate(head + tail):
        if not isinstance(message, dict):
            problems.append(Problem("bad-turn", f"turn {i} is not an object with role and content", i))
            continue
        content = message.get("content")
        if not isinstance(message.get("role"), str):
            problems.append(Problem("bad-turn", f"turn {i} has no role", i))
        elif message["role"] == "assistant" and content is None and not message.get("tool_calls"):
            problems.append(Problem("empty-turn", f"assistant turn with neither content nor tool_calls (turn {i})", i))
        elif not isinstance(content, (str, list, type(None))) and row_format(value) != "slime":
            problems.append(Problem("bad-turn", f"the content of turn {i} is neither text nor a list of parts", i))
        if isinstance(content, list):
            skipped += sum(
                not isinstance(part, str) and not (isinstance(part, dict) and isinstance(part.get("text"), str))
                for part in content
            )
    if skipped:
        problems.append(
            Problem(
                "other-parts",
                f"{skipped} content part{'s' * (skipped > 1)} that {'are' if skipped > 1 else 'is'} not text "
                "(an image?); only the text is used",
                severity="info",
            )
        )
    if row_format(value) == "messages" and not tail:
        problems.append(Problem("empty-conversation", "empty conversation"))
    return problems


def _order_problems(value: dict) -> list[Problem]:
    """The first thing a strictly alternating trainer would drop a ShareGPT row for."""
    turns = to_turns(value)
    if not turns:
        return [Problem("empty-conversation", "empty conversation")]
    expected = "user"
    for i, turn in enumerate(turns):
        if turn.role == "system" and i == 0:
            continue
        if turn.role not in _ROLES:
            return [Problem("unknown-role", f'unknown role "{turn.role}" at turn {i}', i)]
        side = (
            "user"
            if turn.role in ("user", "tool", "function", "observation")
            else "assistant"
            if turn.role in ("assistant", "function_call")
            else turn.role
        )
        if side != expected:
            if side == "assistant" and expected == "user" and not any(before.role == "user" for before in turns[:i]):
                return [Problem("turn-order", f"starts with an assistant turn (turn {i})", i)]
            words = {"user": "two human turns", "assistant": "two assistant turns"}.get(
                side, f"a {side} turn out of place"
            )
            return [
                Problem(
                    "turn-order",
                    f"{words} in a row at turn {i}" if side in ("user", "assistant") else f"{words} at turn {i}",
                    i,
                )
            ]
        expected = "assistant" if expected == "user" else "user"
    if expected == "assistant":
        if not any(turn.role == "assistant" for turn in turns):
            return [Problem("turn-order", "no assistant turn (odd number of turns)")]
        return [Problem("turn-order", "ends without an answer (odd number of turns)", len(turns) - 1)]
    return []


def _preference_problems(value: dict) -> list[Problem]:
    chosen, rejected = value["chosen"], value["rejected"]
    if chosen == rejected:
        return [Problem("chosen-equals-rejected", "chosen equals rejected")]
    prompt = value.get("prompt")
    if prompt:
        head, tail = preference_parts(prompt, chosen)
        if isinstance(prompt, list) and isinstance(chosen, list) and len(tail) < len(chosen):
            return [Problem("prompt-repeated", "chosen repeats the prompt; it is used once", severity="info")]
        return []
    if not (isinstance(chosen, list) and isinstance(rejected, list)):
        return [Problem("no-prompt", "no prompt")]
    if not chosen or not rejected or chosen[0] != rejected[0]:
        return [Problem("no-common-prompt", "no common prompt: chosen and rejected begin differently")]
    return []
