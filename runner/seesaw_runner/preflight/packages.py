"""The Python and the packages a recipe needs, by their metadata: nothing is imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys

from seesaw_runner.findings import Finding

PYTHON = (3, 10)
#: Package → oldest version that the recipes are written for. runner/requirements.txt pins what is tested.
PACKAGES = {
    "torch": "2.6",
    "transformers": "5.0",
    "trl": "1.0",
    "peft": "0.18",
    "accelerate": "1.10",
    "datasets": "4.0",
    "safetensors": "0.5",
}
_INSTALL = "Install what runner/requirements.txt lists into this Python"


def check_packages(spec: dict) -> list[Finding]:
    """Python too old, packages missing, too old or only half there. peft is needed only with an adapter."""
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
    for name, least in PACKAGES.items():
        if name == "peft" and not spec.get("adapter"):
            continue
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            findings.append(
                Finding(
                    "package",
                    "error",
                    f"the package {name} is not installed",
                    f"{_INSTALL}: pip install '{name}>={least}'",
                    where,
                )
            )
            continue
        if importlib.util.find_spec(name) is None:
            findings.append(
                Finding(
                    "package",
                    "error",
                    f"the package {name} {version} is registered, but its files are gone",
                    f"{_INSTALL}: pip install --force-reinstall {name}",
                    where,
                )
            )
        elif version_tuple(version) < version_tuple(least):
            findings.append(
                Finding(
                    "package",
                    "error",
                    f"{name} {version} is too old, the runner needs {least}",
                    f"{_INSTALL}: pip install '{name}>={least}'",
                    where,
                )
            )
    return findings


def version_tuple(version: str) -> tuple[int, ...]:
    """`2.13.0+cpu` → (2, 13, 0); what is no number ends it."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in numbers.group().split(".")) if numbers else ()
