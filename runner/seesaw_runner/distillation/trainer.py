"""The student answers, the teacher of each row's domain scores the answer, the student moves towards the teacher."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from transformers import Trainer

from seesaw_runner.distillation.losses import divergence, entropy
from seesaw_runner.distillation.teachers import Rolled, Target, padded
from seesaw_runner.run_folder import StageError
from seesaw_runner.scoring.causal_lm import CausalLM
from seesaw_runner.scoring.generate import Sampling, end_ids, generate
from seesaw_runner.training.stage_trainer import StageTrainer

#: Batches without a single scored row, one after another, after which the stage gives up.
MOST_EMPTY_BATCHES = 3


@dataclass(frozen=True)
class Example:
    """A prompt with its domain; `answer` and `target` where the teacher's own answer was stored beforehand."""

    prompt: list[int]
    domain: str
    answer: list[int] | None = None
    target: Target | None = None


@dataclass(frozen=True)
class Distilling:
    """score(domain, rows): a teacher's targets. The rest are the stage's options."""

    score: Callable[[str, Sequence[Rolled]], list[Target | None]]
    loss: str
    beta: float
    entropy_threshold: float
    temperature: float
    top_p: float
    max_new_tokens: int
    seed: int


@dataclass
class Sums:
    """Sums since the last log, for one domain."""

    rows: int = 0
    dropped: int = 0
    masked: int = 0
    empty: int = 0
    cut: int = 0
    tokens: int = 0
    loss: float = 0.0
    student_entropy: float = 0.0
    teacher_entropy: float = 0.0


#: What is told of each domain; ratios are over rows, means over tokens.
TOLD = ("loss", "tokens", "dropped", "masked", "empty", "truncated", "length", "student_entropy", "teacher_entropy")


def metric_names(domains: Sequence[str]) -> tuple[str, ...]:
    """Names of the trainer's log that belong in the journal."""
    return tuple(f"{domain}/{name}" for domain in domains for name in TOLD)


class DistillTrainer(StageTrainer, Trainer):
    """Set `how` (Distilling) and `examples` right after construction. A batch is a list of indexes of examples."""

    how: Distilling
    examples: Sequence[Example]

    def __init__(self, *args, tokenizer, **kwargs):
        super().__init__(
            *args, data_collator=lambda rows: {"index": torch.tensor([r["index"] for r in rows])}, **kwargs
        )
        self.model_accepts_loss_kwargs = False
        self.tokenizer = tokenizer
        self.student = CausalLM(self.model)
        self.ends = end_ids(self.student.model, tokenizer)
        self.sums: dict[str, Sums] = defaultdict(Sums)
        self.empty_batches = 0
        self._place = (-1, 0)

    # ---- one batch

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Mean divergence over the tokens of all answers that a teacher scored; 0 when there is none."""
        examples = [self.examples[i] for i in inputs["index"].tolist()]
        rolled, targets = self._roll_out(examples)
        kept = [k for k, target in enumerate(targets) if target is not None]
        self._count(examples, rolled, targets)
        if not kept:
            self.empty_batches += 1
            if self.empty_batches >= MOST_EMPTY_BATCHES:
                raise StageError(
                    "exception",
                    f"No teacher has scored anything in {self.empty_batches} batches one after another. Look at the "
                    "teachers; run the stage again to go on from its last checkpoint.",
                    f"step {self.state.global_step + 1}",
                )
            # A loss that reaches every weight with a gradient of 0, so that all processes stay in step.
            return sum(p.sum() for p in model.parameters() if p.requires_grad) * 0.0
        self.empty_batches = 0
        ids, mask = padded([rolled[k].ids for k in kept], self.student.device)
        logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        total, tokens = logits.new_zeros((), dtype=torch.float32), 0
        for place, k in enumerate(kept):
            row, target = rolled[k], targets[k]
            student = logits[place, row.start - 1 : len(row.ids) - 1].float()
            each, student_entropy, teacher = self._divergence(student, target)
            total, tokens = total + each.sum(), tokens + len(each)
            sums = self.sums[examples[k].domain]
            sums.tokens += len(each)
            sums.loss += float(each.detach().sum())
            sums.student_entropy += float(student_entropy.sum())
            sums.teacher_entropy += float(entropy(teacher).sum())
        return total / tokens

    def _divergence(self, logits: torch.Tensor, target: Target) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        student = logits.log_softmax(-1)
        spread = entropy(student.detach())
        teacher = target.logprob.to(logits.device)
        if target.ids is not None:
            student = student.gather(-1, target.ids.to(logits.device)).log_softmax(-1)
        how = self.how
        each = divergence(student, teacher, how.loss, beta=how.beta, entropy_threshold=how.entropy_threshold)
        return each, spread, teacher

    # ---- answers

    def _roll_out(self, examples: list[Example]) -> tuple[list[Rolled], list[Target | None]]:
        """Answers of the student (or those stored), and what their teachers say of them."""
        fresh = [k for k, example in enumerate(examples) if example.answer is None]
        answers = {k: list(example.answer) for k, example in enumerate(examples) if example.answer is not None}
        if fresh:
            for k, one in zip(fresh, self._generate([examples[k].prompt for k in fresh]), strict=True):
                ended = one.finish == "stop"
                answers[k] = [*one.ids, self.tokenizer.eos_token_id] if ended else one.ids
                sums = self.sums[examples[k].domain]
                sums.empty += not one.ids
                sums.cut += not ended
        rolled = [Rolled([*e.prompt, *answers[k]], len(e.prompt)) for k, e in enumerate(examples)]
        targets: list[Target | None] = [example.target for example in examples]
        for domain in dict.fromkeys(examples[k].domain for k in fresh):
            mine = [k for k in fresh if examples[k].domain == domain and len(rolled[k].ids) > rolled[k].start]
            if mine:
                for k, target in zip(mine, self.how.score(domain, [rolled[k] for k in mine]), strict=True):
                    targets[k] = target
        return rolled, targets

    def _generate(self, prompts: list[list[int]]):
        """Samples; which step, batch and process it is decides the randomness, so a resumed run samples the same."""
        step = self.state.global_step
        self._place = (step, self._place[1] + 1 if self._place[0] == step else 0)
        sampling = None
        if self.how.temperature > 0:
            parts = (self.how.seed, step, self._place[1], self.args.process_index)
            seed = int.from_bytes(_digest(parts)[:8], "big") >> 1
            generator = torch.Generator(device=self.student.device).manual_seed(seed)
            sampling = Sampling(self.how.temperature, self.how.top_p, generator)
        return generate(
            self.student, prompts, max_new_tokens=self.how.max_new_tokens, ends=self.ends, sampling=sampling
        )

    # ---- metrics

    def _count(self, examples: list[Example], rolled: list[Rolled], targets: list[Target | None]) -> None:
        for example, row, target in zip(examples, rolled, targets, strict=True):
            sums = self.sums[example.domain]
            sums.rows += 1
            if len(row.ids) == row.start:
                sums.masked += 1  # not a single token of an answer
            elif target is None:
                sums.dropped += 1

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        for domain, sums in self.sums.items():
            tokens, rows = max(1, sums.tokens), max(1, sums.rows)
            logs |= {
                f"{domain}/loss": sums.loss / tokens,
                f"{domain}/tokens": float(sums.tokens),
                f"{domain}/dropped": float(sums.dropped),
                f"{domain}/masked": float(sums.masked),
                f"{domain}/empty": sums.empty / rows,
                f"{domain}/truncated": sums.cut / rows,
                f"{domain}/length": sums.tokens / rows,
                f"{domain}/student_entropy": sums.student_entropy / tokens,
                f"{domain}/teacher_entropy": sums.teacher_entropy / tokens,
            }
        self.sums.clear()
        super().log(logs, start_time)


def _digest(parts: tuple) -> bytes:
    import hashlib

    return hashlib.sha256(repr(parts).encode()).digest()
