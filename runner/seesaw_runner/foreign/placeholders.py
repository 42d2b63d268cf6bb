"""`{start}`, `{data}`, … in the user's own command. Standard library only.

A value is always data: in a list it stays inside its word, in a shell line it is a variable that is quoted as its place
needs it, so that no path can become shell text. Other braces are left alone.
"""

from __future__ import annotations

import re
import shlex

#: Every placeholder is also a variable of the command's environment: `{start}` is SEESAW_START.
NAMES = ("start", "data", "run", "output", "seed", "resume", "python")
_PLACEHOLDER = re.compile(r"\{(" + "|".join(NAMES) + r")\}")


def used(run: list[str] | str) -> set[str]:
    """The placeholders that a command names."""
    return {name for word in ([run] if isinstance(run, str) else run) for name in _PLACEHOLDER.findall(word)}


def fill(text: str, values: dict[str, str]) -> str:
    """One word or path with its placeholders filled in."""
    return _PLACEHOLDER.sub(lambda match: values[match.group(1)], text)


def fill_words(words: list[str], values: dict[str, str]) -> list[str]:
    """The words of a command. Where there is nothing to resume from, a word with `{resume}` is left out, and so is the
    option before it when the word is nothing but `{resume}`.
    """
    out: list[str] = []
    for word in words:
        if "{resume}" in word and not values["resume"]:
            if word == "{resume}" and out and re.match(r"--?\w[\w-]*\Z", out[-1]):
                out.pop()
            continue
        out.append(fill(word, values))
    return out


def shell_line(line: str) -> str:
    """A shell line whose placeholders are quoted variables: `{start}` outside quotes becomes "${SEESAW_START}"."""
    out, at, quote = [], 0, ""
    while at < len(line):
        match = _PLACEHOLDER.match(line, at)
        if match:
            variable = f"${{SEESAW_{match.group(1).upper()}}}"
            out.append({"": f'"{variable}"', '"': variable, "'": f"'\"{variable}\"'"}[quote])
            at = match.end()
            continue
        sign = line[at]
        if sign == "\\" and quote != "'":
            out.append(line[at : at + 2])
            at += 2
            continue
        if sign in "'\"" and quote in ("", sign):
            quote = "" if quote else sign
        out.append(sign)
        at += 1
    return "".join(out)


def variables(values: dict[str, str]) -> dict[str, str]:
    """The same values for the command's environment."""
    return {f"SEESAW_{name.upper()}": value for name, value in values.items()}


def shown(run: list[str] | str) -> str:
    """The command as a person reads it."""
    return run if isinstance(run, str) else shlex.join(run)
