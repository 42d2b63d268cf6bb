"""The files of a benchmark: one pair per task, and which requested names they come from."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from seesaw_runner.benchmark.request import Request
from seesaw_runner.checkpoints.saving import write_json
from seesaw_runner.wire_numbers import encode

INDEX = "index.json"


def fingerprint(request: Request, name: str, harness: str) -> str:
    """SHA-256 of everything that decides the answers to a task, as far as it can be known before it is loaded."""
    parts: dict[str, Any] = {
        "name": name,
        "weights": request.weights_hash,
        "limit": request.limit,
        "shots": request.num_fewshot,
        "template": request.chat_template,
        "harness": harness,
        "files": {},
    }
    if request.include_path is not None:
        for path in sorted(p for p in request.include_path.rglob("*") if p.is_file() and p.suffix != ".pyc"):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            parts["files"][path.relative_to(request.include_path).as_posix()] = digest
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def done_before(request: Request, name: str, print_of: str) -> list[dict[str, Any]] | None:
    """The results of a requested name that are there already; None where it must be run."""
    index = _read(request.folder / INDEX) or {}
    known = index.get(name)
    if not isinstance(known, dict) or known.get("fingerprint") != print_of:
        return None
    results = [_read(request.folder / file) for file in known.get("files", [])]
    whole = bool(results) and all(r is not None and (request.folder / r["samples"]).is_file() for r in results)
    return [r for r in results if r is not None] if whole else None


def keep(request: Request, name: str, print_of: str, found: dict[str, Any], settings: dict[str, Any]) -> list[dict]:
    """Writes the samples and numbers of every task that a requested name (a task, or a group of them) stands for.

    found: what `simple_evaluate` returned; settings: of the run as a whole. The index comes last: it makes them count.
    """
    results = []
    for task, samples in found["samples"].items():
        config = found["configs"][task]
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", task)
        rows = sample_rows(samples)
        lines = "".join(json.dumps(encode(row), ensure_ascii=False) + "\n" for row in rows)
        write_text(request.folder / f"{stem}.jsonl", lines)
        metrics = metrics_of(found["results"][task], found["higher_is_better"].get(task) or {}, config, rows)
        result = {
            "v": 1,
            "harness": "lm-eval",
            "task": task,
            **request.about,
            "weights_hash": request.weights_hash,
            "n": len({row["key"] for row in rows}),
            "metrics": metrics,
            "settings": {
                **settings,
                "task": str(found["versions"].get(task)),
                "shots": found["n-shot"].get(task),
                "prompts": prompts_hash(rows),
                "sampling": sampling_of(config),
                "max_tokens": (config.get("generation_kwargs") or {}).get("max_gen_toks"),
            },
            "samples": f"{stem}.jsonl",
        }
        write_json(request.folder / f"{stem}.json", encode(result))
        results.append(result)
    index = _read(request.folder / INDEX) or {}
    index[name] = {"fingerprint": print_of, "files": [r["samples"].removesuffix(".jsonl") + ".json" for r in results]}
    write_json(request.folder / INDEX, index)
    return results


def sample_rows(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per prompt and filter. `key` names the prompt in every checkpoint: lm-eval's hash of its document, with a
    number where a document occurs twice. A document's own `group` is kept."""
    seen: Counter[tuple[str, str]] = Counter()
    rows = []
    for sample in samples:
        name, document = str(sample.get("filter", "none")), sample.get("doc")
        seen[sample["doc_hash"], name] += 1
        count = seen[sample["doc_hash"], name]
        group = document.get("group") if isinstance(document, dict) else None
        rows.append(
            {
                "key": sample["doc_hash"] + (f"#{count}" if count > 1 else ""),
                "filter": name,
                "metrics": {metric: _number(sample.get(metric)) for metric in sample.get("metrics", [])},
                "prompt_hash": sample["prompt_hash"],
                "prompt": sample["arguments"][0][0] if sample.get("arguments") else None,
                "target": _plain(sample.get("target")),
                "answer": _plain(sample.get("filtered_resps")),
                "responses": _plain(sample.get("resps")),
                **({"group": str(group)} if isinstance(group, str | int) else {}),
            }
        )
    return rows


def metrics_of(numbers: dict, better: dict, config: dict, rows: list[dict]) -> list[dict[str, Any]]:
    """Value of every metric and filter. `per_row`: each row has the number, so that checkpoints can be compared row by
    row; `binary`: it is 0 or 1 everywhere. The first metric under the first filter is the task's `main` one."""
    first = [str(m.get("metric")) for m in config.get("metric_list") or []]
    out = []
    for name, value in numbers.items():
        metric, comma, filter_name = name.partition(",")
        if not comma or metric.endswith("_stderr"):
            continue
        own = [row["metrics"].get(metric) for row in rows if row["filter"] == filter_name]
        known = bool(own) and all(isinstance(v, int | float) and not math.isnan(v) for v in own)
        out.append(
            {
                "metric": metric,
                "filter": filter_name,
                "value": _number(value),
                "higher_is_better": better.get(metric) is not False,
                "per_row": known,
                "binary": known and all(v in (0, 1) for v in own),
                "main": False,
            }
        )
    order = sorted(
        range(len(out)), key=lambda i: (first.index(out[i]["metric"]) if out[i]["metric"] in first else 99, i)
    )
    if order:
        out[order[0]]["main"] = True
    return out


def prompts_hash(rows: list[dict]) -> str:
    """SHA-256 over the prompts as the model saw them, examples and template included, in any order."""
    return hashlib.sha256("\n".join(sorted(row["prompt_hash"] for row in rows)).encode()).hexdigest()


def sampling_of(config: dict) -> str:
    """`scored` where answers are only scored, `greedy`, or how tokens are drawn."""
    if config.get("output_type") != "generate_until":
        return "scored"
    asked = config.get("generation_kwargs") or {}
    if not asked.get("do_sample") or asked.get("temperature") == 0:
        return "greedy"
    return json.dumps({k: asked[k] for k in ("temperature", "top_p", "top_k") if k in asked}, sort_keys=True)


def write_text(path: Path, text: str) -> None:
    """Whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _number(value: Any) -> Any:
    """numpy's numbers and booleans as Python's; what is no number as None."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))
