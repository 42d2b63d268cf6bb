"""The Python and the packages a recipe needs, by their metadata: nothing is imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from seesaw_runner.findings import Finding
from seesaw_runner.node_check import PYTHON

#: Package → oldest version that the recipes are written for. runner/requirements.txt pins what is tested.
PACKAGES = {
    "torch": "2.6",
    "transformers": "5.0",
    "trl": "1.0",
    "peft": "0.18",
    "accelerate": "1.10",
    "datasets": "4.0",
    "safetensors": "0.5",
    "lm-eval": "0.4.9",
    "scikit-learn": "1.3",
    "deepspeed": "0.14",
    "vllm": "0.8",
}
_MODULES = {"scikit-learn": "sklearn"}
_INSTALL = "Install what runner/requirements.txt lists into this Python"
#: What can be done instead.
_OTHERWISE = {
    "lm-eval": ", or take `benchmark` out of seesaw.yaml",
    "scikit-learn": ", or leave `near`, and k_center and clusters of `diversity`, out of the buffer",
    "deepspeed": ", or use launch: { kind: torchrun }",
    "vllm": ", or leave args.use_vllm out (and options.engine at auto): transformers then generates the answers",
}


def _compares_rows(spec: dict) -> Any:
    replay = spec.get("replay") or {}
    diversity = replay.get("diversity") or {}
    return replay.get("near") or any(diversity.get(name) for name in ("k_center", "clusters"))


#: Packages that not every stage needs.
_WHEN: dict[str, Callable[[dict], Any]] = {
    "peft": lambda spec: spec.get("adapter"),
    "lm-eval": lambda spec: spec.get("benchmark"),
    "scikit-learn": _compares_rows,
    "deepspeed": lambda spec: (spec.get("launch") or {}).get("kind") == "deepspeed",
    "vllm": lambda spec: (
        (spec.get("args") or {}).get("use_vllm") or (spec.get("options") or {}).get("engine") == "vllm"
    ),
}


def check_packages(spec: dict) -> list[Finding]:
    """Python too old, packages missing, too old or only half there; of those that only some stages need, what this one
    does."""
    where = (spec.get("target") or {}).get("python") or sys.executable
    findings = []
    if sys.version_info < PYTHON:
        have = ".".join(map(str, sys.version_info[:2]))
        findings.append(
            Finding(
                "python",
                "error",
                f"Python {have} is too old, the runner needs {PYTHON[0]}.{PYTHON[1]}",
                "Choose another Python for the target",
                where,
            )
        )
    for lack in lacking(spec):
        findings.append(
            Finding("package", "error", lack.what(), f"{_INSTALL}: pip install {lack.wanted()}{lack.instead}", where)
        )
    return findings


class Lack(NamedTuple):
    """A package that this Python has not, or not as the stage needs it."""

    name: str
    least: str
    #: None: not installed.
    version: str | None
    #: Registered, but not there.
    gone: bool

    def what(self) -> str:
        if self.version is None:
            return f"the package {self.name} is not installed"
        if self.gone:
            return f"the package {self.name} {self.version} is registered, but its files are gone"
        return f"{self.name} {self.version} is too old, the runner needs {self.least}"

    def wanted(self) -> str:
        """As pip takes it, in a shell."""
        return f"--force-reinstall {self.name}" if self.gone else f"'{self.name}>={self.least}'"

    @property
    def instead(self) -> str:
        return _OTHERWISE.get(self.name, "")


def lacking(spec: dict) -> list[Lack]:
    """What this Python lacks of the packages that the stage needs."""
    found = []
    for name, least in PACKAGES.items():
        if name in _WHEN and not _WHEN[name](spec):
            continue
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found.append(Lack(name, least, None, False))
            continue
        gone = importlib.util.find_spec(_MODULES.get(name, name.replace("-", "_"))) is None
        if gone or version_tuple(version) < version_tuple(least):
            found.append(Lack(name, least, version, gone))
    return found


def version_tuple(version: str) -> tuple[int, ...]:
    """`2.13.0+cpu` → (2, 13, 0); what is no number ends it."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in numbers.group().split(".")) if numbers else ()
