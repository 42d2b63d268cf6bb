"""The probes in other words: what a prompt asks stays, how it asks changes. A router must not live on wording."""

from __future__ import annotations

import re

#: Skill → (how its prompts ask, how the same is asked here).
OTHER_WORDS: dict[str, list[tuple[str, str]]] = {
    "math": [(r"What is (\d+) \+ (\d+)\?", r"Tell me how much \1 + \2 makes")],
    "search": [
        (r"What is the (\w+)\?$", r"Which \1 do they say?"),
        (r"Find the (\w+)\.$", r"Look up the \1 there"),
    ],
    "tool": [
        (r"Get the weather in (\w+) on (\w+)", r"Will it rain in \1 on \2"),
        (r"On (\w+), how is the weather in (\w+)\?", r"Forecast of \2 for \1"),
        (r"Send (\w+) to (\w+)", r"Let \2 know \1"),
        (r"Message (\w+) saying (\w+)", r"Write \2 and hand it to \1"),
        (r"Set alarm (\w+) at (\d+)", r"Wake me at \2 with \1"),
        (r"At (\d+) ring the alarm (\w+)", r"I get up at \1, call it \2"),
        (r"Book a train from (\w+) to (\w+)", r"A rail ticket, \1 to \2"),
        (r"I go to (\w+) from (\w+) by train", r"Travelling on rails, I leave \2 for \1"),
    ],
    "format": [
        (r"Write in uppercase: (.*)", r"Capital letters only: \1"),
        (r"Use exactly (\d+) words of: (.*)", r"Keep the first \1 of these: \2"),
        (r"Repeat and end with (\w+): (.*)", r"Say all of it, then \1: \2"),
    ],
}


def paraphrase(skill: str, prompt: str) -> str:
    """The prompt in other words. ValueError for one that no pattern knows."""
    for pattern, other in OTHER_WORDS[skill]:
        text, count = re.subn(pattern, other, prompt)
        if count:
            return text
    raise ValueError(f"There are no other words for the {skill} prompt {prompt!r}.")
