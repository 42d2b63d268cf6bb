"""A tool call in JSON, compared as a value; its segments are the parts of the call."""

from __future__ import annotations

import re
from typing import Any

from seesaw_runner.checks.base import Check, Segment, reference_of
from seesaw_runner.checks.patterns import merged
from seesaw_runner.data.canonical import canonical
from seesaw_runner.data.row_parse import parse_json

_TAG = re.compile(r"</?tool_call>")
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|[-+.\w]+|[\[\]{}:,]')
NAME_KEYS = ("tool", "name", "function", "tool_name", "action")
ARGUMENT_KEYS = ("arguments", "args", "parameters", "parameter")


def call_value(text: str, strict: bool) -> str | None:
    """Canonical text of the JSON value that the whole text is, or None. Strict: no duplicate keys, no NaN."""
    value, error, notes = parse_json(_TAG.sub("", text).strip())
    if error or (strict and any(note.code in ("duplicate-key", "non-finite") for note in notes)):
        return None
    return canonical(value)


def _from_tool_calls(calls: Any) -> set[str]:
    """The texts with which the calls of an assistant turn may be written: one call, or a list of them."""
    simple = []
    for call in calls if isinstance(calls, list) else [calls]:
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            return set()
        arguments = function.get("arguments", {})
        if isinstance(arguments, str):
            arguments, error, _ = parse_json(arguments)
            if error:
                return set()
        simple.append({"name": function.get("name"), "arguments": arguments})
    return {canonical(simple)} | ({canonical(simple[0])} if len(simple) == 1 else set())


class JsonToolCall(Check):
    """Passes when the JSON value equals the reference's, whatever the order of keys; text around it is not allowed."""

    kind = "json-tool-call"

    def passes(self, text: str, row: dict) -> bool:
        given = call_value(text, strict=True)
        return given is not None and given in self._expected(row)

    def _expected(self, row: dict) -> set[str]:
        reference = reference_of(row)
        if reference.text:
            value = call_value(reference.text, strict=False)
            return {value} if value else set()
        return _from_tool_calls(reference.tool_calls) if reference.tool_calls else set()

    def problem(self, row: dict) -> str | None:
        return None if self._expected(row) else "the reference is no JSON value"

    def own_segments(self, reference: str, row: dict) -> list[Segment]:
        if call_value(reference, strict=False) is None:
            return super().own_segments(reference, row)
        names = ["punctuation"] * len(reference)
        depth, key, expect_key, in_arguments = 0, "", False, False
        containers: list[str] = []
        for token in _TOKEN.finditer(reference):
            mark = token.group()
            if mark in "[{":
                containers.append(mark)
                expect_key = mark == "{"
                in_arguments = in_arguments or (key in ARGUMENT_KEYS and depth >= 1)
                depth += 1
            elif mark in "]}":
                containers = containers[:-1]
                depth -= 1
                in_arguments = in_arguments and depth > 1
                expect_key = False
            elif mark == ",":
                expect_key = containers[-1:] == ["{"]
            elif mark == ":":
                expect_key = False
            else:
                is_text = token.group(1) is not None
                span = token.span(1) if is_text else token.span()
                if expect_key:
                    key = token.group(1) if is_text else mark
                    wrapper = not in_arguments and key in NAME_KEYS + ARGUMENT_KEYS
                    name = "punctuation" if wrapper else "argument key"
                else:
                    name = "tool name" if not in_arguments and is_text and key in NAME_KEYS else "argument value"
                names[span[0] : span[1]] = [name] * (span[1] - span[0])
        return merged(names)
