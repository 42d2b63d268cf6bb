"""One attempt of a stage, from loading to the exit code: what every recipe does alike.

A recipe calls, in this order: `open` (device, tokenizer, start model), reads its rows and plans its batches, `begin`
(finds where to resume, tells `run.started`, scores the start checkpoint), then either `attach` and `fit` around its
trainer or `probe` and `publish` around its own loop. `options` are the recipe's own settings; `begin` refuses the ones
that nobody took.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, set_seed
from transformers.utils import logging as library_logging

from seesaw_runner.checkpoints import saving
from seesaw_runner.flags.settings import flags_may_halt
from seesaw_runner.journal import read_events, standing_events
from seesaw_runner.probing.callback import ProbeCallback
from seesaw_runner.probing.gate import halt_of, tell_halt
from seesaw_runner.probing.gate_callback import GateCallback
from seesaw_runner.probing.prober import Prober
from seesaw_runner.run_folder import StageError, attempt_number, say, write_outcome
from seesaw_runner.scoring.encode import Encoder
from seesaw_runner.training.arguments import lora_config, trainable_parameters, versions
from seesaw_runner.training.callbacks import LedgerCallback, ProgressCallback, SaveCallback, StopWatch
from seesaw_runner.training.cost import CostMeter
from seesaw_runner.training.device import choose
from seesaw_runner.training.loading import context_length, load_model, load_tokenizer, model_shapes
from seesaw_runner.training.model_notes import base_of_start, tell_parts, tell_vocabulary, training_bytes
from seesaw_runner.training.options import Options
from seesaw_runner.training.placement import Placement, frozen_placement
from seesaw_runner.training.plan import BatchPlan
from seesaw_runner.training.probes import probe_finished, probe_start


class Session:
    """spec: run.json. Only rank 0 probes, saves and speaks; every process has its own session.

    After `begin`: `steps` in all; `resume` is (step, folder) to go on from; `finished` the last checkpoint's folder
    where an earlier attempt had already written it; `prober` and `probing` None on other ranks or without skills.
    """

    def __init__(self, spec: dict, run: Path, attempt: Path, journal):
        self.spec, self.run, self.attempt, self.journal = spec, run, attempt, journal
        self.rank, self.world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        self.arguments: dict[str, Any] = dict(spec["args"])
        self.options = Options(spec["recipe"], spec.get("options"))
        self.adapter: dict[str, Any] | None = spec["adapter"]
        self.seed = int(spec["seed"])
        self.watch = StopWatch(journal)
        self.prober: Prober | None = None
        self.probing: ProbeCallback | None = None
        self.resume: tuple[int, Path] | None = None
        self.finished: Path | None = None
        self.steps = 0
        self.in_parts: set[str] = set()

    # ---- loading

    def open(self, *, weights: bool = True) -> None:
        """Device, seed, tokenizer and the start checkpoint as `self.model`, in full precision. From now on SIGTERM and
        SIGINT mean: finish the step, save, end. weights False: the model is only its shapes, for a stage that neither
        trains nor probes it."""
        library_logging.disable_progress_bar()
        self.watch.install()
        self.device = choose(force_cpu=bool(self.arguments.get("use_cpu")))
        self.meter = CostMeter(self.device)
        set_seed(self.seed)
        start = self.spec["start"]["checkpoint"]
        self.loading("loading the model")
        self.tokenizer = load_tokenizer(start)
        self.model = self.load(start) if weights else model_shapes(start)
        self.start_hash = saving.weights_hash(start)
        self.start_identity = saving.identity(start, self.start_hash, base_of_start(self, start))
        self.base_identity = self.start_identity if self.spec["base"] == start else saving.identity(self.spec["base"])
        self.context = context_length(self.model)
        tell_vocabulary(self, start)

    def loading(self, message: str) -> None:
        """Tells what is being loaded."""
        self.journal.append("stage.progress", phase="load", step=0, total=0, message=message)

    def load(self, folder: str | Path, *, frozen: bool = False, beside_training: bool = False) -> torch.nn.Module:
        """A checkpoint on this stage's device and in its precision; an adapter merged into what it was trained on.

        frozen: it is neither trained nor probed; it then takes 16 bits a number where the device computes in bf16, and
        may lie on several devices where it does not fit on the stage's. beside_training: it stays there meanwhile.
        """
        if not frozen:
            return load_model(str(folder), self.device.dtype, self.device.torch)
        placement = self.placement(folder, beside_training=beside_training)
        model = load_model(
            str(folder), self.device.frozen_dtype, self.device.torch, placement=placement, scratch=self.run
        )
        if placement is not None:
            tell_parts(self, model, str(folder))
        return model

    def placement(self, folder: str | Path, *, beside_training: bool = False) -> Placement | None:
        """How a frozen model is spread over the devices; None where it fits on the stage's own."""
        later = training_bytes(self) if beside_training and self.device.kind == "cuda" else 0
        return frozen_placement(folder, self.device, later=later, alone=self.world == 1)

    def model_folder(self, reference: str, option: str) -> Path:
        """The checkpoint that an option names (`math`, `math@40`, `base`, a folder), as frozen in run.json."""
        found = (self.spec.get("models") or {}).get(reference)
        if found is None:
            raise self.options.error(option, f"names {reference!r}, which run.json has no checkpoint for")
        return Path(found["checkpoint"])

    def encoder(self, default_length: int | None = 1024) -> Encoder:
        """Encodes rows as the probes are encoded, cut to `args.max_length` and the model's context."""
        limits = (self.arguments.get("max_length", default_length), self.context)
        return Encoder(self.tokenizer, min((n for n in limits if n), default=None))

    @property
    def batch(self) -> int:
        """Rows of one process in one forward pass (`per_device_train_batch_size`)."""
        return int(self.arguments.get("per_device_train_batch_size", 8))

    @property
    def accumulation(self) -> int:
        return int(self.arguments.get("gradient_accumulation_steps", 1))

    @property
    def probed(self) -> float:
        """Seconds of probing and checking so far."""
        return self.prober.seconds if self.prober else 0.0

    def warn(self, code: str, message: str, *, where: str = "", fix: str = "", severity: str = "warning") -> None:
        """A `warning` event."""
        self.journal.append("warning", code=code, severity=severity, where=where, message=message, fix=fix)

    def without_replay(self, why: str) -> None:
        """StageError when the stage mixes rows of a buffer in, for a recipe that cannot: it would be ignored."""
        if self.spec.get("replay"):
            raise StageError(
                "bad-argument", f"The recipe {self.spec['recipe']} cannot replay rows of a buffer: {why}.", "replay"
            )

    # ---- the stage's start

    def begin(
        self,
        *,
        steps: int,
        tokens: Sequence[int],
        rows: int,
        replay_rows: int = 0,
        trainable: int | None = None,
        about: str = "",
    ) -> None:
        """Finds where to resume, tells `run.started`, and scores M(k−1) on every probe before anything moves.

        tokens: of each step over all processes (an estimate where they are generated). trainable: parameters that
        will move; default: the model's, or what the adapter adds. about: added to the first line for people.
        """
        self.options.finish()
        self.steps, self.tokens = steps, list(tokens)
        self.clock = time.perf_counter()
        again = attempt_number(self.attempt) > 1
        if again and self.rank == 0:
            saving.remove_leftovers(self.run)
        folder = self.run / "checkpoints"
        kept = saving.complete_checkpoints(folder) if again else []
        self.finished = kept[-1][1] if kept and kept[-1][0] == steps and saving.intact(kept[-1][1]) else None
        self.resume = saving.newest_resumable(folder) if again and not self.finished else None
        self.resumed_from = steps if self.finished else self.resume[0] if self.resume else None
        device = self.device
        self.journal.append(
            "run.started",
            stage=self.spec["stage"],
            recipe=self.spec["recipe"],
            device=device.name,
            dtype="bfloat16 (autocast)" if device.autocast_bf16 else device.dtype_name,
            parameters=sum(p.numel() for p in self.model.parameters()),
            trainable=trainable_parameters(self.model, self.adapter) if trainable is None else trainable,
            total_steps=steps,
            start_label=self.spec["start"]["label"],
            rows=rows,
            replay_rows=replay_rows,
            resumed_from=self.resumed_from,
            packages=versions(),
            processes=self.world,
        )
        events = standing_events(read_events(self.run / "journal.jsonl")) if again else []
        self._tell_missed(kept, events)
        if self.rank == 0:
            say(f"{device.name}, {device.dtype_name}: {steps} steps over {rows} rows{about}")
            if self.resumed_from is not None:
                say(f"goes on from step {self.resumed_from}")
        if self.rank == 0 and self.spec["skills"]:
            probe_start(self, again, events)
        self.meter.begin(self.probed)

    def _tell_missed(self, kept: list[tuple[int, Path]], events: list[dict]) -> None:
        """The process died between writing a checkpoint and saying so: say it now."""
        told = {e["step"] for e in events if e["type"] == "checkpoint.saved"}
        for step, path in kept:
            if step <= (self.resumed_from or 0) and step not in told and saving.intact(path):
                about = json.loads((path / "seesaw.json").read_text(encoding="utf-8"))
                self.tell_saved(step, path, about["kind"], step == self.steps, about["weights_hash"])

    def probe_finished(self) -> int:
        """Where an earlier attempt had written the last checkpoint: probes it if need be, and gives the exit code."""
        return probe_finished(self)

    # ---- training with a Hugging Face trainer

    def peft_config(self):
        """`adapter:` as PEFT's LoraConfig, or None."""
        return lora_config(self.adapter) if self.adapter else None

    def with_adapter(self):
        """The start model, under the stage's adapter if it has one: for trainers that do not put it on themselves."""
        if not self.adapter:
            return self.model
        from peft import get_peft_model

        return get_peft_model(self.model, lora_config(self.adapter))

    def attach(self, trainer, plan: BatchPlan, *, metrics: tuple[str, ...] = ()) -> None:
        """Gives a `StageTrainer` its batches and callbacks. metrics: further names of its log for the journal."""
        # One process trains on one GPU. Left to itself, the trainer would take a batch for each GPU that it sees.
        trainer.args._n_gpu = min(1, trainer.args.n_gpu)
        trainer.prepare_stage(
            plan=plan,
            folder=self.run / "checkpoints",
            about={
                "stage": self.spec["stage"],
                "run": self.spec["id"],
                "index": self.spec["index"],
                "base": self.start_identity,
            },
            saved=self._saved,
            tokenizer=self.tokenizer,
        )
        self.watch.trainer = trainer
        trainer.remove_callback(PrinterCallback)  # it prints every log line; the journal has them
        trainer.add_callback(self.watch)
        trainer.add_callback(SaveCallback(self.spec.get("save_every"), self.watch))
        if self.rank == 0:
            every = int(self.arguments.get("logging_steps", 1))
            paused = lambda: self.prober.seconds if self.prober else 0.0  # noqa: E731
            trainer.add_callback(ProgressCallback(self.journal, self.tokens, every, paused, metrics))

    def keep_ledger(self, trainer, plan: BatchPlan, hashes: list[str]) -> None:
        """Records every draw from the replay buffer. hashes[i]: buffer row i's."""
        if self.rank != 0:
            return
        from seesaw_runner.replay.ledger import Ledger

        step = self.resume[0] if self.resume else None
        ledger = Ledger(self.run / "ledger.jsonl", attempt_number(self.attempt), step)
        buffer = self.spec["replay"]["buffer"]
        trainer.add_callback(LedgerCallback(ledger, self.journal, plan, hashes, buffer, step))

    def fit(self, trainer) -> int:
        """Trains, from the resumed step on, and gives the exit code. Probes come last of the callbacks."""
        if self.probing:
            trainer.add_callback(self.probing)
        if flags_may_halt(self.spec):
            trainer.add_callback(GateCallback(self))
        if trainer.args.world_size > 1:
            torch.distributed.barrier()  # rank 0 has been probing
        self.meter.begin(self.probed)
        trainer.train(resume_from_checkpoint=str(self.resume[1]) if self.resume else None)
        return self.ended(trainer.state.global_step)

    def ended(self, step: int) -> int:
        """The exit code and outcome of a training that has come to `step`."""
        self.meter.tell(
            self.journal, step=step, tokens=sum(self.tokens[self.resumed_from or 0 : step]), probed=self.probed
        )
        halt = halt_of(self.prober)
        if self.watch.reason == "halted" or (halt and self.watch.reason is None):
            return tell_halt(halt, self.attempt, step)
        if self.watch.reason == "cancelled":
            message = (
                f"Stopped at step {step} of {self.steps}; a checkpoint was saved. Run the stage again to go on from "
                f"there."
            )
            write_outcome(self.attempt, "cancelled", message)
            return 143
        if self.watch.reason == "nan-loss":
            bad_step, name, value = self.watch.bad
            message = (
                f"{name} was {value} at step {bad_step}. Lower the learning rate or look for broken rows; earlier "
                f"checkpoints are intact."
            )
            write_outcome(self.attempt, "nan-loss", message, f"step {bad_step}")
            return 1
        if self.rank == 0:
            from seesaw_runner.export.graphs import leave_graphs

            last = self.run / "checkpoints" / saving.step_name(self.steps)
            leave_graphs(self.run, [self.spec["base"], last], self.journal)
            share = f", {self.prober.seconds:.1f} s of it probing" if self.prober else ""
            took = time.perf_counter() - self.clock
            say(f"Done: M{self.spec['index']} is checkpoints/{saving.step_name(self.steps)}; {took:.1f} s{share}")
        return 0

    # ---- checkpoints

    def _saved(self, step: int, path: Path, kind: str, final: bool, digest: str, size: int) -> None:
        if self.probing:
            self.probing.saved = (step, digest, saving.identity(path, digest))
        self.tell_saved(step, path, kind, final, digest, size)

    def tell_saved(self, step: int, path: Path, kind: str, final: bool, digest: str, size: int | None = None) -> None:
        """The `checkpoint.saved` event of a published checkpoint."""
        self.journal.append(
            "checkpoint.saved",
            step=step,
            path=path.relative_to(self.run).as_posix(),
            kind=kind,
            final=final,
            weights_hash=digest,
            bytes=saving.folder_bytes(path) if size is None else size,
        )
        say(f"step {step}: checkpoint saved in {path.relative_to(self.run).as_posix()}")

    def publish(self, temporary: Path, step: int, kind: str) -> Path:
        """Makes a folder of weights from `saving.begin` a checkpoint: seesaw.json, rename, event. For recipes without
        a trainer; `StageTrainer` does the same for the others."""
        final = step == self.steps
        digest = saving.weights_hash(temporary)
        label = f"M{self.spec['index']}" + ("" if final else f"@{step}")
        about = {"v": 1, "step": step, "stage": self.spec["stage"], "run": self.spec["id"], "label": label}
        saving.write_json(temporary / "seesaw.json", {**about, "kind": kind, "weights_hash": digest})
        path = saving.publish(temporary, step)
        self._saved(step, path, kind, final, digest, saving.folder_bytes(path))
        return path


def bad_data(error: Exception) -> StageError:
    """A plan or buffer that has nothing to draw from, as the stage's error."""
    return StageError("bad-data", str(error))
