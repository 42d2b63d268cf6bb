"""Arguments of a stage against the fields of TRL's configuration, found without importing it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from seesaw_runner.preflight.arguments import CONFIGS, RESERVED, check_arguments, trainer_fields
from seesaw_runner.preflight.dataclass_fields import dataclass_fields


def sentences(**args) -> list[str]:
    return [str(finding) for finding in check_arguments("sft", args)]


def test_the_fields_are_those_of_the_real_class():
    from trl import SFTConfig

    assert trainer_fields("sft") == {field.name for field in dataclasses.fields(SFTConfig) if field.init}


@pytest.mark.parametrize("recipe", sorted(CONFIGS))
def test_every_recipe_has_fields(recipe):
    assert {"learning_rate", "max_steps"} <= trainer_fields(recipe)


def test_nothing_heavy_is_imported():
    code = (
        "import sys; from seesaw_runner.preflight.arguments import trainer_fields; assert trainer_fields('sft');"
        "print([name for name in ('torch', 'trl', 'transformers') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "runner")},
    )
    assert result.stdout.strip() == "[]"


def test_good_arguments_have_no_finding():
    assert (
        sentences(
            learning_rate=1e-3,
            max_steps=80,
            per_device_train_batch_size=32,
            lr_scheduler_type="linear",
            bf16=False,
            optim="adamw_torch",
            warmup_steps=0.1,
        )
        == []
    )
    assert check_arguments("command", {"use_cpu": True}) == []
    assert [f.where for f in check_arguments("command", {"anything": 1})] == ["args.anything"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"learning_rat": 1}, ["no argument learning_rat", "Did you mean learning_rate?"]),
        ({"lr": 1}, ["Did you mean learning_rate?"]),
        ({"batch_size": 4}, ["Did you mean per_device_train_batch_size?"]),
        ({"epochs": 2}, ["Did you mean num_train_epochs?"]),
        ({"zzz": 1}, ["the recipe sft has no argument zzz", "Remove it"]),
        ({"output_dir": "x"}, ["cannot be set", "its own folder"]),
        ({"save_steps": 5}, ["`save_every` of the stage"]),
        ({"eval_steps": 5}, ["`eval_every` of the stage"]),
        ({"seed": 3}, ["set `seed` of the pipeline"]),
        ({"learning_rate": "1e-3"}, ["must be a number", "Write 1e-3 without quotes"]),
        ({"bf16": "yes"}, ["must be true or false"]),
        ({"max_steps": True}, ["must be a number, not true"]),
        ({"_n_gpu": 1}, ["no argument _n_gpu"]),
    ],
)
def test_bad_arguments_are_sentences(args, words):
    found = sentences(**args)
    assert len(found) == 1 and found[0].startswith(f"error: args.{next(iter(args))}: ")
    assert all(word in found[0] for word in words), found


def test_reserved_arguments_are_never_offered():
    assert not any(f"Did you mean {name}?" in sentence for name in RESERVED for sentence in sentences(**{name[:-1]: 1}))


def test_a_class_that_is_not_there():
    with pytest.raises(LookupError, match="absent_package.config.Config was not found"):
        dataclass_fields("absent_package.config", "Config")
    with pytest.raises(LookupError, match="no trainer configuration"):
        trainer_fields("command")


def test_bases_are_followed_through_lazy_packages(tmp_path, monkeypatch):
    package = tmp_path / "lazy_seesaw_pkg"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .deep.base import Base as Root\n"
        "raise RuntimeError('imported')\n"
    )
    (package / "deep" / "__init__.py").write_text("")
    (package / "deep" / "base.py").write_text(
        "class Base:\n    a: int = 1\n    _b: int = 2\n    c: int = field(init=False)\n"
        "    d: ClassVar[int] = 3\n    e = 4\n"
    )
    (package / "mine.py").write_text(
        "from . import Root\nimport x\nclass Mine(x.Unknown, Root):\n    f: 'str | None' = None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert dataclass_fields("lazy_seesaw_pkg.mine", "Mine") == {"a": "int", "f": "str | None"}
