import type { ArenaJobs } from "../../domain/arena/arenaPage.ts";
import { jobsText } from "../../domain/arena/arenaText.ts";
import { formatCount, formatDuration, formatPlural } from "../../domain/format.ts";
import { t } from "../../util/l10n.ts";
import { shellText } from "../../util/shellText.ts";

/** What starting an arena would mean. */
export interface ArenaPrice {
  systems: number;
  seeds: number[];
  /** Stages of all seeds, and those that are done. */
  stages: number;
  done: number;
  /** Of what is left. null: not known before a stage has run on the target. */
  tokens: number | null;
  seconds: number | null;
}

/** The text of the question before an arena starts: how much there is, what it takes, where it goes, and the exact command. */
export function priceText(price: ArenaPrice, jobs: ArenaJobs, command: readonly string[], python: string): string {
  const left = price.stages - price.done;
  const head = t("{0} and {1}: {2}, {3} of them done.", formatPlural(price.systems, "system"), formatPlural(price.seeds.length, "seed"), formatPlural(price.stages, "stage"), formatCount(price.done));
  const time = price.seconds === null ? t("How long it takes is known when a stage has run on this target.") : t("About {0} of training, and the start-up of each stage besides.", formatDuration(price.seconds));
  const tokens = price.tokens === null ? "" : ` ${t("About {0} trained tokens.", formatCount(Math.round(price.tokens)))}`;
  return [
    head,
    left === 0 ? t("Everything is done: only what has changed is run again.") : `${time}${tokens}`,
    ...(left === 0 ? [] : [jobsText(jobs)]),
    t("All runs are written to .seesaw/arena beside seesaw.yaml. What has run before is not run again."),
    "",
    shellText(command),
    "",
    t("Python {0}. The arena goes on when this window is closed.", python),
  ].join("\n");
}
