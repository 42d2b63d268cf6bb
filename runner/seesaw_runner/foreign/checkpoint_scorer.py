"""The checkpoints of a command: registered where they lie, and scored one after the other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seesaw_runner.checkpoints import saving
from seesaw_runner.foreign.adapters import adapter_base, fits, load_foreign
from seesaw_runner.foreign.checkpoints import Found, signature
from seesaw_runner.foreign.tokenizer_check import TokenizerCheck
from seesaw_runner.foreign.view import source_of, usable_folder
from seesaw_runner.foreign.watcher import Watcher
from seesaw_runner.journal import read_events, standing_events
from seesaw_runner.probing.callback import process_seconds
from seesaw_runner.probing.gate import Halt, halt_of
from seesaw_runner.probing.prober import Prober
from seesaw_runner.run_folder import StageError, attempt_number, say
from seesaw_runner.training.arguments import versions

if TYPE_CHECKING:
    from seesaw_runner.recipes.command import Settings
    from seesaw_runner.training.session import Session


class CheckpointScorer:
    """`begin` first, then `score_ready` again and again, and `finish`. `told`: step → weights hash of what is
    registered and scored. `newest`: (step, folder) of the last one.
    """

    def __init__(self, stage: Session, settings: Settings, watcher: Watcher):
        self.stage, self.settings, self.watcher = stage, settings, watcher
        self.journal, self.run, self.warn = stage.journal, stage.run, stage.warn
        self.number = attempt_number(stage.attempt)
        self.again = self.number > 1
        self.told: dict[int, str] = {}
        self.newest: tuple[int, Path] | None = None
        self._sources: dict[int, Path] = {}  # step → the command's own folder
        self._evaluated: set[int] = set()
        self._void: list[Path] = []
        self._looks: set[tuple[int, int]] = set()
        self._prober: Prober | None = None
        self._tokenizers: TokenizerCheck | None = None
        self._differences: set[str] = set()

    @property
    def stopping(self) -> bool:
        return self.stage.watch.signal is not None

    @property
    def halt(self) -> Halt | None:
        """What a confirmed flag asks for."""
        return halt_of(self._prober)

    # ---- start

    def begin(self, resume: Found | None) -> None:
        """Takes over what earlier attempts did, tells `run.started`, scores the start."""
        stage = self.stage
        journalled = list(read_events(self.run / "journal.jsonl")) if self.again else []
        model = stage.model
        self.journal.append(
            "run.started",
            stage=stage.spec["stage"],
            recipe=stage.spec["recipe"],
            device=stage.device.name,
            dtype=stage.device.dtype_name,
            parameters=sum(p.numel() for p in model.parameters()),
            trainable=sum(p.numel() for p in model.parameters()),
            total_steps=0,
            start_label=stage.spec["start"]["label"],
            rows=0,
            replay_rows=0,
            resumed_from=resume.step if resume else None,
            packages=versions(),
            processes=1,
        )
        if stage.spec["skills"]:
            message = "scoring the start checkpoint"
            self.journal.append("stage.progress", phase="probe", step=0, total=0, message=message)
            self._prober = Prober(stage.spec, self.run, self.journal, stage.tokenizer, stage.device, stage.context)
            self._tokenizers = TokenizerCheck(stage.tokenizer)
            self._prober.start(
                model,
                weights_hash=stage.start_hash,
                identity=stage.start_identity,
                base_identity=stage.base_identity,
                load_base=lambda: stage.load(stage.spec["base"]),
                looks=None,
                last=None,
                events=read_events(self.run / "journal.jsonl") if self.again else (),
            )
            say(f"Seesaw: {self._prober.told}")
            self._prober.let_go()
        stage.model = None
        self._take_over(journalled)

    def _take_over(self, journalled: list[dict[str, Any]]) -> None:
        """What earlier attempts registered and scored is not done again, unless the resume made it void."""
        standing = standing_events([*journalled, *self._started()]) if self.again else []
        self._looks = {(e["attempt"], e["step"]) for e in journalled if e["type"] == "probe.scored" and e["step"] > 0}
        paths = {e["step"]: self.run / e["path"] for e in journalled if e["type"] == "checkpoint.saved"}
        for event in standing:
            if event["type"] == "checkpoint.saved":
                step, path = event["step"], self.run / event["path"]
                self.newest = max((step, path), self.newest or (step, path))
                if self._prober is None or self._prober.scored(step, standing):
                    self.told[step] = event["weights_hash"]
            if event["type"] == "eval.result" and event["step"] > 0:
                self._evaluated.add(event["step"])
        for step, folder in paths.items():
            path = self._sources[step] = source_of(folder)
            if step in self.told or step > (self.newest[0] if self.newest else -1):
                self.watcher.given_before(path)
            if step not in self.told:
                self._void.append(path)

    def _started(self) -> list[dict[str, Any]]:
        """This attempt's own `run.started`, which decides what of the earlier ones stands."""
        events = read_events(self.run / "journal.jsonl")
        return [e for e in events if e["type"] == "run.started" and e.get("attempt") == self.number][-1:]

    def forget_void(self) -> None:
        """A checkpoint that the resume made void and the command did not write again is there all the same."""
        for path in self._void:
            self.watcher.forget(path)

    # ---- checkpoints

    def score_ready(self, ended: bool = False, unnumbered: bool = True, step: int = 0) -> None:
        """Registers and scores what is whole by now. One that cannot be scored is told and does not stop the others."""
        for found in self.watcher.ready(ended):
            if self.stopping or self.halt:
                return
            if found.step is None:
                if unnumbered:
                    self._take_unnumbered(found, step)
                continue
            self._take(found, found.step)

    def _take_unnumbered(self, found: Found, step: int) -> None:
        """The model that a script saves at its end, without a number: unless it is one of the numbered ones, it comes
        after them.
        """
        try:
            same = saving.weights_hash(found.path) in self.told.values()
        except (OSError, saving.CheckpointError):
            same = False
        if same:
            self.watcher.hand_out(found)
            return
        last = max(self.told, default=0)
        self._take(found, step if step > last else last + 1)

    def _take(self, found: Found, step: int) -> None:
        mark = signature(found.path)
        try:
            digest = saving.weights_hash(found.path)
            other = self._sources.setdefault(step, found.path)
            if other != found.path and other.exists():
                if self.told.get(step) != digest:
                    self.warn(
                        "checkpoint-skipped",
                        f"{found.path.name} is not scored: {other.name} has the number {step} too, and counts.",
                        where=str(found.path),
                        fix="Narrow `checkpoints` to one kind of folder.",
                    )
            elif self.told.get(step) != digest:
                if step in self.told:
                    self.warn(
                        "checkpoint-rewritten",
                        f"{found.path.name} was written again with other weights: its scores are replaced.",
                        where=str(found.path),
                        severity="info",
                    )
                model = self._open(found.path)  # what cannot be loaded is no checkpoint to go on from
                folder = self._usable(found, step, digest)
                self._register(folder, found.kind, step, digest, final=False)
                if model is not None:
                    self._check_tokenizer(found.path)
                    self._probe(model, folder, step, digest, evaluate=self._eval_due(step))
                self.told[step] = digest
        except Exception as error:
            if signature(found.path) != mark:
                return  # it changed or went away meanwhile: it is looked at again once it is at rest
            self._cannot_score(found, error)
        self.watcher.hand_out(found)

    def _usable(self, found: Found, step: int, digest: str) -> Path:
        """Where later stages find the checkpoint."""
        spec = self.stage.spec
        label = f"M{spec['index']}@{step}"
        about = {"stage": spec["stage"], "run": spec["id"], "label": label, "kind": found.kind, "weights_hash": digest}
        try:
            return usable_folder(found.path, step, self.run, spec["start"]["checkpoint"], self.settings.cwd, about)
        except OSError as error:
            self.warn(
                "no-tokenizer",
                f"{found.path.name} has no tokenizer, and a folder with one cannot be made beside it ({error}).",
                where=str(found.path),
                fix="Let the command save its tokenizer too; otherwise no stage can start from this checkpoint.",
            )
            return found.path

    def _register(self, folder: Path, kind: str, step: int, digest: str, *, final: bool) -> None:
        path = folder.relative_to(self.run) if folder.is_relative_to(self.run) else folder
        self.journal.append(
            "checkpoint.saved",
            step=step,
            path=path.as_posix(),
            kind=kind or "full",
            final=final,
            weights_hash=digest,
            bytes=saving.folder_bytes(folder),
        )
        self.newest = max((step, folder), self.newest or (step, folder))

    def _open(self, path: Path) -> Any:
        """The model of a checkpoint, if it is to be scored. StageError when it cannot be."""
        if self._prober is None:
            if (path / "adapter_config.json").is_file():
                adapter_base(path, self.settings.cwd)
            return None
        model = load_foreign(path, self.settings.cwd, self.stage.load)
        vocabulary = model.get_input_embeddings().weight.shape[0]
        largest = max((i for row in self._prober.rows for i in row.ids), default=0)
        if largest >= vocabulary:
            raise StageError(
                "bad-checkpoint",
                f"{path.name} has {vocabulary} tokens, fewer than the tokenizer of the stage's start needs",
                str(path),
            )
        return model

    def _check_tokenizer(self, path: Path) -> None:
        difference = self._tokenizers.difference(path) if self._tokenizers else None
        if difference is not None and difference not in self._differences:
            self._differences.add(difference)
            self.warn(
                "tokenizer-differs",
                f"{path.name} has {difference}, unlike the stage's start. It is scored with the start's, so that its "
                "scores can be compared; later checkpoints that have it too are not named.",
                where=str(path),
                fix="Save the start's tokenizer with the checkpoints, unless the training is to change it.",
            )

    def _probe(self, model, path: Path, step: int, digest: str, *, evaluate: bool, again: bool = False) -> None:
        """again: the same weights as before, for their answers only: no second look of the flags."""
        assert self._prober is not None
        self._prober.probe(
            model,
            step,
            evaluate=evaluate,
            full=True,
            weights_hash=digest,
            identity=saving.identity(path, digest),
            look=not again,
            progress=self._progress(step),
        )
        self._prober.let_go()
        if evaluate:
            self._evaluated.add(step)
        say(f"Seesaw: {self._prober.told}")
        seconds = max(process_seconds(), self._prober.seconds)
        self.journal.append(
            "probe.cost",
            probe_s=round(self._prober.seconds, 3),
            stage_s=round(seconds, 3),
            share=round(self._prober.seconds / seconds if seconds > 0 else 0.0, 4),
        )

    def _progress(self, step: int) -> float:
        """How many checkpoints will come is not known. By the j-th look 1 − 1/(j+1) of the flags' budget may be spent:
        it holds however many there are.
        """
        self._looks.add((self.number, step))
        return 1 - 1 / (len(self._looks) + 1)

    def _eval_due(self, step: int) -> bool:
        every = self.stage.spec["probe"].get("eval_every")
        if isinstance(every, int):
            return every > 0 and step % every == 0
        if every == "log":
            return step <= 2 or (step % 3 == 0 and math.log2(step / 3).is_integer())
        return step in (every or ())

    def _cannot_score(self, found: Found, error: Exception) -> None:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        known = isinstance(error, (StageError, saving.CheckpointError))
        fix = "The training goes on; later checkpoints are scored."
        start = Path(self.stage.spec["start"]["checkpoint"])
        if found.kind == "adapter" and known and ("no folder here" in text or "does not name" in text):
            hint = f" Its shapes fit {start}." if fits(found.path, start) else ""
            fix = f"Write the folder of its base into adapter_config.json, or train from {{start}}.{hint}"
        self.warn(
            "checkpoint-skipped",
            f"{text}." if known else f"{found.path.name} could not be scored: {type(error).__name__}: {text}.",
            where=str(found.path),
            fix=fix,
        )

    # ---- the end

    def finish(self) -> None:
        """The last checkpoint is the stage's; its answers are checked."""
        if self.newest is None:
            raise StageError(
                "bad-checkpoint",
                "The command ended well, but left no checkpoint that can be used: "
                f"{' or '.join(self.settings.checkpoints)} gave none (warnings above say why folders were skipped). "
                "Correct `options.checkpoints`, or let the command write safetensors into {output}.",
                "options.checkpoints",
            )
        step, path = self.newest
        digest = saving.weights_hash(path)
        if step in self.told and step not in self._evaluated and self._prober is not None:
            try:
                self._probe(self._open(path), path, step, digest, evaluate=True, again=True)
            except Exception as error:
                self._cannot_score(Found(path, step, "ready"), error)
        kind = "adapter" if (path / "adapter_config.json").is_file() else "full"
        self._register(path, kind, step, digest, final=True)
        self.journal.append("stage.progress", phase="probe", step=step, total=step)
        from seesaw_runner.export.graphs import leave_graphs

        leave_graphs(self.run, [self.stage.spec["base"], path], self.journal)
        say(f"Seesaw: done: M{self.stage.spec['index']} is {path}")
