"""Rebuilds `media/sample` from a seed: `python runner/sample/build.py [--model] [--seed 0]`.

Without `--model` only the data files are written; they are the same bytes on every machine. With it, the tokenizer and
M0 are trained anew as well (five to eight minutes), which needs torch and transformers.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sample.rows import paraphrase_rows, probe_rows, to_lines, train_rows
from sample.skills import SKILLS

SAMPLE = Path(__file__).resolve().parents[2] / "media" / "sample"


def prompts(rows: list[dict]) -> set[str]:
    return {row["messages"][0]["content"] for row in rows}


def build_data(folder: Path, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    train = {skill: train_rows(skill, seed) for skill in SKILLS}
    trained_on = set().union(*map(prompts, train.values()))
    for skill in SKILLS:
        files = {
            "train": train[skill],
            "probe": probe_rows(skill, "probe", seed),
            "ood": probe_rows(skill, "ood", seed),
            "paraphrase": paraphrase_rows(skill, seed),
        }
        for split in ("probe", "ood", "paraphrase"):
            leaked = prompts(files[split]) & trained_on
            if leaked:
                raise AssertionError(
                    f"{skill}: {len(leaked)} {split} prompts occur in training data, for example {min(leaked)!r}"
                )
        for split, rows in files.items():
            (folder / f"{skill}.{split}.jsonl").write_bytes(to_lines(rows))
        print(skill, {split: len(rows) for split, rows in files.items()})


def build_model(folder: Path, seed: int, steps: int | None) -> None:
    from sample.pretrain import STEPS, pretrain, save_model
    from sample.tokenizer import build_tokenizer

    tokenizer = build_tokenizer(seed)
    tokenizer.save_pretrained(folder)
    model = pretrain(tokenizer, seed, steps or STEPS, report=lambda line: print(line, flush=True))
    save_model(model, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="store_true", help="also train the tokenizer and M0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="fewer pretraining steps, for a quick look")
    parser.add_argument("--out", type=Path, default=SAMPLE, help="another folder to write to")
    options = parser.parse_args()
    build_data(options.out / "data", options.seed)
    if options.model:
        build_model(options.out / "models" / "m0", options.seed, options.steps)


if __name__ == "__main__":
    main()
