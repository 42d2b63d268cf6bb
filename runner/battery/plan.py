"""Which runs a bank has. Everything follows from the bank's name, so that a run can be made again from this file."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from battery.bases import SKILLS

STEPS = 120
LOOKS = (3, 6, 10, 15, 20, 30, 40, 60, 80, 100, 120)
BENCH_EVERY = 20
#: Runs of the first wave that a bank has; of bank A they were judged before the gentle wave was thought of.
FIRST = 78
BANKS = {"A": ("m0", (1, 2)), "B": ("n0", (1, 2)), "C": ("p0", (1, 2))}


@dataclass(frozen=True)
class Run:
    """One training. `kind`: what is done; `task`: what on; `share`: of replayed rows in every batch; `intent`: what it
    was made for, not what is true of it (the oracle says that).
    """

    id: str
    bank: str
    base: str
    start: str
    kind: str
    task: str
    intent: str
    rate: float
    seed: int
    share: float = 0.0
    steps: int = STEPS


def runs_of(bank: str) -> list[Run]:
    """The runs of a bank, three of the first wave and two of the gentle one in turn: each prefix has all kinds."""
    base, seeds = BANKS[bank]
    first = numbered(bank, 0, first_wave(base, seeds))[:FIRST]
    gentle = numbered(bank, FIRST, gentle_wave(base, seeds))
    turns = len(gentle) // 2
    return [run for k in range(turns) for run in (*first[3 * k : 3 * k + 3], *gentle[2 * k : 2 * k + 2])]


def numbered(bank: str, before: int, runs: list[Run]) -> list[Run]:
    """Seeds by their place in the plan, then an order of the bank's own, then ids by that order."""
    seeds = 1000 * (1 + list(BANKS).index(bank)) + before * 5
    runs = [replace(run, bank=bank, seed=seeds + k) for k, run in enumerate(runs)]
    random.Random(f"battery-{bank}" + ("-gentle" if before else "")).shuffle(runs)
    return [replace(run, id=f"{bank.lower()}-{before + k:03d}") for k, run in enumerate(runs)]


def adder(base: str, runs: list[Run]) -> Callable[..., None]:
    """add(intent, kind, start, task, rate, share): appends a run that has no bank, seed and id yet."""

    def add(intent: str, kind: str, start: str, task: str, rate: float, share: float = 0.0) -> None:
        runs.append(Run("", "", base, f"{base}-{start}", kind, task, intent, rate, 0, share))

    return add


def first_wave(base: str, seeds: tuple[int, ...]) -> list[Run]:
    """From gentle to cliff. Seven of eight of its losses on bank A took under ten steps, which led to the second."""
    runs: list[Run] = []
    add = adder(base, runs)
    for seed in seeds:
        for skill in SKILLS:  # a fourth skill after three, from gentle to cliff
            for rate in (1e-4, 2e-4, 4e-4, 1e-3):
                add("forgetting", "sft", f"no-{skill}-{seed}", skill, rate)
        for skill in SKILLS:  # one of four skills practised alone
            add("forgetting", "sft", f"all-{seed}", skill, (2e-4, 5e-4)[seed % 2])
        for rate in (2e-4, 5e-4, 1e-3):
            add("forgetting", "sft", f"all-{seed}", "greet", rate)
        for skill, rate in (("math", 2e-3), ("tool", 5e-3), ("search", 5e-3), ("format", 2e-3)):
            add("forgetting", "lora", f"no-{skill}-{seed}", skill, rate)
        for skill, rate in (("tool", 1e-4), ("format", 3e-4), ("math", 1e-4)):
            add("forgetting", "dpo", f"all-{seed}", skill, rate)
        for skill, rate in (("format", 3e-4), ("math", 3e-4)):
            add("forgetting", "grpo", f"half-{seed}", skill, rate)

        for rate in (5e-5, 1e-4, 3e-4, 6e-4):  # the same data, longer
            add("healthy", "continue", f"all-{seed}", "mix", rate)
        for rate in (3e-4, 6e-4, 1e-3):  # skills that are still getting better
            add("healthy", "improve", f"half-{seed}", "mix", rate)
        for skill in SKILLS:  # a new skill with enough of the old rows beside it
            add("healthy", "replay", f"no-{skill}-{seed}", skill, 3e-4, 0.5)
        for rate in (1e-4, 3e-4):
            add("healthy", "replay", f"all-{seed}", "greet", rate, 0.3)
            add("healthy", "replay", f"all-{seed}", "chat", rate, 0.3)
        for rate in (1e-4, 3e-4, 6e-4):  # other opening words, the same right answers
            add("healthy", "style", f"all-{seed}", "mix", rate)
        for share in (0.2, 0.35, 0.5):
            add("healthy", "temperature", f"all-{seed}", "none", share)
        for start in ("all", "half", "no-math"):
            add("healthy", "copy", f"{start}-{seed}", "none", 0.0)
        for rate in (3e-5, 1e-4):
            add("healthy", "grpo", f"all-{seed}", "math", rate)
        add("healthy", "lora", f"all-{seed}", "mix", 2e-3)
        add("healthy", "dpo", f"all-{seed}", "mix", 3e-5)
        for skill in ("tool", "math", "format"):  # hardly a step
            add("healthy", "sft", f"all-{seed}", skill, 1e-5)
    return runs


def gentle_wave(base: str, seeds: tuple[int, ...]) -> list[Run]:
    """Losses over many steps, as at the rates that large models are trained with; and old skills that really stay."""
    runs: list[Run] = []
    add = adder(base, runs)
    for seed in seeds:
        for skill, rate in (("tool", 7e-5), ("format", 1.4e-4), ("search", 3e-4), ("math", 1.4e-4)):
            add("forgetting", "sft", f"no-{skill}-{seed}", skill, rate)
        for skill, rate in (("greet", 1.4e-4), ("tool", 3e-4), ("search", 3e-4)):
            add("forgetting", "sft", f"all-{seed}", skill, rate)
        for skill, rate in (("tool", 1e-3), ("math", 7e-4)):
            add("forgetting", "lora", f"no-{skill}-{seed}", skill, rate)
        for skill, rate in (("tool", 7e-5), ("math", 5e-5)):
            add("forgetting", "dpo", f"all-{seed}", skill, rate)
        add("forgetting", "style", f"all-{seed}", "mix", 3e-5)
        add("forgetting", "replay", f"all-{seed}", "chat", 2e-4, 0.1)

        for rate in (3e-5, 7e-5):
            add("healthy", "continue", f"all-{seed}", "mix", rate)
        for skill in SKILLS:
            add("healthy", "replay", f"no-{skill}-{seed}", skill, 7e-5, 0.5)
        for task in ("greet", "chat"):
            add("healthy", "replay", f"all-{seed}", task, 4e-5, 0.4)
        for rate in (5e-5, 1.5e-4):
            add("healthy", "improve", f"half-{seed}", "mix", rate)
        add("healthy", "lora", f"all-{seed}", "mix", 1e-3)
        add("healthy", "sft", f"all-{seed}", "greet", 2e-5)
        add("healthy", "dpo", f"all-{seed}", "mix", 1e-5)
    return runs
