"""`python -m seesaw_runner.preflight RUN_FOLDER_OR_RUN_JSON [--json]`. Exit code 0: may start, 1: errors, 2:
wrong usage.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seesaw_runner.findings import errors_of
from seesaw_runner.preflight import preflight

USAGE = "usage: python -m seesaw_runner.preflight RUN_FOLDER_OR_RUN_JSON [--json]"


def main(argv: list[str]) -> int:
    places = [argument for argument in argv if not argument.startswith("-")]
    options = [argument for argument in argv if argument.startswith("-")]
    if "-h" in options or "--help" in options:
        print(USAGE)
        return 0
    if len(places) != 1 or not set(options) <= {"--json"}:
        print(USAGE, file=sys.stderr)
        return 2
    place = Path(places[0])
    file = place / "run.json" if place.is_dir() else place
    try:
        spec = json.loads(file.read_text(encoding="utf-8"))
        major = str(spec["schema"]).partition(".")[0]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{file} cannot be read as run.json: {error}", file=sys.stderr)
        return 2
    if major != "1":
        print(f"{file} has schema {spec['schema']}, this runner reads 1.x; update the runner", file=sys.stderr)
        return 2
    findings = preflight(spec, place if place.is_dir() else None)
    if "--json" in options:
        print(json.dumps([finding.to_event() for finding in findings], indent=1))
    else:
        print("\n".join(map(str, findings)) or "No problems found.")
    return 1 if errors_of(findings) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
