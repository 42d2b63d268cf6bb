/** What lies below a target's `dir`, as station.py's `survey` and `clear` tell of it. */

/** Folders there: runs, what each brought along, data by hash, models by hash, versions of the runner, what a job array needs. */
export type StoreKind = "runs" | "work" | "objects" | "models" | "runner" | "arrays";

export interface StoreItem {
  kind: StoreKind;
  name: string;
}

export interface StoreSurvey {
  /** Absolute there. */
  dir: string;
  /** What may go. `spent`: its own workspace lets go of it; `unused`: no run there names it, for a day at least; `left`: of a removal that was cut. */
  items: (StoreItem & { why: "spent" | "unused" | "left"; bytes: number })[];
  /** Runs that were let go of and stay: one has not ended there, or another run there (`by`) needs it. */
  staying: Record<string, { why: "live" | "named"; by?: string }>;
  /** How many folders of each kind stay. */
  kept: Record<StoreKind, number>;
  /** Places that could not be read, the first few: what they need is not known, so nothing that is shared may go. */
  closed: string[];
}

export interface StoreCleared {
  removed: (StoreItem & { bytes: number })[];
  failed: (StoreItem & { path: string; detail: string })[];
  /** Of what was asked for, how many stay because somebody needs them now. */
  left: number;
}

/** What would go from a target, for a person to say yes to. */
export interface CleaningPlan {
  v: 1;
  target: string;
  address: string;
  dir: string;
  items: (StoreItem & { bytes: number; why: string })[];
  /** Runs of this workspace that stay there, and why. */
  staying: { run: string; why: string }[];
  kept: Record<StoreKind, number>;
  bytes: number;
  /** Sentences. */
  notes: string[];
}
