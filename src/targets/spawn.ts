import { spawn } from "node:child_process";
import { openSync, closeSync } from "node:fs";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";

export interface RunOptions {
  cwd?: string;
  /** Complete environment; default: this process's own. */
  env?: NodeJS.ProcessEnv;
  input?: string | Uint8Array;
  /** Milliseconds until the program is killed. */
  timeout?: number;
  signal?: AbortSignal;
  /** Told of both streams as they come. */
  onOutput?: (text: string) => void;
  /** Bytes kept of each stream; what comes after is read and dropped. */
  maxBytes?: number;
}

/** How a program ended. A signal is never flattened into a code: exactly one of the two is null. */
export interface RunResult {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  stdoutBytes: Uint8Array;
  /** More came than `maxBytes`. */
  truncated: boolean;
  timedOut: boolean;
}

const graceMs = 2_000;
const maxErrors = 16_384;

/**
 * Runs a program to its end, never through a shell. Resolves however it ended; rejects with
 * AppError("spawn-failed") when it could not start and AppError("cancelled") when `signal` fired.
 */
export async function run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const [program, ...args] = checked(argv);
  const limit = options.maxBytes ?? 1 << 20;
  if (options.signal?.aborted) throw new AppError("cancelled", t("{0} was not started: cancelled.", program));
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    windowsHide: true,
  });
  const out = collect(limit);
  const err = collect(limit);
  child.stdout?.on("data", out.add);
  child.stderr?.on("data", err.add);
  const { onOutput } = options;
  if (onOutput !== undefined) for (const stream of [child.stdout, child.stderr]) stream?.on("data", textOf(onOutput));
  child.stdin?.on("error", () => {}); // it need not read all its input
  child.stdin?.end(options.input);

  let ended: "timeout" | "cancelled" | null = null;
  const timers: NodeJS.Timeout[] = [];
  const end = (why: "timeout" | "cancelled"): void => {
    ended ??= why;
    child.kill("SIGTERM");
    timers.push(setTimeout(() => child.kill("SIGKILL"), graceMs));
    // A grandchild may keep the pipes open after the program is gone: do not wait for it.
    timers.push(setTimeout(() => [child.stdout, child.stderr].forEach((stream) => stream?.destroy()), graceMs + 500));
  };
  const cancel = (): void => end("cancelled");
  options.signal?.addEventListener("abort", cancel, { once: true });
  if (options.timeout !== undefined) timers.push(setTimeout(() => end("timeout"), options.timeout));
  try {
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once("error", (error) => reject(cannotStart(program, error)));
      child.once("close", (exit, by) => resolve([exit, by]));
    });
    // `end` runs in callbacks, which the compiler's control flow does not see.
    if ((ended as string | null) === "cancelled") throw new AppError("cancelled", t("{0} was stopped: cancelled.", program));
    const stdoutBytes = out.bytes();
    return {
      code,
      signal,
      stdout: Buffer.from(stdoutBytes).toString("utf8"),
      stderr: Buffer.from(err.bytes()).toString("utf8"),
      stdoutBytes,
      truncated: out.cut() || err.cut(),
      timedOut: ended === "timeout",
    };
  } finally {
    for (const timer of timers) clearTimeout(timer);
    options.signal?.removeEventListener("abort", cancel);
  }
}

/** A program that runs and is spoken to. Its output is taken as it is read: the program waits while nobody reads. */
export interface Running {
  readonly pid: number;
  /** Resolves when the program has room for more; with false when it has closed its input, which its end then explains. */
  write(bytes: string | Uint8Array): Promise<boolean>;
  /** Nothing more is written. */
  end(): void;
  readonly output: AsyncIterable<Uint8Array>;
  /** The end of what it printed on stderr so far. */
  errors(): string;
  /** SIGTERM, then SIGKILL. Its output ends at once. */
  kill(): void;
  /** Resolves when it has ended and its output was taken or dropped. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** Starts a program to be spoken to, never through a shell. AppError("spawn-failed") when it could not start. */
export async function start(argv: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): Promise<Running> {
  const [program, ...args] = checked(argv);
  const child = spawn(program, args, { cwd: options.cwd, env: options.env ?? process.env, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
  await new Promise<void>((resolve, reject) => {
    child.once("error", (error) => reject(cannotStart(program, error)));
    child.once("spawn", resolve);
  });
  const { stdin, stdout, stderr } = child;
  const said = tail(maxErrors);
  stderr.on("data", said.add);
  let closed = false;
  let room = (): void => {};
  const close = (): void => {
    closed = true;
    room();
  };
  stdin.on("error", close); // it need not read all its input
  stdin.on("close", close);
  stdin.on("drain", () => room());
  child.on("error", () => {}); // a signal that could not be sent
  const timers: NodeJS.Timeout[] = [];
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("close", (code, signal) => {
      for (const timer of timers) clearTimeout(timer);
      close();
      resolve({ code, signal });
    });
    // A grandchild (ssh's shared connection) may keep the pipes open after the program is gone: do not wait for it.
    const letGo = (): void => {
      stderr.destroy();
      if (stdout.readableLength === 0) stdout.destroy();
      else timers.push(setTimeout(letGo, graceMs));
    };
    child.once("exit", () => timers.push(setTimeout(letGo, graceMs)));
  });
  return {
    pid: child.pid ?? 0,
    async write(bytes) {
      if (!closed && !stdin.write(bytes)) await new Promise<void>((resolve) => (room = resolve));
      return !closed;
    },
    end: () => void stdin.end(),
    output: stdout,
    errors: () => said.text(),
    kill() {
      child.kill("SIGTERM");
      timers.push(setTimeout(() => child.kill("SIGKILL"), graceMs));
      for (const stream of [stdin, stdout, stderr]) stream.destroy();
    },
    ended,
  };
}

/** Starts a program that outlives this process; its output is appended to `log`. Resolves with its pid once it runs. */
export async function spawnDetached(
  argv: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; log?: string } = {},
): Promise<number> {
  const [program, ...args] = checked(argv);
  const log = options.log === undefined ? "ignore" : openSync(options.log, "a");
  try {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      detached: true,
      stdio: ["ignore", log, log],
      windowsHide: true,
    });
    await new Promise<void>((resolve, reject) => {
      child.once("error", (error) => reject(cannotStart(program, error)));
      child.once("spawn", resolve);
    });
    child.unref();
    return child.pid ?? 0;
  } finally {
    if (typeof log === "number") closeSync(log);
  }
}

function checked(argv: readonly string[]): [string, ...string[]] {
  const [program, ...args] = argv;
  if (program === undefined || program === "" || argv.some((part) => part.includes("\0"))) {
    throw new AppError("spawn-failed", t("A program to start must have a name, and no argument may contain a NUL character."));
  }
  return [program, ...args];
}

function cannotStart(program: string, error: Error): AppError {
  const code = (error as NodeJS.ErrnoException).code;
  const why =
    code === "ENOENT"
      ? t("it does not exist (or the folder it should run in does not)")
      : code === "EACCES"
        ? t("it may not be executed: check its permissions")
        : error.message;
  return new AppError("spawn-failed", t("{0} could not be started: {1}.", program, why), { cause: error });
}

/** Bytes as text; a character that comes in two parts is given when it is whole. */
function textOf(tell: (text: string) => void): (chunk: Buffer) => void {
  const decoder = new TextDecoder();
  return (chunk) => tell(decoder.decode(chunk, { stream: true }));
}

function collect(limit: number): { add(chunk: Buffer): void; bytes(): Uint8Array; cut(): boolean } {
  const chunks: Buffer[] = [];
  let kept = 0;
  let dropped = false;
  return {
    add(chunk) {
      const room = limit - kept;
      if (chunk.length > room) dropped = true;
      if (room <= 0) return;
      chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
      kept += Math.min(room, chunk.length);
    },
    bytes: () => Buffer.concat(chunks),
    cut: () => dropped,
  };
}

/** The last bytes of a stream, from the beginning of a line where something was dropped. */
function tail(limit: number): { add(chunk: Buffer): void; text(): string } {
  let kept = Buffer.alloc(0);
  let cut = false;
  return {
    add(chunk) {
      const all = Buffer.concat([kept, chunk]);
      cut ||= all.length > limit;
      kept = all.subarray(Math.max(0, all.length - limit));
    },
    text: () => (cut ? kept.subarray(kept.indexOf("\n") + 1) : kept).toString("utf8"),
  };
}
