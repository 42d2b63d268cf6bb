import { startReference } from "../../domain/drift/driftSelection.ts";
import { AppError } from "../../util/errors.ts";
import type { Split } from "../../protocol/runSpec.ts";
import { t } from "../../util/l10n.ts";

/** A place in Token Drift, as a link names it. Only `pipeline` is always there. */
export interface DriftLink {
  /** Path of `seesaw.yaml` from the workspace folder, with forward slashes; or absolute. */
  pipeline: string;
  run?: string;
  /** What the others are compared with: `M1`, or `start`. */
  checkpoint?: string;
  skill?: string;
  split?: Split;
  /** Number of the probe in its set, from 0. */
  row?: number;
}

const names = ["pipeline", "run", "checkpoint", "skill", "split", "row"] as const;
const path = "/open";
/** No path, id or name of ours is longer: what is longer was not made by us. */
const longest = 1_000;

/** `scheme://seesaw.seesaw/open?pipeline=…`: what others open to see the same. */
export function formatLink(scheme: string, extensionId: string, link: DriftLink): string {
  const query = names.flatMap((name) => (link[name] === undefined ? [] : [`${name}=${encoded(String(link[name]))}`]));
  return `${scheme}://${extensionId}${path}?${query.join("&")}`;
}

/** VS Code takes off one layer of percent signs before it hands a link over, so what separates values wears two. */
function encoded(value: string): string {
  return encodeURIComponent(value.replace(/[%&=+#?]/g, encodeURIComponent)).replaceAll("%2F", "/");
}

/** What a link says. AppError("usage") with a sentence for one that is none of ours. `uri`: as VS Code hands it over. */
export function parseLink(uri: { path: string; query: string }): DriftLink {
  if (uri.path !== path) throw new AppError("usage", t("This link is not understood: Seesaw opens links that begin with {0}, not {1}.", path, JSON.stringify(uri.path.slice(0, 80))));
  const query = new URLSearchParams(uri.query.replaceAll("+", "%2B"));
  for (const name of query.keys()) if (!names.some((known) => known === name)) throw new AppError("usage", t("The link asks for {0}, which Seesaw does not know: it knows {1}.", JSON.stringify(name.slice(0, 80)), names.join(", ")));
  const read = (name: (typeof names)[number]): string | undefined => {
    const values = query.getAll(name).map((value) => value.trim()).filter((value) => value !== "");
    if (values.length > 1) throw new AppError("usage", t("The link names {0} twice.", name));
    if ((values[0]?.length ?? 0) > longest) throw new AppError("usage", t("The {0} of the link is too long.", name));
    if (/[\u0000-\u001f]/.test(values[0] ?? "")) throw new AppError("usage", t("The {0} of the link holds control characters.", name));
    return values[0];
  };
  const pipeline = read("pipeline");
  if (pipeline === undefined) throw new AppError("usage", t("The link names no pipeline: copy it again with Seesaw: Copy Link to This View."));
  const split = read("split");
  if (split !== undefined && split !== "id" && split !== "ood") throw new AppError("usage", t("A split is id or ood, not {0}.", JSON.stringify(split)));
  const row = read("row");
  if (row !== undefined && !/^\d{1,9}$/.test(row)) throw new AppError("usage", t("The row of the link is a whole number from 0, not {0}.", JSON.stringify(row)));
  const checkpoint = read("checkpoint");
  if (checkpoint !== undefined && checkpoint !== startReference && !/^M\d{1,4}$/.test(checkpoint)) throw new AppError("usage", t("The checkpoint of the link is start, or one such as M1, not {0}.", JSON.stringify(checkpoint)));
  const run = read("run");
  const skill = read("skill");
  return {
    pipeline,
    ...(run === undefined ? {} : { run }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
    ...(skill === undefined ? {} : { skill }),
    ...(split === undefined ? {} : { split }),
    ...(row === undefined ? {} : { row: Number(row) }),
  };
}
