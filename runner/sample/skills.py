"""The four sample skills: what a row of each looks like, in the domain (ID) and out of it (OOD).

Every skill is a function `(rng, ood) -> Item`. An item carries the prompt, the only right answer, its sub-skill tags
(the first one is balanced over a file) and the *fact* it is about. Facts are split once and for all by a hash: probes
are drawn from held-out facts, training rows and the pretraining corpus (`world.py`) from all others, so a probe cannot
leak.
"""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import dataclass, field

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
WORDS = (
    "red cat sun map tree lake bird fish gold star moon rain wind song book door milk salt king ship hand road fire "
    "snow leaf rock bell coin drum"
).split()
OOD_WORDS = "lamp boat corn wolf silk vine harp cave pond nest".split()
KEYS = "city food color pet job song".split()
DAYS = "monday tuesday wednesday thursday friday saturday sunday today tomorrow".split()
HELD_OUT = 12  # one fact in twelve is kept for the probes


def invent(count: int, rng: random.Random) -> list[str]:
    """Two-syllable names such as `Mimi` or `Dako`."""
    names: set[str] = set()
    while len(names) < count:
        names.add("".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(2)).capitalize())
    return sorted(names)


_ALL_NAMES = invent(160, random.Random(7))
random.Random(8).shuffle(_ALL_NAMES)
NAMES, CITIES, OOD_NAMES, OOD_CITIES = _ALL_NAMES[:60], _ALL_NAMES[60:100], _ALL_NAMES[100:130], _ALL_NAMES[130:]


@dataclass(frozen=True)
class Item:
    prompt: str
    answer: str
    tags: list[str]
    fact: str
    constraints: dict = field(default_factory=dict)


def held_out(fact: str) -> bool:
    """Whether a fact belongs to the probes. A hash, not a list: it needs no state and holds for every seed."""
    return zlib.crc32(fact.encode()) % HELD_OUT == 0


def sum_fact(a: int, b: int) -> str:
    return f"{min(a, b)}+{max(a, b)}"


def column_addition(a: int, b: int) -> str:
    """27 and 45 → `7+5+0=12; 2+4+1=07; so 72`: ones first, each step `digit+digit+carry=sum`."""
    carry, steps = 0, []
    for x, y in ((a % 10, b % 10), (a // 10, b // 10)):
        total = x + y + carry
        steps.append(f"{x}+{y}+{carry}={total:02d}")
        carry = total // 10
    return "; ".join(steps) + f"; so {a + b}"


def math(rng: random.Random, ood: bool) -> Item:
    """Two-digit addition with its working. OOD: a first operand of 80 to 99: training never has these digits there."""
    a, b = (rng.randint(80, 99), rng.randint(10, 99)) if ood else (rng.randint(10, 79), rng.randint(10, 79))
    tags = ["carry" if a % 10 + b % 10 > 9 else "no-carry"] + (["three-digit"] if a + b > 99 else [])
    return Item(f"What is {a} + {b}?", column_addition(a, b), tags, sum_fact(a, b))


def search(rng: random.Random, ood: bool) -> Item:
    """An answer from a given context of three entries. OOD: values the training never has."""
    keys, place = rng.sample(KEYS, 3), rng.randrange(3)
    values = rng.sample(OOD_NAMES + OOD_CITIES if ood else NAMES + CITIES, 3)
    context = " ".join(f"[{i + 1}] {key} {value}." for i, (key, value) in enumerate(zip(keys, values, strict=True)))
    question = rng.choice(["What is the {}?", "Find the {}."]).format(keys[place])
    answer = f"{keys[place]} {values[place]}; answer {values[place]}"
    return Item(
        f"Context: {context} {question}", answer, [("first", "second", "third")[place]], f"{context} {keys[place]}"
    )


def tool(rng: random.Random, ood: bool) -> Item:
    """One JSON tool call of four. OOD: names, cities and words the training never has."""
    names, cities, words = (OOD_NAMES, OOD_CITIES, OOD_WORDS) if ood else (NAMES, CITIES, WORDS)
    name = rng.choice(["weather", "send", "alarm", "train"])
    if name == "weather":
        city, day = rng.choice(cities), rng.choice(DAYS)
        prompts, call = (
            [f"Get the weather in {city} on {day}", f"On {day}, how is the weather in {city}?"],
            {"city": city, "day": day},
        )
    elif name == "send":
        to, text = rng.choice(names), rng.choice(words)
        prompts, call = [f"Send {text} to {to}", f"Message {to} saying {text}"], {"to": to, "text": text}
    elif name == "alarm":
        hour, label = rng.randint(1, 12), rng.choice(words)
        prompts, call = (
            [f"Set alarm {label} at {hour}", f"At {hour} ring the alarm {label}"],
            {"hour": hour, "label": label},
        )
    else:
        start, end = rng.sample(cities, 2)
        prompts, call = (
            [f"Book a train from {start} to {end}", f"I go to {end} from {start} by train"],
            {"from": start, "to": end},
        )
    answer = json.dumps({"tool": name, **call})
    return Item(rng.choice(prompts), answer, [name], answer)


def format(rng: random.Random, ood: bool) -> Item:
    """An instruction whose result can be verified: upper case, a word count, an ending. OOD: unseen words."""
    words = rng.sample(OOD_WORDS if ood else WORDS, rng.randint(3, 5))
    text, kind = " ".join(words), rng.choice(["upper", "count", "ending"])
    if kind == "upper":
        prompt, answer = f"Write in uppercase: {text}", text.upper()
        constraints = {"case": "upper", "words": len(words), "words_from": words}
    elif kind == "count":
        count = rng.randint(1, 3)
        prompt, answer = f"Use exactly {count} words of: {text}", " ".join(words[:count])
        constraints = {"words": count, "words_from": words}
    else:
        last = rng.choice(OOD_NAMES if ood else NAMES)
        prompt, answer = f"Repeat and end with {last}: {text}", f"{text} {last}"
        constraints = {"words": len(words) + 1, "ends_with": last, "contains": words, "words_from": [*words, last]}
    return Item(prompt, answer, [kind], prompt, constraints)


SKILLS = {"math": math, "search": search, "tool": tool, "format": format}
MAIN_TAGS = {
    "math": ["carry", "no-carry"],
    "search": ["first", "second", "third"],
    "tool": ["weather", "send", "alarm", "train"],
    "format": ["upper", "count", "ending"],
}


def draw(skill: str, count: int, split: str, rng: random.Random) -> list[Item]:
    """`count` items with different prompts, the main tags in equal shares. `split` is `train`, `probe` or `ood`."""
    items: list[Item] = []
    prompts: set[str] = set()
    tags = MAIN_TAGS[skill]
    while len(items) < count:
        item = SKILLS[skill](rng, split == "ood")
        wanted = tags[len(items) % len(tags)]
        if (
            item.tags[0] != wanted
            or item.prompt in prompts
            or (split != "ood" and held_out(item.fact) != (split == "probe"))
        ):
            continue
        prompts.add(item.prompt)
        items.append(item)
    rng.shuffle(items)
    return items
