/**
 * Every identifier the extension shares with package.json. `test/unit/manifest.test.ts` compares both ways: an id that
 * is only here, or only there, is a red test.
 */
export const commandIds = [
  "seesaw.runStage",
  "seesaw.resumeRun",
  "seesaw.stopRun",
  "seesaw.showRunLog",
  "seesaw.showDrift",
  "seesaw.openPipeline",
  "seesaw.refresh",
  "seesaw.showLog",
] as const;
export type CommandId = (typeof commandIds)[number];

export const viewIds = ["seesaw.stages", "seesaw.drift"] as const;
export type ViewId = (typeof viewIds)[number];

/** Keys for `when` clauses, with the type of their value. */
export interface ContextKeys {
  /** The workspace was searched: only then may an empty state say that there is nothing. */
  "seesaw.ready": boolean;
  "seesaw.hasPipeline": boolean;
  /** At least one run of the workspace lives. */
  "seesaw.running": boolean;
}
export type ContextKey = keyof ContextKeys;
export const contextKeys = { "seesaw.ready": true, "seesaw.hasPipeline": true, "seesaw.running": true } as const satisfies Record<ContextKey, true>;

/** Settings, with the type of their value. */
export interface Settings {
  "seesaw.python.path": string;
}
export type SettingKey = keyof Settings;
export const settingKeys = { "seesaw.python.path": true } as const satisfies Record<SettingKey, true>;

/** `contextValue` of tree items: what the menus of package.json match on. */
export type TreeContext = "pipeline" | "stage" | "stage.live" | "run" | "run.live" | "run.resumable" | "checkpoint" | "note";

export const outputChannelName = "Seesaw";
export const diagnosticCollectionName = "seesaw";
