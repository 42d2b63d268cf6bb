import { hash } from "node:crypto";
import { isAbsolute, relative, sep } from "node:path";
import type { DriftRow } from "../../domain/drift/drift.ts";
import { probeSetsOf } from "../../domain/drift/driftSelection.ts";
import { rowHashes } from "../../domain/rows/canonical.ts";
import type { JsonValue } from "../../domain/rows/jsonText.ts";
import type { DatasetProbe } from "../../protocol/datasets.ts";
import { encodeNumber } from "../../protocol/numbers.ts";
import { t } from "../../util/l10n.ts";
import { hasScores, readKnowledge, type KnowledgeHost } from "../rows/rowKnowledge.ts";
import { knowledgeKey, rolesOf, type FileRole } from "../rows/rowRoles.ts";
import { replayText } from "../rows/rowWords.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** What is known about the rows of a dataset, for its page: the same knowledge and the same words as in the text editor. */
export interface RowFacts {
  columns: { label: string; title: string }[];
  /** Whether any run has replayed anything. */
  replay: boolean;
  problems: string[];
  of(value: JsonValue): { replay: string | null; probe: KnownProbe | null };
}

/** A probe's drift, and where Token Drift shows it. */
export type KnownProbe = DatasetProbe & { pipeline: string; probeRow: number };

const nothing: RowFacts = { columns: [], replay: false, problems: [], of: () => ({ replay: null, probe: null }) };

/** Changes exactly when the facts of a file may have changed. */
export function factsKey(path: string, views: readonly PipelineView[]): string {
  const roles = rolesFor(path, views);
  return roles.length === 0 ? "" : knowledgeKey(roles);
}

/** Reads buffers, ledgers and the probe sets that a file's rows may be of. What cannot be read is a problem, not the end. */
export async function readFacts(path: string, host: KnowledgeHost): Promise<RowFacts> {
  const roles = rolesFor(path, host.views());
  const knowledge = await readKnowledge(path, host, null, roles);
  const view = (roles.find(hasScores) ?? roles[0])?.view;
  if (knowledge === null || view?.chain == null) return nothing;
  const columns = view.chain.checkpoints.filter(({ traces }) => Object.keys(traces).length > 0).map(({ label, stage }) => ({ label, title: `${label} ${stage ?? t("base")}` }));
  const labels = columns.map(({ label }) => label);
  return {
    columns,
    replay: knowledge.membership.size > 0 || knowledge.replay.length > 0,
    problems: knowledge.problems,
    of(value) {
      const hashes = rowHashes(value, (text) => hash("sha256", text, "hex"));
      const [probe] = knowledge.probes.get(hashes.full) ?? [];
      return {
        replay: replayText({ value, hashes }, knowledge),
        probe: probe === undefined ? null : { ...probeOf(probe.row, labels), skill: probe.set.skill, split: probe.set.split, pipeline: probe.pipeline, probeRow: probe.row.row },
      };
    },
  };
}

/**
 * What the file is to the pipelines. One that none of them names belongs to the pipeline with the nearest root; rows of a
 * file that is no probe file may be copies of probes, so they are held against all sets that are not too large for that.
 */
function rolesFor(path: string, views: readonly PipelineView[]): FileRole[] {
  const named = rolesOf(path, views);
  const nearest = named.length > 0 ? null : viewOf(path, views);
  const roles = nearest === null ? named : [{ view: nearest, probes: [], stages: [] }];
  return roles.map((role) => (role.probes.length > 0 ? role : { ...role, probes: role.view.shown?.skills.flatMap(probeSetsOf) ?? [], copies: true }));
}

/** The pipeline a file belongs to: the one with the nearest root above it, else the first. */
function viewOf(path: string, views: readonly PipelineView[]): PipelineView | null {
  const usable = views.filter(({ shown, chain }) => shown !== null && chain !== null);
  const inside = usable.filter(({ shown }) => isInside(path, shown?.root ?? "")).sort((a, b) => (b.shown?.root.length ?? 0) - (a.shown?.root.length ?? 0));
  return inside[0] ?? usable[0] ?? null;
}

function probeOf({ cells }: DriftRow, labels: readonly string[]): Pick<DatasetProbe, "changes" | "beyondNoise" | "checks"> {
  const byLabel = new Map(cells.map((cell) => [cell.label, cell]));
  const inOrder = labels.map((label) => byLabel.get(label));
  return {
    changes: inOrder.map((cell) => (cell?.delta == null ? null : encodeNumber(-cell.delta))),
    beyondNoise: inOrder.map((cell) => cell?.delta != null && !cell.withinNoise),
    checks: inOrder.map((cell) => (cell?.correct == null ? "not-run" : cell.correct ? "passed" : "failed")),
  };
}

function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
