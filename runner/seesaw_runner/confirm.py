"""python -m seesaw_runner.confirm RUN SKILL PROMPTS START NOW [--most N]: a skill's check on further prompts, under the
checkpoint a stage started from and a later one, as JSON on stdout: {v, rows: [{line, before, now}], left_out}.

before, now: whether the greedy answer passes the check. Left out are rows that cannot be encoded or whose prompt is in
the stage's data or its replay buffer, with the number of each. Of more than N rows the ones with the smallest hashes
are taken: a sample that does not depend on how the file is sorted. Exit code 0 with the answer, 1 with {"error": code,
"message": sentence}. Progress goes to stderr: `1/2` when the first checkpoint has answered.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from seesaw_runner import environment

environment.apply()

from seesaw_runner.run_folder import StageError  # noqa: E402


class _Warnings:
    """Takes what a run would journal: here it is only counted."""

    def append(self, kind: str, **body: Any) -> None:
        pass


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m seesaw_runner.confirm", description="A check on further prompts.")
    parser.add_argument("run", help="the run folder, whose run.json says the check")
    parser.add_argument("skill")
    parser.add_argument("prompts", help="a file of rows with verified answers, as probe files are")
    parser.add_argument("start", help="the checkpoint's folder that the stage started from")
    parser.add_argument("now", help="the later checkpoint's folder")
    parser.add_argument("--most", type=int, default=200, metavar="N", help="prompts at most")
    given = parser.parse_args(argv)
    try:
        answer = confirm(Path(given.run), given.skill, given.prompts, [given.start, given.now], given.most)
    except StageError as error:
        print(json.dumps({"v": 1, "error": error.code, "message": str(error)}))
        return 1
    except (OSError, MemoryError) as error:
        print(json.dumps({"v": 1, "error": "bad-checkpoint", "message": f"{type(error).__name__}: {error}"}))
        return 1
    print(json.dumps(answer, allow_nan=False))
    return 0


def confirm(run: Path, skill: str, prompts: str, checkpoints: list[str], most: int) -> dict[str, Any]:
    """Verdicts of every checkpoint on the same prompts, in the order of the file."""
    from transformers.utils import logging as library_logging

    from seesaw_runner.probing.evaluate import Evaluator, judge, margin_for
    from seesaw_runner.probing.membership import trained_rows
    from seesaw_runner.probing.probe_set import load_probe_sets
    from seesaw_runner.scoring.causal_lm import CausalLM
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.scoring.generate import end_ids
    from seesaw_runner.training.device import choose
    from seesaw_runner.training.loading import context_length, load_model, load_tokenizer

    library_logging.disable_progress_bar()
    spec = json.loads((run / "run.json").read_text(encoding="utf-8"))
    about = next((s for s in spec["skills"] if s["id"] == skill), None)
    if about is None:
        raise StageError("bad-argument", f"The run has no skill {skill!r}.", "skills")
    spec["skills"] = [{**about, "probes": {"id": prompts}}]
    device = choose()
    verdicts: list[list[bool]] = []
    lines: list[int] = []
    left_out = {"unusable": 0, "trained": 0, "more": 0}
    for done, folder in enumerate(checkpoints):
        tokenizer = load_tokenizer(folder)
        model = load_model(folder, device.dtype, device.torch)
        context = context_length(model)
        (probes,) = load_probe_sets(spec, Encoder(tokenizer, context), lambda **_: None, context)
        barred = trained_rows([probes], spec, run, _Warnings())[0]
        clean = [i for i in range(len(probes.usable)) if i not in barred]
        rows = sorted(sorted(clean, key=lambda i: (probes.probes[probes.usable[i]].hash, i))[: max(0, most)])
        lm = CausalLM(model)
        evaluator = Evaluator(
            tokenizer,
            max_new_tokens=int(spec["probe"]["max_new_tokens"]),
            ends=end_ids(lm.model, tokenizer),
            margin=margin_for(device.dtype),
            context=context,
        )
        size = max(1, int(spec["probe"]["batch_size"]))
        answers = []
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            texts = evaluator.texts(lm, [probes.probes[probes.usable[i]].row for i in part], None)
            answers += judge(probes, part, texts)
        found = [probes.probes[probes.usable[i]].line for i in rows]
        if done and found != lines:
            raise StageError("bad-checkpoint", "The two checkpoints' tokenizers cannot encode the same rows.", folder)
        lines, verdicts = found, [*verdicts, [a.correct for a in answers]]
        left_out = {
            "unusable": len(probes.probes) - len(probes.usable),
            "trained": len(barred),
            "more": len(clean) - len(rows),
        }
        del lm, model, evaluator
        print(f"{done + 1}/{len(checkpoints)}", file=sys.stderr, flush=True)
    before, now = verdicts
    rows_told = [{"line": n, "before": b, "now": a} for n, b, a in zip(lines, before, now, strict=True)]
    return {"v": 1, "rows": rows_told, "left_out": left_out}


if __name__ == "__main__":
    sys.exit(main())
