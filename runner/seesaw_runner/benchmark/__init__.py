"""Benchmarks of lm-eval on a checkpoint, in a process of their own, with every answer kept.

    python -m seesaw_runner.benchmark RUN/benchmarks/step-000120

reads request.json in that folder (what TypeScript calls `BenchmarkRequest`, src/protocol/benchmark.ts) and leaves
there, for each task, TASK.json (numbers and the settings they hold for) and TASK.jsonl (one line per prompt and
filter). A task that is there already with the same fingerprint is not run again. `after_stage.py` is the training
process's side.
"""
