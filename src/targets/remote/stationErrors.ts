import type { ReachReason } from "../../protocol/remote.ts";
import { t } from "../../util/l10n.ts";
import { ReachError } from "./reachError.ts";
import type { StationResult } from "./station.ts";

/** What a station's trouble is called, so that a caller can act on it. */
export class StationTrouble extends ReachError {
  readonly code: string;
  readonly fields: StationResult;

  constructor(reach: ReachReason, message: string, fields: StationResult) {
    super(reach, message);
    this.code = String(fields["code"]);
    this.fields = fields;
  }
}

/** True for trouble of this kind, told by a station. */
export function isTrouble(error: unknown, code: string): error is StationTrouble {
  return error instanceof StationTrouble && error.code === code;
}

/** What a station says went wrong, as a sentence that names the place and the fix. */
export function stationError(name: string, frame: StationResult): StationTrouble {
  const { reach, message } = inWords(name, frame);
  return new StationTrouble(reach, message, frame);
}

function inWords(name: string, frame: StationResult): { reach: ReachReason; message: string } {
  const path = String(frame["path"] ?? "");
  const detail = String(frame["detail"] ?? "");
  switch (frame["code"]) {
    case "old-python":
      return { reach: "no-python", message: t("The Python on {0} is {1}, but 3.10 or newer is needed: name another with `python:` of this target in seesaw.yaml.", name, String(frame["version"])) };
    case "not-writable":
      return { reach: "not-writable", message: t("You may not write in {1} on {0}: correct `dir:` of this target in seesaw.yaml, or ask for the right to.", name, path) };
    case "read-only":
      return { reach: "not-writable", message: t("{1} on {0} is on a disk that is mounted read-only: name another folder with `dir:` of this target in seesaw.yaml.", name, path) };
    case "quota":
      return { reach: "not-writable", message: t("Your disk quota on {0} is used up, so {1} could not be written: `quota -s` there shows it (on Lustre `lfs quota`). Remove something, or name a folder on another disk with `dir:`.", name, path) };
    case "disk-full":
      return { reach: "not-writable", message: t("The disk of {1} on {0} is full: make room there, or name a folder on another disk with `dir:`.", name, path) };
    case "no-folder":
      return { reach: "not-writable", message: t("The folder {1} cannot be made on {0}: correct `dir:` of this target in seesaw.yaml.", name, path) };
    case "not-a-folder":
      return { reach: "not-writable", message: t("A part of {1} on {0} is a file, not a folder: correct `dir:` of this target in seesaw.yaml.", name, path) };
    case "disk":
      return { reach: "other", message: t("{1} on {0} could not be used: {2}.", name, path, detail) };
    case "not-there":
      return { reach: "other", message: t("{1} is not on {0}: it was moved or removed there.", name, path) };
    case "no-run":
      return { reach: "other", message: t("The run folder {1} is not on {0}: it was moved or removed there. What was copied of it before is kept.", name, path) };
    case "no-runner":
      return { reach: "other", message: t("Seesaw's runner is not in {1} on {0} any more: start the stage again, which copies it.", name, path) };
    case "no-program":
      return { reach: "other", message: t("{0} has no program {1}.", name, path) };
    case "spawn":
      return { reach: "other", message: t("{1} could not be started on {0}: {2}.", name, path, detail) };
    case "busy":
      return { reach: "other", message: t("{1} is being copied to {0} by another window: wait for it.", name, path) };
    case "changed":
      return { reach: "other", message: t("{1} on {0} was changed while it was copied: try again.", name, path) };
    case "short":
      return { reach: "no-route", message: t("The copy to {0} was interrupted: what is there already is kept.", name) };
    case "memory":
      return { reach: "other", message: t("Memory ran out on {0}: end something there, or use another node.", name) };
    default:
      return { reach: "other", message: t("{0} could not do what was asked: {1}", name, String(frame["message"] ?? "")) };
  }
}
