"""The scoring graph's files. That its numbers are the runner's is asserted in test/unit/inference, where it runs."""

import json
import shutil
import struct
import time
from pathlib import Path

import pytest
from seesaw_runner.export import __main__ as command
from seesaw_runner.export.graphs import UnsupportedArchitecture, architecture_hash, export_graph, leave_graphs
from seesaw_runner.export.llama_graph import build_graph
from transformers import AutoConfig

M0 = Path(__file__).parents[2] / "media" / "sample" / "models" / "m0"


def with_config(folder: Path, **changes) -> Path:
    folder.mkdir()
    config = json.loads((M0 / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


class Journal:
    def __init__(self):
        self.events = []

    def append(self, kind, **fields):
        self.events.append({"type": kind, **fields})


def test_graph_names_every_parameter_of_the_checkpoint_and_holds_none(tmp_path):
    about = export_graph(M0, tmp_path)
    facts = json.loads(about.read_text())
    with open(M0 / "model.safetensors", "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    assert facts["tensors"] == {name: entry["shape"] for name, entry in header.items()}
    assert facts["tied"] == {"lm_head.weight": "model.embed_tokens.weight"}
    assert (facts["max_positions"], facts["vocabulary"]) == (256, 1024)
    assert about.with_suffix(".onnx").stat().st_size < 50_000 < (M0 / "model.safetensors").stat().st_size


def test_one_file_for_all_checkpoints_of_an_architecture(tmp_path):
    same = with_config(tmp_path / "same", dtype="float16", use_cache=False, transformers_version="4.0", eos_token_id=7)
    spelled = with_config(tmp_path / "spelled")
    text = (spelled / "config.json").read_text().replace("1e-06", "0.0000010").replace("10000.0", "1E4")
    (spelled / "config.json").write_text(text)
    assert architecture_hash(M0) == architecture_hash(same) == architecture_hash(spelled)
    for key, value in {"num_hidden_layers": 4, "rms_norm_eps": 1e-5, "sliding_window": 9, "anything_new": 1}.items():
        assert architecture_hash(with_config(tmp_path / key, **{key: value})) != architecture_hash(M0), key


def test_second_export_writes_nothing(tmp_path):
    graph = export_graph(M0, tmp_path).with_suffix(".onnx")
    before = graph.stat().st_mtime_ns
    export_graph(M0, tmp_path)
    assert graph.stat().st_mtime_ns == before and len(list(tmp_path.iterdir())) == 2


def test_building_takes_milliseconds():
    config = AutoConfig.from_pretrained(M0)
    build_graph(config)
    started = time.process_time()
    build_graph(config)
    assert time.process_time() - started < 0.25


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hidden_act": "gelu"}, "gelu"),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "dynamic"),
        ({"model_type": "gpt2"}, "gpt2"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantized"),
    ],
)
def test_what_cannot_be_computed_exactly_is_refused_and_remembered(tmp_path, changes, says):
    folder, out = with_config(tmp_path / "model", **changes), tmp_path / "graphs"
    for _ in range(2):  # the second time from the file
        with pytest.raises(UnsupportedArchitecture, match=says):
            export_graph(folder, out)
    (about,) = out.iterdir()
    assert says in json.loads(about.read_text())["unsupported"]


def test_sliding_window_limits_the_positions(tmp_path):
    folder = with_config(tmp_path / "model", model_type="mistral", sliding_window=100)
    assert json.loads(export_graph(folder, tmp_path / "graphs").read_text())["max_positions"] == 100


def test_run_goes_on_whatever_happens(tmp_path):
    run = tmp_path / ".seesaw" / "runs" / "math-1"
    run.mkdir(parents=True)
    journal = Journal()
    leave_graphs(run, [M0, tmp_path / "adapter without config"], journal)
    assert journal.events == [] and len(list((tmp_path / ".seesaw/cache/graphs").iterdir())) == 2
    shutil.rmtree(tmp_path / ".seesaw/cache")
    (tmp_path / ".seesaw/cache").write_text("a file where the folder should be")
    leave_graphs(run, [M0], journal)
    leave_graphs(run, [with_config(tmp_path / "broken", model_type="no such model")], journal)
    assert [(e["code"], e["severity"]) for e in journal.events] == [("live-scoring", "warning")] * 2
    assert "seesaw_runner.export --checkpoint" in journal.events[0]["fix"]


def test_command(tmp_path, capsys):
    assert command.main(["--checkpoint", str(M0), "--out", str(tmp_path)]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()
    assert command.main(["--checkpoint", str(tmp_path), "--out", str(tmp_path)]) == 1
    assert "No graph for" in capsys.readouterr().err


def test_fixture_of_the_editor_tests_is_what_is_built_now(tmp_path):
    fixtures = M0.parents[3] / "test" / "fixtures" / "graphs"
    export_graph(M0, tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {p.name: p.read_bytes() for p in fixtures.iterdir()}
