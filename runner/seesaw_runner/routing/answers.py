"""Every answer that a router's stage needs, generated once: `router-answers.jsonl` in the run folder keeps them, and a
later attempt of the run reads them there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from seesaw_runner.rollouts.engines import CALL
from seesaw_runner.routing.mixture import Mixture, arms_of
from seesaw_runner.routing.served import Served
from seesaw_runner.run_folder import StageError, attempt_number
from seesaw_runner.scoring.generate import end_ids

FILE = "router-answers.jsonl"
#: Text without special tokens, and how it ended: `stop` or `length`.
Answer = tuple[str, str]


class Answers:
    """batch: rows generated together. It is fixed, so that a resumed attempt rounds as the first one did. served: vLLM
    with the base and its experts, or None; what several experts answer together is always the mixture's.
    """

    def __init__(self, stage, mixture: Callable[[], Mixture], batch: int, served: Served | None = None):
        self.stage, self._mixture, self.batch, self._served = stage, mixture, batch, served
        self.path: Path = stage.run / FILE
        self._known: dict[tuple[str, str, int], Answer] = {}
        if attempt_number(stage.attempt) > 1:
            self._read()
        else:
            self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        if not self.path.is_file():
            return
        whole = True
        with open(self.path, "rb") as file:
            for line in file:
                whole = line.endswith(b"\n")
                try:
                    one = json.loads(line)
                    self._known[one["by"], one["set"], int(one["row"])] = one["text"], one["finish"]
                except (ValueError, KeyError, TypeError):  # torn by a crash
                    continue
        if not whole:
            with open(self.path, "ab") as file:
                file.write(b"\n")

    def of(
        self, by: str, name: str, prompts: Sequence[Sequence[int]], weights: np.ndarray, limits: Sequence[int]
    ) -> list[Answer]:
        """Answers to one set of prompts under weights [prompts, arms]. by, name: who answers, and what set it is."""
        order = sorted(range(len(prompts)), key=lambda i: (len(prompts[i]), i))
        served = self._served if all(arm is not None for arm, _ in arms_of(weights)) else None
        size = CALL if served else self.batch
        for first in range(0, len(order), size):
            part = order[first : first + size]
            if all((by, name, i) in self._known for i in part):
                continue
            if self.stage.watch.signal is not None:
                raise StageError(
                    "cancelled",
                    "Stopped while the experts were answering. Run the stage again; it keeps the answers it has.",
                )
            tokenizer = self.stage.tokenizer
            asked, room = [prompts[i] for i in part], [limits[i] for i in part]
            if served:
                found = served.answers(asked, weights[part], room, told=f"{by} answers {name}")
            else:
                mixture = self._mixture()
                ends = end_ids(mixture.lm.model, tokenizer)
                found = mixture.answers(asked, weights[part], limits=room, ends=ends, batch=self.batch)
            texts = [(tokenizer.decode(one.ids, skip_special_tokens=True), one.finish) for one in found]
            self._keep(by, name, dict(zip(part, texts, strict=True)))
            self.stage.journal.append(
                "stage.progress",
                phase="generate",
                step=min(len(order), first + size),
                total=len(order),
                message=f"{by} answers {name}",
            )
        return [self._known[by, name, i] for i in range(len(prompts))]

    def close(self) -> None:
        """No further answer is wanted: vLLM, where it was started, gives its memory back."""
        if self._served:
            self._served.close()

    def _keep(self, by: str, name: str, found: dict[int, Answer]) -> None:
        with open(self.path, "a", encoding="utf-8") as out:
            for i, (text, finish) in found.items():
                self._known[by, name, i] = text, finish
                out.write(json.dumps({"by": by, "set": name, "row": i, "text": text, "finish": finish}) + "\n")
            out.flush()
            os.fsync(out.fileno())
