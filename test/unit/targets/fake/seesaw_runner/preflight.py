"""Stands in for the preflight: says what `args.preflight` of the stage tells it to."""
import json
import sys

spec = json.load(open(sys.argv[1], encoding="utf-8"))
print(json.dumps(spec["args"].get("preflight", []), indent=1))
