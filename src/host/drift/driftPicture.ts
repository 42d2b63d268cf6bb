import { startReference } from "../../domain/drift/driftSelection.ts";
import { formatNumber } from "../../domain/format.ts";
import { probeSetName } from "../../domain/run/flagText.ts";
import type { PictureAbout } from "../../protocol/webview.ts";
import { t } from "../../util/l10n.ts";
import type { ResolvedSelection } from "./driftChoices.ts";
import type { Noise } from "./driftData.ts";

/** What a picture says of where it comes from: whoever gets it without the project must be able to trace it back. */
export function pictureAbout({ pipeline, chain, skill, split, reference }: ResolvedSelection, noise: Noise | null, now: Date): PictureAbout {
  const against = reference === startReference ? t("the start of each stage") : chain.checkpoints.find(({ label }) => label === reference)?.stage ?? null;
  const compared = reference === startReference || against === null ? against ?? t("{0}, the base", reference) : t("{0}, after {1}", reference, against);
  const shown = chain.checkpoints.filter(({ traces }) => traces[`${skill}.${split}`] !== undefined);
  const runs = shown.flatMap(({ label, stage, run, step }) => {
    if (run === null) return [];
    return stage === null ? [t("{0} base, scored in {1}", label, run.id)] : [t("{0} {1}, run {2} at step {3}", label, stage, run.id, step ?? 0)];
  });
  return {
    title: t("Token Drift: {0}", probeSetName(skill, split)),
    about: [t("Pipeline {0} · compared with {1}", pipeline.name, compared)],
    notes: [
      ...(noise === null ? [] : [t("Noise floor of log p: {0} nats a token, {1} nats an answer; nothing within it is coloured.", formatNumber(noise.token, 4), formatNumber(noise.sequence, 4))]),
      ...(runs.length === 0 ? [] : [t("Checkpoints: {0}.", runs.join("; "))]),
      t("Made by Seesaw on {0}.", now.toISOString().slice(0, 10)),
    ],
  };
}
