import { readFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync, inflateSync } from "node:zlib";
import type { ReachReason, StationFrame } from "../../protocol/remote.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { LineSplitter } from "../../util/lines.ts";
import { start, type Running } from "../spawn.ts";
import { ReachError } from "./reachError.ts";
import { stationError } from "./stationErrors.ts";

/** A question for `station.py`: a verb and its arguments, all of them data. */
export interface StationRequest {
  verb: "locate" | "check" | "have" | "put" | "unpack" | "write" | "move" | "exec" | "agent" | "follow" | "list" | "get" | "survey" | "clear";
  [field: string]: unknown;
}

/** The fields of its last line. */
export type StationResult = Record<string, unknown>;

/** Said while bytes are copied to the target: from where on they are wanted, and how many it has written. */
export type StationSign = { kind: "go"; offset: number } | { kind: "progress"; bytes: number };

export interface CallOptions {
  /** For `put` and `unpack`: the bytes from `offset` on. Asked for only when the station wants them. */
  data?: (offset: number) => AsyncIterable<Uint8Array>;
  /** Frames as they come. While its promise is pending nothing more is read, so the target waits. */
  onFrame?: (frame: StationFrame) => Promise<void> | void;
  onSign?: (sign: StationSign) => void;
  /** Milliseconds without a word from the target until the call is given up. Default 60 s. */
  silence?: number;
  signal?: AbortSignal;
}

/** Where `station.py` answers: this machine, a host behind ssh, or whatever else can start a Python and pass its pipes on. */
export interface Station {
  /** For people: `gpu-box`. */
  readonly name: string;
  /**
   * One question, one short process. AppError("cancelled"), ReachError for a target that cannot be reached or used, and what
   * `stationError` makes of trouble that the station tells.
   */
  call(request: StationRequest, options?: CallOptions): Promise<StationResult>;
  dispose(): void;
}

/** The one thing that a remote shell ever reads, after the interpreter: it starts a statement that comes on stdin. */
export const bootstrap = "import sys;exec(sys.stdin.buffer.readline())";

/** Why a call ended without an answer, from how its process ended and what it printed on stderr. */
export type ExplainEnd = (end: CallEnd) => Reach | Promise<Reach>;

export interface CallEnd {
  code: number | null;
  signal: string | null;
  stderr: string;
  /** It was ended because nothing came for too long. */
  silent: boolean;
}

export interface Reach {
  reason: ReachReason;
  message: string;
}

export interface PipeOptions {
  name: string;
  /** A command whose stdin and stdout are those of `PYTHON -u -c BOOTSTRAP`. */
  argv: readonly string[] | (() => Promise<readonly string[]>);
  /** Holds `seesaw_runner/station.py`. */
  runnerDir: string;
  explain?: ExplainEnd;
  env?: NodeJS.ProcessEnv;
}

/** A station at the end of a command's pipes. */
export class PipeStation implements Station {
  readonly name: string;
  private readonly options: PipeOptions;
  private readonly live = new Set<Running>();
  private disposed = false;

  constructor(options: PipeOptions) {
    this.options = options;
    this.name = options.name;
  }

  /** The command whose pipes these are. */
  async argv(): Promise<readonly string[]> {
    return typeof this.options.argv === "function" ? this.options.argv() : this.options.argv;
  }

  async call(request: StationRequest, options: CallOptions = {}): Promise<StationResult> {
    const { signal } = options;
    const cancelled = (): AppError => new AppError("cancelled", t("`{0}` on {1} was stopped: cancelled.", request.verb, this.name));
    if (signal?.aborted || this.disposed) throw cancelled();
    const child = await start(await this.argv(), this.options.env === undefined ? {} : { env: this.options.env });
    this.live.add(child);
    let silent = false;
    const silence = options.silence ?? 60_000;
    const giveUp = (): void => {
      silent = true;
      child.kill();
    };
    let timer = setTimeout(giveUp, silence);
    const heard = (): void => {
      clearTimeout(timer);
      timer = setTimeout(giveUp, silence);
    };
    const abort = (): void => child.kill();
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted || this.disposed) abort();
    try {
      await child.write(`${statement(this.options.runnerDir)}\n${JSON.stringify(request)}\n`);
      const result = await this.listen(child, options, heard, () => clearTimeout(timer));
      if (signal?.aborted) throw cancelled();
      if (result !== null) return result;
      const end = await child.ended;
      if (this.disposed) throw cancelled();
      const { reason, message } = await (this.options.explain ?? explainLocal(this.name))({ ...end, stderr: child.errors(), silent });
      throw new ReachError(reason, message);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      this.live.delete(child);
      child.end();
      await settled(child);
    }
  }

  /** Ends what is under way; later calls are refused. */
  dispose(): void {
    this.disposed = true;
    for (const child of this.live) child.kill();
  }

  /** Reads frames until the result; null where the output ended without one. */
  private async listen(child: Running, options: CallOptions, heard: () => void, pause: () => void): Promise<StationResult | null> {
    const splitter = new LineSplitter();
    let copying: Promise<unknown> | null = null;
    let failed: { error: unknown } | null = null;
    try {
      for await (const chunk of child.output) {
        heard();
        for (const line of splitter.push(chunk)) {
          const frame = frameOf(line.bytes);
          if (frame === null) continue;
          if (frame.kind === "result") return frame;
          if (frame.kind === "error") throw stationError(this.name, frame);
          if (frame.kind === "go") {
            options.onSign?.(frame as unknown as StationSign);
            if (options.data !== undefined && copying === null) {
              copying = pour(options.data(Number(frame["offset"])), child, heard).catch((error: unknown) => {
                failed = { error };
                child.kill();
              });
            }
          } else if (frame.kind === "progress") {
            options.onSign?.(frame as unknown as StationSign);
          } else if (options.onFrame !== undefined) {
            pause(); // a slow reader is not a silent target
            await options.onFrame(frame as unknown as StationFrame);
            heard();
          }
        }
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The pipe was closed by `kill`; any other error is the frame handler's, or the station's own.
      if (code !== "ERR_STREAM_PREMATURE_CLOSE" && code !== "ERR_STREAM_DESTROYED") {
        child.kill();
        throw error;
      }
    }
    if (failed !== null) throw (failed as { error: unknown }).error;
    return null;
  }
}

/** A station on this machine. */
export function localStation(runnerDir: string, python: string): PipeStation {
  return new PipeStation({ name: t("this machine"), argv: [python, "-u", "-c", bootstrap], runnerDir });
}

/** How a command without an answer ended, where no connection is involved. */
function explainLocal(name: string): ExplainEnd {
  return ({ code, signal, stderr, silent }) => {
    const said = stderr.trim().split("\n").at(-1)?.slice(0, 300) ?? "";
    const how = silent ? t("no answer in time") : signal === null ? t("exit code {0}", String(code)) : t("signal {0}", signal);
    return { reason: "other", message: t("{0} gave no answer ({1}){2}", name, how, said ? `: ${said}` : ".") };
  };
}

async function pour(data: AsyncIterable<Uint8Array>, child: Running, heard: () => void): Promise<void> {
  for await (const chunk of data) {
    if (!(await child.write(chunk))) return;
    heard();
  }
}

/** The process ends by itself when its input has ended; what does not is killed. */
async function settled(child: Running): Promise<void> {
  const timer = setTimeout(() => child.kill(), 2_000);
  // Its output may still hold frames that nobody wants any more.
  void (async () => {
    for await (const chunk of child.output) void chunk;
  })().catch(() => {});
  await child.ended;
  clearTimeout(timer);
}

const sign = Buffer.from("@seesaw ");

/** A line of the station, with bytes that came compressed as if they had not; null for what anything else printed. */
export function frameOf(line: Uint8Array): ({ kind: string } & StationResult) | null {
  const at = Buffer.from(line.buffer, line.byteOffset, line.length).indexOf(sign);
  if (at < 0) return null;
  try {
    const value: unknown = JSON.parse(Buffer.from(line.buffer, line.byteOffset + at + sign.length, line.length - at - sign.length).toString("latin1"));
    return typeof value === "object" && value !== null && typeof (value as { kind?: unknown }).kind === "string" ? plain(value as { kind: string }) : null;
  } catch {
    return null;
  }
}

function plain(frame: { kind: string } & StationResult): { kind: string } & StationResult {
  if (frame["z"] !== true) return frame;
  const { z: _, data, ...rest } = frame;
  return { ...rest, data: inflateSync(Buffer.from(String(data), "base64")).toString("base64") };
}

const statements = new Map<string, string>();

/** One line of Python that is station.py and serves one request. Says so where the Python is too old to read it. */
export function statement(runnerDir: string): string {
  const file = join(runnerDir, "seesaw_runner", "station.py");
  let text = statements.get(file);
  if (text === undefined) {
    const code = deflateSync(readFileSync(file), { level: 9 }).toString("base64");
    const old = '@seesaw {"kind": "error", "reason": "no-python", "code": "old-python", "message": "Python is too old.", "version": "%s"}';
    text =
      `import sys;sys.version_info>=(3,8) or (print('${old}'%sys.version.split()[0]),sys.exit());` +
      // A file of the home folder must not pass for a module of the standard library.
      "sys.path[:]=[p for p in sys.path if p];import zlib,base64;g={'__name__':'seesaw_station'};" +
      `exec(compile(zlib.decompress(base64.b64decode('${code}')),'station.py','exec'),g);g['serve']()`;
    statements.set(file, text);
  }
  return text;
}
