/** The commented `seesaw.yaml` that `seesaw init` writes. */
export function pipelineTemplate(name: string): string {
  return `# A chain of post-training stages, and the skills that are watched while it runs.
# Paths are relative to this file. \`seesaw validate\` checks it; run folders go to .seesaw/runs/.
seesaw: 1 # version of this file's format
name: ${JSON.stringify(name)}
base: models/base # the model before the first stage: a local Hugging Face folder with safetensors
seed: 0

# What the model should be able to do. Every checkpoint is scored, token by token, on these fixed prompts.
# Keep them out of the training data. 64 prompts or more let a change be told from noise.
skills:
  math:
    probes: data/math.probe.jsonl # {"messages": [{"role": "user", …}, {"role": "assistant", …}]} a line
    # ood: data/math.ood.jsonl    # prompts unlike the training's: harder, longer, other names
    check: { kind: number-after, marker: "so" } # right when the number after "so" is
    # segments: [{ name: reasoning, pattern: '^.*;' }] # parts of an answer, reported one by one
  tool:
    probes: data/tool.probe.jsonl
    check: { kind: json-tool-call }
# Other checks: { kind: text, after: answer }, { kind: regex, pattern: … }, { kind: format }, { kind: function, function: "module:name" }

probe:
  every: 50 # score all probes every 50 steps; a list of steps or "log" also works
  eval_every: 200 # run the checks, which generate whole answers

flags: { alpha: 0.1, tolerance: 2 } # false alarms allowed per run; points of accuracy that may be lost

# Each stage starts from the last checkpoint of the one before.
stages:
  - id: math
    recipe: sft
    data: data/math.train.jsonl
    args: { learning_rate: 1.0e-5, num_train_epochs: 1, per_device_train_batch_size: 8 } # TRL's SFTConfig
    # adapter: { r: 16, lora_alpha: 32, target_modules: all-linear } # LoRA instead of all weights
    # launch: { kind: torchrun, processes: 2 }                       # several GPUs
  - id: tool
    recipe: sft
    data: data/tool.train.jsonl
    args: { learning_rate: 1.0e-5, num_train_epochs: 1, per_device_train_batch_size: 8 }
    # replay: { buffer: main, ratio: 0.1 } # mix in rows of earlier stages

# buffers:
#   main: { from: [math], rows: 500, quality: { reward: 0.7 }, diversity: minhash }
# targets:
#   gpu: { kind: local, python: ~/envs/trl/bin/python } # then \`on: gpu\` in a stage
#   box: { kind: ssh, host: gpu-box, dir: ~/seesaw, python: ~/envs/trl/bin/python }
`;
}
