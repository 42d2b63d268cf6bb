"""Preflight: every problem a finding with its fix, found without importing torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from seesaw_runner.findings import Finding, failure_code
from seesaw_runner.preflight import preflight, space
from seesaw_runner.preflight.packages import version_tuple
from test_checkpoint_files import CONFIG, NAMES, tensors_file  # same folder

RUNNER = Path(__file__).parents[2] / "runner"
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}</assistant>{% endgeneration %}{% else %}"
    "{{ m.content }}</{{ m.role }}>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def chat(prompt: str, answer: str, **fields) -> dict:
    return {"messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}], **fields}


def write(path: Path, rows: list) -> str:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def spec(tmp_path):
    """A run.json without any problem."""
    model = tmp_path / "m0"
    model.mkdir()
    tensors_file(model / "model.safetensors", {name: ("F32", [4, 2], None) for name in NAMES})
    (model / "config.json").write_text(json.dumps(CONFIG))
    (model / "chat_template.jinja").write_text(TEMPLATE)
    (model / "tokenizer_config.json").write_text("{}")
    data = write(tmp_path / "train.jsonl", [chat(f"What is {i} + 1?", f"so {i + 1}") for i in range(20)])
    probes = write(tmp_path / "probe.jsonl", [chat(f"What is {i} + 1?", f"so {i + 1}") for i in range(20, 24)])
    skill = {
        "id": "math",
        "probes": {"id": probes},
        "check": {"kind": "number-after", "marker": "so"},
        "own_stage": "math",
    }
    return {
        "schema": "1.0", "id": "math-20260101T000000-abcd", "stage": "math", "index": 1, "recipe": "sft",
        "pipeline": {"file": str(tmp_path / "seesaw.yaml"), "name": "t", "root": str(tmp_path)},
        "start": {"checkpoint": str(model), "label": "M0", "run": None, "step": None}, "base": str(model), "data": data,
        "args": {"max_steps": 10, "learning_rate": 1e-3}, "adapter": None, "seed": 0,
        "launch": {"kind": "python", "processes": 1}, "save_every": None, "skills": [skill],
        "probe": {"every": 5, "eval_every": 5, "kl": ["start"]}, "replay": None,
        "target": {"id": "local", "kind": "local", "python": sys.executable}, "trusted": False,
    }  # fmt: skip


def said(spec: dict) -> str:
    return "\n".join(map(str, preflight(spec)))


def test_a_good_run_has_no_finding(spec):
    assert said(spec) == ""


def test_errors_come_first_and_have_a_failure_code(spec):
    spec["args"]["learning_rat"] = 1
    write(Path(spec["data"]), [chat("q", "so 1"), "{"])
    findings = preflight(spec)
    assert [finding.severity for finding in findings] == ["error", "warning"]
    assert failure_code(findings) == "bad-argument" and failure_code([]) is None
    assert failure_code([Finding("package", "error", "torch is missing")]) == "preflight"
    assert findings[0].to_event() == {
        "code": "bad-argument", "severity": "error", "message": "the recipe sft has no argument learning_rat",
        "fix": "Did you mean learning_rate?", "where": "args.learning_rat",
    }  # fmt: skip


def test_bad_rows_by_line_and_column(spec):
    write(Path(spec["data"]), [chat("q", "so 1"), '{"messages": [],}', "[]"])
    text = said(spec)
    assert "2 of 3 rows of the training data cannot be read and are left out: line 2, column 17: a comma before" in text
    assert f"{spec['data']}:2: " in text and "line 3, column 1: the row is an array" in text


def test_no_good_row_is_an_error(spec):
    write(Path(spec["data"]), ["{", "{"])
    assert "error" in said(spec) and "the training data has no usable row: line 1, column 2" in said(spec)
    write(Path(spec["data"]), [])
    assert "the file is empty" in said(spec)
    write(Path(spec["data"]), [{"foo": 1}, {"bar": 2}])
    assert "error" in said(spec) and "no known row format" in said(spec)
    spec["data"] += ".absent"
    assert "the training data cannot be read: No such file" in said(spec)


def test_probes_that_are_trained_on(spec):
    rows = [
        chat("What is 20 + 1?", "so 21"),
        chat("What is 21 + 1?", "so 5"),
        {"prompt": "What is 22 + 1?\r\n", "completion": " so 23"},
    ]
    write(Path(spec["data"]), rows)
    assert (
        "3 of 4 id probes of the skill math also occur in the training data (2 with the same answer, 1 with another)"
        in said(spec)
    )
    write(Path(spec["data"]), [chat("other", "so 1")])
    old = write(Path(spec["data"]).with_name("old.jsonl"), rows[:1])
    spec["replay"] = {"buffer": "main", "from": [{"stage": "tool", "data": old, "skill": None}]}
    assert "1 of 4 id probes of the skill math also occur in the replay source tool" in said(spec)
    spec["data"] = spec["skills"][0]["probes"]["id"]
    assert "the same file" in said(spec)


def test_checks_that_cannot_work(spec):
    write(Path(spec["skills"][0]["probes"]["id"]), [chat("q", "so 1"), chat("r", "one")])
    assert "1 of 2 rows of the id probes of the skill math cannot pass: the reference has no number after 'so'" in said(
        spec
    )
    spec["skills"][0]["check"] = {"kind": "format"}
    assert "error" in said(spec) and "no constraints" in said(spec)
    spec["skills"][0]["check"] = {"kind": "function", "function": "a:b"}
    assert "not trusted" in said(spec) and failure_code(preflight(spec)) == "untrusted"
    spec["skills"][0]["check"] = {"kind": "numbr-after"}
    assert "did you mean 'number-after'" in said(spec)


def template(spec: dict, text: str | None) -> str:
    path = Path(spec["base"]) / "chat_template.jinja"
    path.unlink() if text is None else path.write_text(text)
    return said(spec)


def test_a_template_that_refuses_a_row_is_a_finding_on_the_row(spec):
    system = {"messages": [{"role": "system", "content": "s"}, *chat("q", "so 1")["messages"]]}
    write(Path(spec["data"]), [chat("q", "so 1"), system])
    strict = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('This template has no system turn') }}{% endif %}"
        + TEMPLATE
    )
    text = template(spec, strict)
    assert f"warning: {spec['data']}:2: the chat template refuses the row: This template has no system turn" in text
    write(Path(spec["data"]), [system])
    assert "error" in said(spec) and failure_code(preflight(spec)) == "template"


def test_a_template_without_generation_block_names_the_fallback(spec):
    plain = TEMPLATE.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    assert (
        "no {% generation %} block" in template(spec, plain)
        and "mask: prefix" in said(spec)
        and "not the beginning" not in said(spec)
    )
    thinking = plain.replace("<assistant>{% endif %}", "<assistant><think>{% endif %}")
    assert (
        "the prompt as the template renders it is not the beginning of the whole conversation in 20 of 20"
        in template(spec, thinking)
    )
    assert "character 38 on" in said(spec)


def test_templates_that_are_missing_or_broken(spec):
    assert "the chat template is not valid" in template(spec, "{% for %}")
    assert "fails on the row" in template(spec, "{{ messages[0].absent.more }}")
    assert "the model has no chat template" in template(spec, None)
    write(Path(spec["data"]), [{"prompt": "a", "completion": "b"}])
    write(Path(spec["skills"][0]["probes"]["id"]), [{"prompt": "c", "completion": "so 1"}])
    assert said(spec) == "", "plain text needs no template"
    config = {
        "chat_template": [{"name": "tool_use", "template": "{% for %}"}, {"name": "default", "template": TEMPLATE}],
        "bos_token": {"content": "<s>"},
    }
    (Path(spec["base"]) / "tokenizer_config.json").write_text(json.dumps(config))
    write(Path(spec["data"]), [chat("a", "b")])
    assert said(spec) == ""


def test_the_sandbox_holds(spec):
    text = template(spec, "{{ messages.__class__.__mro__[1].__subclasses__() }}")
    assert "fails on the row" in text and "unsafe" in text


def test_the_start_checkpoint_must_be_whole(spec):
    (Path(spec["base"]) / "model.safetensors").write_bytes(b"12345")
    assert failure_code(preflight(spec)) == "bad-checkpoint" and "8-byte length field" in said(spec)


def test_an_adapter_needs_its_base(spec, tmp_path):
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    tensors_file(adapter / "adapter_model.safetensors", {"a": ("F32", [1], None)})
    (adapter / "adapter_config.json").write_text("{}")
    spec["start"]["checkpoint"] = str(adapter)
    assert said(spec) == ""
    (Path(spec["base"]) / "model.safetensors").unlink()
    assert "the folder has no weights" in said(spec)


def test_packages_missing_or_too_old(spec, monkeypatch):
    monkeypatch.setattr(
        "seesaw_runner.preflight.packages.PACKAGES", {"torch": "999", "absent-package": "1.0", "peft": "999"}
    )
    text = said(spec)
    assert (
        "is too old, the runner needs 999" in text
        and "the package absent-package is not installed" in text
        and "peft" not in text
    )
    spec["adapter"] = {"r": 8}
    assert "peft" in said(spec)
    assert version_tuple("2.13.0+cpu") == (2, 13, 0) > version_tuple("2.6") and version_tuple("5.0.0.dev0") == (5, 0, 0)


def test_room_on_the_disk(spec, monkeypatch):
    usage = type("Usage", (), {"free": 1000})()
    monkeypatch.setattr(space.shutil, "disk_usage", lambda path: usage)
    assert failure_code(preflight(spec)) == "disk-full" and "checkpoints, and 0 MB are free" in said(spec)


@pytest.mark.parametrize(
    ("changes", "rows", "count"),
    [
        ({"save_every": None}, 0, 1),
        ({"save_every": 4}, 0, 3),
        ({"save_every": 10}, 0, 1),
        ({"save_every": 5, "args": {"num_train_epochs": 2}}, 80, 4),
    ],
)
def test_the_number_of_checkpoints(spec, changes, rows, count):
    assert space.save_count({**spec, **changes}, rows) == count


def test_a_folder_that_cannot_be_written(spec, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(space.tempfile, "NamedTemporaryFile", refuse)
    assert "nothing can be written to the run's folder: Permission denied" in said(spec)


def run(spec: dict, tmp_path: Path, *options: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    folder = tmp_path / "run"
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps(spec))
    command = [sys.executable, *python, "-m", "seesaw_runner.preflight", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(RUNNER)})


def test_the_command(spec, tmp_path):
    result = run(spec, tmp_path)
    assert (result.returncode, result.stdout) == (0, "No problems found.\n")
    spec["args"]["zzz"] = 1
    result = run(spec, tmp_path, "--json")
    assert result.returncode == 1 and json.loads(result.stdout)[0]["code"] == "bad-argument"
    assert run(spec, tmp_path, "--wrong").returncode == 2
    spec["schema"] = "2.0"
    result = run(spec, tmp_path)
    assert result.returncode == 2 and "update the runner" in result.stderr


def test_it_works_without_any_package(spec, tmp_path):
    result = run(spec, tmp_path, python=("-S",))  # -S: no site-packages
    assert (
        result.returncode == 1
        and "the package torch is not installed" in result.stdout
        and "Traceback" not in result.stderr
    )


def test_torch_is_not_imported(spec):
    code = (
        "import json, sys; from seesaw_runner.preflight import preflight;"
        f"preflight(json.loads({json.dumps(spec)!r})); print('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(RUNNER)}
    )
    assert result.stdout.strip() == "False", result.stderr
