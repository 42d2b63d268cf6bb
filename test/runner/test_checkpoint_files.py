"""Checkpoint folders: whole, cut, hostile, pickled. Every file here is made by the test; nothing is ever unpickled."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path

import pytest
from seesaw_runner.checkpoints.files import inspect_checkpoint
from seesaw_runner.checkpoints.safetensors_header import HeaderError, read_header

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}
CONFIG = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}
NAMES = ("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "lm_head.weight")


def tensors_file(path: Path, tensors: dict[str, tuple[str, list[int], bytes | None]]) -> None:
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        size = SIZES[dtype]
        for length in shape:
            size *= length
        values = bytes(size) if values is None else values
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += values
    raw_file(path, header, data)


def raw_file(path: Path, header: object, data: bytes = b"") -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def entry(shape=(2,), begin=0, end=8, dtype="F32") -> dict:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


@pytest.fixture
def folder(tmp_path):
    """A whole checkpoint of three tensors."""
    path = tmp_path / "checkpoint"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    tensors_file(path / "model.safetensors", {name: ("F32", [4, 2], None) for name in NAMES})
    return path


def said(folder: Path) -> str:
    return "\n".join(map(str, inspect_checkpoint(folder).findings))


def test_a_whole_checkpoint(folder):
    checkpoint = inspect_checkpoint(folder)
    assert (checkpoint.kind, checkpoint.usable, checkpoint.findings) == ("full", True, [])
    assert (checkpoint.parameters, checkpoint.bytes) == (24, 96)


def test_an_adapter(tmp_path):
    tensors_file(tmp_path / "adapter_model.safetensors", {"a.lora_A.weight": ("F32", [2, 2], None)})
    assert "adapter_config.json is missing" in said(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    assert inspect_checkpoint(tmp_path).kind == "adapter" and inspect_checkpoint(tmp_path).usable


@pytest.mark.parametrize("size", [0, 5, 8, 40, 200])
def test_a_half_written_file_is_incomplete_at_every_length(folder, size):
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:size])
    assert "incomplete: model.safetensors" in said(folder) and not inspect_checkpoint(folder).usable
    file.write_bytes(whole)
    assert inspect_checkpoint(folder).usable, "it becomes usable when the bytes arrive"


def test_the_sizes_are_named(folder):
    file = folder / "model.safetensors"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-10])
    assert f"model.safetensors has {size - 10} of {size} bytes" in said(folder)


def test_folders_without_weights(tmp_path):
    assert "is empty; is it still being written?" in said(tmp_path)
    (tmp_path / "model.safetensors.tmp").write_bytes(b"x")
    assert "only a temporary name" in said(tmp_path)
    assert "cannot be read" in said(tmp_path / "absent")


@pytest.mark.parametrize(
    ("header", "data", "sentence"),
    [
        (b"hello world", b"", "no JSON object"),
        (b"[1]", b"", "no JSON object"),
        (b"[" * 100_000, b"", "no JSON object"),
        ({"w": 1}, b"", "is no object"),
        ({"w": entry(dtype="")}, bytes(8), "unknown type ''"),
        ({"w": entry(shape=(-1, 2))}, bytes(8), "whole numbers"),
        ({"w": entry(shape=(2.0,))}, bytes(8), "whole numbers"),
        ({"w": entry(shape=(3,))}, bytes(8), "needs 12 bytes and has 8"),
        ({"w": entry(shape=(2**32, 2**32, 4))}, bytes(8), "needs"),
        ({"a": entry(), "b": entry(begin=4, end=12)}, bytes(12), "a and b overlap"),
        ({"a": entry(), "b": entry(begin=12, end=20)}, bytes(20), "belong to no tensor"),
        ({"a": entry()}, bytes(9), "1 more than its header describes"),
        ({"a": entry()}, bytes(7), "bytes"),
        ({"a": entry(begin=8, end=0)}, bytes(8), "needs 8 bytes"),
    ],
)
def test_damaged_headers_are_refused(tmp_path, header, data, sentence):
    raw_file(tmp_path / "w.safetensors", header, data)
    with pytest.raises(HeaderError, match="^w.safetensors.*") as error:
        read_header(tmp_path / "w.safetensors")
    assert sentence in str(error.value)


def test_a_huge_header_is_not_allocated(tmp_path):
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", 1 << 62) + b"{}")
    with pytest.raises(HeaderError, match="claims a header of 4611686018427387904 bytes"):
        read_header(tmp_path / "w.safetensors")


def test_a_type_that_cannot_be_trained_is_named(folder):
    tensors_file(folder / "model.safetensors", {name: ("F8_E4M3", [2], None) for name in NAMES})
    assert "type F8_E4M3, which cannot be read for training or scoring" in said(folder)


def test_a_pointer_is_not_the_file(folder):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123456\n"
    (folder / "tokenizer.json").write_bytes(pointer)
    assert "tokenizer.json is a Git LFS pointer" in said(folder)
    (folder / "model.safetensors").write_bytes(pointer)
    assert "Git LFS pointer, the real file (123456 bytes) is not downloaded" in said(folder)


def sharded(folder: Path) -> Path:
    weight_map = {}
    for i, name in enumerate(NAMES):
        shard = f"model-0000{i + 1}-of-00003.safetensors"
        tensors_file(folder / shard, {name: ("F32", [4, 2], None)})
        weight_map[name] = shard
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


def test_shards_against_the_index(folder):
    sharded(folder)
    assert inspect_checkpoint(folder).usable and inspect_checkpoint(folder).parameters == 24
    tensors_file(folder / "model-00004-of-00004.safetensors", {"x": ("F32", [1], None)})
    assert "model-00004-of-00004.safetensors is not named in" in said(folder)
    tensors_file(folder / "model-00003-of-00003.safetensors", {"other": ("F32", [1], None)})
    assert "does not hold lm_head.weight" in said(folder) and "holds other, which" in said(folder)
    (folder / "model-00002-of-00003.safetensors").unlink()
    assert f"incomplete: missing model-00002-of-00003.safetensors (holds {NAMES[1]})" in said(folder)


@pytest.mark.parametrize(
    "index", ["{", "[]", "{}", '{"weight_map": {"a": "../x.safetensors"}}', '{"weight_map": {"a": 1}}']
)
def test_a_bad_index(folder, index):
    sharded(folder)
    (folder / "model.safetensors.index.json").write_text(index)
    assert not inspect_checkpoint(folder).usable and "model.safetensors.index.json" in said(folder)


class Canary:
    """Unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickles_are_refused_and_never_opened(folder, tmp_path):
    canary = tmp_path / "CANARY"
    data = pickle.dumps(Canary(canary), protocol=4)
    (folder / "optimizer.pt").write_bytes(data)
    assert inspect_checkpoint(folder).usable, "the weights are safetensors, the rest is ignored"
    (folder / "model.safetensors").write_bytes(data)
    assert "looks like a pickle file under another name" in said(folder)
    (folder / "model.safetensors").unlink()
    assert "files to resume from, but no weights" in said(folder)
    (folder / "pytorch_model.bin").write_bytes(data)
    assert "pickle weights (pytorch_model.bin) are not loaded" in said(folder) and "save_pretrained" in said(folder)
    assert not canary.exists()


def test_custom_code_is_refused(folder):
    (folder / "config.json").write_text(json.dumps({**CONFIG, "auto_map": {"AutoConfig": "configuration_x.X"}}))
    (folder / "configuration_x.py").write_text("raise SystemExit('ran')\n")
    assert "needs custom code (auto_map in config.json)" in said(folder) and not inspect_checkpoint(folder).usable


@pytest.mark.parametrize("config", ["", "[]", "{", "\x00"])
def test_a_broken_config(folder, config):
    (folder / "config.json").write_text(config)
    assert "config.json" in said(folder) and not inspect_checkpoint(folder).usable


def test_tied_and_untied_heads(folder):
    def with_config(**changes) -> str:
        (folder / "config.json").write_text(
            json.dumps({key: value for key, value in {**CONFIG, **changes}.items() if value is not None})
        )
        return said(folder)

    tensors_file(folder / "model.safetensors", {name: ("F32", [4, 2], None) for name in NAMES[:2]})
    assert with_config(tie_word_embeddings=True) == ""
    assert "error" in with_config() and "lm_head.weight is missing" in with_config()
    assert "warning" in with_config(tie_word_embeddings=None) and "default of the model family" in with_config(
        tie_word_embeddings=None
    )
    for dtype, values in (
        ("F32", struct.pack("<2f", 1.0, 2.5)),
        ("F16", struct.pack("<2e", 1.0, 2.5)),
        ("BF16", b"\x80\x3f\x20\x40"),
    ):
        tensors_file(folder / "model.safetensors", {NAMES[0]: (dtype, [2], None), NAMES[2]: (dtype, [2], values)})
        assert "another head (largest difference 2.5)" in with_config(tie_word_embeddings=True)


def test_sharded_training_states_are_explained(tmp_path):
    fsdp, verl = tmp_path / "fsdp", tmp_path / "verl"
    (fsdp / "pytorch_model_fsdp_0").mkdir(parents=True)
    for rank in range(2):
        (fsdp / "pytorch_model_fsdp_0" / f"__{rank}_0.distcp").write_bytes(b"x")
    assert "FSDP shards (2 ranks)" in said(fsdp) and "cannot be merged" in said(fsdp)
    verl.mkdir()
    (verl / "model_world_size_1_rank_0.pt").write_bytes(b"x")
    assert "verl's FSDP shards" in said(verl)


def test_empty_tensors_are_an_unconsolidated_save(folder):
    tensors_file(folder / "model.safetensors", {name: ("F32", [0], None) for name in NAMES})
    assert "not consolidated: 3 tensors of size 0" in said(folder)
