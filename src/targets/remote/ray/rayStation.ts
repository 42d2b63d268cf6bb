import { randomBytes } from "node:crypto";
import { deflateSync } from "node:zlib";
import type { StationFrame } from "../../../protocol/remote.ts";
import { AppError } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import { ReachError } from "../reachError.ts";
import { frameOf, type CallOptions, type Station, type StationRequest, type StationResult } from "../station.ts";
import { stationError } from "../stationErrors.ts";
import { ended, type RayClient, type RayJob } from "./rayClient.ts";
import { RayError, lastLine } from "./rayErrors.ts";
import { followLog } from "./rayLogs.ts";
import { packageOf, runnerPackage, type RayPackage } from "./rayPackage.ts";

/** A request that is longer comes in a package: a variable of the environment holds no more than 128 KB. */
const inlineMost = 60_000;
/** A cluster that is busy starts a job in minutes; one that holds nothing is never in a queue. */
const jobMs = 180_000;
/** Verbs whose answer comes piece by piece; that of all others is read when the job has ended. */
const streamed: ReadonlySet<string> = new Set(["follow", "get"]);

interface Work {
  client: RayClient;
  runnerDir: string;
  python: string;
  /** The node to ask; null: any (Ray takes the head). */
  node: string | null;
  /** The name of the question's job, which Ray then keeps: it says to all who ask that this was done. */
  keptAs?: string;
}

type Frame = { kind: string } & StationResult;

/**
 * Ray gives no access to files, so each question is a job of its own: it holds no CPU, runs on the node that has the files and
 * prints the station's answers. What it prints starts with the question, so that a log stays short: the log of the training's
 * own job would have to be read from its beginning after every cut.
 */
export class RayStation implements Station {
  readonly name: string;
  private readonly work: Work;

  constructor(work: Work) {
    this.work = work;
    this.name = work.client.address;
  }

  async call(request: StationRequest, options: CallOptions = {}): Promise<StationResult> {
    let asked = request;
    for (;;) {
      const progress = new Answered(asked);
      const result = await this.once(asked, options, progress);
      // A job's output has a limit; what is left is asked for from where it stopped.
      if (result["kind"] !== "more") return result;
      asked = progress.rest();
    }
  }

  dispose(): void {}

  private async once(request: StationRequest, options: CallOptions, progress: Answered): Promise<Frame> {
    const { client, python, keptAs } = this.work;
    const { signal } = options;
    if (options.data !== undefined) throw new AppError("internal", t("`{0}` cannot be asked of a Ray cluster.", request.verb));
    const id = keptAs ?? `seesaw-ask-${randomBytes(8).toString("hex")}`;
    const { env, packages } = await this.packed(request, signal);
    try {
      await client.submit({
        entrypoint: `${python} -u seesaw_runner/ray_job.py station`,
        submission_id: id,
        metadata: { seesaw: "question", verb: request.verb },
        runtime_env: { working_dir: (await this.runner(signal)).uri, ...(packages.length > 0 && { py_modules: packages }), env_vars: env },
        ...(this.work.node !== null && { entrypoint_label_selector: { "ray.io/node-id": this.work.node } }),
      }, signal);
      const answer = new AnswerReader(this.name, async (frame) => {
        progress.note(frame);
        await options.onFrame?.(frame as unknown as StationFrame);
      });
      const job = streamed.has(request.verb)
        ? await followLog(client, id, (text) => answer.take(text), { enough: () => answer.result !== null, ...(signal !== undefined && { signal }) })
        : await this.wait(id, answer, options);
      if (answer.result !== null) return answer.result;
      throw this.noAnswer(job, answer.rest);
    } finally {
      if (keptAs === undefined) tidy(client, id);
    }
  }

  /** The job's end, and then its answer. */
  private async wait(id: string, answer: AnswerReader, { signal, silence = 0 }: CallOptions): Promise<RayJob> {
    const { client } = this.work;
    const deadline = Date.now() + Math.max(jobMs, silence);
    for (let pause = 150; ; pause = Math.min(1_000, pause * 1.3)) {
      const job = await client.job(id, signal);
      if (job === null) throw new RayError("other", t("Ray at {0} has lost the question {1}: the head was started anew.", this.name, id), 404);
      if (ended(job)) {
        await answer.take(await client.logs(id, signal));
        return job;
      }
      if (Date.now() > deadline) throw new RayError("other", t("A question to {0} was not answered: its job still is {1}. Look at it in the Ray dashboard.", this.name, job.status), 0);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  private runner(signal: AbortSignal | undefined): Promise<RayPackage> {
    return uploadedRunner(this.work.client, this.work.runnerDir, signal);
  }

  private async packed(request: StationRequest, signal: AbortSignal | undefined): Promise<{ env: Record<string, string>; packages: string[] }> {
    const text = Buffer.from(JSON.stringify(request));
    const inline = deflateSync(text).toString("base64");
    if (inline.length <= inlineMost) return { env: { SEESAW_REQUEST: inline }, packages: [] };
    const made = packageOf([{ name: "seesaw-request.json", bytes: text }]);
    await this.work.client.upload(made, signal);
    return { env: {}, packages: [made.uri] };
  }

  private noAnswer(job: RayJob, said: string): ReachError {
    if (job.driver_exit_code === 127 || job.driver_exit_code === 126) {
      return new ReachError("no-python", t("There is no {0} on the cluster at {1}: name another with `python:` of this target in seesaw.yaml.", this.work.python, this.name));
    }
    const why = [job.error_type, lastLine(job.message ?? ""), lastLine(said)].filter((part) => part !== null && part !== "").join(": ");
    return new ReachError("other", t("{0} gave no answer (job {1}): {2}", this.name, job.status, why));
  }
}

/** How far the answers to a question that is asked in parts have come. */
class Answered {
  private readonly request: StationRequest;
  private readonly known: Record<string, { size: number; mark: string }>;
  private at: { offset: number; mark: unknown } | null = null;

  constructor(request: StationRequest) {
    this.request = request;
    this.known = { ...(request["known"] as Record<string, { size: number; mark: string }> | undefined) };
  }

  note(frame: Frame): void {
    const file = String(frame["file"]);
    if (frame.kind === "restart") {
      this.known[file] = { size: 0, mark: String(frame["mark"]) };
      this.at = { offset: 0, mark: frame["mark"] };
    } else if (frame.kind === "piece") {
      const offset = Number(frame["offset"]) + Buffer.byteLength(String(frame["data"]), "base64");
      this.known[file] = { size: offset, mark: String(frame["mark"]) };
      this.at = { offset, mark: frame["mark"] };
    }
  }

  /** The question for what is left. */
  rest(): StationRequest {
    if (this.request.verb === "follow") return { ...this.request, known: this.known };
    const { max, offset = 0 } = this.request as { max?: number; offset?: number };
    if (this.at === null) return this.request;
    return { ...this.request, ...this.at, ...(typeof max === "number" && { max: Number(offset) + max - this.at.offset }) };
  }
}

/** Finds the station's lines in a log. */
class AnswerReader {
  result: Frame | null = null;
  /** What else was printed, its end. */
  rest = "";
  private readonly name: string;
  private readonly onFrame: (frame: Frame) => Promise<void>;
  private line: string[] = [];

  constructor(name: string, onFrame: (frame: Frame) => Promise<void>) {
    this.name = name;
    this.onFrame = onFrame;
  }

  async take(text: string): Promise<void> {
    const [first = "", ...more] = text.split("\n");
    this.line.push(first);
    for (const next of more) {
      await this.read(this.line.join(""));
      this.line = [next];
    }
  }

  private async read(line: string): Promise<void> {
    if (this.result !== null) return;
    const frame = frameOf(Buffer.from(line));
    if (frame === null) {
      this.rest = `${this.rest}${line}\n`.slice(-2_000);
    } else if (frame.kind === "error") {
      throw frame["code"] === "ray-job" ? new ReachError(frame["reason"] === "not-writable" || frame["reason"] === "no-python" ? frame["reason"] : "other", String(frame["message"])) : stationError(this.name, frame);
    } else if (frame.kind === "result" || frame.kind === "more") {
      this.result = frame;
    } else {
      await this.onFrame(frame);
    }
  }
}

const runners = new Map<string, Promise<RayPackage>>();

/** The runner as a package, there for the next job. */
export async function uploadedRunner(client: RayClient, runnerDir: string, signal?: AbortSignal): Promise<RayPackage> {
  let made = runners.get(runnerDir);
  if (made === undefined) {
    made = runnerPackage(runnerDir);
    runners.set(runnerDir, made);
    made.catch(() => runners.delete(runnerDir));
  }
  const found = await made;
  await client.upload(found, signal);
  return found;
}

/** Ends a question's job and lets Ray forget it, in the background. A job that was just stopped can be forgotten only when it has ended. */
function tidy(client: RayClient, id: string): void {
  void (async () => {
    for (let round = 0; round < 40; round++) {
      const job = await client.job(id);
      if (job === null) return;
      if (ended(job)) return await client.forget(id);
      if (round === 0) await client.stop(id);
      await new Promise((resolve) => setTimeout(resolve, 250).unref());
    }
  })().catch(() => {}); // out of reach: the job ends by itself, and its record with the head
}
