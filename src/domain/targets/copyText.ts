import { t } from "../../util/l10n.ts";
import { formatBytes } from "../format.ts";

/** What is being copied, and how far it is: `math.train.jsonl: 12 MB of 30 MB`. Without bytes only what is done. */
export function copyText(what: string, copied: number, total: number): string {
  return total > 0 ? t("{0}: {1} of {2}", what, formatBytes(copied), formatBytes(total)) : what;
}
