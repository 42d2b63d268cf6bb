"""python -m seesaw_runner.export --checkpoint DIR --out DIR: the scoring graph of a checkpoint's architecture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from seesaw_runner.export.graphs import UnsupportedArchitecture, export_graph


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="seesaw_runner.export", description=__doc__)
    parser.add_argument("--checkpoint", required=True, type=Path, help="a Hugging Face folder with config.json")
    parser.add_argument("--out", required=True, type=Path, help="usually .seesaw/cache/graphs of the pipeline")
    given = parser.parse_args(argv)
    try:
        print(export_graph(given.checkpoint, given.out).with_suffix(".onnx"))
    except (UnsupportedArchitecture, OSError, ValueError) as error:
        print(f"No graph for {given.checkpoint}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
