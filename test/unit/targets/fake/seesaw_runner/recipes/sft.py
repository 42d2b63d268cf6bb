"""Stands in for the recipe: writes the journal of a tiny stage. `args` of the stage say how it behaves."""
import hashlib
import json
import os
import shutil
import sys
import time

run = sys.argv[-1]
with open(os.path.join(run, "run.json"), encoding="utf-8") as handle:
    spec = json.load(handle)
attempt = os.environ["SEESAW_ATTEMPT"]
number = int(attempt[-4:])
args = spec["args"]


journal = os.path.join(run, "journal.jsonl")
seq = 0
if os.path.exists(journal):
    with open(journal, encoding="utf-8") as handle:
        seq = max((json.loads(line)["seq"] for line in handle), default=0)


def event(name, **fields):
    global seq
    seq += 1
    line = {"v": 1, "seq": seq, "t": time.time(), "attempt": number, "type": name, **fields}
    with open(journal, "a", encoding="utf-8") as handle:
        handle.write(json.dumps(line) + "\n")


def outcome(code, message):
    with open(os.path.join(attempt, "outcome.json"), "w", encoding="utf-8") as handle:
        json.dump({"v": 1, "code": code, "message": message}, handle)


steps = args.get("steps", 2)
event(
    "run.started", stage=spec["stage"], recipe="sft", device="cpu", dtype="float32", parameters=1, trainable=1, rows=1,
    total_steps=steps, start_label=spec["start"]["label"], replay_rows=0, resumed_from=None, packages={}, processes=1,
)
for step in range(1, steps + 1):
    event("stage.progress", phase="train", step=step, total=steps, tokens_per_s=100.0, eta_s=1.0)
    print("step", step, flush=True)
    event("metric", step=step, values={"loss": 1.0 / step})
    time.sleep(args.get("pause", 0.05))
    if args.get("fail_at") == step and number == 1:
        outcome("nan-loss", f"The loss became NaN at step {step}.")
        sys.exit(1)
folder = f"checkpoints/step-{steps:06d}"
shutil.copytree(spec["start"]["checkpoint"], os.path.join(run, folder))
with open(os.path.join(run, folder, "model.safetensors"), "ab") as handle:
    handle.write(spec["stage"].encode())
with open(os.path.join(run, folder, "model.safetensors"), "rb") as handle:
    weights = hashlib.sha256(handle.read()).hexdigest()
with open(os.path.join(run, folder, "seesaw.json"), "w", encoding="utf-8") as handle:
    json.dump({"v": 1, "step": steps, "stage": spec["stage"], "weights_hash": weights}, handle)
event("checkpoint.saved", step=steps, path=folder, kind="full", final=True, weights_hash=weights, bytes=1)
outcome("done", "")
