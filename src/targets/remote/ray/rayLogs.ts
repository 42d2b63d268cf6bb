import { WebSocket } from "ws";
import { AppError } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import { sleep } from "../../sleep.ts";
import { ended, type RayClient, type RayJob } from "./rayClient.ts";
import { RayError } from "./rayErrors.ts";

export interface LogOptions {
  signal?: AbortSignal;
  /** Milliseconds of silence after which the connection is looked after. */
  idleMs?: number;
  /** All that is wanted has come: the rest of the log is not. */
  enough?: () => boolean;
}

/** How often in a row a stream may end without a new character before it is given up. */
const fruitlessMost = 4;

/**
 * The log of a job from its beginning, as it comes, each character once; ends when the job has. While `onText` works, nothing
 * more is read. What Ray needs: no compression (with it, it sends nothing and says all is well); the stream always starts at the
 * beginning, so what was seen is skipped; a close, even an orderly one, says nothing of the job; a cut link is only silence.
 */
export async function followLog(client: RayClient, id: string, onText: (text: string) => Promise<void> | void, options: LogOptions = {}): Promise<RayJob> {
  const { signal, enough } = options;
  let seen = 0;
  let fruitless = 0;
  let sockets = true;
  for (;;) {
    if (signal?.aborted) throw cancelled(id);
    const before = seen;
    let position = 0;
    const take = async (text: string): Promise<void> => {
      const fresh = text.slice(Math.max(0, seen - position));
      position += text.length;
      if (position <= seen) return;
      seen = position;
      await onText(fresh);
    };
    if (sockets && (await stream(client, id, take, options)) === "refused") sockets = false; // a proxy, most likely
    if (signal?.aborted) throw cancelled(id);
    const job = await client.job(id, signal);
    if (job === null) throw new RayError("other", t("Ray at {0} has no job {1} any more: it was deleted, or the head was started anew.", client.address, id), 404);
    if (enough?.() === true) return job;
    if (ended(job) || !sockets) {
      position = 0;
      await take(await client.logs(id, signal));
      if (ended(job)) return job;
    }
    if (job.status === "RUNNING" && seen === before && sockets) fruitless += 1;
    else fruitless = 0;
    if (fruitless >= fruitlessMost) throw new RayError("no-route", t("The log of job {1} at {0} breaks off again and again: see to the way there (proxy, VPN).", client.address, id), 0);
    await sleep(sockets ? Math.min(2_000, 200 * 2 ** fruitless) : 2_000, signal);
  }
}

/** One websocket, until it ends or nothing comes any more. "refused": there was none. */
async function stream(client: RayClient, id: string, take: (text: string) => Promise<void>, { signal, idleMs = 10_000, enough }: LogOptions): Promise<"ended" | "refused"> {
  const { url, ...opening } = await client.socket(id);
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { perMessageDeflate: false, ...opening, handshakeTimeout: 15_000, maxPayload: 64 << 20 });
    let timer: NodeJS.Timeout | undefined;
    let working = Promise.resolve();
    let opened = false;
    let failed: { error: unknown } | null = null;
    const end = (): void => socket.terminate();
    const listen = (): void => {
      clearTimeout(timer);
      timer = setTimeout(end, idleMs);
    };
    signal?.addEventListener("abort", end, { once: true });
    socket.on("open", () => {
      opened = true;
      listen();
    });
    socket.on("message", (data: Buffer) => {
      clearTimeout(timer);
      socket.pause();
      working = working
        .then(() => (failed === null ? take(data.toString("utf8")) : undefined))
        .then(() => {
          socket.resume();
          if (enough?.() === true) end();
          else listen();
        })
        .catch((error: unknown) => {
          failed ??= { error };
          end();
        });
    });
    socket.on("error", () => {}); // `close` follows; what it means, the next question tells
    socket.on("close", () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      void working.then(() => (failed === null ? resolve(opened ? "ended" : "refused") : reject((failed as { error: unknown }).error)));
    });
    if (signal?.aborted) end();
  });
}

const cancelled = (id: string): AppError => new AppError("cancelled", t("Reading the log of job {0} was stopped: cancelled.", id));
