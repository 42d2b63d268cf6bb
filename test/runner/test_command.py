"""The `command` recipe on a real script in a subprocess: checkpoints scored as they appear, logs, stops, resumes."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
import torch
from conftest import events
from safetensors.torch import load_file
from seesaw_runner.flags.watch import Watch
from seesaw_runner.scoring.trace import read_trace

SCRIPT = Path(__file__).parent / "fakes" / "hf_script.py"


@pytest.fixture
def command_run(make_run):
    """command_run(*more words, **changes) → a run folder whose command is the script."""

    def make(*words: str, run=None, name="copy-20260101T000000-0001", options=None, **changes):
        words = ["{python}", str(SCRIPT), "--model", "{start}", "--out", "{output}", *words]
        base = {"recipe": "command", "data": None, "trusted": True, "options": {"run": run or words, **(options or {})}}
        folder = make_run(name=name, **{**base, **changes})
        spec = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**spec, "args": {}}))
        return folder

    return make


@pytest.fixture
def command(monkeypatch, capfd):
    """command(run, attempt=1, until=None) runs the recipe as the agent would, in this process (imports are paid once).

    until: once it is true, SIGTERM comes. The output is in out.log.
    """
    from seesaw_runner.recipes import command as recipe

    kept = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(os, "nice", lambda _: 0)  # it would last for the other tests

    def run(folder: Path, attempt: int = 1, until=None, grace: float = 8) -> int:
        place = folder / f"attempt-{attempt:04d}"
        place.mkdir(exist_ok=True)
        (place / "spec.json").write_text(json.dumps({"grace_s": grace, "env": {"HF_HUB_OFFLINE": "1"}}))
        monkeypatch.setenv("SEESAW_ATTEMPT", str(place))
        if until is not None:
            threading.Thread(target=stop_when, args=(until,), daemon=True).start()
        try:
            return recipe.main(["--run", str(folder)])
        finally:
            with open(folder / "out.log", "a") as log:
                log.write("".join(capfd.readouterr()))

    yield run
    for number, handler in kept.items():
        signal.signal(number, handler)


def stop_when(true) -> None:
    while not true():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)


def written(run: Path, kind: str, count: int = 1):
    """Whether the journal has so many events of a kind."""
    path = run / "journal.jsonl"
    return lambda: path.exists() and path.read_text().count(f'"type":"{kind}"') >= count


def outcome(run, attempt=1):
    path = run / f"attempt-{attempt:04d}" / "outcome.json"
    return json.loads(path.read_text()) if path.exists() else None


def log_of(run: Path) -> str:
    return (run / "out.log").read_text()


def test_checkpoints_are_scored_as_they_appear(command_run, command, base_folder, monkeypatch):
    shares, look = [], Watch.look

    def watched(watch, series, scores, *rest):
        shares.append(scores.progress)
        return look(watch, series, scores, *rest)

    monkeypatch.setattr(Watch, "look", watched)
    run = command_run("--train", "--pause", "0.7", options={"checkpoints": "{output}/checkpoint-*"})
    assert command(run) == 0, log_of(run)
    assert f"cwd {run.parents[2]} offline unset seed 3" in log_of(run) and "finished" in log_of(run)
    assert events(run, "run.started")[0]["recipe"] == "command"

    saved = events(run, "checkpoint.saved")
    assert [(e["step"], e["path"], e["final"]) for e in saved] == [
        (2, "output/checkpoint-2", False),
        (4, "output/checkpoint-4", False),
        (6, "output/checkpoint-6", False),
        (6, "output/checkpoint-6", True),
    ]
    assert len({e["weights_hash"] for e in saved}) == 3 and {e["kind"] for e in saved} == {"full"}
    # Beside the command, not after it.
    order = [(e["type"], e["step"]) for e in events(run) if e["type"] in ("probe.scored", "metric")]
    assert order.index(("probe.scored", 2)) < order.index(("metric", 6))
    scored = events(run, "probe.scored")
    assert sorted({e["step"] for e in scored}) == [0, 2, 4, 6]
    assert sorted({e["step"] for e in events(run, "eval.result")}) == [0, 6]
    kl = {e["step"]: e["summary"]["kl_start"] for e in scored if e["split"] == "id"}
    assert kl[0] == 0 and 0 < kl[2] < kl[6]
    trace = read_trace(run / "traces/step-000006/copy.id.trace")
    assert trace.meta["weights_hash"] == saved[-1]["weights_hash"] and trace.rows[0].generated is not None
    # Metrics: the dict lines as they come; trainer_state.json adds only what they did not say.
    metrics = events(run, "metric")
    first = [e["values"] for e in metrics if e["step"] == 1]
    assert first[0].keys() == {"loss", "grad_norm", "x", "y"} and first[0]["x"] == "NaN" and first[0]["y"] == 3
    assert first[1:] == [{"learning_rate": 0.001}] and sorted({e["step"] for e in metrics}) == [1, 2, 3, 4, 5, 6]
    losses = [e["values"]["loss"] for e in metrics if "loss" in e["values"]]
    assert len(losses) == 6 and losses[-1] < losses[0]
    assert events(run, "stage.progress")[-1]["step"] == events(run, "stage.progress")[-1]["total"] == 6
    assert not list(run.rglob("*.tmp")) and outcome(run) is None
    # By the j-th look 1 − 1/(j + 1) of the budget may be spent; asking for answers is no further look.
    assert shares == pytest.approx([1 / 2] * 2 + [2 / 3] * 2 + [3 / 4] * 2)
    # The next stage can start from it, and the start of the run is not touched.
    one, two = load_file(base_folder / "model.safetensors"), load_file(run / saved[-1]["path"] / "model.safetensors")
    assert one.keys() == two.keys() and not torch.equal(one["model.norm.weight"], two["model.norm.weight"])


def test_stop_and_resume_score_nothing_twice(command_run, command):
    run = command_run("--pause", "0.4", "--steps", "8", "--resume", "{resume}")
    assert command(run, until=written(run, "probe.scored", 4)) == 143
    assert outcome(run)["code"] == "cancelled" and "finished" not in log_of(run)
    before = {(e["step"], e["skill"], e["split"]) for e in events(run, "probe.scored")}
    assert command(run, 2) == 0, log_of(run)
    resumed = events(run, "run.started")[-1]["resumed_from"]
    assert resumed in (2, 4, 6) and f"resumed from {run}/output/checkpoint-{resumed} at {resumed}" in log_of(run)
    after = [(e["step"], e["skill"], e["split"]) for e in events(run, "probe.scored") if e["attempt"] == 2]
    kept = {point for point in before if point[0] <= resumed}
    assert not kept & set(after) and {step for step, _, _ in {*after, *kept}} == {0, 2, 4, 6, 8}
    assert min(e["step"] for e in events(run, "metric") if e["attempt"] == 2) == resumed + 1
    assert events(run, "checkpoint.saved")[-1]["final"] and events(run, "checkpoint.saved")[-1]["step"] == 8
    assert not [e for e in events(run, "warning") if e["code"] in ("started-over", "folder-reused")]
    # All of it equals an uninterrupted run: what the script does depends on seed and step only.
    whole = command_run("--steps", "8", "--save", "8", name="whole-20260101T000000-0001", skills=[])
    assert command(whole) == 0
    assert events(whole, "checkpoint.saved")[-1]["weights_hash"] == events(run, "checkpoint.saved")[-1]["weights_hash"]
    # Killed while the last checkpoints were scored: the command is through and is not started again.
    assert command(whole, 2) == 0 and log_of(whole).count("finished") == 1
    assert events(whole, "run.started")[-1]["resumed_from"] == 8


def test_a_failing_command_says_why_and_keeps_its_checkpoints(command_run, command):
    run = command_run("--die", "3")
    assert command(run) == 1
    said = outcome(run)
    assert said["code"] == "exception" and said["where"].startswith("hf_script.py:")
    assert said["message"] == "The command ended with exit code 1: ValueError: the data of step 3 is bad"
    assert [(e["step"], e["final"]) for e in events(run, "checkpoint.saved")] == [(2, False)]
    assert {e["step"] for e in events(run, "probe.scored")} == {0, 2}


def test_a_shell_line_gets_its_values_as_data_and_a_signal_stays_a_signal(command_run, command):
    where = command_run().parents[2]
    tricky = where / "a 'b\" $(touch owned)"
    tricky.mkdir()
    (tricky / "rows.jsonl").write_text("{}\n")
    line = "echo got \"{output}\" '{seed}' {run} && wc -c < {data} && printf '%s\\n' {data}; kill -9 $$"
    run = command_run(run=line, name="shell-20260101T000000-0001", skills=[], options={"cwd": str(tricky)})
    spec = json.loads((run / "run.json").read_text())
    rows = where / "rows $(touch owned).jsonl"
    rows.write_text((where / "data" / "train.jsonl").read_text())
    (run / "run.json").write_text(json.dumps({**spec, "data": str(rows)}))
    assert command(run) == 137 and outcome(run) is None  # the agent names it
    assert f"got {run}/output 3 {run}\n{rows.stat().st_size}\n{rows}\n" in log_of(run)
    assert not list(where.rglob("owned"))


def test_a_command_that_ignores_the_stop_is_killed_in_time(command_run, command):
    run = command_run("--ignore-stop", "--pause", "0.1", "--steps", "5000", "--save", "9999", skills=[])
    began = time.monotonic()
    assert command(run, until=written(run, "metric", 3), grace=4) == 143
    assert outcome(run)["code"] == "cancelled" and time.monotonic() - began < 30


@pytest.mark.parametrize(
    "changes, code, words",
    [
        ({"trusted": False}, "untrusted", "Trust it"),
        ({"options": {"checkpoint": "out"}}, "bad-argument", "Did you mean checkpoints?"),
        ({"options": {"format": "hff"}}, "bad-argument", "Did you mean hf?"),
        ({"options": {"score_on": "tpu"}}, "bad-argument", "it can be cpu, gpu or gpu:1"),
        ({"options": {"cwd": "nowhere"}}, "bad-argument", "which is no folder"),
        ({"run": ["cat", "{data}"]}, "bad-argument", "the stage has no `data`"),
        ({"run": ["no-such-program-here"]}, "spawn", "no-such-program-here"),
        ({"save_every": 5}, "bad-argument", "the command decides when it saves"),
        ({"run": ["true"]}, "bad-checkpoint", "left no checkpoint"),
    ],
)
def test_what_cannot_work_is_a_sentence(command_run, command, changes, code, words):
    run = command_run(skills=[], **changes)
    assert command(run) == 1
    assert outcome(run)["code"] == code and words in outcome(run)["message"]


def test_odd_checkpoints_take_nothing_down(command_run, command, base_folder, tmp_path):
    """Adapters, one of them without its base; a model with too few tokens; a model without a number; leftovers."""
    import shutil

    from conftest import build_model
    from peft import LoraConfig, get_peft_model

    made = tmp_path / "made"
    torch.manual_seed(5)
    lora = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
    model = build_model()
    model.name_or_path = str(base_folder)
    get_peft_model(model, lora).save_pretrained(made / "checkpoint-2")
    shutil.copytree(made / "checkpoint-2", made / "checkpoint-4")
    about = json.loads((made / "checkpoint-2" / "adapter_config.json").read_text())
    assert about["base_model_name_or_path"] == str(base_folder)
    (made / "checkpoint-4" / "adapter_config.json").write_text(
        json.dumps({**about, "base_model_name_or_path": "org/tiny"})
    )
    build_model(vocab_size=16).save_pretrained(made / "checkpoint-6")
    build_model(seed=9).save_pretrained(made / "final")
    shutil.copytree(made / "final", made / "merged-2")
    shutil.copytree(base_folder, made / "checkpoint-1")
    (made / "checkpoint-1" / "chat_template.jinja").write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    run = command_run(run=f"cp -r {made}/. {{output}}")
    shutil.copytree(base_folder, run / "output" / "checkpoint-900")
    assert command(run) == 0, log_of(run)
    saved = events(run, "checkpoint.saved")
    assert [(e["step"], e["path"], e["kind"], e["final"]) for e in saved] == [
        (1, "output/checkpoint-1", "full", False),
        (2, "checkpoints/step-000002", "adapter", False),
        (3, "checkpoints/step-000003", "full", False),
        (3, "checkpoints/step-000003", "full", True),
    ]
    # They came without a tokenizer: the run keeps links to the weights, with the tokenizer of the stage's start.
    last = run / saved[-1]["path"]
    assert (last / "model.safetensors").resolve() == run / "output" / "final" / "model.safetensors"
    assert not (run / "output" / "final" / "tokenizer.json").exists() and not list(run.rglob("*.tmp"))
    assert json.loads((last / "seesaw.json").read_text())["source"] == str(run / "output" / "final")
    after = command_run(
        name="next-20260101T000000-0002",
        start={"checkpoint": str(last), "label": "M1", "run": run.name, "step": 3},
        index=2,
    )
    assert command(after) == 0, log_of(after)
    first, end = (
        [e["summary"]["nll"] for e in events(r, "probe.scored") if e["step"] == s] for r, s in ((after, 0), (run, 3))
    )
    assert first == pytest.approx(end[-2:], rel=1e-5)
    scored = [e for e in events(run, "probe.scored") if e["split"] == "id"]
    assert [e["step"] for e in scored] == [0, 1, 2, 3, 3] and all(e["summary"]["kl_start"] > 0 for e in scored[2:])
    assert scored[1]["summary"]["kl_start"] == pytest.approx(0, abs=1e-6)  # the start itself, with the start's template
    assert {e["step"] for e in events(run, "eval.result")} == {0, 3}
    warnings = {e["code"]: e for e in events(run, "warning") if e["code"] in ("checkpoint-skipped", "folder-reused")}
    said = [e["message"] + e.get("fix", "") for e in events(run, "warning")]
    assert any("trained on org/tiny, which is no folder here" in s and f"fit {base_folder}" in s for s in said)
    assert sum("checkpoint-1 has another chat template, unlike the stage's start" in s for s in said) == 1
    assert any("merged-2 is not scored: checkpoint-2 has the number 2 too" in s for s in said)
    assert any("has 16 tokens, fewer than the tokenizer" in s for s in said)
    assert "checkpoint-900" in warnings["folder-reused"]["message"]
