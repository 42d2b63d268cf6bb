/** Files of one attempt, written by `agent.py`. See `.github/contracts.md` §4. */
export interface AttemptSpec {
  v: 1;
  nonce: string;
  argv: string[];
  cwd: string;
  env: Record<string, string>;
  epoch: number;
  /** Seconds between SIGTERM and SIGKILL. */
  grace_s: number;
  beat_s: number;
  /** True: the training dies with its agent (Slurm, Ray). */
  fate: boolean;
  run: string;
  /** Run before the training, on every machine of the job: `seesaw_runner.node_check`. Where what was checked before the start is true of another machine only. */
  check?: string[];
}

export interface StartedFile {
  nonce: string;
  host: string;
  boot: string;
  t: number;
  agent_pid: number;
  agent_start: number | string | null;
  pid: number;
  start: number | string | null;
  pgid: number;
  job: Record<string, string>;
}

/** What `agent.py probe` prints. */
export interface AttemptProbe {
  state: "absent" | "claimed" | "running" | "exited" | "orphan" | "lost:no-exit-file" | "lost:reboot-or-other-host";
  now: number;
  boot: string;
  beat_age: number | null;
  /** How often the heart has beaten: whether this changes tells that the agent lives, whatever the clocks say. */
  beat?: number;
  /** A stop was asked for. */
  cancel?: boolean;
  started: StartedFile | null;
  exit: Record<string, unknown> | null;
}
