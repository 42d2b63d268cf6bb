/**
 * Every identifier the extension shares with package.json. `test/unit/manifest.test.ts` compares both ways: an id that
 * is only here, or only there, is a red test.
 */
export const commandIds = [
  "seesaw.runStage",
  "seesaw.resumeRun",
  "seesaw.stopRun",
  "seesaw.showRunLog",
  "seesaw.rerunStage",
  "seesaw.revealRun",
  "seesaw.copyCommand",
  "seesaw.cancelQueued",
  "seesaw.continueQueue",
  "seesaw.showDrift",
  "seesaw.openDriftEditor",
  "seesaw.openPipeline",
  "seesaw.openDataset",
  "seesaw.probeSelection",
  "seesaw.copyLink",
  "seesaw.exportReport",
  "seesaw.exportCsv",
  "seesaw.exportPicture",
  "seesaw.compareWeights",
  "seesaw.openArena",
  "seesaw.setUpRunner",
  "seesaw.confirmFlag",
  "seesaw.setWebhook",
  "seesaw.openReportCard",
  "seesaw.checkTarget",
  "seesaw.addTarget",
  "seesaw.logIn",
  "seesaw.setRayToken",
  "seesaw.cleanTarget",
  "seesaw.showDryRun",
  "seesaw.fetchCheckpoint",
  "seesaw.openSample",
  "seesaw.refresh",
  "seesaw.showLog",
] as const;
export type CommandId = (typeof commandIds)[number];

export const viewIds = ["seesaw.stages", "seesaw.skills", "seesaw.targets", "seesaw.drift"] as const;
export type ViewId = (typeof viewIds)[number];

/** The dataset editor: for what is always opened with it, and as a choice for what the text editor opens. */
export const datasetEditorIds = ["seesaw.dataset", "seesaw.datasetLines"] as const;

/** Language-model tools: what agents may ask for. */
export const toolIds = ["seesaw_listRuns", "seesaw_explainDrift", "seesaw_compareCheckpoints", "seesaw_runStage"] as const;
export type ToolId = (typeof toolIds)[number];

export const walkthroughId = "seesaw.start";

/** Keys for `when` clauses, with the type of their value. */
export interface ContextKeys {
  /** The workspace was searched: only then may an empty state say that there is nothing. */
  "seesaw.ready": boolean;
  "seesaw.hasPipeline": boolean;
  /** At least one run of the workspace lives. */
  "seesaw.running": boolean;
  /** At least one stage waits for its turn. */
  "seesaw.queued": boolean;
}
export type ContextKey = keyof ContextKeys;
export const contextKeys = { "seesaw.ready": true, "seesaw.hasPipeline": true, "seesaw.running": true, "seesaw.queued": true } as const satisfies Record<ContextKey, true>;

/** Settings, with the type of their value. */
export interface Settings {
  "seesaw.python.path": string;
  "seesaw.arena.jobs": number;
  /** What dataset files say about their rows. */
  "seesaw.rows.codeLens": boolean;
  "seesaw.rows.decorations": boolean;
  "seesaw.rows.hover": boolean;
  "seesaw.pipeline.codeLens": boolean;
  /** Also what the report card does not bear out. */
  "seesaw.flags.watch": boolean;
  /** A message when a loss is confirmed, at most one a run. */
  "seesaw.flags.notify": boolean;
  /** Name of the secret that holds the webhook's address; empty: none is told. */
  "seesaw.flags.webhook": string;
}
export type SettingKey = keyof Settings;
export const settingKeys = { "seesaw.python.path": true, "seesaw.arena.jobs": true, "seesaw.rows.codeLens": true, "seesaw.rows.decorations": true, "seesaw.rows.hover": true, "seesaw.pipeline.codeLens": true, "seesaw.flags.watch": true, "seesaw.flags.notify": true, "seesaw.flags.webhook": true } as const satisfies Record<SettingKey, true>;

/** `contextValue` of tree items: what the menus of package.json match on. */
export type TreeContext = "pipeline" | "stage" | "stage.live" | "stage.queued" | "stage.paused" | "run" | "run.live" | "run.resumable" | "checkpoint" | "checkpoint.remote" | "skill" | "note" | "target" | "target.ssh" | "target.slurm" | "target.ray" | "problem.check" | "problem.login" | "problem.token" | "problem.file";

export const outputChannelName = "Seesaw";
/** Scheme of pages that are texts of ours. */
export const textPageScheme = "seesaw-text";
export const diagnosticCollectionName = "seesaw";
