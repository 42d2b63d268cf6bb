"""Somebody's own training: a loop that saves checkpoint-* slowly and prints dicts, as trainers do.

Not a test: it is the command of the tests of `recipes.command`. It knows nothing of Seesaw but two variables. With
--train it trains in earnest (torch); otherwise the weights walk at random (numpy), which starts in no time.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--model", type=Path)
parser.add_argument("--out", type=Path)
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--save", type=int, default=2)
parser.add_argument("--pause", type=float, default=0.0)
parser.add_argument("--resume", type=Path)
parser.add_argument("--die", type=int, default=0)
parser.add_argument("--ignore-stop", action="store_true")
parser.add_argument("--train", action="store_true")
options = parser.parse_args()
seed = int(os.environ["SEESAW_SEED"])

print("cwd", os.getcwd(), "offline", os.environ.get("HF_HUB_OFFLINE", "unset"), "seed", seed)
begun, history = 0, []
if options.resume:
    state = json.loads((options.resume / "trainer_state.json").read_text())
    begun, history = state["global_step"], state["log_history"]
    print(f"resumed from {options.resume} at {begun}")
if options.ignore_stop:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
weights = (options.resume or options.model) / "model.safetensors"

if options.train:
    import torch
    from safetensors.torch import save
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(weights.parent)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    ids = torch.arange(64).view(4, 16) + 5

    def advance(step: int) -> float:
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss)

    def dump() -> bytes:
        return save(
            {k: v.contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}, {"format": "pt"}
        )

else:
    import numpy as np
    from safetensors.numpy import load_file, save

    tensors = load_file(weights)

    def advance(step: int) -> float:
        random = np.random.default_rng([seed, step])
        for value in tensors.values():
            value += 0.02 * random.standard_normal(value.shape).astype(value.dtype)
        return 2.0 / step

    def dump() -> bytes:
        return save(tensors, {"format": "pt"})


for step in range(begun + 1, options.steps + 1):
    time.sleep(options.pause)
    loss = advance(step)
    print(f"{{'loss': {loss}, 'grad_norm': np.float64(0.5), 'x': nan, 'y': tensor(3.), 'step': {step}}}", flush=True)
    history.append({"loss": loss, "learning_rate": 1e-3, "step": step, "epoch": step / 10})
    if step % options.save == 0:
        folder, data = options.out / f"checkpoint-{step}", dump()
        folder.mkdir(parents=True, exist_ok=True)
        for source in options.model.glob("*.json"):
            shutil.copy(source, folder)
        with open(folder / "model.safetensors", "wb") as file:  # slowly, half of it first
            file.write(data[: len(data) // 2])
            file.flush()
            time.sleep(options.pause)
            file.write(data[len(data) // 2 :])
        state = {"global_step": step, "max_steps": options.steps, "log_history": history}
        (folder / "trainer_state.json").write_text(json.dumps(state))
    if step == options.die:
        raise ValueError(f"the data of step {step} is bad")
print("finished", file=sys.stderr)
