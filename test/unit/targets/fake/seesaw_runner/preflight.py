"""Stands in for the preflight: says what `args.preflight` of the stage tells it to."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as handle:
    spec = json.load(handle)
print(json.dumps(spec["args"].get("preflight", []), indent=1))
