"""The unrelated bases, and the checkpoints that runs of the battery start from.

`m0` is the sample's base. `n0` and `p0` share nothing with it, or with each other, but the corpus's grammar: another
architecture (n0 Qwen3: norms on queries and keys, grouped heads; p0 OLMo 2: norms after each part, embeddings that are
not tied), width, depth, tokenizer, seed and order of pretraining.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from sample import pretrain as sample_pretrain
from sample import tokenizer as sample_tokenizer
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Olmo2Config,
    Olmo2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from battery.rows import train_rows
from battery.supervised import fit

SKILLS = ("math", "search", "tool", "format")
STEPS = 4000
START_RATE = 1e-3
JOINT_STEPS, HALF_STEPS = 420, 170
MEDIA = Path(__file__).resolve().parents[2] / "media"
# They are in the repository: a run is repeated without pretraining. `python -m battery.bases n0` makes n0 again.
BASES = {"m0": MEDIA / "sample" / "models" / "m0", "n0": MEDIA / "battery" / "n0", "p0": MEDIA / "battery" / "p0"}


def new_n0(tokenizer) -> Qwen3ForCausalLM:
    return Qwen3ForCausalLM(
        Qwen3Config(
            hidden_size=88,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=24,
            intermediate_size=208,
            tie_word_embeddings=True,
            initializer_range=0.04,
            **sample_pretrain.fitting(tokenizer),
        )
    )


def new_p0(tokenizer) -> Olmo2ForCausalLM:
    return Olmo2ForCausalLM(
        Olmo2Config(
            hidden_size=80,
            num_hidden_layers=5,
            num_attention_heads=5,
            num_key_value_heads=5,
            intermediate_size=224,
            tie_word_embeddings=False,
            initializer_range=0.03,
            **sample_pretrain.fitting(tokenizer),
        )
    )


#: Of the bases made here: model, seed and size of the vocabulary.
RECIPES = {"n0": (new_n0, 20261130, 768), "p0": (new_p0, 20261201, 512)}


def make_base(name: str, report=print) -> None:
    """Pretrains a base from its seed; three to eight minutes of one core."""
    new_model, seed, vocabulary = RECIPES[name]
    sample_tokenizer.VOCABULARY, sample_pretrain.new_model = vocabulary, new_model
    tokenizer = sample_tokenizer.build_tokenizer(seed)
    model = sample_pretrain.pretrain(tokenizer, seed, STEPS, report)
    tokenizer.save_pretrained(BASES[name])
    sample_pretrain.save_model(model, BASES[name])


def load(folder: Path):
    """(model in float32, tokenizer) of a folder, for one more training."""
    torch.set_num_threads(1)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), AutoTokenizer.from_pretrained(folder)


def start_skills(name: str) -> list[str]:
    kind = name.split("-", 1)[1].rsplit("-", 1)[0]
    return [skill for skill in SKILLS if kind != f"no-{skill}"]


def make_start(name: str, cache: Path) -> Path:
    """A checkpoint that has several skills: joint training of the base on them, in even shares."""
    folder = cache / "starts" / name
    if (folder / "model.safetensors").exists():
        return folder
    base, seed = name.split("-", 1)[0], int(name.rsplit("-", 1)[1])
    model, tokenizer = load(BASES[base])
    rows = [row for skill in start_skills(name) for row in train_rows(skill, 100 + seed)]
    steps = HALF_STEPS if "-half-" in name else JOINT_STEPS
    fit(model, tokenizer, rows, steps=steps, rate=START_RATE, seed=seed)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    make_base(sys.argv[1])
