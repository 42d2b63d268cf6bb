"""The training process's side: after the last checkpoint the benchmarks run in a process of their own.

What comes of them is journalled here (only one process may write the journal). Nothing that goes wrong here fails the
stage: its weights are saved, and `seesaw benchmark` makes up for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seesaw_runner.benchmark.request import NAME, make_request
from seesaw_runner.journal import read_events, standing_events
from seesaw_runner.run_folder import say

MARK = '{"seesaw_benchmark"'
LATER = "Run `seesaw benchmark` to make up for it; what is done is kept."


def benchmark_stage(spec: dict, run: Path, journal, stopping: Callable[[], bool] = lambda: False) -> None:
    """Runs `spec["benchmark"]` on the newest checkpoint of the run. Call it when the trainer has been let go, so that
    its memory is free. stopping: asked twice a second; True ends the benchmarks, keeping the tasks that are done."""
    from seesaw_runner.checkpoints import saving

    if not spec.get("benchmark"):
        return
    last = last_checkpoint(run)
    why = "no checkpoint was saved" if last is None else unmeasurable(last[1])
    if last is None or why is not None:
        journal.append(
            "warning",
            code="benchmark-skipped",
            severity="info",
            where="benchmark",
            message=f"No benchmark is run: {why}.",
        )
        return
    step, checkpoint = last
    folder = run / "benchmarks" / saving.step_name(step)
    folder.mkdir(parents=True, exist_ok=True)
    request = make_request(spec, checkpoint=checkpoint, step=step)
    saving.write_json(folder / NAME, request)
    release_memory()
    told = {(e["task"], e["filter"], e["metric"]) for e in benchmark_events(run) if e["step"] == step}
    names = ", ".join(spec["benchmark"]["lm_eval"])
    journal.append("stage.progress", phase="benchmark", step=step, total=step, message=f"benchmarks: {names}")
    say(f"benchmarks on step {step}: {names}")

    def heard(message: dict[str, Any]) -> None:
        if message["event"] == "done":
            for metric in message["metrics"]:
                if (message["task"], metric["filter"], metric["metric"]) not in told:
                    journal.append("benchmark.result", **event_of(message, metric, step, folder.relative_to(run)))
            say(f"benchmark {message['task']}: {summary(message)}")
        elif message["event"] == "failed":
            journal.append(
                "warning",
                code="benchmark-failed",
                severity="warning",
                where=message["task"] or "benchmark",
                message=message["message"],
                fix=LATER,
            )
            say(f"benchmark {message['task'] or ''} failed: {message['message']}")

    outcome = run_benchmark(folder, heard, stopping)
    if outcome is not None:
        journal.append(
            "warning", code="benchmark-stopped", severity="warning", where="benchmark", message=outcome, fix=LATER
        )


def last_checkpoint(run: Path) -> tuple[int, Path] | None:
    """Step and folder of the newest checkpoint that the journal names; that of a `command` may lie anywhere."""
    saved = [e for e in standing_events(read_events(run / "journal.jsonl")) if e.get("type") == "checkpoint.saved"]
    newest = max(saved, key=lambda e: e["step"], default=None)
    return None if newest is None else (newest["step"], run / newest["path"])


def unmeasurable(checkpoint: Path) -> str | None:
    """Why lm-eval cannot measure a checkpoint, or None."""
    return "a router is several models, which lm-eval cannot ask" if (checkpoint / "router.json").is_file() else None


def run_benchmark(folder: Path, heard: Callable[[dict], None], stopping: Callable[[], bool]) -> str | None:
    """Starts the process and listens to it. None where it answered for all tasks, else a sentence."""
    process = subprocess.Popen(
        [sys.executable, "-m", "seesaw_runner.benchmark", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=child_env(),
    )
    messages: list[dict] = []

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(MARK):
                messages.append(json.loads(line))
            elif line.strip():
                say(line.rstrip())

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    stopped = False
    while listener.is_alive() or messages:
        listener.join(0.5)
        while messages:
            heard(messages.pop(0))
        if not stopped and stopping():
            stopped = True
            process.terminate()
    code = process.wait()
    if stopped:
        return "The benchmarks were stopped before all were done."
    if code < 0:
        return f"The process of the benchmarks was killed (signal {-code})."
    return None if code in (0, 1, 2) else f"The process of the benchmarks ended with exit code {code}: see out.log."


def child_env() -> dict[str, str]:
    """The training's own, without what torchrun told this process about its ranks."""
    ours = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK")
    env = {
        name: value for name, value in os.environ.items() if name not in ours and not name.startswith("TORCHELASTIC")
    }
    package = str(Path(__file__).resolve().parents[2])
    env["PYTHONPATH"] = os.pathsep.join(p for p in (package, env.get("PYTHONPATH", "")) if p)
    return env


def event_of(message: dict, metric: dict, step: int, folder: Path) -> dict[str, Any]:
    """The `benchmark.result` event of one metric."""
    return {
        "step": step,
        "harness": "lm-eval",
        "task": message["task"],
        **{name: metric[name] for name in ("metric", "filter", "value", "main")},
        "n": message["n"],
        "samples": f"{folder.as_posix()}/{message['samples']}",
        "seconds": message["seconds"],
    }


def summary(message: dict) -> str:
    main = next((m for m in message["metrics"] if m["main"]), None)
    return f"{message['n']} prompts" if main is None else f"{main['metric']} {main['value']} on {message['n']} prompts"


def benchmark_events(run: Path) -> list[dict]:
    return [e for e in standing_events(read_events(run / "journal.jsonl")) if e.get("type") == "benchmark.result"]


def release_memory() -> None:
    """What the trainer left on the accelerator is handed back: another process needs it now."""
    import gc

    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
