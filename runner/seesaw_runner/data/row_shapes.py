"""The formats a dataset row can have, and the one form all of them are read into: a list of turns.

The format is decided for each row on its own; a file may mix them. See `.github/contracts.md` §3.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

RowFormat = Literal[
    "messages", "prompt-completion", "preference", "sharegpt", "alpaca", "slime", "text", "unknown", "not-an-object"
]

# The same characters in both languages: `strip()` and `trim()` without arguments disagree on U+0085, U+FEFF and others.
WHITE_SPACE = "\t\n\v\f\r "
_SHAREGPT_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant"}
_SURROGATE = re.compile("[\ud800-\udfff]")


class Turn(NamedTuple):
    """`text` is a string, except where the row holds another JSON value (the label 42), which then stays what it is."""

    role: str
    text: Any
    tool_calls: Any


def row_format(value: Any) -> RowFormat:
    """Which format a row has. The first that fits, in the contract's order."""
    if not isinstance(value, dict):
        return "not-an-object"
    if isinstance(value.get("messages"), list):
        return "messages"
    if "prompt" in value and "completion" in value:
        return "prompt-completion"
    if "chosen" in value and "rejected" in value:
        return "preference"
    if isinstance(value.get("conversations"), list):
        return "sharegpt"
    if isinstance(value.get("instruction"), str):
        return "alpaca"
    if isinstance(value.get("prompt"), (str, list)):
        return "slime"
    return "text" if isinstance(value.get("text"), str) else "unknown"


def text_of(content: Any) -> Any:
    """The text of a message's content: text parts joined, null and absent are empty, any other JSON value unchanged."""
    if content is None:
        return ""
    if isinstance(content, list):
        return "".join(part if isinstance(part, str) else part["text"] for part in content if _is_text_part(part))
    return content


def _is_text_part(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))


def _messages(value: Any, role: str) -> list[Any]:
    """A field that holds either a list of messages or one text of the given role."""
    if value is None:
        return []
    return value if isinstance(value, list) else [{"role": role, "content": value}]


def _from_sharegpt(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    role = message.get("from", message.get("role"))
    rest = {key: item for key, item in message.items() if key not in ("from", "value")}
    role = _SHAREGPT_ROLES.get(role, role) if isinstance(role, str) else role
    return {**rest, "role": role, "content": message.get("value", message.get("content"))}


def message_parts(value: Any) -> tuple[list[Any], list[Any]]:
    """A row's messages as two lists: the answer, if there is one, is the last assistant message of the second."""
    kind = row_format(value)
    if kind == "messages":
        return [], value["messages"]
    if kind == "sharegpt":
        return [], [_from_sharegpt(message) for message in value["conversations"]]
    if kind == "prompt-completion":
        return _messages(value["prompt"], "user"), _messages(value["completion"], "assistant")
    if kind == "preference":
        return preference_parts(value.get("prompt"), value["chosen"])
    if kind == "alpaca":
        extra = value.get("input")
        extra = f"\n\n{extra}" if isinstance(extra, str) and extra.strip(WHITE_SPACE) else ""
        return _messages(value["instruction"] + extra, "user"), _messages(value.get("output"), "assistant")
    if kind == "slime":
        return _messages(value["prompt"], "user"), _label(value.get("label"))
    return [], _messages(value["text"], "assistant") if kind == "text" else []


def _label(label: Any) -> list[Any]:
    return [] if label is None else [{"role": "assistant", "content": label}]


def preference_parts(prompt: Any, answer: Any) -> tuple[list[Any], list[Any]]:
    """Prompt and chosen (or rejected) messages; a prompt that the answer repeats in front is not doubled."""
    head, tail = _messages(prompt, "user"), _messages(answer, "assistant")
    if head and [_turn(message) for message in tail[: len(head)]] == [_turn(message) for message in head]:
        tail = tail[len(head) :]
    return head, tail


def _turn(message: Any) -> Turn:
    if not isinstance(message, dict):
        message = {"role": "", "content": message}
    role, text = message.get("role"), text_of(message.get("content"))
    if isinstance(text, str):
        text = text.replace("\r\n", "\n").strip(WHITE_SPACE)
    return Turn(role if isinstance(role, str) else "", text, message.get("tool_calls") or None)


def split_turns(value: Any) -> tuple[list[Turn], Turn | None]:
    """The turns before the answer, and the answer: the last assistant turn. Turns after it belong to neither."""
    head, tail = ([_turn(message) for message in part] for part in message_parts(value))
    for i in range(len(tail) - 1, -1, -1):
        if tail[i].role == "assistant":
            return head + tail[:i], tail[i]
    return head + tail, None


def to_turns(value: Any) -> list[Turn]:
    """All turns of a row, in any format. Texts are trimmed, for comparing; to render a row use `to_messages`."""
    head, tail = message_parts(value)
    return [_turn(message) for message in head + tail]


def printable(text: str) -> str:
    """The text with every unpaired surrogate replaced by U+FFFD, so that it can be encoded."""
    return _SURROGATE.sub("\ufffd", text)


def to_messages(value: Any) -> list[dict]:
    """The row as chat messages for a template: content is always a string, everything else is kept as it is.

    A null would be rendered as the word `None` and a list of parts as Python source by most templates.
    """
    head, tail = message_parts(value)
    return [_to_message(message) for message in head + tail]


def _to_message(message: Any) -> dict:
    if not isinstance(message, dict):
        message = {"role": "", "content": message}
    text = text_of(message.get("content"))
    if not isinstance(text, str):
        text = getattr(text, "text", None) or str(text)
    clean = {key: item for key, item in message.items() if not (key == "tool_calls" and not item)}
    return {**clean, "role": str(message.get("role") or ""), "content": printable(text)}
