"""Scoring tokens/s of the probe scorer, a plain transformers loop and lm-eval's loglikelihood: same rows, same run.

Prints one JSON line: [{name, value, unit, ratio?, target?}]. Needs runner/requirements-bench.txt (lm-eval).
`python test/bench/scoring.py [--model DIR] [--repeat N]`.

All three score the reference answers of the sample's in-domain probes under the base model. The plain loop is what one
writes first: batches in file order, right padded, full logits, float32 log-softmax, gather. The rounds are interleaved,
so that a busy machine slows all three alike, and medians are compared.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "runner"))
BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(ROOT / "media/sample/models/m0"))
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()

    import torch
    from seesaw_runner.data.rows import read_rows
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.scoring.scorer import Scorer
    from transformers import AutoModelForCausalLM, AutoTokenizer

    logging.disable(logging.WARNING)
    torch.set_num_threads(os.cpu_count() or 1)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32, use_safetensors=True).eval()
    encoder = Encoder(tokenizer)
    rows = []
    for path in sorted((ROOT / "media/sample/data").glob("*.probe.jsonl")):
        rows += [
            row for row in (encoder.encode(r.value, last_only=True) for r in read_rows(str(path))) if row.reason is None
        ]
    tokens = sum(len(row.scored) for row in rows)
    scorer = Scorer(model, top_k=8, batch_size=BATCH)

    def ours() -> list[float]:
        scores = scorer.score(rows)
        return scores.sums(scores.logprob)

    @torch.no_grad()
    def plain() -> list[float]:
        sums = []
        for first in range(0, len(rows), BATCH):
            part = rows[first : first + BATCH]
            width = max(len(row.ids) for row in part)
            ids = torch.full((len(part), width), tokenizer.pad_token_id)
            mask = torch.zeros_like(ids)
            for k, row in enumerate(part):
                ids[k, : len(row.ids)] = torch.tensor(row.ids)
                mask[k, : len(row.ids)] = 1
            logp = torch.log_softmax(model(input_ids=ids, attention_mask=mask).logits.float(), -1)
            for k, row in enumerate(part):
                sums.append(sum(float(logp[k, p - 1, row.ids[p]]) for p in row.scored))
        return sums

    from lm_eval.models.huggingface import HFLM

    harness = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=BATCH)
    requests = []
    for row in rows:
        cut = row.scored[0]
        requests.append((("", ""), row.ids[:cut], row.ids[cut : row.scored[-1] + 1]))

    def lm_eval() -> list[float]:
        return [value for value, _ in harness._loglikelihood_tokens(requests, disable_tqdm=True)]

    methods: dict[str, Callable[[], list[float]]] = {"seesaw": ours, "plain": plain, "lm-eval": lm_eval}
    results = {name: run() for name, run in methods.items()}
    for name, sums in results.items():
        worst = max(abs(a - b) for a, b in zip(sums, results["plain"], strict=True))
        if worst > 1e-3:
            raise SystemExit(
                f"{name} and the plain loop disagree by {worst:.2e} nats on a row: the figures would compare different "
                "work."
            )
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(options.repeat):
        for name, run in methods.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    rate = {name: tokens / statistics.median(times) for name, times in seconds.items()}
    print(
        json.dumps(
            [
                {"name": "scoring (logprob, entropy, rank, top-8)", "value": round(rate["seesaw"]), "unit": "tokens/s"},
                {
                    "name": "scoring: plain transformers loop (logprob only)",
                    "value": round(rate["plain"]),
                    "unit": "tokens/s",
                },
                {"name": "scoring: lm-eval loglikelihood", "value": round(rate["lm-eval"]), "unit": "tokens/s"},
                {
                    "name": "scoring against the plain loop",
                    "value": round(rate["seesaw"] / rate["plain"], 2),
                    "unit": "×",
                },
                {
                    "name": "scoring against lm-eval",
                    "value": round(rate["seesaw"] / rate["lm-eval"], 2),
                    "unit": "×",
                    "target": "≥ 2",
                },
            ]
        )
    )


if __name__ == "__main__":
    main()
