"""Checkpoints of other tools: which are whole, in which order, and what is said of the others. No torch."""

import json
import os
import struct
from pathlib import Path

import pytest
from seesaw_runner.foreign.adapters import adapter_base, fits
from seesaw_runner.foreign.checkpoints import look_at
from seesaw_runner.foreign.globs import expand, folder_number
from seesaw_runner.foreign.last_words import LastWords
from seesaw_runner.foreign.placeholders import fill_words, shell_line
from seesaw_runner.foreign.watcher import Watcher
from seesaw_runner.run_folder import StageError


def safetensors(tensors: dict[str, tuple[int, ...]], fill: int = 0) -> bytes:
    header, at = {}, 0
    for name, shape in tensors.items():
        size = 4
        for n in shape:
            size *= n
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes([fill]) * at


MODEL = {"model.embed_tokens.weight": (8, 4), "model.layers.0.self_attn.q_proj.weight": (4, 4)}
CONFIG = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": True}


def checkpoint(folder: Path, fill: int = 0, part: int | None = None, state: int | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "model.safetensors").write_bytes(safetensors(MODEL, fill)[:part])
    if state is not None:
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": state}))
    return folder


def adapter(folder: Path, base: str, shape=(4, 4)) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": base}))
    module = "base_model.model.model.layers.0.self_attn.q_proj"
    pair = {f"{module}.lora_A.weight": (2, shape[1]), f"{module}.lora_B.weight": (shape[0], 2)}
    (folder / "adapter_model.safetensors").write_bytes(safetensors(pair))
    return folder


@pytest.fixture
def watch():
    said = []

    def make(*patterns, form="auto", root=None, settle=0.0, **more):
        watcher = Watcher([str(p) for p in patterns], form, root, lambda code, text, **f: said.append(text), **more)
        watcher.settle = settle
        return watcher, said

    return make


def steps(found):
    return [f.step for f in found]


def test_by_number_half_written_ones_waited_for(tmp_path, watch):
    for n in (1000, 500, 10000, 9000):
        checkpoint(tmp_path / f"checkpoint-{n}", state=n)
    checkpoint(tmp_path / "checkpoint-30", part=120)
    checkpoint(tmp_path / "checkpoint-40", part=5)
    (tmp_path / "checkpoint-50").mkdir()
    (tmp_path / "checkpoint-60").mkdir()
    (tmp_path / "checkpoint-60" / "model.safetensors.tmp").write_bytes(b"x")
    watcher, said = watch(tmp_path / "checkpoint-*")
    found = watcher.ready()
    assert steps(found) == [500, 1000, 9000, 10000] and not said
    for one in found:
        watcher.hand_out(one)
    (tmp_path / "checkpoint-500" / "optimizer.pt").write_bytes(b"later")  # never opened, and no new checkpoint
    assert watcher.ready() == [] and watcher.newest().step == 10000
    checkpoint(tmp_path / "checkpoint-30")
    checkpoint(tmp_path / "checkpoint-500", fill=7)
    assert steps(watcher.ready()) == [30, 500]  # whole now; written again
    assert steps(watcher.ready(ended=True)) == [30, 500]
    assert (
        len(said) == 3 and "checkpoint-40 is not scored: incomplete" in " ".join(said) and "being written?" in str(said)
    )
    quick, _ = watch(tmp_path / "checkpoint-*", settle=60.0)
    assert quick.ready() == []  # nothing is believed at first sight


def test_what_was_there_before_is_left_alone(tmp_path, watch):
    for n in (500, 1000):
        checkpoint(tmp_path / f"checkpoint-{n}")
    first, _ = watch(tmp_path / "*")
    watcher, _ = watch(tmp_path / "*", left_alone=first.snapshot())
    checkpoint(tmp_path / "checkpoint-10", state=10)
    assert steps(watcher.ready()) == [10] and watcher.newest().step == 10
    checkpoint(tmp_path / "checkpoint-500", fill=1)  # this run has reached it
    assert steps(watcher.ready()) == [10, 500]


def test_a_folder_that_is_not_finished_for_resuming(tmp_path, watch):
    checkpoint(tmp_path / "checkpoint-2", state=2)
    checkpoint(tmp_path / "checkpoint-4")  # weights are whole, the trainer's state is not there
    watcher, _ = watch(tmp_path / "checkpoint-*")
    assert steps(watcher.ready()) == [2, 4] and watcher.newest().step == 2


def test_slime_folders(tmp_path, watch):
    for n in (20, 40, 60):
        folder = tmp_path / f"iter_{n:07d}"
        folder.mkdir()
        (folder / "__0_0.distcp").write_bytes(b"\x80\x04canary")
        (folder / ".metadata").write_bytes(b"\x80\x04canary")
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "common.pt").write_bytes(b"\x80\x04canary")
    tracker = tmp_path / "latest_checkpointed_iteration.txt"
    tracker.write_text("40")
    checkpoint(tmp_path / "hf_iter_20")
    for pattern in ("iter_*", "*iter_*", "*"):
        watcher, said = watch(tmp_path / pattern)
        found = watcher.ready()
        assert [(f.step, f.path.name) for f in found] == [(20, "hf_iter_20")]  # one checkpoint, not two
        watcher.hand_out(found[0])
        assert watcher.ready() == [] and watcher.newest().path.name == "iter_0000040"  # its trainer reads its own
        tracker.write_text("60")
        checkpoint(tmp_path / "hf_iter_0000040", part=100)
        assert watcher.ready() == []
        checkpoint(tmp_path / "hf_iter_0000040")
        assert [(f.step, f.path.name) for f in watcher.ready()] == [(40, "hf_iter_0000040")]
        watcher.ready(ended=True)
        assert any("iter_0000060 is not scored: it has Megatron's distributed shards" in text for text in said)
        tracker.write_text("40")
        (tmp_path / "hf_iter_0000040" / "model.safetensors").unlink()
        (tmp_path / "hf_iter_0000040" / "config.json").unlink()
        (tmp_path / "hf_iter_0000040").rmdir()
        said.clear()
    tracker.write_text("release")
    assert watch(tmp_path / "iter_*")[0].newest() is None
    assert look_at(tmp_path / "release", None).state == "refused"


def test_kinds_that_cannot_be_read_are_told_apart(tmp_path, watch):
    pickled = tmp_path / "checkpoint-1"
    pickled.mkdir()
    (pickled / "pytorch_model.bin").write_bytes(b"\x80\x04canary")
    (pickled / "config.json").write_text(json.dumps(CONFIG))
    code = checkpoint(tmp_path / "checkpoint-2")
    (code / "config.json").write_text(json.dumps({**CONFIG, "auto_map": {"AutoModel": "x.Y"}}))
    adapter(tmp_path / "checkpoint-3", "../base")
    checkpoint(tmp_path / "checkpoint-4")
    watcher, said = watch(tmp_path / "checkpoint-*")
    assert [(f.step, f.kind) for f in watcher.ready()] == [(3, "adapter"), (4, "full")]
    assert any("pickle weights" in s for s in said) and any("custom code" in s for s in said)
    assert steps(watch(tmp_path / "checkpoint-*", form="adapter")[0].ready()) == [3]
    assert steps(watch(tmp_path / "checkpoint-*", form="hf")[0].ready()) == [4]
    assert steps(watch(tmp_path / "checkpoint-*", form="slime")[0].ready()) == []


def test_links(tmp_path, watch):
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    checkpoint(work / "out" / "checkpoint-1")
    checkpoint(elsewhere / "checkpoint-9")
    (work / "out" / "latest").symlink_to("checkpoint-1")
    (work / "out" / "checkpoint-9").symlink_to(elsewhere / "checkpoint-9")
    (work / "out" / "checkpoint-8").symlink_to("gone")
    (work / "out" / "loop").symlink_to("..")
    watcher, said = watch(work / "**" / "*", root=work)
    assert [f.path.name for f in watcher.ready(ended=True)] == ["checkpoint-1"]
    assert any("leads out of the workspace" in s for s in said) and any("which is missing" in s for s in said)
    trusted, _ = watch(work / "out" / "*", root=None)
    assert steps(trusted.ready()) == [1, 9]


def test_numbers_and_globs(tmp_path):
    at = tmp_path / "out"
    for name, pattern, number in (
        ("checkpoint-20", "*", 20),
        ("iter_0000020", "iter_*", 20),
        ("global_step_20/actor/huggingface", "global_step_*/actor/huggingface", 20),
        ("qwen2-epoch3", "*", 3),
        ("final", "*", None),
        ("qwen2", "qwen2", None),
        ("ckpt12", "ckpt*", 12),
    ):
        assert folder_number(at / name, str(at / pattern)) == number, name
    assert expand(str(tmp_path / "no/*/where"), None) == ([], [])


def test_the_base_of_an_adapter_is_never_guessed(tmp_path):
    base = checkpoint(tmp_path / "base")
    assert adapter_base(adapter(tmp_path / "rel", "../base"), tmp_path / "x") == tmp_path / "rel" / "../base"
    assert adapter_base(adapter(tmp_path / "abs", str(base)), tmp_path) == base
    assert adapter_base(adapter(tmp_path / "cwd", "base"), tmp_path) == tmp_path / "base"
    for name, word in (
        ("/mnt/old-box/base-7", "no folder here"),
        ("org/tiny", "no folder here"),
        ("", "does not name"),
    ):
        with pytest.raises(StageError, match=word):
            adapter_base(adapter(tmp_path / "bad", name), tmp_path)
    assert fits(tmp_path / "bad", base) and not fits(adapter(tmp_path / "wide", "", shape=(4, 9)), base)


def test_placeholders_are_data():
    values = {"start": "/m 0/$(x)", "resume": "", "seed": "3"}
    words = ["train", "--model={start}", "{start}", '{"json": 1}', "--resume", "{resume}", "--from={resume}", "{seed}"]
    assert fill_words(words, values) == ["train", "--model=/m 0/$(x)", "/m 0/$(x)", '{"json": 1}', "3"]
    assert fill_words(["{start}"], {**values, "start": "{seed}"}) == ["{seed}"]  # filled in once
    assert shell_line('a {start} "b {start}" \'c {start}\' \\"{start} {x} ${HOME}') == (
        'a "${SEESAW_START}" "b ${SEESAW_START}" \'c \'"${SEESAW_START}"\'\' \\""${SEESAW_START}" {x} ${HOME}'
    )


@pytest.mark.parametrize(
    "text, code, said",
    [
        ("step 1\nTraceback (most recent call last):\nKeyError: 'text'\n", "exception", "KeyError: 'text'"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB.\nmore\n", "out-of-memory", "CUDA out of memory"),
        ("E1101 failed (exitcode: -9) local_rank: 1 (pid: 4103)\n", "out-of-memory", "killed by signal 9"),
        ("OSError: [Errno 28] No space left on device\n", "disk-full", "No space left"),
        ("bash: line 1: axolotl: command not found\n", "exception", "axolotl: command not found"),
        ("fine\nlast words", "exception", "last words"),
        ("", "exception", "it printed nothing"),
    ],
)
def test_last_words(text, code, said):
    words = LastWords()
    for at in range(0, len(text), 5):
        words.feed(text.encode()[at : at + 5])
    found = words.tell()
    assert found[0] == code and said in found[1]


def test_no_pickle_is_ever_opened_for_reading(tmp_path, watch, monkeypatch):
    """The canary: reading a pickle is the first step to loading it."""
    import builtins
    import io

    folder = checkpoint(tmp_path / "checkpoint-1", state=1)
    for name in ("optimizer.pt", "training_args.bin", "rng_state.pth"):
        (folder / name).write_bytes(b"\x80\x04canary")
    opened = []
    real = io.open

    def spy(file, *args, **kwargs):
        opened.append(os.fspath(file) if not isinstance(file, int) else file)
        return real(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", spy)
    monkeypatch.setattr(io, "open", spy)
    watcher, _ = watch(tmp_path / "*")
    assert steps(watcher.ready()) == [1] and watcher.newest().step == 1
    assert opened and not [name for name in opened if str(name).endswith((".pt", ".bin", ".pth"))]
