"""Writes models and the runner's own scores of them, for the parity test: python make_models.py SAMPLE OUT.

Every model gets OUT/<name>/ (a checkpoint), its graph in OUT/graphs, and OUT/<name>.scores.json: what
`seesaw_runner.scoring` says of rows of the sample's probes.
"""

import copy
import json
import shutil
import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from seesaw_runner.data.rows import read_rows
from seesaw_runner.export.graphs import export_graph
from seesaw_runner.scoring.encode import Encoder
from seesaw_runner.scoring.scorer import Scorer
from seesaw_runner.training.loading import load_model, load_tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, MistralConfig, Qwen2Config, Qwen3Config

sample, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
base = sample / "models" / "m0"
CPU = torch.device("cpu")
EXTRA = [
    {"prompt": "A plain prompt, ", "completion": "a plain answer."},
    {"text": "Text without a prompt, with café, 中文 and 😀."},
    {"instruction": "Say it", "input": "twice", "output": "it it"},
    {
        "messages": [
            {"role": "system", "content": "Short."},
            {"role": "user", "content": "Hi 👩‍🔬"},
            {"role": "assistant", "content": " one\n"},
            {"role": "user", "content": "again"},
            {"role": "assistant", "content": "  twó  😀 end "},
        ]
    },
    # Marks as text: in the answer, at its very end, in the question, and twice in a row with an earlier answer.
    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "a <|end|> b"}]},
    {"messages": [{"role": "user", "content": "Say <|user|>"}, {"role": "assistant", "content": "so <|end|>"}]},
    {"messages": [{"role": "user", "content": "<|assistant|>sneaky"}, {"role": "assistant", "content": "plain"}]},
    {
        "messages": [
            {"role": "system", "content": "<|bos|>"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "<|end|><|end|>"},
            {"role": "user", "content": "two"},
            {"role": "assistant", "content": "<|pad|>中<|end|> 2"},
        ]
    },
]


def shaken(model, seed, amount=0.05):
    """Every parameter moved, biases and norms too: no two tensors are equal."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * amount)
    return model


def save(name, model, **options):
    model.save_pretrained(out / name, **options)
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(base / file, out / name / file)


def small(kind, **more):
    config = kind(
        vocab_size=1024,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=1,
        eos_token_id=5,
        pad_token_id=0,
        **more,
    )
    return shaken(AutoModelForCausalLM.from_config(config), 7, 0.15)


def expected(name, rows):
    encoder = Encoder(load_tokenizer(str(out / name)))
    encoded = [encoder.encode(row) for row in rows]
    assert all(row.reason is None for row in encoded), [row.reason for row in encoded]
    scores = Scorer(load_model(str(out / name), torch.float32, CPU), top_k=8).score(encoded)
    told = [
        {
            "row": row,
            "prompt": e.prompt,
            "reference": e.reference,
            "ends": e.ends,
            "ids": [e.ids[k] for k in e.scored],
            **{
                key: getattr(scores, key)[scores.row(i)].tolist()
                for key in ("logprob", "entropy", "rank", "topk_ids", "topk_logprob")
            },
        }
        for i, (row, e) in enumerate(zip(rows, encoded, strict=True))
    ]
    (out / f"{name}.scores.json").write_text(json.dumps(told))


probes = [row.value for file in sorted((sample / "data").glob("*.probe.jsonl")) for row in read_rows(str(file))]
out.mkdir(parents=True, exist_ok=True)
shutil.copytree(base, out / "m0")  # float16 in the file
trained = shaken(load_model(str(base), torch.float32, CPU), 1)
save("trained", trained)
save("sharded", shaken(copy.deepcopy(trained), 2), max_shard_size="600KB")
save("bfloat16", copy.deepcopy(trained).to(torch.bfloat16))
adapter = get_peft_model(
    load_model(str(out / "trained"), torch.float32, CPU),
    LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"),
)
shaken(adapter, 3)  # the base inside is not saved
adapter.peft_config["default"].base_model_name_or_path = str(out / "trained")
save("adapter", adapter)
patterned = get_peft_model(
    load_model(str(out / "trained"), torch.float32, CPU),
    LoraConfig(
        r=4,
        lora_alpha=8,
        use_rslora=True,
        # The first that matches counts; `v_proj` is a whole name or what stands behind a dot.
        rank_pattern={r"layers\.0\.self_attn\.[qk]_proj": 2, "v_proj": 3, r".*\.mlp\..*": 5},
        alpha_pattern={"q_proj": 3, r"model\.layers\.1\..*": 13},
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    ),
)
shaken(patterned, 5)
patterned.peft_config["default"].base_model_name_or_path = str(out / "trained")
save("patterned", patterned)
untied = AutoConfig.from_pretrained(base)
untied.tie_word_embeddings, untied.attention_bias, untied.mlp_bias, untied.num_key_value_heads = False, True, True, 2
untied.rope_parameters = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
save("untied", shaken(AutoModelForCausalLM.from_config(untied), 4))
save("mistral", small(MistralConfig, sliding_window=None, head_dim=24))
save("qwen2", small(Qwen2Config))
save("qwen3", small(Qwen3Config, head_dim=32))
for folder in sorted(p for p in out.iterdir() if p.is_dir() and p.name != "graphs"):
    if (folder / "config.json").is_file():
        export_graph(folder, out / "graphs")
    expected(folder.name, [*(probes if folder.name == "m0" else probes[::20]), *EXTRA])
