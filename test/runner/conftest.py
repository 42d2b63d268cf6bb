"""One tiny model, tokenizer and data set for all runner tests, built on the fly: no downloads, no committed weights."""

from __future__ import annotations

import copy
import json
import os
import random
import sys
from pathlib import Path

import pytest

for name, value in {
    "OMP_NUM_THREADS": "2",
    "OMP_WAIT_POLICY": "passive",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}.items():
    os.environ.setdefault(name, value)

RUNNER = Path(__file__).resolve().parents[2] / "runner"

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'assistant' %}"
    "<|assistant|>{% generation %}{{ m['content'] }}<|end|>{% endgeneration %}"
    "{% else %}<|user|>{{ m['content'] }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|pad|>", "<|bos|>", "<|user|>", "<|assistant|>", "<|end|>"]
WORDS = "red cat sun map tree lake bird fish gold star moon rain".split()


def chat(question: str, answer: str, **fields) -> dict:
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}], **fields}


def copy_rows(n: int, seed: int) -> list[dict]:
    """`say a b` → `a b`: learnable by a tiny model within a few dozen steps."""
    r = random.Random(seed)
    rows = []
    for k in range(n):
        text = " ".join(r.sample(WORDS, r.randint(1, 4)))
        rows.append(chat(f"say {text}", text, id=f"{seed}-{k}", tags=["short" if len(text.split()) < 3 else "long"]))
    return rows


def write_rows(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def build_tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator([f"say {w} {w}" for w in WORDS] * 4, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<|pad|>",
        bos_token="<|bos|>",
        eos_token="<|end|>",
        additional_special_tokens=["<|user|>", "<|assistant|>"],
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def build_model(seed: int = 0, **overrides):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = {
        "vocab_size": 320,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 128,
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 4,
        "initializer_range": 0.2,
    }
    return LlamaForCausalLM(LlamaConfig(**{**config, **overrides})).eval()


@pytest.fixture(scope="session")
def base_folder(tmp_path_factory) -> Path:
    """A saved random base model with its tokenizer."""
    folder = tmp_path_factory.mktemp("base") / "m0"
    build_model().save_pretrained(folder)
    build_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tokenizer(base_folder):
    from seesaw_runner.training.loading import load_tokenizer

    return load_tokenizer(str(base_folder))


@pytest.fixture(scope="session")
def shared_model(base_folder):
    """Do not change it; `model` gives a copy."""
    import torch
    from seesaw_runner.training.loading import load_model

    return load_model(str(base_folder), torch.float32, torch.device("cpu")).eval()


@pytest.fixture
def model(shared_model):
    return copy.deepcopy(shared_model)


@pytest.fixture(scope="session")
def encoded(tokenizer):
    """Forty encoded probe rows of unlike length."""
    from seesaw_runner.scoring.encode import Encoder

    rows = Encoder(tokenizer).encode_all([r for r in copy_rows(40, 7)])
    assert all(r.reason is None for r in rows)
    return rows


@pytest.fixture
def make_run(base_folder, tmp_path):
    """make_run(**changes) → a run folder with run.json and two skills, ready for `recipes.sft`."""
    root = tmp_path / "project"

    def make(
        name: str = "copy-20260101T000000-0001", train: list[dict] | None = None, probes: int = 34, **changes
    ) -> Path:
        data = write_rows(root / "data" / "train.jsonl", train if train is not None else copy_rows(48, 1))
        id_, ood = (
            write_rows(root / "data" / "id.jsonl", copy_rows(probes, 2)),
            write_rows(root / "data" / "ood.jsonl", copy_rows(probes, 3)),
        )
        run = root / ".seesaw" / "runs" / name
        (run / "attempt-0001").mkdir(parents=True)
        spec = {
            "schema": "1.0",
            "id": name,
            "stage": "copy",
            "index": 1,
            "recipe": "sft",
            "pipeline": {"file": str(root / "seesaw.yaml"), "name": "test", "root": str(root)},
            "created": 0,
            "start": {"checkpoint": str(base_folder), "label": "M0", "run": None, "step": None},
            "base": str(base_folder),
            "data": str(data),
            "inputs": [],
            "args": {"max_steps": 6, "per_device_train_batch_size": 4, "learning_rate": 1e-3, "use_cpu": True},
            "adapter": None,
            "launch": {"kind": "python", "processes": 1},
            "seed": 3,
            "save_every": None,
            "skills": [
                {
                    "id": "copy",
                    "probes": {"id": str(id_), "ood": str(ood)},
                    "check": {"kind": "text"},
                    "own_stage": "copy",
                }
            ],
            "probe": {
                "every": 3,
                "eval_every": None,
                "top_k": 4,
                "max_new_tokens": 8,
                "batch_size": 16,
                "kl": ["start", "base"],
            },
            "flags": {"alpha": 0.1, "tolerance": 0.2},
            "replay": None,
            "target": {"id": "local", "kind": "local", "python": sys.executable},
            "env": {},
            "fingerprint": "0" * 64,
            "trusted": False,
            "versions": {},
        }
        args = {**spec["args"], **changes.pop("args", {})}
        (run / "run.json").write_text(json.dumps({**spec, **changes, "args": args}), encoding="utf-8")
        return run

    return make


@pytest.fixture(scope="session")
def taught_folder(tmp_path_factory, base_folder):
    """The base model after it has learned to copy: a teacher, an oracle, a labeller. Right on most rows."""
    import torch
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.training.loading import load_model, load_tokenizer

    torch.manual_seed(0)
    model = load_model(str(base_folder), torch.float32, torch.device("cpu")).train()
    tokenizer = load_tokenizer(str(base_folder))
    rows = Encoder(tokenizer).encode_all(copy_rows(256, 11))
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    for step in range(110):
        batch = [rows[(step * 32 + k) % len(rows)] for k in range(32)]
        width = max(len(row.ids) for row in batch)
        ids, labels = torch.zeros((32, width), dtype=torch.long), torch.full((32, width), -100)
        for k, row in enumerate(batch):
            ids[k, : len(row.ids)] = torch.tensor(row.ids)
            labels[k, row.scored] = torch.tensor([row.ids[i] for i in row.scored])
        model(
            input_ids=ids,
            attention_mask=(torch.arange(width) < torch.tensor([[len(r.ids)] for r in batch])).long(),
            labels=labels,
        ).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    folder = tmp_path_factory.mktemp("taught") / "m1"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def as_model(folder: Path, label: str = "M1") -> dict:
    """An entry of run.json's `models`."""
    return {"checkpoint": str(folder), "label": label, "run": None, "step": None, "weights_hash": "0" * 64}


@pytest.fixture
def recipe(monkeypatch):
    """recipe(name, folder) runs a recipe in this process (imports are paid once) and gives its exit code. Signal
    handlers are put back."""
    import importlib
    import signal

    kept = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.delenv("SEESAW_ATTEMPT", raising=False)

    def run(name: str, folder: Path) -> int:
        module = importlib.import_module(f"seesaw_runner.recipes.{name.replace('-', '_')}")
        return module.main(["--run", str(folder)])

    yield run
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def sft(recipe):
    """Runs the recipe sft in this process."""
    return lambda folder: recipe("sft", folder)


def outcome(run: Path, attempt: int = 1) -> dict:
    """What a run said of its own end."""
    return json.loads((run / f"attempt-{attempt:04d}" / "outcome.json").read_text())


def events(run: Path, kind: str | None = None) -> list[dict]:
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    return [e for e in lines if kind is None or e["type"] == kind]
