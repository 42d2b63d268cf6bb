import { t } from "../../util/l10n.ts";

/** A checkpoint whose weights lie on another machine. */
export interface AwayWeights {
  run: string;
  /** Null where the folder's name does not say it. */
  step: number | null;
  /** The target's name in seesaw.yaml, and where that is, for people. */
  target: string;
  address: string;
}

/** Why something that needs weights cannot have these, and how it could. */
export function awaySentence({ run, step, target, address }: AwayWeights): string {
  return step === null
    ? t("The weights of run {0} lie on `{1}` ({2}). Bring its last checkpoint here with `seesaw fetch {0}`.", run, target, address)
    : t("The weights of run {0} at step {1} lie on `{2}` ({3}). Bring them here with `seesaw fetch {0} --step {1}`.", run, step, target, address);
}

/** The step that the name of a checkpoint's folder tells. */
export function stepOfFolder(path: string): number | null {
  const step = /(?:^|[\\/])(?:step|checkpoint|global_step)[-_](\d+)[\\/]?$/.exec(path)?.[1];
  return step === undefined ? null : Number(step);
}
