"""Items → JSON Lines rows, with the blemishes of real training data: low rewards, a few wrong answers, near-duplicates.

They are there so that a replay buffer's quality and diversity filters have something to drop. They are too few to harm
the training: of 2000 rows 20 are wrong, 100 are rated low, 60 repeat another row's prompt (20 word for word).
"""

from __future__ import annotations

import dataclasses
import json
import random

from sample.paraphrase import paraphrase
from sample.skills import Item, draw

TRAIN_ROWS, PROBE_ROWS = 2000, 64
WRONG, LOW, REPEATED, RESTATED = 20, 100, 20, 40
GOOD_REWARD, LOW_REWARD, WRONG_REWARD = 1.0, 0.6, 0.0


def to_row(identity: str, item: Item, reward: float | None = None) -> dict:
    messages = [{"role": "user", "content": item.prompt}, {"role": "assistant", "content": item.answer}]
    row = {"id": identity, "messages": messages, "tags": item.tags}
    if item.constraints:
        row["constraints"] = item.constraints
    if reward is not None:
        row["reward"] = reward
    return row


def train_rows(skill: str, seed: int) -> list[dict]:
    rng = random.Random(f"{skill}-train-{seed}")
    items = draw(skill, TRAIN_ROWS - REPEATED - RESTATED, "train", rng)
    rated = [(item, GOOD_REWARD) for item in items]
    chosen = rng.sample(range(len(items)), WRONG + LOW)
    for i in chosen[:WRONG]:
        others = [other for other in items if other.tags[0] == items[i].tags[0] and other.answer != items[i].answer]
        rated[i] = (dataclasses.replace(items[i], answer=rng.choice(others).answer), WRONG_REWARD)
    for i in chosen[WRONG:]:
        rated[i] = (items[i], LOW_REWARD)
    clean = sorted(set(range(len(items))) - set(chosen))
    copies = rng.sample(clean, REPEATED + RESTATED)
    rated += [(items[i], GOOD_REWARD) for i in copies[:REPEATED]]
    rated += [
        (dataclasses.replace(items[i], prompt=f"Please. {items[i].prompt}"), GOOD_REWARD) for i in copies[REPEATED:]
    ]
    rng.shuffle(rated)
    return [to_row(f"{skill}-train-{i + 1:04d}", item, reward) for i, (item, reward) in enumerate(rated)]


def probe_rows(skill: str, split: str, seed: int) -> list[dict]:
    """`split` is `probe` (in the domain) or `ood`."""
    rng = random.Random(f"{skill}-{split}-{seed}")
    return [to_row(f"{skill}-{split}-{i + 1:02d}", item) for i, item in enumerate(draw(skill, PROBE_ROWS, split, rng))]


def paraphrase_rows(skill: str, seed: int) -> list[dict]:
    """The in-domain probes in other words; the answers stay."""
    rows = []
    for row in probe_rows(skill, "probe", seed):
        question, answer = row["messages"]
        asked = {"role": "user", "content": paraphrase(skill, question["content"])}
        rows.append({**row, "id": row["id"].replace("-probe-", "-paraphrase-"), "messages": [asked, answer]})
    return rows


def to_lines(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
