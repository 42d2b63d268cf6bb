"""lm-eval on a tiny checkpoint with local task files: nothing is fetched, every answer is kept."""

import importlib.metadata
import json
import os
import shutil
from pathlib import Path

import pytest
from conftest import events
from seesaw_runner.benchmark import __main__ as command
from seesaw_runner.benchmark import after_stage
from seesaw_runner.benchmark.results import metrics_of, sample_rows
from seesaw_runner.journal import Journal
from seesaw_runner.run_folder import StageError

GENERATED = """\
task: toy_sums
dataset_path: json
dataset_kwargs: {{ data_files: {{ test: {data} }} }}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{ until: ["\\n"], max_gen_toks: 4, do_sample: false }}
metric_list: [{{ metric: exact_match, aggregation: mean, higher_is_better: true }}]
metadata: {{ version: 2.0 }}
"""
CHOICE = """\
task: toy_choice
dataset_path: json
dataset_kwargs: {{ data_files: {{ test: {data} }} }}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_target: label
doc_to_choice: ["1", "2", "3"]
metric_list: [{{ metric: acc }}, {{ metric: acc_norm }}]
metadata: {{ version: 1.0 }}
"""
REMOTE = """\
task: toy_remote
dataset_path: nobody/no-such-data
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_target: label
doc_to_choice: ["1", "2"]
"""
FUNCTION = """\
task: toy_code
dataset_path: json
dataset_kwargs: {{ data_files: {{ test: {data} }} }}
test_split: test
output_type: multiple_choice
doc_to_text: !function helper.text
doc_to_target: label
doc_to_choice: ["1", "2", "3"]
metric_list: [{{ metric: acc }}]
"""


@pytest.fixture
def bench(base_folder, tmp_path, monkeypatch, capsys):
    """bench(**changes of the request's benchmark) → (exit code, messages, folder); one folder for all calls."""
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    data = tmp_path / "toy.jsonl"
    rows = [{"question": f"1 + {i % 3} =", "answer": str(1 + i % 3), "label": i % 3, "group": i // 3} for i in range(9)]
    data.write_text("".join(json.dumps(r) + "\n" for r in rows))
    for name, text in (("sums", GENERATED), ("choice", CHOICE)):
        (tasks / f"{name}.yaml").write_text(text.format(data=data))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "run" / "benchmarks" / "step-000000"
    folder.mkdir(parents=True)

    def run(*options: str, trusted: bool = True, checkpoint: Path = base_folder, **changes):
        asked = {"lm_eval": ["toy_sums", "toy_choice"], "include_path": str(tasks), "batch_size": 4, **changes}
        about = {"run": "r", "stage": "s", "step": 0, "label": "M0"}
        request = {"v": 1, "checkpoint": str(checkpoint), "benchmark": asked, **about}
        (folder / "request.json").write_text(json.dumps({**request, "trusted": trusted, "use_cpu": True}))
        capsys.readouterr()
        code = command.main([str(folder), *options])
        lines = capsys.readouterr().out.splitlines()
        return code, [json.loads(x) for x in lines if x.startswith(after_stage.MARK)], folder

    run.tasks, run.data = tasks, data
    return run


def ended(messages: list[dict]) -> dict[str, dict]:
    return {m["task"]: m for m in messages if m["event"] in ("done", "failed")}


def test_every_answer_is_kept_and_what_is_done_is_not_run_again(bench, base_folder, tmp_path):
    code, messages, folder = bench()
    assert code == 0 and {m["event"] for m in messages} == {"started", "done"}
    result = json.loads((folder / "toy_choice.json").read_text())
    rows = [json.loads(line) for line in (folder / "toy_choice.jsonl").read_text().splitlines()]
    main, second = result["metrics"]
    assert (main["metric"], main["main"], main["binary"], second["main"]) == ("acc", True, True, False)
    assert result["n"] == len(rows) == 9
    assert main["value"] == pytest.approx(sum(r["metrics"]["acc"] for r in rows) / 9)
    assert len({r["key"] for r in rows}) == 9 and rows[0]["prompt"] == "1 + 0 =" and rows[8]["group"] == "2"
    assert result["label"] == "M0" and result["settings"]["task"] == "1.0" and result["settings"]["shots"] == 0
    assert result["settings"]["sampling"] == "scored"
    sums = json.loads((folder / "toy_sums.json").read_text())
    assert sums["settings"]["sampling"] == "greedy" and sums["settings"]["max_tokens"] == 4
    assert all(len(json.loads(x)["responses"]) == 1 for x in (folder / "toy_sums.jsonl").read_text().splitlines())

    # Resumable per task: a task whose answers are gone is run again, the other is not.
    (folder / "toy_sums.jsonl").unlink()
    _, messages, _ = bench()
    assert {t: m["again"] for t, m in ended(messages).items()} == {"toy_sums": False, "toy_choice": True}
    before = (folder / "toy_choice.jsonl").stat().st_mtime_ns
    _, messages, _ = bench()
    assert all(m["again"] for m in ended(messages).values()) and not [m for m in messages if m["event"] == "started"]
    assert (folder / "toy_choice.jsonl").stat().st_mtime_ns == before

    # Other weights, fewer prompts, examples: each is another measurement, and the settings tell.
    for change, n, shots in (({"limit": 4}, 4, 0), ({"num_fewshot": 1}, 9, 1)):
        _, messages, _ = bench(lm_eval=["toy_choice"], **change)
        again = json.loads((folder / "toy_choice.json").read_text())
        assert ended(messages)["toy_choice"]["again"] is False
        assert (again["n"], again["settings"]["shots"]) == (n, shots)
        assert again["settings"]["prompts"] != result["settings"]["prompts"]
    other = shutil.copytree(base_folder, tmp_path / "other")
    (other / "seesaw.json").write_text(json.dumps({"weights_hash": "w2"}))
    _, messages, _ = bench(lm_eval=["toy_choice"], num_fewshot=1, checkpoint=other)
    assert ended(messages)["toy_choice"]["again"] is False
    assert json.loads((folder / "toy_choice.json").read_text())["weights_hash"] == "w2" != result["weights_hash"]


def test_one_task_that_fails_does_not_take_the_others_down_and_nothing_is_fetched(bench):
    (bench.tasks / "remote.yaml").write_text(REMOTE)
    (bench.tasks / "broken.yaml").write_text(
        CHOICE.format(data=bench.data.with_name("gone.jsonl")).replace("toy_", "no_")
    )
    code, messages, folder = bench(lm_eval=["toy_remote", "no_choice", "toy_choice"])
    told = ended(messages)
    assert code == 1 and told["toy_choice"]["event"] == "done" and (folder / "toy_choice.jsonl").is_file()
    assert "is not on this machine, and a run fetches nothing" in told["toy_remote"]["message"]
    assert told["no_choice"]["message"].startswith("no_choice: ")
    assert not list(folder.glob(".*tmp"))


def test_task_files_run_code_only_where_the_workspace_is_trusted(bench):
    mark = bench.tasks / "ran"
    (bench.tasks / "helper.py").write_text(
        f"open({str(mark)!r}, 'w').close()\ndef text(doc):\n    return 'code: ' + doc['question']\n"
    )
    (bench.tasks / "code.yaml").write_text(FUNCTION.format(data=bench.data))
    code, messages, folder = bench(trusted=False, lm_eval=["toy_code"])
    assert code == 2 and messages[0]["code"] == "untrusted" and "Trust this workspace" in messages[0]["message"]
    assert not mark.exists() and not (folder / "toy_code.json").exists()
    code, messages, folder = bench(lm_eval=["toy_code"])
    assert code == 0 and mark.exists()
    assert json.loads((folder / "toy_code.jsonl").read_text().splitlines()[0])["prompt"] == "code: 1 + 0 ="


def test_sentences_for_what_is_missing(bench, monkeypatch, tmp_path):
    code, messages, _ = bench(include_path=str(tmp_path / "nowhere"))
    assert code == 2 and "which is no folder" in messages[0]["message"]
    code, messages, _ = bench(checkpoint=tmp_path / "nothing")
    assert code == 2 and messages[-1]["code"] == "bad-checkpoint"

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    code, messages, _ = bench()
    assert code == 2 and "pip install 'lm-eval" in messages[0]["message"]


def test_a_stage_runs_its_benchmarks_in_a_process_of_its_own_and_journals_them(bench, make_run, sft):
    (bench.tasks / "remote.yaml").write_text(REMOTE)
    asked = {"lm_eval": ["toy_choice", "toy_remote"], "include_path": str(bench.tasks), "limit": 5}
    run = make_run(benchmark=asked, trusted=True, skills=[], args={"max_steps": 2})
    assert sft(run) == 0
    (folder,) = (run / "benchmarks").iterdir()
    assert folder.name == "step-000002"
    told = events(run, "benchmark.result")
    assert [(e["task"], e["metric"], e["n"], e["step"]) for e in told] == [
        ("toy_choice", "acc", 5, 2),
        ("toy_choice", "acc_norm", 5, 2),
    ]
    assert (run / told[0]["samples"]).is_file()
    (warning,) = [e for e in events(run, "warning") if e["code"] == "benchmark-failed"]
    assert "is not on this machine" in warning["message"] and "seesaw benchmark" in warning["fix"]
    order = [e["type"] for e in events(run)]
    assert order.index("benchmark.result") > order.index("checkpoint.saved")
    assert json.loads((folder / "toy_choice.json").read_text())["label"] == "M1"


def test_a_name_that_no_task_has_gets_the_nearest_one(bench):
    from lm_eval.tasks import TaskManager
    from seesaw_runner.benchmark.harness import Harness

    harness = object.__new__(Harness)  # the index of tasks, without a model
    harness.tasks, harness.version = TaskManager(include_path=str(bench.tasks), include_defaults=False), "0"
    with pytest.raises(StageError, match="knows no task toy_sum. Did you mean toy_sums?"):
        harness._must_know("toy_sum")


def test_a_stop_ends_the_process_and_says_so(bench, tmp_path):
    _, _, folder = bench(lm_eval=["toy_choice"])
    heard = []
    assert "stopped before all were done" in after_stage.run_benchmark(folder, heard.append, lambda: True)
    assert "RANK" not in after_stage.child_env() and after_stage.child_env()["PATH"] == os.environ["PATH"]


def test_the_newest_checkpoint_may_lie_anywhere_and_a_router_is_not_measured(tmp_path):
    with Journal(tmp_path / "journal.jsonl", 1) as journal:
        assert after_stage.last_checkpoint(tmp_path) is None
        for step, path in ((5, "checkpoints/step-000005"), (20, str(tmp_path / "elsewhere"))):
            journal.append("checkpoint.saved", step=step, path=path)
        assert after_stage.last_checkpoint(tmp_path) == (20, tmp_path / "elsewhere")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "router.json").write_text("{}")
        after_stage.benchmark_stage({"benchmark": {"lm_eval": ["x"]}}, tmp_path, journal)
    (told,) = events(tmp_path, "warning")
    assert told["code"] == "benchmark-skipped" and "a router is several models" in told["message"]


def test_documents_that_occur_twice_and_numbers_that_are_none_have_their_place():
    sample = {"doc_hash": "d", "prompt_hash": "p", "filter": "none", "metrics": ["f1"], "arguments": [["q", {}]]}
    rows = sample_rows([{**sample, "doc": {}, "f1": 0.5}, {**sample, "doc": {}, "f1": 1.0}])
    assert [r["key"] for r in rows] == ["d", "d#2"]
    config = {"metric_list": [{"metric": "f1"}, {"metric": "bleu"}]}
    found = metrics_of({"alias": "x", "bleu,none": 3.5, "f1,none": 0.75, "f1_stderr,none": "N/A"}, {}, config, rows)
    assert [(m["metric"], m["main"], m["per_row"], m["binary"]) for m in found] == [
        ("bleu", False, False, False),
        ("f1", True, True, False),
    ]
