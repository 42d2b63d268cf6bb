import http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { AppError } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import { answerError, connectionError, lastLine, noAgent, RayError } from "./rayErrors.ts";
import type { RayPackage } from "./rayPackage.ts";
import { editorsProxyDown, editorsWay, namedProxy, proxyDown, proxyLogin, wayTo, type Way } from "./rayProxy.ts";

/** A job as Ray tells of it. */
export interface RayJob {
  submission_id: string;
  status: "PENDING" | "RUNNING" | "STOPPED" | "SUCCEEDED" | "FAILED";
  message: string | null;
  error_type: string | null;
  metadata: Record<string, string> | null;
  driver_node_id: string | null;
  driver_exit_code: number | null;
  /** Milliseconds since 1970. */
  start_time: number | null;
}

/** What a job is asked for with. */
export interface RayJobRequest {
  entrypoint: string;
  submission_id: string;
  metadata: Record<string, string>;
  runtime_env: { working_dir: string; py_modules?: string[]; env_vars?: Record<string, string> };
  entrypoint_num_cpus?: number;
  entrypoint_num_gpus?: number;
  entrypoint_memory?: number;
  entrypoint_label_selector?: Record<string, string>;
}

export interface RayNode {
  node_id: string;
  node_name: string;
  is_head_node: boolean;
  state: string;
  resources_total: Record<string, number>;
}

export interface Answer {
  status: number;
  text: string;
  /** The proxy that may have answered instead; null: none. */
  by: string | null;
}

/** What a request or a websocket is opened with. */
interface Opening {
  agent: http.Agent | undefined;
  checkServerIdentity?: (name: string, certificate: PeerCertificate) => Error | undefined;
}

interface Ask {
  body?: Uint8Array;
  json?: unknown;
  /** Milliseconds without a byte until the request is given up. */
  timeout?: number;
  signal?: AbortSignal | undefined;
  /** Statuses besides 200 that are answers. */
  allow?: readonly number[];
}

interface Exchange {
  headers: Record<string, string>;
  bytes: Uint8Array | undefined;
  timeout: number;
  signal: AbortSignal | undefined;
}

const silenceMs = 30_000;
/** The head's own job agent may be a few seconds behind its dashboard. */
const submitMs = 60_000;

export const ended = (job: RayJob): boolean => job.status === "SUCCEEDED" || job.status === "FAILED" || job.status === "STOPPED";

/**
 * Ray's Jobs API. Through node:http, because Ray refuses whatever looks like a browser, and `fetch` does. The token goes into
 * one header and nowhere else. Proxies come from the environment or, in an editor that finds them, from there; certificates are
 * always checked.
 */
export class RayClient {
  readonly address: string;
  private readonly env: NodeJS.ProcessEnv;
  private own: Way | null = null;
  private readonly token: () => Promise<string | null>;
  private readonly editorFindsProxies: () => boolean;

  constructor(address: string, token: () => Promise<string | null>, env: NodeJS.ProcessEnv = process.env, editorFindsProxies: () => boolean = () => false) {
    this.address = address;
    this.token = token;
    this.env = env;
    this.editorFindsProxies = editorFindsProxies;
  }

  /** RayError where the environment names a proxy that cannot be one. */
  private get way(): Way {
    return this.editorFindsProxies() ? editorsWay : (this.own ??= wayTo(this.address, this.env));
  }

  async version(signal?: AbortSignal): Promise<string> {
    const { text } = await this.ask("GET", "/api/version", t("tell its version"), { signal, timeout: 15_000 });
    const said = parsed(text) as { ray_version?: unknown } | null;
    if (typeof said?.ray_version !== "string") throw answerError(this.address, "", 404, text, null);
    return said.ray_version;
  }

  /** The nodes of the cluster; null where this Ray does not tell. */
  async nodes(signal?: AbortSignal): Promise<RayNode[] | null> {
    const { text } = await this.ask("GET", "/api/v0/nodes?detail=1&limit=10000", t("list its nodes"), { signal, allow: [404, 500] });
    const found = (parsed(text) as { data?: { result?: { result?: unknown } } } | null)?.data?.result?.result;
    return Array.isArray(found) ? (found as RayNode[]) : null;
  }

  /** Whether a package is there; asking also keeps it there for some minutes, until a job holds it. */
  async has(name: string, signal?: AbortSignal): Promise<boolean> {
    return (await this.ask("GET", packagePath(name), t("look for a package"), { signal, allow: [404] })).status === 200;
  }

  /** Uploads a package unless it is there. */
  async upload({ name, bytes }: RayPackage, signal?: AbortSignal): Promise<void> {
    if (!(await this.has(name, signal))) await this.ask("PUT", packagePath(name), t("take a package"), { signal, body: bytes, timeout: 120_000 });
  }

  /** Submits a job. `there`: one of this name was there already. */
  async submit(request: RayJobRequest, signal?: AbortSignal): Promise<{ there: boolean }> {
    const asked = { signal, json: request, timeout: submitMs, allow: [400, 500] };
    let { status, text } = await this.ask("POST", "/api/jobs/", t("take the job"), asked);
    // The agent of a head that was just started comes after its dashboard.
    for (let tries = 1; tries < 3 && status === 500 && noAgent.test(text); tries++) ({ status, text } = await this.ask("POST", "/api/jobs/", t("take the job"), asked));
    if (status === 200) return { there: false };
    if (/already exists/.test(text)) return { there: true };
    if (/entrypoint_label_selector|unexpected keyword/.test(text)) throw new AppError("bad-input", t("Ray at {0} is too old for Seesaw: 2.49 or newer is needed ({1}).", this.address, lastLine(text)));
    throw answerError(this.address, t("take the job"), status, text, await this.token());
  }

  /** null: Ray has no job of this name. */
  async job(id: string, signal?: AbortSignal): Promise<RayJob | null> {
    const { status, text } = await this.ask("GET", jobPath(id), t("tell of job {0}", id), { signal, allow: [404] });
    const job = parsed(text) as RayJob | null;
    if (job !== null && typeof job.status === "string") return job;
    // Only Ray's own 404 says that there is no such job: another server at this address knows none of them.
    if (status === 404 && text.includes(id)) return null;
    throw answerError(this.address, "", 404, text, null);
  }

  async jobs(signal?: AbortSignal): Promise<RayJob[]> {
    const list = parsed((await this.ask("GET", "/api/jobs/", t("list its jobs"), { signal })).text);
    if (!Array.isArray(list)) throw answerError(this.address, "", 404, "", null);
    return list as RayJob[];
  }

  async stop(id: string, signal?: AbortSignal): Promise<void> {
    await this.ask("POST", `${jobPath(id)}/stop`, t("stop job {0}", id), { signal, allow: [404] });
  }

  /** Removes what Ray remembers of an ended job. */
  async forget(id: string): Promise<void> {
    await this.ask("DELETE", jobPath(id), t("forget job {0}", id), { allow: [400, 404, 500] });
  }

  /** The whole log of a job, as text. */
  async logs(id: string, signal?: AbortSignal): Promise<string> {
    const { text } = await this.ask("GET", `${jobPath(id)}/logs`, t("give out the log of job {0}", id), { signal, timeout: 60_000 });
    return String((parsed(text) as { logs?: unknown } | null)?.logs ?? "");
  }

  /** What a websocket is opened with. */
  async socket(id: string): Promise<{ url: string; headers: Record<string, string> } & Opening> {
    return { url: `${this.address.replace(/^http/, "ws")}${jobPath(id)}/logs/tail`, headers: await this.headers(), ...this.opening(this.way.tunnel) };
  }

  dispose(): void {
    this.own?.agent?.destroy();
    this.own?.tunnel?.destroy();
  }

  private opening(agent: http.Agent | undefined): Opening {
    const host = new URL(this.address).hostname.replace(/^\[|\]$/g, "");
    if (agent !== undefined || isIP(host) === 0) return { agent };
    // Behind a proxy VS Code's agent would hold the certificate of a bare address against `localhost`. (Node keeps no such connection.)
    return { agent, checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate) };
  }

  private async headers(): Promise<Record<string, string>> {
    const token = await this.token();
    return token === null ? {} : { authorization: `Bearer ${token}` };
  }

  private async ask(method: string, path: string, what: string, { body, json, timeout = silenceMs, signal, allow = [] }: Ask): Promise<Answer> {
    const bytes = json === undefined ? body : Buffer.from(JSON.stringify(json));
    const token = await this.token();
    const { way } = this;
    const headers = {
      ...way.headers,
      accept: "application/json",
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(json !== undefined && { "content-type": "application/json" }),
      ...(bytes !== undefined && { "content-length": String(bytes.length) }),
    };
    const exchange = (): Promise<Answer> => this.exchange(way, method, path, { headers, bytes, timeout, signal });
    let answer: Answer;
    try {
      // A connection that was kept may have been closed there in this moment. All our requests may be made twice.
      answer = await exchange().catch((error: unknown) => ((error as { reused?: boolean }).reused === true && signal?.aborted !== true ? exchange() : Promise.reject(error)));
    } catch (error) {
      if (signal?.aborted) throw new AppError("cancelled", t("The question to {0} was stopped: cancelled.", this.address), { cause: error });
      if (error instanceof RayError) throw error;
      if (way.proxy !== null && (way.before !== "" || (error as { unopened?: boolean }).unopened === true)) throw proxyDown(this.address, way.proxy, error);
      throw editorsProxyDown(this.address, error) ?? connectionError(this.address, error);
    }
    if (answer.status === 407) throw proxyLogin(this.address, 407);
    if (answer.status === 403 && answer.by !== null) throw new RayError("refused", t("{0} refuses the token, or the proxy {1} does not let you go there: set the right token with the command \"Seesaw: Set Ray Token\", or in SEESAW_RAY_TOKEN, or put {0} into NO_PROXY (in VS Code: `http.noProxy`).", this.address, answer.by), 403);
    if (answer.status !== 200 && !allow.includes(answer.status)) throw answerError(this.address, what, answer.status, answer.text, token);
    return answer;
  }

  private exchange(way: Way, method: string, path: string, { headers, bytes, timeout, signal }: Exchange): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const ask = this.address.startsWith("https:") ? https.request : http.request;
      let by = way.before === "" ? null : way.proxy;
      const request = ask(`${this.address}${path}`, { method, headers, ...this.opening(way.agent), timeout, ...(way.before !== "" && { path: `${way.before}${path}` }), ...(signal !== undefined && { signal }) }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("error", reject);
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8"), by }));
      });
      // While a proxy is still being asked there is no socket: none that could be silent, and destroying the request tells nobody.
      const giveUp = (): void => {
        const error = Object.assign(new Error("timeout"), { code: "ETIMEDOUT", unopened: request.socket === null });
        opened();
        reject(error);
        request.destroy(error);
      };
      const opening = setTimeout(giveUp, timeout);
      const opened = (): void => {
        clearTimeout(opening);
        signal?.removeEventListener("abort", giveUp);
      };
      if (signal?.aborted) giveUp();
      else signal?.addEventListener("abort", giveUp, { once: true });
      request.once("socket", opened);
      request.once("close", opened);
      request.on("proxy", ({ proxy }: { proxy?: unknown }) => (by = namedProxy(proxy))); // VS Code's agents say so
      request.on("timeout", giveUp);
      request.on("error", (error: NodeJS.ErrnoException) => reject(Object.assign(error, { reused: request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE") })));
      request.end(bytes);
    });
  }
}

const packagePath = (name: string): string => `/api/packages/gcs/${name}.zip`;
const jobPath = (id: string): string => `/api/jobs/${encodeURIComponent(id)}`;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
