"""lm-eval on one checkpoint: loading it, its tasks, and sentences for what goes wrong."""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
from typing import Any

from seesaw_runner.benchmark.request import Request
from seesaw_runner.run_folder import StageError

INSTALL = "Install it into the Python of this target: pip install 'lm-eval>=0.4.9'"


def harness_version() -> str:
    """StageError `preflight` with the command that installs lm-eval where it is missing."""
    try:
        version = importlib.metadata.version("lm_eval")
    except importlib.metadata.PackageNotFoundError:
        version = None
    if version is None or importlib.util.find_spec("lm_eval") is None:
        raise StageError("preflight", f"lm-eval, which runs the benchmarks, is not installed. {INSTALL}.")
    return version


def must_trust(request: Request) -> None:
    """Task files are programs: `!function` names Python code, and their templates are not confined either."""
    if request.include_path is None:
        return
    if not request.include_path.is_dir():
        raise StageError(
            "bad-argument",
            f"`benchmark.include_path` is {request.include_path}, which is no folder. Correct it, or make the folder.",
            "benchmark.include_path",
        )
    if not request.trusted:
        raise StageError(
            "untrusted",
            f"The task files in {request.include_path} can run code (`!function`, templates). Trust this workspace to "
            "run them, or take `benchmark.include_path` out.",
            "benchmark.include_path",
        )


class Harness:
    """A loaded checkpoint and the index of tasks. Importing lm-eval and loading take a while: made once for all."""

    def __init__(self, request: Request):
        import torch
        from lm_eval.models.huggingface import HFLM

        from seesaw_runner.training.device import choose
        from seesaw_runner.training.loading import load_model, load_tokenizer

        self.request = request
        self.version = harness_version()
        device = choose(force_cpu=request.use_cpu)
        self.dtype = device.dtype_name
        self.tasks = self._task_manager()
        tokenizer = load_tokenizer(str(request.checkpoint))
        model = load_model(str(request.checkpoint), device.dtype, device.torch).eval()
        torch.manual_seed(0)
        self.model = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=request.batch_size)
        if request.chat_template and not tokenizer.chat_template:
            raise StageError(
                "template",
                f"`benchmark.chat_template` is on, but the tokenizer in {request.checkpoint} has no chat template.",
                "benchmark.chat_template",
            )

    def _task_manager(self):
        """lm-eval's own few thousand tasks are indexed only where a name is not in the person's folder."""
        from lm_eval.tasks import TaskManager

        path = self.request.include_path
        if path is not None:
            own = TaskManager(include_path=str(path), include_defaults=False)
            if set(self.request.tasks) <= set(own.all_tasks):
                return own
        return TaskManager(include_path=str(path) if path is not None else None)

    def settings(self) -> dict[str, Any]:
        """What holds for every task of this run."""
        return {
            "harness": f"lm-eval {self.version}",
            "template": "chat template" if self.request.chat_template else "none",
            "limit": self.request.limit,
            "dtype": self.dtype,
        }

    def run(self, name: str) -> dict[str, Any]:
        """Results of one task or group, with samples. StageError with a sentence where it cannot be run."""
        import lm_eval

        self._must_know(name)
        try:
            found = lm_eval.simple_evaluate(
                self.model,
                tasks=[name],
                task_manager=self.tasks,
                num_fewshot=self.request.num_fewshot,
                limit=self.request.limit,
                apply_chat_template=self.request.chat_template,
                bootstrap_iters=0,
                log_samples=True,
            )
        except Exception as error:
            raise _explained(name, error) from error
        if not found or not found.get("samples"):
            raise StageError("bad-data", f"The benchmark {name} has no prompts to answer.", name)
        return found

    def _must_know(self, name: str) -> None:
        known = self.tasks.all_tasks
        if name in known:
            return
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise StageError(
            "bad-argument",
            f"lm-eval {self.version} knows no task {name}.{hint} `lm_eval ls tasks` lists them; your own go into the "
            "folder `benchmark.include_path`.",
            name,
        )


def _explained(name: str, error: Exception) -> StageError:
    if isinstance(error, StageError):
        return error
    texts, cause = [], error
    while cause is not None:
        texts.append(f"{type(cause).__name__}: {cause}")
        cause = cause.__cause__ or cause.__context__
    whole = " ".join(texts).lower()
    if any(word in whole for word in ("offline", "couldn't reach", "couldn't find cache", "localentrynotfound")):
        fetch = f"from lm_eval.tasks import TaskManager; TaskManager().load(['{name}'])"
        return StageError(
            "bad-data",
            f"The data of {name} is not on this machine, and a run fetches nothing. Fetch it once with "
            f'HF_HUB_OFFLINE=0 HF_DATASETS_OFFLINE=0 python -c "{fetch}".',
            name,
        )
    if "unsafe" in whole and "code" in whole:
        return StageError(
            "untrusted", f"The benchmark {name} runs code that the model writes, which Seesaw does not do.", name
        )
    text = str(error).strip().splitlines()
    return StageError("exception", f"{name}: {type(error).__name__}: {text[0] if text else 'no message'}", name)
