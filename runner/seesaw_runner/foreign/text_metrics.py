"""One line of a trainer's output → the numbers in it: Python dicts, JSON, `key: value` and `key=value` lines.

What trainers print is no language: values come as `np.float64(1.2)`, `tensor(3., device='cuda:0')`, `nan` or as text
("0.5123"), behind log prefixes and Ray's `(Actor pid=1)`. So nothing is evaluated; what does not fit is no metric line.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

#: More numbers than this in one line are a table or a dump, not metrics.
MAX_VALUES = 400
_MAX_NAME, _MAX_TEXT = 200, 8192

_NUMBER = r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|NaN|NAN|inf|Inf|INF|infinity|Infinity)\b"
_WRAPPED = r"[A-Za-z_][\w.]*\((?:[^()]|\([^()]*\))*\)"
_IS_NUMBER = re.compile(rf"(?:{_NUMBER})\Z")
_IN_WRAPPER = re.compile(rf"[A-Za-z_][\w.]*\(\s*({_NUMBER})\s*(?:,[^\[\]]*)?\)\Z")

_RAY = re.compile(r"^\s*\([\w.<>-]+ pid=\d+(?:, ip=[\w.:]+)?\)\s?")
_REPEATED = re.compile(r"\[repeated \d+x across cluster\].*$")
#: `name N:` and `name N/M` in front of the numbers. `rollout` is slime's clock, `iteration` Megatron's.
_STEP = re.compile(
    r"(?<![\w/])(?:global[_ ]?step|train[_ ]?step|steps?|iteration|iter|rollout|perf|passrate|multi_turn|eval)\b"
    r"\s*[:=#]?\s*\[?\s*(\d+)(?![\d.]*[eE.%\d])(?:\s*/\s*(\d+))?",
    re.IGNORECASE,
)
_STEP_KEYS = (
    "step",
    "global_step",
    "_step",
    "train/global_step",
    "trainer/global_step",
    "training/global_step",
    "train/step",
    "rollout/step",
    "eval/step",
    "current_steps",
    "iteration",
    "iter",
)
_TOTAL_KEYS = ("total_steps", "max_steps")
#: Not metrics: clocks and sizes that other events tell.
_CLOCKS = {*_STEP_KEYS, *_TOTAL_KEYS, "epoch", "total_flos", "_runtime", "_timestamp"}
#: A dict without a step is believed only if one of its names looks like a measurement.
_TELLING = re.compile(
    r"loss|reward|score|acc|grad|entropy|kl|ppl|perplexity|learning_rate|\blr\b|margin", re.IGNORECASE
)

_PAIR = re.compile(
    r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([A-Za-z_][\w./@-]*))\s*:\s*"
    rf"(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|({_WRAPPED})|([^\s,{{}}\[\]()'\"]+))\s*(,|}})"
)
_EQUATION = re.compile(rf"(?<![\w./@-])([A-Za-z_@][\w./@-]*)\s*[:=]\s*({_WRAPPED}|{_NUMBER})(?![\w.:])")
_SPACED = re.compile(
    r"(?<![\w./-])(?:(val|valid|validation|eval|test|train)\s+)?"
    r"((?:[\w/-]*[/_-])?(?:loss|lr|ppl|accuracy|acc|reward|grad_norm|learning_rate|entropy|kl)(?:_\w+)?)\s+"
    rf"({_NUMBER})(?![\w.:/])",
    re.IGNORECASE,
)
#: tqdm: `Training:  20%|##   | 10/50 [00:10<00:40, 1.0it/s]`.
_BAR = re.compile(r"\s*(?:([^|%]*?):?\s+)?\d+%\|[^|]*\|\s*(\d+)/(\d+)\s*\[")
_SEGMENT = re.compile(rf"\s*([A-Za-z][^:=|]*?)\s*[:=]\s*({_WRAPPED}|{_NUMBER})\s*%?\s*\Z")


@dataclass
class Metrics:
    """`step` and `epoch` are None where the line does not say; `total` is the number of steps, if it does."""

    values: dict[str, float]
    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    keys: set[str] = field(default_factory=set)


def number(value: Any) -> float | None:
    """The number that a printed value means, or None: `0.5`, "0.5", `np.float64(0.5)`, `tensor(0.5, device=…)`."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value) if abs(value) < 1e300 or not math.isfinite(value) else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    inner = _IN_WRAPPER.match(text)
    if inner:
        text = inner.group(1)
    return float(text.replace("_", "")) if _IS_NUMBER.match(text) else None


def read_line(text: str) -> Metrics | None:
    """The metrics of one line of output, or None."""
    line = _REPEATED.sub("", _RAY.sub("", " ".join(text.split()))).strip()  # long runs of blanks are slow to match
    if len(line) < 3 or not any(sign in line for sign in ":= "):
        return None
    brace = line.find("{")
    if brace >= 0 and line.endswith("}"):
        return _from_dict(line[:brace], line[brace:])
    return None if brace >= 0 else _from_text(line)


def read_bar(text: str) -> tuple[int, int] | None:
    """(done, total) of a progress bar of the training: one without a name, or named after steps or training."""
    match = _BAR.match(" ".join(text[:400].split()))
    if match is None:
        return None
    name = (match.group(1) or "").lower()
    return (int(match.group(2)), int(match.group(3))) if not name or "train" in name or "step" in name else None


def read_json_line(text: str) -> Metrics | None:
    """A line of a JSON Lines log: nested objects are flattened (`a/b`), one called `data` without its name."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    flat: dict[str, Any] = {}
    _flatten(value, "", flat, 0)
    return of_mapping(flat)


def _flatten(value: dict, prefix: str, into: dict[str, Any], depth: int) -> None:
    for key, item in value.items():
        if isinstance(item, dict):
            if depth < 4:
                _flatten(item, prefix if key == "data" and not depth else f"{prefix}{key}/", into, depth + 1)
        else:
            into[prefix + str(key)] = item


def of_mapping(mapping: dict[str, Any]) -> Metrics | None:
    """Metrics of a dict whose values are numbers or what prints like one; the others are left out."""
    numbers = {str(k): n for k, v in mapping.items() if (n := number(v)) is not None and len(str(k)) <= _MAX_NAME}
    if not numbers or len(numbers) > MAX_VALUES:
        return None
    step = next((_whole(numbers[k]) for k in _STEP_KEYS if k in numbers), None)
    total = next((_whole(numbers[k]) for k in _TOTAL_KEYS if k in numbers), None)
    values = {short(k): n for k, n in numbers.items() if k not in _CLOCKS}
    epoch = numbers.get("epoch", numbers.get("train/epoch"))
    values.pop("epoch", None)
    return Metrics(values, step, total, epoch, set(mapping)) if values else None


def short(name: str) -> str:
    """`train/loss` is `loss`, so that one quantity has one name wherever it is logged."""
    return name[len("train/") :] if name.startswith("train/") and len(name) > len("train/") else name


def _whole(value: float) -> int | None:
    return int(value) if math.isfinite(value) and value >= 0 and value == int(value) else None


def _from_dict(prefix: str, body: str) -> Metrics | None:
    """A flat dict at the end of the line. One with lists or dicts in it is a sample or a setting, not metrics."""
    mapping: dict[str, Any] = {}
    at = 1
    while True:
        pair = _PAIR.match(body, at)
        if pair is None:
            return None
        key = next(part for part in pair.group(1, 2, 3) if part is not None)
        mapping[key] = next(part for part in pair.group(4, 5, 6, 7) if part is not None)
        at = pair.end()
        if pair.group(8) == "}":
            break
        if body[at:].strip() == "}":  # a trailing comma
            at = len(body)
            break
    if body[at:].strip():
        return None
    found = of_mapping(mapping)
    if found is None:
        return None
    if found.step is None:
        steps = list(_STEP.finditer(prefix))
        if steps:
            found.step, found.total = int(steps[-1].group(1)), _int(steps[-1].group(2)) or found.total
        elif not any(_TELLING.search(name) for name in found.values):
            return None
    return found


def _from_text(line: str) -> Metrics | None:
    """`step:1 - loss:0.5`, `step=2 lr=1e-5`, `step 40 loss 2.1`, Megatron's ` iteration 20/ 300 | lm loss: 1.2E+00`."""
    step = _STEP.search(line) if len(line) <= _MAX_TEXT else None
    if step is None:
        return None
    rest = line[: step.start()] + " " + line[step.end() :]
    pairs: dict[str, str] = {}
    if rest.count("|") >= 2:
        pairs = dict(m.groups() for part in rest.split("|") if (m := _SEGMENT.match(part)))
    if not pairs:
        pairs = {m.group(1): m.group(2) for m in _EQUATION.finditer(rest)}
        for part, name, value in (m.groups() for m in _SPACED.finditer(rest)):
            pairs.setdefault(f"{part}/{name}" if part else name, value)
    found = of_mapping({key: value for key, value in pairs.items() if not _STEP.fullmatch(key)})
    if found is None or not any(_TELLING.search(name) for name in found.values):
        return None
    found.step, found.total = int(step.group(1)), _int(step.group(2))
    if "lm loss" in found.values:
        found.values.setdefault("loss", found.values["lm loss"])
    return found


def _int(text: str | None) -> int | None:
    return int(text) if text else None
