"""How the training process is started: what an accelerate configuration asks for that a stage cannot follow."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from seesaw_runner.findings import Finding

#: Ways to spread one model over processes whose checkpoints Seesaw could not write and read again without pickle.
_WHOLE = "every process keeps the whole model (DDP), so that checkpoints are safetensors and a resume is exact"
SHARDED = {
    "deepspeed": "ZeRO keeps optimizer states that only its own pickled checkpoints can hold",
    "fsdp": "FSDP cuts the weights up, and its optimizer states are only in its own pickled checkpoints",
    "megatron_lm": "Megatron-LM cuts the weights up and has a checkpoint format of its own",
    "tp": "tensor parallelism cuts the weights up",
    "xla": "TPUs are not supported",
    "tpu": "TPUs are not supported",
}
_PLAIN = ("no", "multi_gpu", "multi_cpu")
#: What `accelerate launch` tells the processes that it starts.
_ENVIRONMENT = {
    "ACCELERATE_USE_DEEPSPEED": "deepspeed",
    "ACCELERATE_USE_FSDP": "fsdp",
    "ACCELERATE_USE_MEGATRON_LM": "megatron_lm",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "tp",
}
#: Arguments of `accelerate launch` that would do the same; Seesaw's own come first, but these would win.
_FLAGS = re.compile(r"--(use_deepspeed|use_fsdp|use_megatron_lm|use_parallelism_config|tpu)$")
_LINE = re.compile(r"[\"']?(\w+)[\"']?[ \t]*:[ \t]*[\"']?([^\"',#\s{}]+)")


def check_launch(spec: dict, environ: Mapping[str, str] = os.environ) -> list[Finding]:
    """Errors for a launch that would cut the model up, warnings for settings of the configuration that are not used."""
    launch = spec.get("launch") or {}
    findings = [_refused(kind, name) for name, kind in _ENVIRONMENT.items() if environ.get(name, "").lower() == "true"]
    for word in launch.get("args") or ():
        flag = _FLAGS.match(word.replace("-", "_").replace("__", "--", 1))
        if flag:
            findings.append(_refused(flag[1].removeprefix("use_"), "launch.args"))
    config = launch.get("config")
    if config is None:
        return findings
    try:
        text = Path(config).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        fix = "Correct the path, or make the file with `accelerate config --config_file`"
        return [*findings, Finding("bad-argument", "error", f"the accelerate configuration: {why}", fix, config)]
    values = {name: value for name, value in reversed(_LINE.findall(text))}
    kind = values.get("distributed_type", "no").lower()
    if kind not in _PLAIN:
        findings.append(_refused(kind, config))
    if values.get("num_machines", "1") != "1":
        message = f"the accelerate configuration asks for {values['num_machines']} machines, and a stage runs on one"
        findings.append(Finding("bad-argument", "error", message, "Set num_machines: 1", config))
    if values.get("mixed_precision", "no").lower() not in ("no", "null"):
        message = f"mixed_precision: {values['mixed_precision']} of the accelerate configuration is not used"
        fix = "Seesaw computes in bf16 where the GPU can; set args.bf16 or args.fp16 of the stage to decide it yourself"
        findings.append(Finding("launch", "warning", message, fix, config))
    if values.get("dynamo_backend", "no").lower() not in ("no", "null"):
        message = "the dynamo settings of the accelerate configuration are not used"
        findings.append(Finding("launch", "warning", message, "Set args.torch_compile of the stage", config))
    return findings


def _refused(kind: str, where: str) -> Finding:
    why = SHARDED.get(kind, "it is not known to Seesaw")
    return Finding(
        "bad-argument",
        "error",
        f"{kind.replace('_', '-')} cannot be used: {why}",
        f"Use DDP (distributed_type: MULTI_GPU, or launch: torchrun): {_WHOLE}; for a model that is too large, an "
        "adapter, gradient_checkpointing or optim: adafactor",
        where,
    )
