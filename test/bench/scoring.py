"""Scoring tokens/s of the probe scorer beside a plain transformers loop and lm-eval's loglikelihood, in one run.

Prints one JSON line: [{name, value, unit, target?}]. Needs runner/requirements-dev.txt (lm-eval).
`python test/bench/scoring.py [--repeat N]`.

Two models: the sample's M0 (vocabulary 1,024) and a random Llama with the vocabulary of today's models (151,936), where
the LM head is most of the work. All score the reference answers of the sample's in-domain probes. The plain loop is
what one writes first: batches in file order, right padded, full logits, float32 log-softmax, gather. The rounds are
interleaved, so that a busy machine slows all alike, and medians are compared. Ours also gives entropy, rank and the top
8; the others only the log-probability.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    logging.disable(logging.WARNING)
    torch.set_num_threads(os.cpu_count() or 1)
    folder = str(ROOT / "media/sample/models/m0")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    small = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, use_safetensors=True).eval()
    torch.manual_seed(0)
    shape = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 704}
    large = LlamaForCausalLM(LlamaConfig(vocab_size=151_936, tie_word_embeddings=True, **shape)).eval()
    rows = encoded_rows(tokenizer)
    results = compare("sample M0", small, tokenizer, rows, batch=64, repeat=options.repeat)
    results += compare("vocabulary 151,936", large, tokenizer, rows[::4], batch=16, repeat=max(2, options.repeat // 2))
    print(json.dumps(results))


def encoded_rows(tokenizer) -> list:
    """The in-domain probes of the sample, encoded as the runner does."""
    from seesaw_runner.data.rows import read_rows
    from seesaw_runner.scoring.encode import Encoder

    encoder, rows = Encoder(tokenizer), []
    for path in sorted((ROOT / "media/sample/data").glob("*.probe.jsonl")):
        encoded = (encoder.encode(row.value, last_only=True) for row in read_rows(str(path)))
        rows += [row for row in encoded if row.reason is None]
    return rows


def compare(label: str, model, tokenizer, rows: list, *, batch: int, repeat: int) -> list[dict]:
    """Tokens/s of all on the same rows. Ends the program when their sums differ: they did other work then."""
    import torch
    from lm_eval.models.huggingface import HFLM
    from seesaw_runner.scoring.scorer import Scorer

    scorer = Scorer(model, top_k=8, batch_size=batch)

    def ours() -> list[float]:
        scores = scorer.score(rows)
        return scores.sums(scores.logprob)

    @torch.no_grad()
    def plain() -> list[float]:
        sums = []
        for first in range(0, len(rows), batch):
            part = rows[first : first + batch]
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

    def harness(size: int) -> Callable[[], list[float]]:
        evaluator = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=size)
        requests = []
        for row in rows:
            cut = row.scored[0]
            requests.append((("", ""), row.ids[:cut], row.ids[cut : row.scored[-1] + 1]))
        return lambda: [value for value, _ in evaluator._loglikelihood_tokens(requests, disable_tqdm=True)]

    methods: dict[str, Callable[[], list[float]]] = {
        "seesaw": ours,
        "plain": plain,
        "lm-eval": harness(batch),
        "lm-eval, batch 1": harness(1),
    }
    results = {name: run() for name, run in methods.items()}
    for name, sums in results.items():
        worst = max(abs(a - b) for a, b in zip(sums, results["plain"], strict=True))
        if worst > 1e-3:
            raise SystemExit(f"{label}: {name} and the plain loop disagree by {worst:.2e} nats on a row.")
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(repeat):
        for name, run in methods.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    tokens = sum(len(row.scored) for row in rows)
    rate = {name: tokens / statistics.median(times) for name, times in seconds.items()}
    own = rate["seesaw"]
    return [
        {"name": f"scoring, {label}", "value": round(own), "unit": "tokens/s"},
        {"name": f"scoring, {label}, against a plain loop", "value": round(own / rate["plain"], 2), "unit": "×"},
        {
            "name": f"scoring, {label}, against lm-eval, same batch size ({batch})",
            "value": round(own / rate["lm-eval"], 2),
            "unit": "×",
        },
        {
            "name": f"scoring, {label}, against lm-eval at its default (batch 1)",
            "value": round(own / rate["lm-eval, batch 1"], 2),
            "unit": "×",
            "target": "≥ 2",
        },
    ]


if __name__ == "__main__":
    main()
