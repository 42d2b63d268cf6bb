"""The pretraining corpus: a small world of sums, look-ups, JSON, upper case and copying, *without* any skill row.

M0 learns the parts here (adding digits, finding a key's value, writing JSON), so that a stage of under a hundred steps
can teach a skill. It never sees a skill's prompt; held-out sums are left out, too.
"""

from __future__ import annotations

import json
import random

from sample.skills import (
    CITIES,
    DAYS,
    KEYS,
    NAMES,
    OOD_CITIES,
    OOD_NAMES,
    OOD_WORDS,
    WORDS,
    column_addition,
    held_out,
    invent,
    sum_fact,
)

ALL_WORDS, ALL_NAMES, ALL_CITIES = WORDS + OOD_WORDS, NAMES + OOD_NAMES, CITIES + OOD_CITIES
RELATIONS = ["works in", "lives in", "was born in"]
JSON_KEYS = "key name city day tool hour text label to from".split()
CHAT_SHARE = 0.4


def operands(rng: random.Random) -> tuple[int, int]:
    while True:
        a, b = rng.randint(10, 79), rng.randint(10, 79)
        if not held_out(sum_fact(a, b)):
            return a, b


def look_up(rng: random.Random, names: list[str], count: int) -> list[str]:
    """`count` pairs of a key and a value; the keys are names, or words such as `city`."""
    keys = rng.sample(KEYS + names[:6] if rng.random() < 0.5 else names, count)
    return [f"{key} {rng.choice(names)}" for key in keys]


def text(rng: random.Random) -> str:
    """One line of plain text."""
    names = ALL_NAMES + ALL_CITIES if rng.random() < 0.75 else invent(20, rng)
    kind = rng.random()
    if kind < 0.10:
        a, b = operands(rng)
        return f"sum {a} {b}: {column_addition(a, b)}"
    if kind < 0.45:  # look-ups: pairs, then the same ones in another order; the hardest part, so a third of the corpus
        pairs = look_up(rng, names, rng.randint(2, 6))
        return ", ".join(pairs) + "; " + "; ".join(rng.sample(pairs, len(pairs)))
    if kind < 0.60:  # sentences, then the same ones in another order
        relation = rng.choice(RELATIONS)
        sentences = [f"{name} {relation} {rng.choice(names)}." for name in rng.sample(names, rng.randint(2, 4))]
        return " ".join(sentences) + " Again: " + " ".join(rng.sample(sentences, len(sentences)))
    if kind < 0.72:
        first, second = rng.sample(JSON_KEYS, 2)
        values = {first: rng.choice(names), second: rng.choice(names + WORDS)}
        return f"{first} {values[first]} and {second} {values[second]}: {json.dumps(values)}"
    if kind < 0.86:
        words = rng.sample(ALL_WORDS, 4)
        if rng.random() < 0.6:
            return "; ".join(f"{word} {word.upper()}" for word in words)
        return " ".join(words) + "; " + " ".join(words).upper()
    line = rng.sample(
        ALL_WORDS + names, rng.randint(4, 8)
    )  # a line, then pieces of it: what followed this word before?
    starts = [rng.randrange(len(line) - 2) for _ in range(3)]
    return "; ".join([" ".join(line)] + [" ".join(line[start : start + 4]) for start in starts])


def chat(rng: random.Random) -> tuple[str, str]:
    """One question and answer, in words no skill uses."""
    if rng.random() < 0.3:
        pairs = look_up(rng, ALL_NAMES + ALL_CITIES, rng.randint(2, 4))
        found = rng.choice(pairs)
        return "Pairs: " + ". ".join(pairs) + f". Look up {found.split()[0]}", found
    kind = rng.random()
    if kind < 0.12:
        return tool_call(rng)
    if kind < 0.24:
        words = rng.sample(ALL_WORDS, rng.randint(2, 4))
        if rng.random() < 0.5:
            return "Upper: " + " ".join(words), " ".join(words).upper()
        count = rng.randint(1, len(words))
        return f"First {count}: " + " ".join(words), " ".join(words[:count])
    if kind < 0.32:
        a, b = operands(rng)
        return f"Sum {a} {b}", column_addition(a, b)
    if kind < 0.60:
        copied = " ".join(rng.sample(ALL_WORDS + ALL_NAMES + ALL_CITIES, rng.randint(1, 4)))
        return f"Echo: {copied}", copied
    if kind < 0.90:
        relation = rng.choice(RELATIONS)
        sentences = {
            name: f"{name} {relation} {rng.choice(ALL_CITIES)}." for name in rng.sample(ALL_NAMES, rng.randint(2, 3))
        }
        about = rng.choice(list(sentences))
        return "Notes: " + " ".join(sentences.values()) + f" Tell me about {about}", sentences[about]
    x, y, carry = rng.randint(0, 9), rng.randint(0, 9), rng.randint(0, 1)
    return f"{x}+{y}+{carry}", f"{x + y + carry:02d}"


def tool_call(rng: random.Random) -> tuple[str, str]:
    """The four tools, asked for by their parameters instead of in a sentence."""
    name = rng.choice(["weather", "send", "alarm", "train"])
    if name == "weather":
        call = {"city": rng.choice(ALL_CITIES), "day": rng.choice(DAYS)}
    elif name == "send":
        call = {"to": rng.choice(ALL_NAMES), "text": rng.choice(WORDS)}
    elif name == "alarm":
        call = {"hour": rng.randint(1, 12), "label": rng.choice(WORDS)}
    else:
        call = dict(zip(("from", "to"), rng.sample(ALL_CITIES, 2), strict=True))
    return f"Call {name} " + " ".join(f"{key} {value}" for key, value in call.items()), json.dumps(
        {"tool": name, **call}
    )
