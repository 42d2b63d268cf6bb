"""Rows of the battery: for each sample skill what is trained on, and three sets nobody trains on.

Half of all facts are held out (`sample/skills.py` keeps a twelfth, too few for a thousand rows). `panel` are the
probes, `bench` what a team's own benchmark would be, `oracle` what decides the truth; no prompt is in two of them.
"""

from __future__ import annotations

import random
import zlib

from sample.rows import to_row
from sample.skills import NAMES, SKILLS, WORDS, Item
from sample.world import chat

PANEL, BENCH, ORACLE, TRAIN, NEW = 256, 200, 1000, 1600, 64
CHECKS = {
    "math": {"kind": "number-after", "marker": "so"},
    "search": {"kind": "text", "after": "answer"},
    "tool": {"kind": "json-tool-call"},
    "format": {"kind": "format"},
}
#: Segments of the reference that decide; the terminator always does.
DECISION = {"math": ("answer",), "search": ("answer",), "tool": ("tool name", "argument value"), "format": ("answer",)}


def kept_out(fact: str) -> bool:
    """Whether a fact is never trained on. A hash, so it holds for every seed."""
    return zlib.crc32(f"battery {fact}".encode()) % 2 == 0


def draw(skill: str, count: int, *, training: bool, seed: int, without: frozenset[str] = frozenset()) -> list[Item]:
    """`count` items with different prompts, none of them in `without`."""
    rng, items, prompts = random.Random(f"battery-{skill}-{training}-{seed}"), [], set(without)
    while len(items) < count:
        item = SKILLS[skill](rng, False)
        if item.prompt not in prompts and kept_out(item.fact) != training:
            prompts.add(item.prompt)
            items.append(item)
    return items


def held_out_rows(skill: str, seed: int) -> dict[str, list[dict]]:
    """`panel`, `bench`, `oracle` of one skill, from the facts that are never trained on."""
    items = draw(skill, PANEL + BENCH + ORACLE, training=False, seed=seed)
    rows = [to_row(f"{skill}-{i}", item) for i, item in enumerate(items)]
    return {"panel": rows[:PANEL], "bench": rows[PANEL : PANEL + BENCH], "oracle": rows[PANEL + BENCH :]}


def train_rows(skill: str, seed: int, count: int = TRAIN) -> list[dict]:
    return [to_row(f"{skill}-train-{i}", item) for i, item in enumerate(draw(skill, count, training=True, seed=seed))]


def styled(rows: list[dict]) -> list[dict]:
    """The same right answers after other opening words: what a change of style does and a check does not mind."""
    return [
        {
            **row,
            "messages": [row["messages"][0], {**row["messages"][1], "content": "ok; " + row["messages"][1]["content"]}],
        }
        for row in rows
    ]


def chat_rows(seed: int, count: int = TRAIN) -> list[dict]:
    """General chat of the pretraining world: a stage that teaches none of the skills."""
    rng = random.Random(f"battery-chat-{seed}")
    pairs = [chat(rng) for _ in range(count)]
    return [
        to_row(f"chat-{i}", Item(question, answer, ["chat"], question)) for i, (question, answer) in enumerate(pairs)
    ]


def spoken_rows(seed: int, count: int = TRAIN) -> list[dict]:
    """A new skill next to the four: say a greeting to a name with a word in it."""
    rng = random.Random(f"battery-greet-{seed}")
    out = []
    for i in range(count):
        name, word = rng.choice(NAMES), rng.choice(WORDS)
        item = Item(f"Greet {name} with {word}", f"Hello {name}, {word} to you", ["greet"], f"{name} {word}")
        out.append(to_row(f"greet-{i}", item))
    return out


def preferences(skill: str, seed: int, count: int = TRAIN) -> list[dict]:
    """Prompts with the right answer chosen and another row's answer of the same kind rejected."""
    rows = train_rows(skill, seed, count)
    out = []
    for i, row in enumerate(rows):
        other = next(
            r
            for r in rows[i + 1 :] + rows[:i]
            if r["tags"][0] == row["tags"][0] and r["messages"][1] != row["messages"][1]
        )
        out.append({"prompt": row["messages"][:1], "chosen": row["messages"][1:], "rejected": other["messages"][1:]})
    return out
