"""All teachers of a stage, as its option `teachers` names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from seesaw_runner.distillation.endpoint import EndpointTeacher
from seesaw_runner.distillation.teachers import LocalTeachers, Rolled, Target, fit_together
from seesaw_runner.training.compatible import must_share_vocabulary


@dataclass
class TeacherPool:
    """`told`: how the local ones are loaded, for people."""

    local: LocalTeachers
    remote: dict[str, EndpointTeacher]
    told: str
    stage: object
    _silent: set[str] = field(default_factory=set)

    @property
    def domains(self) -> list[str]:
        return [*self.local.folders, *self.remote]

    def score(self, domain: str, rows: Sequence[Rolled]) -> list[Target | None]:
        """Targets of a domain's answers; a teacher that falls silent is told once, and once when it is back."""
        teacher = self.remote.get(domain)
        if teacher is None:
            return self.local.score(domain, rows)
        found = teacher.score(rows)
        if teacher.failures and domain not in self._silent:
            self._silent.add(domain)
            self.stage.warn(
                "teacher-silent",
                f"The teacher of {domain} does not answer ({teacher.last_error}). Its rows are dropped until it does; "
                "the other domains go on.",
                where=teacher.url,
                fix="Start the server again.",
            )
        elif not teacher.failures and domain in self._silent:
            self._silent.discard(domain)
            self.stage.warn(
                "teacher-silent", f"The teacher of {domain} answers again.", where=teacher.url, severity="info"
            )
        return found


def teacher_pool(stage, *, top_k: int, offline: bool) -> TeacherPool:
    """Reads `teachers` and `load`. StageError for a teacher of another vocabulary, or one that cannot be had."""
    options, start = stage.options, stage.spec["start"]["checkpoint"]
    named = options.take("teachers", None, dict)
    load = options.take("load", "auto", str, among=("auto", "together", "one-by-one"))
    if not named:
        raise options.error("teachers", "is missing: name a checkpoint or an endpoint for each domain")
    folders, remote = {}, {}
    for domain, teacher in named.items():
        if isinstance(teacher, str):
            folders[domain] = stage.model_folder(teacher, f"teachers.{domain}")
            must_share_vocabulary(start, folders[domain], f"The teacher of {domain}")
        elif isinstance(teacher, dict) and teacher.get("endpoint") and teacher.get("model"):
            remote[domain] = teacher
        else:
            raise options.error(f"teachers.{domain}", "must be a checkpoint, or have an endpoint and a model")
    if offline and remote:
        raise options.error("offline", f"needs local teachers, but {', '.join(remote)} is behind an endpoint")
    vocabulary = int(stage.model.config.get_text_config().vocab_size)
    servers = {
        domain: EndpointTeacher(
            domain,
            settings,
            top_k=top_k,
            vocabulary=vocabulary,
            spell=lambda token: stage.tokenizer.decode([token]),
            stopping=lambda: stage.watch.signal is not None,
        )
        for domain, settings in remote.items()
    }
    told, together = f"{len(servers)} endpoints", True
    if folders:
        fits, told = fit_together(list(folders.values()), stage.device.torch, stage.device.frozen_dtype)
        together = load == "together" or (load == "auto" and fits)
        if load != "auto":
            told = f"{len(set(folders.values()))} teachers, loaded {load.replace('-', ' ')}"
    return TeacherPool(
        LocalTeachers(folders, partial(stage.load, frozen=True, beside_training=not offline), together=together),
        servers,
        told,
        stage,
    )
