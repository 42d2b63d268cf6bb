"""One run of the battery, from its plan to its measured numbers."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path

import torch

from battery import rows as data
from battery.bases import SKILLS, load, make_start, start_skills
from battery.measure import Clock, Group, Meter, check_of, panel_numbers, weight_drift
from battery.plan import BENCH_EVERY, LOOKS, Run
from battery.supervised import fit, prefer, reinforce, soften

#: Below this the skill was not there: nothing to forget.
MEASURABLE = 0.6
#: The oracle is asked at these looks first, and between two of them where something changed in between: where it moved
#: by MOVED, or where the panel's answers are further than STRAY from the straight line between the two.
COARSE = (0, 15, 40, 80, 120)
MOVED, STRAY = 0.015, 0.025


def rows_for(run: Run) -> list[dict]:
    """What a run is trained on; replayed rows are those of the start's skills, mixed in by their share."""
    rng = random.Random(f"mix-{run.seed}")

    def mix(count: int) -> list[dict]:
        skills = start_skills(run.start)
        return [row for skill in skills for row in data.train_rows(skill, run.seed, count // len(skills))]

    if run.kind == "style":
        plain = [r for skill in ("tool", "format") for r in data.train_rows(skill, run.seed, 400)]
        return plain + data.styled([r for skill in ("math", "search") for r in data.train_rows(skill, run.seed, 400)])
    if run.task == "mix":
        return mix(data.TRAIN)
    own = {"greet": data.spoken_rows, "chat": data.chat_rows}.get(
        run.task, lambda seed: data.train_rows(run.task, seed)
    )
    fresh = own(run.seed)
    if not run.share:
        return fresh
    replayed = int(len(fresh) * run.share / (1 - run.share))
    mixed = fresh + mix(replayed)
    rng.shuffle(mixed)
    return mixed


class Record:
    """The numbers of a run, look after look."""

    def __init__(self, run: Run, model, tokenizer, folder: Path):
        self.clock = Clock()
        skills = start_skills(run.start)
        seed = 7  # one set of held-out rows for all: a start's answers to them are the same for every run
        self.meter = Meter(tokenizer)
        oracle = Group("oracle", skills, tokenizer, seed, folder)
        self.first = self.meter.right(oracle, model, self.meter.scores(oracle, model))
        self.skills = [s for s in skills if self.first[s].count("1") >= MEASURABLE * len(self.first[s])]
        self.oracle = Group("oracle", self.skills, tokenizer, seed, folder)
        self.panel = Group("panel", self.skills, tokenizer, seed, folder)
        self.bench = Group("bench", self.skills, tokenizer, seed, folder)
        new = run.task if run.task in SKILLS else "math"
        self.new = Group("panel", [new], tokenizer, seed + 1, folder)
        self.new.rows = self.new.rows[: data.NEW]
        self.references = {"start": self.meter.reference(self.panel, model)}
        self.new_reference = {"start": self.meter.reference(self.new, model)}
        self.states: list[dict[str, torch.Tensor]] = []
        self.weights = {n: p.detach().clone() for n, p in model.named_parameters() if p.ndim == 2}
        self.out: dict = {
            "v": 1,
            **{
                k: getattr(run, k)
                for k in ("id", "bank", "base", "kind", "task", "intent", "seed", "rate", "share", "start", "steps")
            },
            "looks": [],
            "skills": self.skills,
            "panel": {s: {"nll": [], "margin": [], "decision": [], "right": [], "kl": []} for s in self.skills},
            "oracle": {s: [] for s in self.skills},
            "bench": {s: [] for s in self.skills},
            "run": {"loss": [], "val_loss": [], "kl_new": [], "drift": []},
        }

    def look(self, model, step: int, loss: float | None, *, batch: int = 0, reverse: bool = False) -> None:
        out, meter = self.out, self.meter
        was = torch.get_rng_state()  # looking must not change the training
        out["looks"].append(step)
        with self.clock.of("panel"):
            scores = meter.scores(self.panel, model, references=self.references, batch=batch, reverse=reverse)
            numbers = panel_numbers(self.panel, scores)
        with self.clock.of("panel_answers"):
            right = meter.right(self.panel, model, scores)
        for skill in self.skills:
            for name, values in numbers[skill].items():
                out["panel"][skill][name].append(values)
            out["panel"][skill]["right"].append(right[skill])
        self.states.append({name: value.detach().clone() for name, value in model.state_dict().items()})
        bench = {}
        if step % BENCH_EVERY == 0:
            with self.clock.of("bench"):
                bench = meter.right(self.bench, model, meter.scores(self.bench, model))
        for skill in self.skills:
            out["bench"][skill].append(bench.get(skill))
        new = meter.scores(self.new, model, references=self.new_reference)
        out["run"]["val_loss"].append(round(-float(new.logprob.mean()), 5))
        out["run"]["kl_new"].append(round(float(new.kl["start"].mean()), 6))
        out["run"]["loss"].append(None if loss is None else round(loss, 5))
        out["run"]["drift"].append(weight_drift(self.weights, model))
        torch.set_rng_state(was)

    def ask_oracle(self, model) -> None:
        """The truth at every look: measured, or where nothing moved between two measured looks, that of the first of
        them. `oracle_at` says which were measured.
        """
        looks, known = self.out["looks"], {0: self.first}
        model.eval()

        def measure(k: int) -> dict[str, str]:
            if k not in known:
                model.load_state_dict(self.states[k])
                with self.clock.of("oracle"):
                    known[k] = self.meter.right(self.oracle, model, self.meter.scores(self.oracle, model))
            return known[k]

        def share(bits: str) -> float:
            return bits.count("1") / len(bits)

        def moved(a: int, b: int) -> bool:
            for skill in self.skills:
                if abs(share(known[a][skill]) - share(known[b][skill])) >= MOVED:
                    return True
                seen = [share(bits) for bits in self.out["panel"][skill]["right"]]
                if any(
                    abs(seen[k] - seen[a] - (seen[b] - seen[a]) * (k - a) / (b - a)) >= STRAY for k in range(a + 1, b)
                ):
                    return True
            return False

        def refine(a: int, b: int) -> None:
            if b - a < 2 or not moved(a, b):
                return
            middle = (a + b) // 2
            measure(middle)
            refine(a, middle)
            refine(middle, b)

        coarse = [k for k, step in enumerate(looks) if step in COARSE]
        for k in coarse:
            measure(k)
        for a, b in itertools.pairwise(coarse):
            refine(a, b)
        newest = known[0]
        for k in range(len(looks)):
            newest = known.get(k, newest)
            for skill in self.skills:
                self.out["oracle"][skill].append(newest[skill])
        self.out["oracle_at"] = sorted(known)

    def again(self, model) -> None:
        """The start once more: other batches, other order, so other padding. What changes is noise."""
        numbers = panel_numbers(self.panel, self.meter.scores(self.panel, model, batch=96, reverse=True))
        self.out["again"] = numbers


def carry_out(run: Run, cache: Path) -> dict:
    """Trains and measures. The record is the same for the same machine and library versions."""
    torch.set_num_threads(1)
    torch.manual_seed(run.seed)
    model, tokenizer = load(make_start(run.start, cache))
    with tempfile.TemporaryDirectory() as folder:
        record = Record(run, model, tokenizer, Path(folder))
        record.look(model, 0, None)
        record.again(model)
        whole = Clock()
        with whole.of("all"):
            model = train(run, model, tokenizer, record)
        looked = sum(record.clock.seconds.values())
        record.ask_oracle(model)
    record.out["seconds"] = {k: round(v, 2) for k, v in record.clock.seconds.items()}
    record.out["seconds"]["train"] = round(max(0.0, whole.seconds["all"] - looked), 2)
    record.out["tokens"] = {
        "panel": sum(len(row.ids) for row in record.panel.rows) * len(record.out["looks"]),
        "panel_scored": sum(len(row.scored) for row in record.panel.rows),
    }
    return record.out


def train(run: Run, model, tokenizer, record: Record):
    """Carries the training out and gives the trained model (the same one, or with a LoRA in it)."""
    common = {"steps": run.steps, "rate": run.rate, "seed": run.seed, "looks": LOOKS, "look": record.look}
    if run.kind == "copy":
        for k, step in enumerate(LOOKS):
            record.look(model, step, None, batch=(32, 64, 96, 200)[k % 4], reverse=k % 2 == 0)
    elif run.kind == "temperature":
        left = 1.0
        for k, step in enumerate(LOOKS):
            wanted = 1 - run.rate * (k + 1) / len(LOOKS)
            soften(model, 1 - wanted / left)
            left = wanted
            record.look(model, step, None)
    elif run.kind == "dpo":
        task = run.task if run.task in SKILLS else "tool"
        return prefer(model, tokenizer, data.preferences(task, run.seed, 800), **common)
    elif run.kind == "grpo":
        check = check_of(run.task)
        return reinforce(model, tokenizer, data.train_rows(run.task, run.seed), check.passes, **common)
    elif run.kind == "lora":
        from peft import LoraConfig

        lora = LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM")
        return fit(model, tokenizer, rows_for(run), peft=lora, **common)
    else:
        return fit(model, tokenizer, rows_for(run), **common)
    return model
